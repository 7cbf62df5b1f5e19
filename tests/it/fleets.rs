//! Which fleet a cluster's ref is of, whether it is the newest, and what the daemon makes of a forged one.

use std::path::Path;

use crate::signing::Keys;
use crate::support::{Ran, Repo, berth, config_map, run, small_fleet};

const REF: &str = "refs/berth/clusters/a";

fn publish(repo: &Repo, key: &Path, more: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["run", "--once", "--repo", repo.arg(), "--signing-key"]).arg(key);
    Ran::of(command.args(more))
}

fn message_of(repo: &Repo, revision: &str) -> String {
    repo.git(&["log", "-1", "--format=%B", revision])
}

/// A repository with a change more than the small fleet, so that its sequence is ahead.
fn ahead(key: &Path, fleet: &str) -> Repo {
    let repo = small_fleet();
    publish(&repo, key, &["--fleet", fleet]).expect(0);
    for value in ["two", "three"] {
        repo.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
        repo.commit(value);
        publish(&repo, key, &["--fleet", fleet]).expect(0);
    }
    repo
}

#[test]
fn a_commit_of_another_fleet_is_not_applied_though_the_same_key_signed_it() {
    let Some(keys) = Keys::new() else { return };
    let (key, allowed) = (keys.path("berth"), keys.allow(&[("berth", "")]));
    let allowed = allowed.to_str().expect("a text path");
    let staging = ahead(&key, "staging");
    let production = small_fleet();
    publish(&production, &key, &["--fleet", "production"]).expect(0);
    assert!(message_of(&production, REF).contains("Berth-Cluster: a\nBerth-Fleet: production\n"));
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("a");
    production.sync("a", &target, &["--allowed-signers", allowed]).expect(0);
    let web = std::fs::read_to_string(target.join("shop/ConfigMap_web.yaml")).expect("it is applied");
    production.git(&["fetch", "-q", staging.arg(), &format!("+{REF}:{REF}")]);
    // The first name seen is the one that counts, and so is the one that a flag gives.
    for more in [&[][..], &["--fleet", "production"]] {
        let ran = production.sync("a", &target, &[&["--allowed-signers", allowed], more].concat()).expect(5);
        assert!(
            ran.err.contains("belongs to the fleet `staging`, and this member follows `production`"),
            "{}",
            ran.err
        );
    }
    assert_eq!(std::fs::read_to_string(target.join("shop/ConfigMap_web.yaml")).expect("it stays"), web);
    // A member that has seen nothing yet, and is told.
    let fresh = Repo::new();
    fresh.git(&["fetch", "-q", staging.arg(), &format!("+{REF}:{REF}")]);
    let other = folder.path().join("b");
    fresh.sync("a", &other, &["--allowed-signers", allowed, "--fleet", "production"]).expect(5);
    fresh.sync("a", &other, &["--allowed-signers", allowed]).expect(0);
    // The daemon goes on from no commit of the other fleet either, and puts the ref right.
    publish(&production, &key, &["--fleet", "production"]).expect(0);
    production.sync("a", &target, &["--allowed-signers", allowed]).expect(0);
    production.git(&[
        "fetch",
        "-q",
        staging.arg(),
        "+refs/heads/berth/rendered:refs/heads/berth/rendered",
        "+refs/berth/processed:refs/berth/processed",
        "refs/heads/main",
    ]);
    std::fs::remove_dir_all(production.path().join(".git/berth")).expect("what it knows");
    let ran = publish(&production, &key, &["--fleet", "production"]).expect(5);
    assert!(ran.err.contains("is signed by an allowed key for this fleet"), "{}", ran.err);
}

#[test]
fn members_and_branches_from_before_fleets_had_names_go_on_until_one_is_given() {
    let fleet = small_fleet();
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("a");
    fleet.publish().expect(0);
    assert!(!message_of(&fleet, REF).contains("Berth-Fleet"));
    let unnamed = fleet.id(REF);
    let sync = || fleet.sync("a", &target, &["--fleet", "production"]);
    sync().expect(0);
    run(&["run", "--once", "--repo", fleet.arg(), "--fleet", "production"]).expect(0);
    assert!(message_of(&fleet, REF).contains("Berth-Fleet: production"));
    sync().expect(0);
    // The branch keeps the name for runs without the flag.
    fleet.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    fleet.commit("two");
    run(&["run", "--once", "--repo", fleet.arg(), "--fleet", "production"]).expect(0);
    let named = fleet.id(REF);
    fleet.publish().expect(0);
    assert_eq!(fleet.id(REF), named);
    run(&["verify", "--repo", fleet.arg()]).expect(0);
    run(&["verify", "--repo", fleet.arg(), "--fleet", "staging"]).expect(3);
    // A commit without a name is none of this fleet's any more.
    fleet.git(&["update-ref", REF, &unnamed]);
    let ran = fleet.sync("a", &target, &["--fleet", "production", "--allow-rewind"]).expect(5);
    assert!(ran.err.contains("names no fleet"), "{}", ran.err);
}

