//! A member applies only what an allowed key signed, and keeps to the last good folder otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{RENDERED, Ran, Repo, berth, hermetic, run, small_fleet};

/// Keys of OpenSSH's own making. `None`, loudly, where there is no OpenSSH.
pub struct Keys(tempfile::TempDir);

impl Keys {
    pub fn new() -> Option<Keys> {
        if hermetic("ssh-keygen").arg("-?").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "there is no ssh-keygen");
            eprintln!("NOT TESTED: there is no ssh-keygen");
            return None;
        }
        let keys = Keys(tempfile::tempdir().expect("a folder"));
        for name in ["berth", "other"] {
            keys.make(name, &["-t", "ed25519", "-N", ""]);
        }
        Some(keys)
    }

    pub fn make(&self, name: &str, kind: &[&str]) {
        let mut command = hermetic("ssh-keygen");
        command.args(["-q", "-C", name, "-f"]).arg(self.path(name)).args(kind);
        Ran::of(&mut command).expect(0);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file that allows these keys, each with options.
    pub fn allow(&self, keys: &[(&str, &str)]) -> PathBuf {
        let line = |(name, options): &(&str, &str)| {
            let public = std::fs::read_to_string(self.path(&format!("{name}.pub"))).expect("a key");
            format!("{name}@example.com {options} {public}")
        };
        let text: String = keys.iter().map(line).collect();
        let path = self.path("allowed");
        std::fs::write(&path, text).expect("a file");
        path
    }
}

pub fn publish(repo: &Repo, key: Option<&Path>) -> Ran {
    let mut command = berth();
    command.args(["run", "--once", "--repo", repo.arg()]);
    if let Some(key) = key {
        command.arg("--signing-key").arg(key);
    }
    Ran::of(&mut command)
}

pub fn sync(repo: &Repo, target: &Path, allowed: &Path) -> Ran {
    repo.sync("a", target, &["--allowed-signers", allowed.to_str().expect("a text path")])
}

/// The tree without anything.
const EMPTY: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

pub const REF: &str = "refs/berth/clusters/a";

/// `git verify-commit`, which asks OpenSSH.
pub fn git_says(repo: &Repo, allowed: &Path, revision: &str) -> i32 {
    let file = format!("gpg.ssh.allowedSignersFile={}", allowed.display());
    let mut command = hermetic("git");
    command.current_dir(repo.path()).args(["-c", "gpg.format=ssh", "-c", &file, "verify-commit", revision]);
    Ran::of(&mut command).code
}

