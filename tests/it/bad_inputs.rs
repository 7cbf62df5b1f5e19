//! What a member is given to read may be anything: files that are no objects, trees with links in them,
//! repositories that are damaged, disks that are full. Each fault is told with its place, harms its own object alone, and
//! is never taken for a wish to remove.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::support::member::Member;
use crate::support::programs::write_script;
use crate::support::{RENDERED, Ran, Repo, berth, hermetic, small_fleet};

fn file(member: &Member, name: &str, bytes: impl Into<Vec<u8>>) -> (String, Vec<u8>) {
    (format!("{}/ConfigMap_{name}.yaml", member.name), bytes.into())
}

fn map(member: &Member, name: &str, data: &str) -> (String, Vec<u8>) {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {}, annotations: {{berth.dev/workload: F/x/{name}}}}}\n{data}",
        member.name
    );
    file(member, name, text)
}

fn value(member: &Member, name: &str) -> Option<Json> {
    member.get("configmap", name).map(|map| map["data"]["key"].clone())
}

#[test]
#[ignore = "needs Kubernetes"]
fn files_that_are_no_object_are_told_with_their_place_and_what_they_stood_for_stays() {
    let Some(member) = Member::new("files") else { return };
    let bomb = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let before = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(", ")));
        }
        text.into_bytes()
    };
    let deep = [b"data: ".to_vec(), vec![b'['; 10_000]].concat();
    let huge = [b"data: {key: \"".to_vec(), vec![b'a'; 40 << 20], b"\"}\n".to_vec()].concat();
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: files}\n";
    let bad: Vec<(&str, Vec<u8>, &str)> = vec![
        ("bomb", bomb, "its file cannot be read, at"),
        ("deep", deep, "its file cannot be read, at"),
        ("huge", huge, "it has 41943056 bytes, more than the limit of 10485760"),
        ("twice", map(&member, "twice", "data: {key: a, key: b}\n").1, "at 4:16"),
        ("tab", map(&member, "tab", "data:\n\tkey: a\n").1, "its file cannot be read, at 5:2"),
        ("nul", map(&member, "nul", "data: {key: \"a\0b\"}\n").1, "its file cannot be read, at 4:"),
        (
            "latin",
            [map(&member, "latin", "data: {key: \"caf").1, b"\xe9\"}\n".to_vec()].concat(),
            "its file cannot be read, at 4:",
        ),
        ("two", format!("{head}---\n{head}").into_bytes(), "its file holds 2 objects, not one"),
        ("half", format!("{head}---\nkey: [\n").into_bytes(), "its file cannot be read, at 6:1"),
        (
            "pointer",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n".to_vec(),
            "its file",
        ),
        ("nothing", b"# nothing\n".to_vec(), "its file holds 0 objects, not one"),
        ("elsewhere", map(&member, "other", "").1, "which belongs in `files/ConfigMap_other.yaml`"),
        ("number", map(&member, "number", "data: {key: 1e3}\n").1, "the API server refuses it"),
    ];
    let mut files: Vec<(String, Vec<u8>)> =
        bad.iter().map(|(name, _, _)| map(&member, name, "data: {key: good}\n")).collect();
    files.push(map(&member, "well", "data: {key: good}\n"));
    member.publish_files(&files, &[]);
    member.sync(&[]).expect(0);

    let mut files: Vec<(String, Vec<u8>)> =
        bad.iter().map(|(name, bytes, _)| file(&member, name, bytes.clone())).collect();
    files.push(map(&member, "well", "data: {key: better}\n"));
    // What may look odd and is well: a mark at the start, carriage returns, text that would be another thing without its quotes.
    let odd = map(&member, "odd", "data: {key: 'NO', a: '1e3', b: '0o17', c: '2001-01-01'}\n").1;
    let odd = String::from_utf8(odd).expect("text").replace('\n', "\r\n");
    files.push(file(&member, "odd", [b"\xef\xbb\xbf".to_vec(), odd.into_bytes()].concat()));
    member.publish_files(&files, &[]);
    let began = Instant::now();
    let ran = member.sync(&[]).expect(7);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    for (name, _, words) in &bad {
        let line = ran.err.lines().find(|line| line.starts_with(&format!("ConfigMap files/{name}: ")));
        let line = line.unwrap_or_else(|| panic!("nothing about {name} in\n{}", ran.err));
        assert!(line.contains(words) && line.len() < 2_000, "{line}");
        assert_eq!(value(&member, name), Some(json!("good")), "{name}");
    }
    assert_eq!(value(&member, "well"), Some(json!("better")));
    let odd = member.get("configmap", "odd").expect("it is applied");
    assert_eq!(odd["data"], json!({"key": "NO", "a": "1e3", "b": "0o17", "c": "2001-01-01"}));
    assert!(ran.out.contains("0 removals"), "{}", ran.out);
}

