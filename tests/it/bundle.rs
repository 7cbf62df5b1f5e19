//! `berth bundle`: what a report of a fault needs, and no credential.

use std::path::Path;

use crate::signing::Keys;
use crate::support::page::page;
use crate::support::remote::{Fleet, Folder, Running};
use crate::support::{Ran, berth, hermetic, run, small_fleet};

const SECRET: &str = "apiVersion: types.kubefed.io/v1beta1
kind: FederatedSecret
metadata: {name: login, namespace: shop}
spec:
  template: {data: {password: aHVudGVyMi1pcy1zZWNyZXQ=}}
  placement: {clusterSelector: {}}
";

/// All texts of an archive, unpacked by another program.
fn unpacked(archive: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    Ran::of(hermetic("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path())).expect(0);
    let all = Ran::of(hermetic("find").arg(folder.path()).args(["-type", "f"])).expect(0).out;
    let mut names: Vec<&str> = all.lines().collect();
    names.sort_unstable();
    let text = |name: &&str| format!("{name}\n{}", std::fs::read_to_string(name).expect("text"));
    names.iter().map(text).collect()
}

#[test]
fn a_bundle_has_what_helps_and_none_of_the_secrets_around_it() {
    let Some(keys) = Keys::new() else { return };
    let people = small_fleet();
    people.write("apps/login.yaml", SECRET);
    people.commit("a login");
    let fleet = Fleet::of(people);
    let file = |name: &str, text: &str| {
        let path = fleet.root().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let token = file("token", "file-t0ken-of-git\n");
    let webhook = file("webhook", "s3cret-of-webhooks");
    let notify = file("notify", "https://chat.example.com/hooks/T0/B0/x9y8z7\n");
    let log = file(
        "log",
        "{\"message\":\"pass done\"}\nsomebody printed env-t0ken, file-t0ken-of-git and pr0xy-password\n",
    );
    let key = std::fs::read_to_string(keys.path("berth")).expect("a key");
    let daemon = Running::daemon(&fleet, &Folder::of(&fleet), &["--metrics", "0"]);
    daemon.wait_for(&["\"pass done\""]);
    let address = daemon.address("serving /metrics");
    let archive = fleet.root().join("bundle.tar.gz");
    let mut command = berth();
    command.args(["bundle", "--metrics", &address, "--log"]).arg(&log).arg("--out").arg(&archive);
    command.env("BERTH_REPO", fleet.root().join("copies/daemon"));
    command.env("BERTH_REMOTE", "https://ann:url-passw0rd@git.example.com/fleet.git");
    command.env("BERTH_PROXY", "http://me:pr0xy-password@proxy.example.com:3128");
    command.env("BERTH_TOKEN", "env-t0ken").env("BERTH_TOKEN_FILE", &token);
    command.env("BERTH_WEBHOOK_SECRET_FILE", &webhook).env("BERTH_NOTIFY_FILE", &notify);
    command.env("BERTH_SIGNING_KEY", keys.path("berth"));
    command.env("BERTH_MAX_REMOVED_CLUSTERS", "20%").env("BERTH_CLUSTER", "oslo");
    let ran = Ran::of(&mut command).expect(0);
    assert!(ran.err.contains("look at it before you send it"), "{}", ran.err);

    let texts = unpacked(&archive);
    let tip = fleet.bare(&["rev-parse", "berth/rendered"]);
    for helpful in [
        "README.txt",
        concat!("berth ", env!("CARGO_PKG_VERSION"), "\n"),
        "BERTH_MAX_REMOVED_CLUSTERS=20%\n",
        "BERTH_CLUSTER=oslo\n",
        "BERTH_TOKEN=(set)\n",
        "BERTH_REMOTE=(set)\n",
        &format!("{tip} "),
        "refs/berth/clusters/a\n",
        "Berth-Seq: 1\n",
        "\"clusters\"",
        "loose objects: ",
        "berth_run_passes_total{result=\"published\"} 1\n",
        "{\"message\":\"pass done\"}\nsomebody printed (redacted), (redacted) and (redacted)\n",
    ] {
        assert!(texts.contains(helpful), "no {helpful}\n{texts}");
    }
    let lines = key.lines().filter(|line| !line.starts_with("-----"));
    let secrets =
        ["url-passw0rd", "pr0xy-password", "env-t0ken", "file-t0ken", "s3cret-of-webhooks", "x9y8z7"];
    for secret in secrets.into_iter().chain(lines).chain(["aHVudGVyMi1pcy1zZWNyZXQ", "hunter2"]) {
        assert!(!texts.contains(secret), "{secret} in\n{texts}");
    }
    assert!(page(&address, "/healthz").contains("200"));

    // An archive that is there stays, and only its owner may read it.
    use std::os::unix::fs::PermissionsExt as _;
    let mode = archive.metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = std::fs::read(&archive).expect("a file");
    let again = Ran::of(&mut command).expect(6);
    assert!(again.err.contains("cannot be written"), "{}", again.err);
    assert_eq!(std::fs::read(&archive).expect("a file"), before);
}

#[test]
fn a_list_shows_all_of_a_bundle_and_writes_nothing() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let before = Ran::of(hermetic("ls").arg(repo.path())).out;
    let log = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(log.path(), "{\"message\":\"pass done\"}\n").expect("written");
    let log = log.path().to_str().expect("text");
    let ran =
        run(&["bundle", "--list", "--repo", repo.arg(), "--metrics", "127.0.0.1:1", "--log", log]).expect(0);
    for file in ["README.txt", "versions.txt", "settings.txt", "refs.txt", "publications.txt", "report.json"]
    {
        assert!(ran.out.contains(&format!("== {file}\n")), "{}", ran.out);
    }
    assert!(ran.out.contains("`127.0.0.1:1` does not answer: "), "{}", ran.out);
    assert_eq!(Ran::of(hermetic("ls").arg(repo.path())).out, before);
    let empty = tempfile::tempdir().expect("a folder");
    run(&["bundle", "--list", "--repo", empty.path().to_str().expect("text")]).expect(6);
    run(&["bundle", "--list", "--repo", repo.arg(), "--log", "/nonexistent"]).expect(6);
}
