//! The runbook of keys in docs/operations.md, step by step: a key is replaced over a history, and one is revoked.

use std::path::Path;

use crate::signing::{Keys, REF, git_says, publish};
use crate::support::{RENDERED, Ran, Repo, berth, config_map, run, small_fleet};

const OLD: &str = "berth";
const NEW: &str = "other";

/// A fleet with a history of three publications by the old key, and its member.
struct Signed {
    keys: Keys,
    fleet: Repo,
    folder: tempfile::TempDir,
}

impl Signed {
    fn new() -> Option<Signed> {
        let signed = Signed {
            keys: Keys::new()?,
            fleet: small_fleet(),
            folder: tempfile::tempdir().expect("a folder"),
        };
        for value in ["one", "two", "three"] {
            signed.edit(value);
            signed.publish(OLD);
        }
        signed.allow(&[(OLD, "")]);
        signed.sync(0);
        Some(signed)
    }

    fn edit(&self, value: &str) {
        self.fleet.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
        self.fleet.commit(value);
    }

    fn publish(&self, key: &str) {
        publish(&self.fleet, Some(&self.keys.path(key))).expect(0);
    }

    fn allow(&self, keys: &[(&str, &str)]) {
        self.keys.allow(keys);
    }

    fn allowed(&self) -> std::path::PathBuf {
        self.keys.path("allowed")
    }

    #[track_caller]
    fn sync(&self, code: i32) -> Ran {
        self.sync_with(&[], code)
    }

    #[track_caller]
    fn sync_with(&self, more: &[&str], code: i32) -> Ran {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", "a", "--remote", self.fleet.arg(), "--repo"]);
        command.arg(self.folder.path().join("copy"));
        command.arg("--target").arg(format!("dir:{}", self.folder.path().join("a").display()));
        Ran::of(command.arg("--allowed-signers").arg(self.allowed()).args(more)).expect(code)
    }

    fn value(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("a/shop/ConfigMap_web.yaml"));
        let text = text.expect("it is applied");
        let value = text.lines().find_map(|line| line.trim().strip_prefix("value: "));
        value.expect("a value").to_owned()
    }

    /// Lets a thief of the old key publish for the cluster, at a date of his choice.
    fn forge(&self, date: &str) {
        let git = |arguments: &[&str]| {
            let mut git = crate::support::hermetic("git");
            git.current_dir(self.fleet.path()).env("GIT_COMMITTER_DATE", date).args(arguments);
            Ran::of(git.env("GIT_INDEX_FILE", self.folder.path().join("index")))
                .expect(0)
                .out
                .trim()
                .to_owned()
        };
        git(&["read-tree", REF]);
        let file = "shop/ConfigMap_web.yaml";
        let text = git(&["show", &format!("{REF}:{file}")]).replace("value: three", "value: forged");
        let forged = self.folder.path().join("forged");
        std::fs::write(&forged, text + "\n").expect("a file");
        let blob = git(&["hash-object", "-w", forged.to_str().expect("a text path")]);
        git(&["update-index", "--cacheinfo", &format!("100644,{blob},{file}")]);
        let tree = git(&["write-tree"]);
        let message = git(&["log", "-1", "--format=%B", REF]).replace("Berth-Seq: 3", "Berth-Seq: 9");
        let key = format!("user.signingKey={}", self.keys.path(OLD).display());
        let commit = git(&["-c", "gpg.format=ssh", "-c", &key, "commit-tree", "-S", "-m", &message, &tree]);
        git(&["update-ref", REF, &commit]);
    }

    /// Publishes from a new clone with the new key and the file of allowed signers.
    fn publish_elsewhere(&self, copy: &Path, more: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["run", "--once", "--remote", self.fleet.arg(), "--repo"]).arg(copy);
        command.arg("--signing-key").arg(self.keys.path(NEW)).args(more);
        Ran::of(command.arg("--allowed-signers").arg(self.allowed()))
    }
}