#[test]
fn a_forged_cluster_ref_is_put_right_by_the_next_pass() {
    let Some(keys) = Keys::new() else { return };
    let line = "\nBerth-Allow-Prune: shop/Namespace_shop.yaml";
    for signs in [true, false] {
        let fleet = small_fleet();
        let pass = || if signs { publish(&fleet, &keys.path("berth"), &[]) } else { fleet.publish() };
        pass().expect(0);
        let good = fleet.id(REF);
        // The signature stays, and does not fit.
        let raw = fleet.git(&["cat-file", "commit", &good]);
        for more in [line, "\nBerth-Format: 9", "\nX: y"] {
            let forged = raw.replace("\nBerth-Seq: 1", &format!("\nBerth-Seq: 1{more}"));
            assert_ne!(forged, raw);
            fleet.write(".git/forged", format!("{forged}\n"));
            let forged = fleet.git(&["hash-object", "-t", "commit", "-w", ".git/forged"]);
            fleet.git(&["update-ref", REF, &forged]);
            pass().expect(0);
            assert_eq!(fleet.id(REF), good, "{more}, signing: {signs}");
        }
    }
}

#[test]
fn an_old_cluster_ref_of_the_same_folder_is_put_right_and_stops_no_member() {
    let Some(keys) = Keys::new() else { return };
    let signers = keys.allow(&[("berth", "")]);
    for signs in [true, false] {
        let fleet = small_fleet();
        let pass = || if signs { publish(&fleet, &keys.path("berth"), &[]) } else { fleet.publish() };
        let more =
            if signs { vec!["--allowed-signers", signers.to_str().expect("a text path")] } else { vec![] };
        let folder = tempfile::tempdir().expect("a folder");
        let sync = |target: &str| fleet.sync("a", &folder.path().join(target), &more);
        let content = |target: &str| {
            std::fs::read_to_string(folder.path().join(target).join("shop/ConfigMap_web.yaml"))
                .expect("applied")
        };
        let mut refs = Vec::new();
        for value in ["one", "two", "one"] {
            fleet.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
            fleet.git(&["add", "-A"]);
            fleet.git(&["commit", "-q", "--allow-empty", "-m", value]);
            pass().expect(0);
            refs.push(fleet.id(REF));
            if value == "two" {
                sync("late").expect(0);
            }
        }
        sync("current").expect(0);
        let tree = |commit: &str| fleet.id(&format!("{commit}^{{tree}}"));
        assert_eq!(tree(&refs[0]), tree(&refs[2]));
        // One that has applied this very folder under its number has nothing to refuse.
        fleet.git(&["update-ref", REF, &refs[0]]);
        sync("current").expect(0);
        // It still knows the number: what came in between is refused.
        fleet.git(&["update-ref", REF, &refs[1]]);
        let ran = sync("current").expect(5);
        assert!(ran.err.contains("sequence 2, but the later 3 was already applied"), "{}", ran.err);
        // One that has applied another folder in between waits for the daemon.
        fleet.git(&["update-ref", REF, &refs[0]]);
        let ran = sync("late").expect(5);
        assert!(ran.err.contains("sequence 1, but the later 2 was already applied"), "{}", ran.err);
        pass().expect(0);
        assert_eq!(fleet.id(REF), refs[2], "signing: {signs}");
        sync("late").expect(0);
        assert_eq!(content("late"), content("current"));
    }
}

#[test]
fn a_server_that_hides_new_commits_is_noticed_where_that_is_asked_for() {
    let fleet = small_fleet();
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("a");
    fleet.publish().expect(0);
    fleet.sync("a", &target, &[]).expect(0);
    std::fs::remove_dir_all(&target).expect("it was applied");
    let ran = fleet.sync("a", &target, &["--max-age", "3600"]).expect(6);
    assert!(ran.err.contains("older than `--max-age 3600`"), "{}", ran.err);
    assert!(target.join("shop/ConfigMap_web.yaml").exists(), "what is known is kept to");
    let status = fleet.git(&["cat-file", "-p", "refs/berth/status/a:status.yaml"]);
    assert!(status.contains("--max-age"), "{status}");
    let beat = || run(&["run", "--once", "--repo", fleet.arg(), "--heartbeat", "1800"]).expect(0);
    beat();
    let message = message_of(&fleet, REF);
    assert!(message.contains("Berth-Alive: ") && message.contains("Berth-Seq: 1\n"), "{message}");
    fleet.sync("a", &target, &["--max-age", "3600"]).expect(0);
    // Without a heartbeat the ref stays as it is.
    let alive = fleet.id(REF);
    fleet.publish().expect(0);
    assert_eq!(fleet.id(REF), alive);
}