#[test]
#[ignore = "needs Kubernetes"]
fn links_and_submodules_in_a_folder_are_followed_nowhere_and_remove_nothing() {
    let Some(member) = Member::new("links") else { return };
    let names = ["link", "device", "module", "folder", "well"];
    let files: Vec<_> = names.iter().map(|name| map(&member, name, "data: {key: good}\n")).collect();
    let outside = ("links-too/ConfigMap_a.yaml".to_owned(), map(&member, "a", "").1);
    let outside = (
        outside.0,
        String::from_utf8(outside.1)
            .expect("text")
            .replace("namespace: links", "namespace: links-too")
            .into_bytes(),
    );
    member.kubectl(&["create", "namespace", "links-too"]);
    member.publish_files(&[files.clone(), vec![outside]].concat(), &[]);
    member.sync(&[]).expect(0);

    let blob = |text: &str| {
        std::fs::write(member.repo.path().join("blob"), text).expect("a file");
        member.repo.git(&["hash-object", "-w", "blob"])
    };
    let commit = member.repo.id("refs/berth/clusters/links");
    let entries = [
        format!("120000,{},links/ConfigMap_link.yaml", blob("../../secret.yaml")),
        format!("120000,{},links/ConfigMap_device.yaml", blob("/dev/zero")),
        format!("160000,{commit},links/ConfigMap_module.yaml"),
        format!("100644,{},links/ConfigMap_folder.yaml/inside", blob("a: b\n")),
        // In place of a whole namespace's folder.
        format!("120000,{},links-too", blob("links")),
    ];
    let well = map(&member, "well", "data: {key: better}\n");
    member.publish_entries(&[well], &entries, &[]);
    let ran = member.sync(&[]).expect(7);
    for said in [
        "ConfigMap links/link: it is not a plain file in the cluster's folder",
        "ConfigMap links/device: it is not a plain file in the cluster's folder",
        "ConfigMap links/module: it is not a plain file in the cluster's folder",
        "File links-too: it is not a plain file in the cluster's folder",
        "ConfigMap_folder.yaml/inside",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert!(ran.out.contains("0 removals"), "{}", ran.out);
    for name in names {
        let wanted = if name == "well" { "better" } else { "good" };
        assert_eq!(value(&member, name), Some(json!(wanted)), "{name}");
    }
    assert_eq!(member.kubectl(&["get", "configmap", "a", "-n", "links-too", "-o", "name"]), "configmap/a\n");
    member.kubectl(&["delete", "namespace", "links-too", "--wait=false"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_patch_of_the_member_that_does_not_fit_blocks_its_object_alone_and_applies_no_part() {
    let Some(member) = Member::new("patches") else { return };
    let web = |name: &str, image: &str| {
        let mut web = member.deployment(name, image);
        web["spec"]["replicas"] = json!(0);
        web["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["a", "b"]);
        web["metadata"]["annotations"]["berth.dev/workload"] = json!(format!("F/x/{name}"));
        web
    };
    const ARGS: &str = "/spec/template/spec/containers/0/args";
    let fits = [
        ("append", format!("{{op: add, path: {ARGS}/-, value: c}}"), json!(["a", "b", "c"])),
        ("insert", format!("{{op: add, path: {ARGS}/1, value: c}}"), json!(["a", "c", "b"])),
        (
            "tested",
            format!("{{op: test, path: {ARGS}/0, value: a}}, {{op: remove, path: {ARGS}/0}}"),
            json!(["b"]),
        ),
        (
            "escaped",
            "{op: add, path: /metadata/annotations/example.com~1a~0b, value: c}".to_owned(),
            json!(["a", "b"]),
        ),
        ("moved", format!("{{op: move, from: {ARGS}/0, path: {ARGS}/1}}"), json!(["b", "a"])),
    ];
    let faulty = [
        ("beyond", format!("{{op: add, path: {ARGS}/7, value: c}}")),
        ("leading-zero", format!("{{op: replace, path: {ARGS}/01, value: c}}")),
        ("absent", "{op: remove, path: /spec/nothing/here}".to_owned()),
        ("differs", format!("{{op: test, path: {ARGS}/0, value: z}}")),
        ("into-itself", "{op: move, from: /spec/template, path: /spec/template/spec/x}".to_owned()),
        ("root", "{op: remove, path: \"\"}".to_owned()),
        ("renamed", "{op: replace, path: /metadata/name, value: other}".to_owned()),
    ];
    let names: Vec<&str> = fits
        .iter()
        .map(|it| it.0)
        .filter(|name| *name != "escaped")
        .chain(faulty.iter().map(|it| it.0))
        .collect();
    member.publish(&names.iter().map(|name| web(name, "example.com/web:1")).collect::<Vec<_>>());
    member.sync(&[]).expect(0);
    member.publish(&names.iter().map(|name| web(name, "example.com/web:2")).collect::<Vec<_>>());
    let mut text = "apiVersion: berth.dev/v1alpha1\nkind: LocalOverrides\noverrides:\n".to_owned();
    let mut add = |name: &str, patches: &str| {
        text.push_str(&format!(
            "- target: {{kind: Deployment, namespace: patches, name: {name}}}\n  patches:\n"
        ));
        // A part that fits comes first, so that it would show.
        text.push_str("  - {op: add, path: /metadata/annotations/example.com~1part, value: \"yes\"}\n");
        for patch in patches.split("}, {") {
            text.push_str(&format!("  - {{{}}}\n", patch.trim_matches(['{', '}'])));
        }
    };
    fits.iter().for_each(|(name, patches, _)| add(name, patches));
    faulty.iter().for_each(|(name, patches)| add(name, patches));
    let overrides = member.repo.path().join("overrides.yaml");
    std::fs::write(&overrides, text).expect("a file");
    let ran = member.sync(&["--overrides", overrides.to_str().expect("a text path")]).expect(7);
    let part = |web: &Json| web["metadata"]["annotations"]["example.com/part"].clone();
    let container = |web: &Json| web["spec"]["template"]["spec"]["containers"][0].clone();
    for (name, _, args) in fits.iter().filter(|it| it.0 != "escaped") {
        let web = member.get("deployment", name).expect("it is there");
        assert_eq!(
            (&container(&web)["args"], &container(&web)["image"]),
            (args, &json!("example.com/web:2")),
            "{name}"
        );
        assert_eq!(part(&web), "yes");
    }
    for (name, _) in &faulty {
        let web = member.get("deployment", name).expect("it is there");
        assert_eq!(container(&web)["image"], "example.com/web:1", "{name}");
        assert_eq!((&container(&web)["args"], part(&web)), (&json!(["a", "b"]), Json::Null), "{name}");
        assert!(ran.err.contains(&format!("Deployment.apps patches/{name}: ")), "{name}\n{}", ran.err);
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_repository_that_lost_something_is_an_error_and_removes_nothing() {
    let Some(member) = Member::new("damaged") else { return };
    let all = ["a", "b", "c"].map(|name| map(&member, name, "data: {key: good}\n"));
    member.publish_files(&all, &[]);
    member.sync(&[]).expect(0);
    let reference = "refs/berth/clusters/damaged";
    for (round, what) in ["tree", "blob", "commit"].into_iter().enumerate() {
        member.publish_files(&[map(&member, "a", &format!("data: {{key: \"{round}\"}}\n"))], &[]);
        let id = match what {
            "tree" => member.repo.id(&format!("{reference}:damaged")),
            "blob" => member.repo.id(&format!("{reference}:damaged/ConfigMap_a.yaml")),
            _ => member.repo.id(reference),
        };
        let object = member.repo.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
        let whole = std::fs::read(&object).expect("an object");
        std::fs::set_permissions(&object, PermissionsExt::from_mode(0o644)).expect("permissions");
        for damage in [&whole[..whole.len() / 2], &[][..], b"nonsense"] {
            std::fs::write(&object, damage).expect("a file");
            let ran = member.sync(&[]);
            assert!(![0, 7, 70].contains(&ran.code), "{what}: {}\n{}{}", ran.code, ran.out, ran.err);
        }
        std::fs::remove_file(&object).expect("it is there");
        let ran = member.sync(&[]);
        assert!(![0, 7, 70].contains(&ran.code), "{what}: {}\n{}{}", ran.code, ran.out, ran.err);
        assert!(["a", "b", "c"].iter().all(|name| value(&member, name) == Some(json!("good"))), "{what}");
        std::fs::write(&object, whole).expect("a file");
    }
    // Whole again, it counts.
    member.sync(&[]).expect(0);
    assert_eq!((value(&member, "a"), value(&member, "b")), (Some(json!("2")), None));
}

/// berth, where no file may grow: as on a disk that is full.
fn on_a_full_disk(command: &std::process::Command) -> Ran {
    let mut shell = hermetic("bash");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
    Ran::of(shell.arg(command.get_program()).args(command.get_args()))
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_full_disk_stops_no_object_of_a_member_and_leaves_no_half_commit() {
    let Some(member) = Member::new("disk") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let kubeconfig = member.plane.kubeconfig().to_str().expect("a text path").to_owned();
    let sync = |more: &[&str]| {
        let mut command = berth();
        command.args([
            "sync",
            "--once",
            "--target",
            "kube",
            "--repo",
            member.repo.arg(),
            "--kubeconfig",
            &kubeconfig,
        ]);
        command.args(["--cluster", "disk", "--fleet", "disk"]).args(more);
        command
    };
    let ran = on_a_full_disk(&sync(&[])).expect(6);
    assert!(ran.err.contains("the status could not be reported"), "{}", ran.err);
    assert!(member.get("configmap", "web").is_some());
    member.repo.git(&["fsck", "--strict", "--no-dangling"]);
    Ran::of(&mut sync(&[])).expect(0);
    assert!(!member.repo.id("refs/berth/status/disk").is_empty());

    let fleet = small_fleet();
    let mut run = berth();
    run.args(["run", "--once", "--repo", fleet.arg()]);
    let ran = on_a_full_disk(&run);
    assert!(![0, 70].contains(&ran.code), "{}\n{}", ran.code, ran.err);
    fleet.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(fleet.git(&["for-each-ref", "--format=x", RENDERED, "refs/berth/"]), "");
    fleet.publish().expect(0);
    assert_eq!(fleet.git(&["rev-list", "--count", RENDERED]), "1");
}

#[test]
fn nothing_that_a_repositorys_settings_name_is_run_and_files_are_read_as_they_are_stored() {
    let fleet = Repo::new();
    let marker = fleet.path().join("it-ran");
    let touch = format!("touch {}", marker.display());
    for (path, text) in [
        ("clusters/a.yaml", crate::support::cluster("a", &[])),
        ("apps/shop.yaml", crate::support::namespace("shop")),
        (
            "apps/web.yaml",
            crate::support::config_map("web", "one", "{clusterSelector: {}}").replace('\n', "\r\n"),
        ),
        (
            ".gitattributes",
            "*.yaml text eol=crlf filter=evil ident export-subst\napps/** export-ignore\n".to_owned(),
        ),
    ] {
        fleet.write(path, text);
    }
    // Committed before the filter exists, so that git itself has nothing to run.
    fleet.commit("start");
    let (ext, helper) = (format!("ext::{touch}"), format!("!{touch}"));
    let settings = [
        ("filter.evil.smudge", &*touch),
        ("filter.evil.clean", &touch),
        ("filter.evil.process", &touch),
        ("core.fsmonitor", &touch),
        ("core.sshCommand", &touch),
        ("core.pager", &touch),
        ("core.editor", &touch),
        ("core.autocrlf", "true"),
        ("diff.external", &touch),
        ("gpg.program", &touch),
        ("commit.gpgsign", "true"),
        ("remote.origin.url", &ext),
        ("protocol.ext.allow", "always"),
        ("credential.helper", &helper),
    ];
    for (name, value) in settings {
        fleet.git(&["config", name, value]);
    }
    let hooks = fleet.path().join(".git/hooks");
    std::fs::create_dir_all(&hooks).expect("a folder");
    for hook in [
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-update",
        "update",
        "pre-receive",
        "post-checkout",
        "pre-push",
    ] {
        write_script(&hooks.join(hook), &touch);
    }
    // A remote of which nothing was fetched may have a state already.
    Ran::of(berth().args(["run", "--once", "--first", "--repo", fleet.arg()])).expect(0);
    let target = fleet.path().join("target");
    let mut sync = berth();
    sync.args([
        "sync",
        "--once",
        "--cluster",
        "a",
        "--repo",
        fleet.arg(),
        "--target",
        &format!("dir:{}", target.display()),
    ]);
    Ran::of(&mut sync).expect(0);
    for args in [
        &["plan", "--repo", fleet.arg()][..],
        &["verify", RENDERED, "--repo", fleet.arg()],
        &["status", "--repo", fleet.arg()],
    ] {
        Ran::of(berth().args(args)).expect(0);
    }
    // A remote, which has settings of its own, and berth's copy of it, into which somebody wrote.
    let remote = tempfile::tempdir().expect("a folder");
    let bare = remote.path().join("fleet.git");
    fleet.git(&[
        "-c",
        "core.fsmonitor=false",
        "clone",
        "-q",
        "--bare",
        ".",
        bare.to_str().expect("a text path"),
    ]);
    let copy = remote.path().join("copy");
    let run = || {
        let mut run = berth();
        run.args(["run", "--once", "--source", "main", "--repo"]).arg(&copy).arg("--remote").arg(&bare);
        Ran::of(&mut run).expect(0)
    };
    run();
    for (name, value) in settings.iter().filter(|(name, _)| *name != "remote.origin.url") {
        Ran::of(hermetic("git").arg("config").arg("--file").arg(copy.join("config")).args([name, *value]))
            .expect(0);
    }
    std::fs::create_dir_all(copy.join("hooks")).expect("a folder");
    for hook in std::fs::read_dir(&hooks).expect("a folder") {
        let hook = hook.expect("an entry");
        std::fs::copy(hook.path(), copy.join("hooks").join(hook.file_name())).expect("a file");
    }
    run();
    assert!(!marker.exists(), "something of the repository was run");
    let stored = std::fs::read_to_string(target.join("shop/ConfigMap_web.yaml")).expect("it is applied");
    assert!(stored.contains("value: one\n") && !stored.contains('\r'), "{stored:?}");
}