#[test]
fn a_key_is_replaced_while_members_verify() {
    let Some(signed) = Signed::new() else { return };
    let Signed { fleet, .. } = &signed;
    let history = fleet.git(&["rev-list", RENDERED]);
    let history: Vec<&str> = history.lines().collect();
    let sequence = fleet.git(&["log", "-1", "--format=%B", REF]);
    // 1. The new key is allowed, before anything is signed with it.
    signed.allow(&[(OLD, ""), (NEW, "")]);
    signed.sync(0);
    // 2. The daemon signs with it. Clusters' refs are signed anew, their sequence stays.
    signed.publish(NEW);
    assert_eq!(fleet.git(&["log", "-1", "--format=%B", REF]), sequence);
    signed.sync(0);
    signed.edit("four");
    signed.publish(NEW);
    signed.sync(0);
    assert_eq!(signed.value(), "four");
    // 3. The old key ends. What it signed before stays valid.
    let now = berth_base::model::Timestamp::now().as_second() + 1;
    let now = berth_base::model::Timestamp::from_second(now).expect("a moment").to_string();
    let end = format!("valid-before=\"{}Z\"", now.replace(['-', ':', 'T', 'Z'], ""));
    signed.allow(&[(OLD, &end), (NEW, "")]);
    signed.sync(0);
    for commit in &history {
        assert_eq!(git_says(fleet, &signed.allowed(), commit), 0, "{commit}");
    }
    let elsewhere = signed.folder.path().join("elsewhere");
    signed.publish_elsewhere(&elsewhere, &[]).expect(0);
    run(&["verify", "berth/rendered", "--repo", fleet.arg()]).expect(0);
}

#[test]
fn a_new_key_may_not_begin_after_the_last_change() {
    let Some(signed) = Signed::new() else { return };
    signed.publish(NEW);
    // A ref that is signed anew keeps the date of its last change.
    signed.allow(&[(OLD, ""), (NEW, "valid-after=\"20991231Z\"")]);
    let ran = signed.sync(5);
    assert!(ran.err.contains("which is not valid before 2099-12-31"), "{}", ran.err);
    assert_eq!(signed.value(), "three", "the last good folder stays");
}

#[test]
fn a_key_that_others_have_is_removed_and_not_ended() {
    let Some(signed) = Signed::new() else { return };
    let Signed { fleet, .. } = &signed;
    signed.allow(&[(OLD, ""), (NEW, "")]);
    signed.publish(NEW);
    signed.sync(0);
    // Whoever has the old key dates a commit as he likes: an end that has passed is no wall.
    let tree = fleet.git(&["rev-parse", &format!("{REF}^{{tree}}")]);
    let end = "valid-before=\"20200102Z\"";
    signed.allow(&[(OLD, end), (NEW, "")]);
    signed.forge("2020-01-01T00:00:00Z");
    signed.sync(0);
    assert_eq!(signed.value(), "forged");
    // 1. Members no longer allow the key, and keep their folders.
    signed.allow(&[(NEW, "")]);
    let ran = signed.sync(5);
    assert!(ran.err.contains("which is not allowed"), "{}", ran.err);
    // 2. The daemon signs every ref anew. A member that applied the thief's later number is told once to go back.
    signed.publish(NEW);
    assert_eq!(fleet.git(&["rev-parse", &format!("{REF}^{{tree}}")]), tree);
    signed.sync(5);
    signed.sync_with(&["--allow-rewind"], 0);
    assert_eq!(signed.value(), "three");
    signed.sync(0);
    // 3. Old commits no longer verify. They are proven, and a daemon elsewhere is told to go on from the tip.
    let tip = fleet.id(RENDERED);
    assert_ne!(git_says(fleet, &signed.allowed(), &tip), 0);
    run(&["verify", "berth/rendered", "--repo", fleet.arg()]).expect(0);
    signed.edit("four");
    let elsewhere = signed.folder.path().join("elsewhere");
    let ran = signed.publish_elsewhere(&elsewhere, &[]).expect(5);
    assert!(ran.err.contains(&format!("use --root {tip}")), "{}", ran.err);
    signed.publish_elsewhere(&elsewhere, &["--root", &tip]).expect(0);
    signed.sync(0);
    assert_eq!(signed.value(), "four");
    assert_eq!(git_says(fleet, &signed.allowed(), RENDERED), 0);
    // From then on the new key is enough anywhere.
    signed.edit("five");
    signed.publish_elsewhere(&signed.folder.path().join("third"), &[]).expect(0);
}