#[test]
fn what_the_daemon_signs_counts_for_members_and_for_git_itself() {
    let Some(keys) = Keys::new() else { return };
    let (fleet, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    let allowed = keys.allow(&[("other", ""), ("berth", "namespaces=\"git\",valid-after=\"20200101Z\"")]);
    for name in [REF, "refs/heads/berth/rendered", "refs/berth/processed"] {
        assert_eq!(git_says(&fleet, &allowed, name), 0, "{name}");
    }
    sync(&fleet, &folder.path().join("a"), &allowed).expect(0);
    assert!(folder.path().join("a/shop/ConfigMap_web.yaml").exists());
    // The same inputs and the same key give the same commits, and proofs pass over who signed.
    run(&["verify", "berth/rendered", "--repo", fleet.arg()]).expect(0);
    let (before, again) = (fleet.id(REF), small_fleet());
    publish(&again, Some(&keys.path("berth"))).expect(0);
    assert_eq!(again.id(REF), before);
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    assert_eq!(fleet.id(REF), before, "nothing is signed twice");
}

#[test]
fn the_first_key_signs_a_branch_on_which_nothing_else_changes() {
    let Some(keys) = Keys::new() else { return };
    let fleet = small_fleet();
    publish(&fleet, None).expect(0);
    let (tip, tree) = (fleet.id(RENDERED), fleet.id(&format!("{RENDERED}^{{tree}}")));
    let ran = publish(&fleet, Some(&keys.path("berth"))).expect(0);
    assert!(ran.out.contains("as number 2 on"), "{}", ran.out);
    assert_eq!((fleet.id(&format!("{RENDERED}~1")), fleet.id(&format!("{RENDERED}^{{tree}}"))), (tip, tree));
    assert_eq!(git_says(&fleet, &keys.allow(&[("berth", "")]), RENDERED), 0);
    run(&["verify", "berth/rendered", "--repo", fleet.arg()]).expect(0);
    let signed = fleet.id(RENDERED);
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    publish(&fleet, None).expect(0);
    assert_eq!(fleet.id(RENDERED), signed, "once is enough");
}

#[test]
fn unsigned_by_another_key_expired_or_tampered_is_not_applied_and_the_last_good_folder_stays() {
    let Some(keys) = Keys::new() else { return };
    let (fleet, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    let target = folder.path().join("a");
    let web = target.join("shop/ConfigMap_web.yaml");
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    let allowed = keys.allow(&[("berth", "")]);
    sync(&fleet, &target, &allowed).expect(0);
    let good = std::fs::read_to_string(&web).expect("it is applied");
    let (signed, tree) = (fleet.id(REF), fleet.id(&format!("{REF}^{{tree}}")));

    let refused = |what: &str, why: &str| {
        let ran = sync(&fleet, &target, &allowed).expect(5);
        assert!(ran.err.contains("no folder may be applied"), "{what}: {}", ran.err);
        assert!(ran.err.contains(why), "{what}: {}", ran.err);
        assert_eq!(std::fs::read_to_string(&web).expect("it stays"), good, "{what}");
        let status = fleet.git(&["cat-file", "-p", "refs/berth/status/a:status.yaml"]);
        assert!(status.contains("is not trusted"), "{what}: {status}");
    };
    let message = fleet.git(&["log", "-1", "--format=%B", REF]).replace("Berth-Seq: 1", "Berth-Seq: 7");
    let commit = |more: &[&str]| {
        let mut command: Command = hermetic("git");
        command.current_dir(fleet.path()).args(more).args(["commit-tree"]);
        if more.is_empty() {
            &mut command
        } else {
            command.arg("-S")
        };
        Ran::of(command.args(["-m", &message, EMPTY])).expect(0).out.trim().to_owned()
    };
    let point = |id: &str| fleet.git(&["update-ref", REF, id]);

    point(&commit(&[]));
    refused("unsigned", "it is not signed");
    let other = format!("user.signingKey={}", keys.path("other").display());
    point(&commit(&["-c", "gpg.format=ssh", "-c", &other]));
    refused("another key", "which is not allowed");
    // The signed commit with another tree: the signature stays, and does not fit.
    let raw = fleet.git(&["cat-file", "commit", &signed]);
    let forged = format!("{}\n", raw.replace(&tree, EMPTY));
    fleet.write(".git/forged", forged);
    point(&fleet.git(&["hash-object", "-t", "commit", "-w", ".git/forged"]));
    refused("tampered", "does not match");
    point(&signed);
    keys.allow(&[("berth", "valid-before=\"20250101Z\"")]);
    refused("expired", "which was valid until 2025-01-01T00:00:00Z");
    keys.allow(&[("berth", "namespaces=\"file\"")]);
    refused("for other uses", "which is not allowed to sign commits");
    keys.allow(&[("berth", "")]);
    sync(&fleet, &target, &allowed).expect(0);
}

#[test]
fn a_new_key_signs_anew_what_the_old_one_had_signed() {
    let Some(keys) = Keys::new() else { return };
    let (fleet, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    publish(&fleet, None).expect(0);
    let allowed = keys.allow(&[("other", "")]);
    sync(&fleet, &folder.path().join("a"), &allowed).expect(5);
    for key in ["berth", "other"] {
        publish(&fleet, Some(&keys.path(key))).expect(0);
    }
    sync(&fleet, &folder.path().join("a"), &allowed).expect(0);
    assert!(fleet.git(&["log", "-1", "--format=%B", REF]).contains("Berth-Seq: 1"), "the sequence stays");
}

#[test]
fn what_a_process_without_a_key_took_for_sound_is_checked_by_one_with_a_key() {
    let Some(keys) = Keys::new() else { return };
    let fleet = small_fleet();
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    // The signature stays, and does not fit.
    let raw = fleet.git(&["cat-file", "commit", REF]);
    let committer = raw.lines().find(|line| line.starts_with("committer ")).expect("a committer");
    let other = raw.replace(committer, "committer x <x@example.com> 0 +0000");
    fleet.write(".git/forged", format!("{other}\n"));
    let forged = fleet.git(&["hash-object", "-t", "commit", "-w", ".git/forged"]);
    fleet.git(&["update-ref", REF, &forged]);
    // A new state, so that the process leaves what it found.
    fleet.write("apps/only.yaml", crate::support::config_map("only", "one", "{clusters: [{name: b}]}"));
    fleet.commit("one more for another cluster");
    publish(&fleet, None).expect(0);
    assert_eq!(fleet.id(REF), forged, "it says what it should");
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    assert_eq!(git_says(&fleet, &keys.allow(&[("berth", "")]), REF), 0);
}

#[test]
fn over_a_remote_the_last_good_folder_goes_on_being_kept_to() {
    let Some(keys) = Keys::new() else { return };
    let (fleet, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    let allowed = keys.allow(&[("berth", "")]);
    let (target, copy) = (folder.path().join("a"), folder.path().join("copy"));
    let sync = || {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", "a", "--remote", fleet.arg(), "--repo"]).arg(&copy);
        command.arg("--target").arg(format!("dir:{}", target.display()));
        Ran::of(command.arg("--allowed-signers").arg(&allowed))
    };
    sync().expect(0);
    fleet.write("apps/web.yaml", crate::support::config_map("web", "two", "{clusterSelector: {}}"));
    fleet.commit("two");
    publish(&fleet, Some(&keys.path("other"))).expect(0);
    let web = target.join("shop/ConfigMap_web.yaml");
    std::fs::remove_file(&web).expect("it was there");
    let ran = sync().expect(5);
    assert!(ran.err.contains("which is not allowed"), "{}", ran.err);
    // Drift is corrected all the same, to the last good folder.
    assert!(std::fs::read_to_string(&web).expect("it is back").contains("one"));
    publish(&fleet, Some(&keys.path("berth"))).expect(0);
    sync().expect(0);
    assert!(std::fs::read_to_string(&web).expect("it is there").contains("two"));
}

#[test]
fn a_key_that_can_not_sign_is_refused_without_a_word_of_it() {
    let Some(keys) = Keys::new() else { return };
    let fleet = small_fleet();
    keys.make("locked", &["-t", "ed25519", "-N", "secret words"]);
    keys.make("rsa", &["-t", "rsa", "-b", "2048", "-N", ""]);
    for (name, why) in [
        ("locked", "protected by a passphrase"),
        ("rsa", "not an Ed25519 key"),
        ("berth.pub", "not an OpenSSH private key"),
        ("none", "No such file"),
    ] {
        let ran = publish(&fleet, Some(&keys.path(name))).expect(2);
        assert!(ran.err.contains(why), "{name}: {}", ran.err);
    }
    let broken = keys.path("broken");
    std::fs::write(&broken, "x y\n").expect("a file");
    let folder = tempfile::tempdir().expect("a folder");
    let ran = sync(&fleet, &folder.path().join("a"), &broken).expect(2);
    assert!(ran.err.contains("broken:1: "), "{}", ran.err);
}

#[test]
fn an_older_syncer_leaves_a_newer_format_alone_and_keeps_the_last_state() {
    let (fleet, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    let target = folder.path().join("a");
    fleet.publish().expect(0);
    fleet.sync("a", &target, &[]).expect(0);
    let good = std::fs::read_to_string(target.join("shop/ConfigMap_web.yaml")).expect("it is applied");
    let message = fleet.git(&["log", "-1", "--format=%B", REF]).replace("Berth-Seq: 1", "Berth-Seq: 9");
    let newer = format!("{}\nBerth-Format: 2\n", message.trim_end());
    let id = fleet.git(&["commit-tree", "-m", &newer, EMPTY]);
    fleet.git(&["update-ref", REF, &id]);
    let ran = fleet.sync("a", &target, &[]).expect(5);
    assert!(
        ran.err.contains("has format 2, and this berth reads at most 1: install a newer berth"),
        "{}",
        ran.err
    );
    assert_eq!(std::fs::read_to_string(target.join("shop/ConfigMap_web.yaml")).expect("it stays"), good);
}
