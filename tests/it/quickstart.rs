//! `deploy/quickstart`: its steps against two real API servers, in place of those of kind or k3d.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::signals::{self, Signal};
use crate::support::{Ran, berth, hermetic};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/quickstart/quickstart")
}

/// Prepares a run in a folder of its own, with these programs before those of the machine.
fn quickstart(folder: &Path, programs: &[(&str, &Path)], args: &[&str]) -> Command {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    for (name, program) in programs {
        let link = bin.join(name);
        if !link.exists() {
            symlink(program, link).expect("a link");
        }
    }
    let mut command = hermetic("bash");
    let path = std::env::var("PATH").expect("a path");
    command.current_dir(folder).env("PATH", format!("{}:{path}", bin.display())).arg(script()).args(args);
    command
}

/// The processes that a file names, ended when the test is.
struct Ended(PathBuf);

impl Drop for Ended {
    fn drop(&mut self) {
        for process in std::fs::read_to_string(&self.0).unwrap_or_default().lines() {
            let _ = process.parse().map(|process| signals::send(Signal::TERM, process));
        }
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn every_step_works_on_two_clusters_and_nothing_is_left() {
    let Some(oslo) = ControlPlane::start(Wanted::USUAL) else { return };
    let Some(turin) = ControlPlane::start_beside(Wanted::USUAL) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (berth, kubectl) =
        (PathBuf::from(berth().get_program()), PathBuf::from(oslo.kubectl().get_program()));
    let programs = [("berth", berth.as_path()), ("kubectl", kubectl.as_path())];
    let run = |args: &[&str]| {
        let mut command = quickstart(folder.path(), &programs, args);
        command.env("OSLO_KUBECONFIG", oslo.kubeconfig()).env("TURIN_KUBECONFIG", turin.kubeconfig());
        Ran::of(&mut command)
    };
    let _ended = Ended(folder.path().join("here/processes"));
    let ran = run(&["here"]);
    let logs = || {
        let files = std::fs::read_dir(folder.path().join("here")).into_iter().flatten().flatten();
        let files = files.filter(|file| file.path().extension().is_some_and(|kind| kind == "log"));
        files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect::<String>()
    };
    assert_eq!(ran.code, 0, "{}\n{}\n{}", ran.out, ran.err, logs());
    let lines: Vec<&str> =
        ran.out.lines().filter(|line| line.starts_with("oslo: ") || line.starts_with("turin: ")).collect();
    let expected = [
        ["oslo: hello", "turin: ciao"],
        ["oslo: good morning", "turin: ciao"],
        ["oslo: good morning", "turin: ciao"],
        ["oslo: is not there", "turin: is not there"],
    ];
    assert_eq!(lines, expected.concat(), "{}", ran.out);
    assert!(ran.out.contains("\nBerth-Allow-Delete: "), "{}", ran.out);
    // A second run in the same folder is refused, and `--clean` removes only a folder that the script made.
    let again = run(&["here"]);
    assert!(again.code != 0 && again.err.contains("here exists"), "{}", again.err);
    let other = run(&["--clean", "bin"]);
    assert!(other.code != 0 && other.err.contains("was not made by quickstart"), "{}", other.err);
    let processes = std::fs::read_to_string(folder.path().join("here/processes")).expect("a file");
    assert_eq!(processes.lines().count(), 3);
    run(&["--clean", "here"]).expect(0);
    assert!(!folder.path().join("here").exists());
    for process in processes.lines() {
        let state = Ran::of(hermetic("ps").args(["-o", "stat=", "-p", process])).out;
        assert!(state.is_empty() || state.starts_with('Z'), "{process} still runs: {state}");
    }
}

#[test]
fn it_says_what_it_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = quickstart(folder.path(), &[], &["here"]);
    let bin = folder.path().join("bin");
    for name in ["bash", "git", "mkdir", "touch", "cat"] {
        let found = Ran::of(hermetic("sh").args(["-c", &format!("command -v {name}")])).expect(0).out;
        symlink(found.trim(), bin.join(name)).expect("a link");
    }
    command.env("PATH", &bin);
    let ran = Ran::of(&mut command);
    assert!(
        ran.code != 0 && ran.err.contains("quickstart needs kubectl: https://"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(!folder.path().join("here").exists());
}
