//! A running daemon takes over what people change in the files that its settings name. These daemons poll once a day.

use std::path::Path;

use crate::signing::Keys;
use crate::support::page::page;
use crate::support::registry::Registry;
use crate::support::remote::{Fleet, Folder, Running};
use crate::support::signals::Signal;
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, hermetic, run};

/// Replaces a file whole, as a Secret's volume does.
fn put(path: &Path, content: &[u8]) {
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, content).expect("a file");
    std::fs::rename(&fresh, path).expect("a move");
}

fn is_signed_by(fleet: &Fleet, keys: &Keys, name: &str, revision: &str) -> bool {
    let allowed = format!("gpg.ssh.allowedSignersFile={}", keys.allow(&[(name, "")]).display());
    let mut git = hermetic("git");
    git.arg("--git-dir").arg(fleet.bare_path()).args(["-c", &allowed, "verify-commit", revision]);
    Ran::of(&mut git).code == 0
}

fn shows(daemon: &Running, line: &str) {
    let address = daemon.address("serving /metrics");
    until(line, || page(&address, "/metrics").lines().any(|one| one == line));
}

#[test]
fn a_new_key_signs_from_the_next_look_on_and_a_broken_one_is_passed_over() {
    let Some(keys) = Keys::new() else { return };
    let fleet = Fleet::new();
    let read = |name: &str| std::fs::read(keys.path(name)).expect("a key");
    let key = fleet.root().join("key");
    put(&key, &read("berth"));
    let more = ["--signing-key", key.to_str().expect("a text path"), "--metrics", "0"];
    let daemon = Running::daemon_that_polls("86400", &fleet, &Folder::of(&fleet), &more);
    daemon.wait_for(&["\"pass done\""]);
    let signed = |name: &str, revision: &str| is_signed_by(&fleet, &keys, name, revision);
    assert!(signed("berth", "refs/berth/clusters/a") && !signed("other", "refs/berth/clusters/a"));
    shows(&daemon, "berth_run_settings_current 1");

    put(&key, &read("other"));
    daemon.signal(Signal::HUP);
    until("the clusters' refs are signed anew", || signed("other", "refs/berth/clusters/a"));
    assert_eq!(fleet.bare(&["rev-list", "--count", RENDERED]), "1");

    put(&key, b"no key");
    fleet.edit("two");
    daemon.signal(Signal::HUP);
    daemon.wait_for(&["the changed settings cannot be used; the last ones stay"]);
    shows(&daemon, "berth_run_settings_current 0");
    until("the last key goes on signing", || {
        fleet.bare(&["rev-list", "--count", RENDERED]) == "2" && signed("other", RENDERED)
    });

    put(&key, &read("berth"));
    fleet.edit("three");
    daemon.signal(Signal::HUP);
    until("the first key signs again", || {
        fleet.bare(&["rev-list", "--count", RENDERED]) == "3" && signed("berth", RENDERED)
    });
    shows(&daemon, "berth_run_settings_current 1");
    let (code, log) = daemon.stop();
    assert_eq!((code, log.matches("the last ones stay").count()), (0, 1), "{log}");
    assert!(!log.contains("PRIVATE") && !log.contains("no key"), "{log}");
}

#[test]
#[ignore = "needs a container registry"]
fn a_new_key_of_artifacts_signs_what_the_registry_has_without_a_restart() {
    let Some(registry) = Registry::start() else { return };
    let Some(keys) = Keys::new() else { return };
    let fleet = Fleet::new();
    let read = |name: &str| std::fs::read(keys.path(name)).expect("a key");
    for name in ["berth", "other"] {
        let public = run(&["public-key", keys.path(name).to_str().expect("a text path")]).expect(0);
        std::fs::write(keys.path(&format!("{name}.pem")), public.out).expect("a file");
    }
    let key = fleet.root().join("artifact-key");
    put(&key, &read("berth"));
    let url = format!("oci://{}/fleet", registry.host());
    let more =
        ["--publish", &url, "--artifact-signing-key", key.to_str().expect("a text path"), "--metrics", "0"];
    let daemon = Running::daemon_that_polls("86400", &fleet, &Folder::of(&fleet), &more);
    // The daemon's working copy has the source and the rendered branch.
    let copy = fleet.root().join("copies/daemon");
    let verified = |name: &str| {
        let artifact = format!("{url}/clusters/a");
        let public = keys.path(&format!("{name}.pem"));
        let public = public.to_str().expect("a text path");
        let copy = copy.to_str().expect("a text path");
        run(&["verify", "--repo", copy, "--key", public, "--artifact", &artifact]).code == 0
    };
    until("the artifact is signed", || verified("berth"));
    assert!(!verified("other"));
    let seq = registry.tags("fleet/clusters/a");

    put(&key, b"no key");
    daemon.signal(Signal::HUP);
    daemon.wait_for(&["the changed settings cannot be used; the last ones stay"]);
    shows(&daemon, "berth_run_settings_current 0");
    put(&key, &read("other"));
    daemon.signal(Signal::HUP);
    until("the artifact is signed anew", || verified("other"));
    shows(&daemon, "berth_run_settings_current 1");
    assert_eq!(registry.tags("fleet/clusters/a"), seq, "it is the same folder, under the same number");
    let (code, log) = daemon.stop();
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains("PRIVATE") && !log.contains("no key"), "{log}");
}
