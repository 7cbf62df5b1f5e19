//! The client of the renderer, against a renderer that crashes, hangs, and answers anything.

use std::path::Path;
use std::time::{Duration, Instant};

use berth_sources::{Answer, Failure, HelmRequest, Limits, Renderer, Request, Tree, TreeFile};

use super::fake_renderer;

/// A renderer with short limits.
fn short(folder: &Path) -> Renderer {
    let limits = Limits { time: Duration::from_secs(1), output: 1 << 20, ..Limits::default() };
    Renderer::with(fake_renderer(folder, "fake 1"), limits)
}

fn render(renderer: &Renderer, template: &str) -> Result<String, Failure> {
    let file = ("templates/a.yaml", "100644", template.as_bytes());
    let tree = Tree::of([file].into_iter());
    let request = Request::Helm(HelmRequest { path: ".".to_owned(), ..HelmRequest::default() });
    let files = || {
        let (path, mode, bytes) = file;
        Ok(vec![TreeFile { path: path.to_owned(), mode, bytes: bytes.to_vec() }])
    };
    let answer = renderer.render(&tree, &request, &files)?;
    let Answer::Helm(answer) = &*answer else { panic!("another answer") };
    Ok(answer.documents.iter().map(|document| document.text.as_str()).collect())
}

fn message(rendered: Result<String, Failure>) -> String {
    match rendered {
        Err(Failure::Renderer { message, .. }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs Python"]
fn equal_inputs_are_rendered_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let renderer = short(folder.path());
    for _ in 0..3 {
        assert_eq!(render(&renderer, "kind: A\n").as_deref(), Ok("kind: A\n"));
        assert!(matches!(render(&renderer, "{{ fail }}"), Err(Failure::Source(_))));
    }
    assert_eq!(renderer.count(), 2);
    assert_eq!(render(&renderer, "kind: B\n").as_deref(), Ok("kind: B\n"));
    assert_eq!(renderer.count(), 3);
}

#[test]
#[ignore = "needs Python"]
fn whatever_a_renderer_does_ends_in_time_and_harms_no_other_render() {
    for (template, expected) in [
        ("{{ crash }}", "the renderer ended: out of luck"),
        ("{{ stop }}", "the renderer ended"),
        ("{{ garbage }}", "the renderer's answer cannot be read"),
        ("{{ flood }}", "above the limit of"),
        ("{{ hang }}", "the renderer did not answer within"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let renderer = short(folder.path());
        let begun = Instant::now();
        let found = message(render(&renderer, template));
        assert!(found.contains(expected), "{template}: {found}");
        assert_eq!(render(&renderer, "kind: A\n").as_deref(), Ok("kind: A\n"), "{template}");
        // The same input is not tried again at once.
        let count = renderer.count();
        assert!(message(render(&renderer, template)).contains(expected), "{template}");
        assert_eq!(renderer.count(), count, "{template}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{template}: {:?}", begun.elapsed());
    }
}

#[test]
#[ignore = "needs Python"]
fn a_renderer_that_somebody_ended_is_started_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let renderer = short(folder.path());
    assert!(render(&renderer, "kind: A\n").is_ok());
    // A renderer that fails after it has worked gets a second chance, with a fresh process.
    assert!(message(render(&renderer, "{{ crash }}")).contains("the renderer ended"));
    assert!(render(&renderer, "kind: B\n").is_ok());
}

#[test]
fn a_program_that_is_no_renderer_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, identity) in [("missing", ""), ("other", "#!/bin/sh\necho hello\n")] {
        let program = folder.path().join(name);
        if !identity.is_empty() {
            crate::support::programs::write_program(&program, identity);
        }
        let renderer = Renderer::with(program, Limits::default());
        let found = message(render(&renderer, "kind: A\n"));
        assert!(found.contains("does not start") || found.contains("is not a renderer"), "{found}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_renderer_has_no_file_and_no_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("secret"), "secret").expect("a file");
    let program = folder.path().join("spy");
    let secret = folder.path().join("secret");
    let script = format!(
        "#!/bin/sh\necho 'berth-renderer protocol 1'\necho \"env: $(/usr/bin/env | grep -v '^_=\\|^PWD=\\|^SHLVL=\\|^OLDPWD=')\"\n\
         echo \"file: $(cat {} 2>&1)\"\necho \"wrote: $(echo x 2>&1 > {}/out)\"\n",
        secret.display(),
        folder.path().display()
    );
    crate::support::programs::write_program(&program, &script);
    let identity = Renderer::with(program, Limits::default()).identity().expect("an identity");
    assert!(identity.starts_with("env: , file:"), "{identity}");
    // Kernels without Landlock cannot refuse files.
    if std::fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|all| all.contains("landlock")) {
        assert!(identity.contains("file: cat:"), "{identity}");
    }
    assert!(
        !identity.contains("file: secret") || !Path::new("/sys/kernel/security/lsm").exists(),
        "{identity}"
    );
}