/// Points the ref of cluster `a` to another folder, with a number that berth never gave.
fn forge(fleet: &Repo, seq: &str, value: Option<&str>) {
    let message = format!("berth: objects of a\n\nBerth-Cluster: a\nBerth-Seq: {seq}\n");
    let tree = match value {
        Some(value) => {
            fleet.write(".git/forged", config(value));
            let blob = fleet.git(&["hash-object", "-w", ".git/forged"]);
            let index = fleet.path().join(".git/forged-index");
            let git = |args: &[&str]| {
                let mut git = crate::support::hermetic("git");
                git.env("GIT_INDEX_FILE", &index).current_dir(fleet.path());
                Ran::of(git.args(args)).expect(0).out.trim().to_owned()
            };
            git(&["read-tree", REF]);
            let entry = format!("100644,{blob},shop/ConfigMap_web.yaml");
            git(&["update-index", "--add", "--cacheinfo", &entry]);
            git(&["write-tree"])
        }
        None => fleet.git(&["hash-object", "-t", "tree", "-w", "/dev/null"]),
    };
    let commit = fleet.git(&["commit-tree", &tree, "-m", &message]);
    fleet.git(&["update-ref", REF, &commit]);
}

fn config(value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: shop}}\ndata: {{value: {value}}}\n"
    )
}

#[test]
fn a_member_goes_back_from_a_forged_number_that_a_repair_names_and_from_no_other() {
    let fleet = small_fleet();
    fleet.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let value = |target: &str| {
        let file = folder.path().join(target).join("shop/ConfigMap_web.yaml");
        std::fs::read_to_string(file).expect("applied").contains("evil")
    };
    let sync = |target: &str, more: &[&str]| fleet.sync("a", &folder.path().join(target), more);
    for target in ["one", "two", "three", "other"] {
        sync(target, &[]).expect(0);
    }
    forge(&fleet, "18446744073709551614", Some("evil"));
    for target in ["one", "two", "three"] {
        sync(target, &[]).expect(0);
        assert!(value(target));
    }
    let forged = fleet.id(REF);
    fleet.publish().expect(0);
    assert!(message_of(&fleet, REF).contains("\nBerth-Replaces: 18446744073709551614 "));
    sync("one", &[]).expect(0);
    assert!(!value("one"), "it went back");
    // An edit comes before the second member looks again; then another forgery.
    fleet.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    fleet.commit("two");
    fleet.publish().expect(0);
    sync("two", &[]).expect(0);
    assert!(!value("two"), "the next folder names it as well");
    forge(&fleet, "77", Some("evil again"));
    fleet.publish().expect(0);
    sync("three", &[]).expect(0);
    assert!(!value("three"), "the next repair names both");
    // Nobody goes back from what no repair names.
    fleet.git(&["update-ref", REF, &forged]);
    sync("other", &[]).expect(0);
    let plain = fleet.git(&["log", "-1", "--format=%B", &forged]).replace("18446744073709551614", "5");
    let older = fleet.git(&["commit-tree", "HEAD^{tree}", "-m", &plain]);
    fleet.git(&["update-ref", REF, &older]);
    let ran = sync("other", &[]).expect(5);
    assert!(ran.err.contains("but the later 18446744073709551614 was already applied"), "{}", ran.err);
}

#[test]
fn a_symbolic_ref_among_berths_own_is_replaced_and_what_it_stood_for_stays() {
    let fleet = small_fleet();
    fleet.publish().expect(0);
    let main = fleet.id("main");
    for name in [REF, "refs/berth/processed", "refs/berth/report", "refs/berth/clusters/nobody"] {
        for target in ["refs/heads/main", "refs/heads/nowhere", "refs/berth/clusters/b"] {
            fleet.git(&["symbolic-ref", name, target]);
            fleet.publish().expect(0);
            let is_symbolic = fleet.git(&["for-each-ref", "--format=%(symref)", name]);
            assert_eq!(is_symbolic, "", "{name} -> {target}");
            assert_eq!(fleet.id("main"), main);
            assert_eq!(fleet.git(&["for-each-ref", "refs/heads/nowhere"]), "");
        }
        let has = !fleet.git(&["for-each-ref", name]).is_empty();
        assert_eq!(has, name != "refs/berth/clusters/nobody");
    }
}
