//! What somebody with every right but the signing key can do to a rendered branch: it is neither gone on from nor
//! proven, with signing and without.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use sha2::{Digest as _, Sha256};

use crate::roots::imported;
use crate::signing::Keys;
use crate::support::removals::report;
use crate::support::{
    RENDERED, Ran, Repo, berth, cluster, config_map, hermetic, namespace, run, small_fleet,
};
use berth_base::text::hex;

const EVERYWHERE: &str = "{clusterSelector: {}}";
const OFF: [&str; 5] =
    ["--max-removed-clusters", "100%", "--max-removed-objects", "100%", "--allow-risky-removals"];

/// A fleet and its daemon's machine.
struct World {
    repo: Repo,
    keys: Option<Keys>,
}

impl World {
    /// The same fleet without signing, and with it where there is OpenSSH.
    fn both() -> Vec<World> {
        let keys = Keys::new().map(Some);
        std::iter::once(None).chain(keys).map(|keys| World { repo: small_fleet(), keys }).collect()
    }

    fn run_in(&self, folder: &Path, more: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["run", "--once", "--repo"]).arg(folder);
        if let Some(keys) = &self.keys {
            command.arg("--signing-key").arg(keys.path("berth"));
        }
        Ran::of(command.args(more))
    }

    fn publish(&self, more: &[&str]) -> Ran {
        self.run_in(self.repo.path(), more)
    }

    /// What everybody has: the repository, and no key.
    fn attacker(&self) -> Repo {
        let clone = Repo::new();
        clone.git(&["fetch", "-q", "--update-head-ok", self.repo.arg(), "+refs/*:refs/*"]);
        clone.git(&["reset", "-q", "--hard"]);
        clone
    }

    /// Pushes a branch of the attacker's over the fleet's, with all that hangs on it.
    fn push(&self, from: &Repo) {
        self.repo.git(&["fetch", "-q", from.arg(), &format!("+{RENDERED}:{RENDERED}")]);
    }

    /// `run` refuses the tip and leaves everything as it is, `verify` fails, and `sync` keeps to the last good folder.
    #[track_caller]
    fn refuses(&self, last: &str, why: &str) {
        let tip = self.repo.id(RENDERED);
        assert_ne!(tip, last);
        let before = self.repo.git(&["for-each-ref"]);
        let ran = self.publish(&[]).expect(5);
        for said in [&tip, "is not trusted", why, &format!("git update-ref {RENDERED} {last}")] {
            assert!(ran.err.contains(said), "{said}: {}", ran.err);
        }
        assert_eq!(self.repo.git(&["for-each-ref"]), before, "nothing moved");
        let plan = run(&["plan", "--repo", self.repo.arg(), "--no-merge"]);
        assert!(plan.out.contains("berth run would refuse this"), "{}\n{}", plan.out, plan.err);
        let folder = tempfile::tempdir().expect("a folder");
        self.repo.sync("a", &folder.path().join("a"), &[]).expect(0);
        // The way back.
        self.repo.git(&["update-ref", RENDERED, last]);
        let ran = self.publish(&[]);
        assert!(!ran.err.contains("not trusted") && ran.err.contains("read commit"), "{}", ran.err);
    }

    #[track_caller]
    fn is_disproved(&self, why: &str) {
        let ran = run(&["verify", "berth/rendered", "--repo", self.repo.arg()]).expect(3);
        assert!(ran.out.contains(why), "{why}: {}", ran.out);
    }
}

fn feed(repo: &Repo, args: &[&str], input: &str) -> String {
    let mut child = hermetic("git")
        .current_dir(repo.path())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("fed");
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// A commit with trailers changed and a digest that fits, as anybody can compute it, signed by nobody or a stranger.
pub fn forge(repo: &Repo, tree: &str, parents: &[&str], edit: impl Fn(&str) -> String) -> String {
    let tip = repo.id(RENDERED);
    let message = edit(&repo.git(&["log", "-1", "--format=%B", &tip]));
    let (text, trailers) = message.trim_end().rsplit_once("\n\n").expect("trailers");
    let lines: String = trailers
        .lines()
        .filter(|line| !line.starts_with("Berth-Digest"))
        .map(|line| format!("{line}\n"))
        .collect();
    let hash = Sha256::digest(format!("{tree}\n{lines}").as_bytes());
    let digest = hex(&hash[..16]);
    let date = repo.git(&["log", "-1", "--format=%ct", &tip]);
    let parents: String = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
    let by = format!("berth <berth@berth.dev> {date} +0000");
    let raw = format!(
        "tree {tree}\n{parents}author {by}\ncommitter {by}\n\n{text}\n\n{lines}Berth-Digest: {digest}\n"
    );
    let forged = feed(repo, &["hash-object", "-t", "commit", "-w", "--stdin"], &raw);
    repo.git(&["update-ref", RENDERED, &forged]);
    forged
}

/// A change of a message.
type Edit = fn(&str) -> String;

fn tree_of(repo: &Repo) -> String {
    repo.id(&format!("{RENDERED}^{{tree}}"))
}

/// The same trailers as the next commit would have.
fn next(message: &str) -> String {
    let seq = message.lines().find_map(|line| line.strip_prefix("Berth-Seq: ")).expect("a number");
    let following = seq.parse::<u64>().expect("a number") + 1;
    message.replace(&format!("Berth-Seq: {seq}"), &format!("Berth-Seq: {following}"))
}

#[test]
fn an_edited_kept_form_is_not_rendered() {
    for world in World::both() {
        world.publish(&[]).expect(0);
        world.repo.write("apps/web.yaml", "kind: [\n");
        world.repo.commit("broken");
        world.repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
        world.repo.commit("an addition");
        world.publish(&[]).expect(1);
        let last = world.repo.id(RENDERED);
        let thief = world.attacker();
        thief.git(&["checkout", "-q", "--detach", RENDERED]);
        let text = std::fs::read_to_string(thief.path().join("kept/apps/web.yaml")).expect("it is kept");
        thief.write("kept/apps/web.yaml", text.replace("one", "evil"));
        thief.git(&["add", "-A"]);
        let tree = thief.git(&["write-tree"]);
        forge(&thief, &tree, &[&last], next);
        world.push(&thief);
        world.is_disproved("kept/apps/web.yaml");
        world.refuses(&last, "kept/apps/web.yaml");
    }
}

#[test]
fn a_forged_leave_to_remove_a_namespace_reaches_no_member() {
    for world in World::both() {
        world.publish(&[]).expect(0);
        let last = world.repo.id(RENDERED);
        let thief = world.attacker();
        let edit = |message: &str| {
            let line = "\nBerth-Allow-Prune: shop/Namespace_shop.yaml a\nBerth-Digest";
            next(message).replace("\nBerth-Digest", line)
        };
        forge(&thief, &tree_of(&thief), &[&last], edit);
        world.push(&thief);
        world.is_disproved("its inputs change nothing");
        world.refuses(&last, "its inputs change nothing");
        let said = world.repo.git(&["log", "-1", "--format=%B", "refs/berth/clusters/a"]);
        assert!(!said.contains("Allow-Prune"), "{said}");
    }
}

#[test]
fn rules_of_a_commit_that_was_never_merged_are_not_those_in_force() {
    for world in World::both() {
        world.publish(&[]).expect(0);
        world.repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
        let source = world.repo.commit("an addition");
        world.publish(&[]).expect(0);
        let last = world.repo.id(RENDERED);
        let thief = world.attacker();
        thief.git(&["checkout", "-q", "-b", "mine"]);
        thief.write("access/mine.yaml", "# rules of my own\n");
        let mine = thief.commit("rules");
        let edit = |message: &str| {
            let lines = message.lines().filter(|line| !line.starts_with("Berth-Processed"));
            let lines: String = lines.map(|line| format!("{line}\n")).collect();
            let lines = next(&lines);
            let more = format!("\nBerth-Processed: {source}\nBerth-Rules: {mine}\nBerth-Digest");
            lines.replace("\nBerth-Digest", &more)
        };
        forge(&thief, &tree_of(&thief), &[&last], edit);
        world.push(&thief);
        world.repo.git(&["fetch", "-q", thief.arg(), "+refs/heads/mine:refs/heads/mine"]);
        world.is_disproved("its `Berth-Rules` name");
        world.refuses(&last, "Berth-Rules");
    }
}

#[test]
fn right_after_an_import_no_unmerged_branch_was_processed_or_has_rules() {
    for keys in std::iter::once(None).chain(Keys::new().map(Some)) {
        let world = World { repo: imported().0, keys };
        let first = world.repo.id("main");
        let last = world.repo.id(RENDERED);
        world.repo.write("apps/more.yaml", namespace("more"));
        world.repo.commit("an addition");
        let thief = world.attacker();
        thief.publish().expect(0);
        let tip = thief.id(RENDERED);
        assert_eq!(thief.id(&format!("{tip}^")), last);
        thief.git(&["checkout", "-q", "-b", "mine", &first]);
        thief.write("access/mine.yaml", "# rules of my own\n");
        let mine = thief.commit("rules");
        for trailer in ["Berth-Processed", "Berth-Rules"] {
            thief.git(&["update-ref", RENDERED, &tip]);
            let edit = |message: &str| {
                let lines = message.lines().filter(|line| !line.starts_with(trailer));
                let lines: String = lines.map(|line| format!("{line}\n")).collect();
                lines.replace("\nBerth-Digest", &format!("\n{trailer}: {mine}\nBerth-Digest"))
            };
            forge(&thief, &tree_of(&thief), &[&last], edit);
            world.push(&thief);
            world.repo.git(&["fetch", "-q", thief.arg(), "+refs/heads/mine:refs/heads/mine"]);
            world.is_disproved(&format!("its `{trailer}` names {}", &mine[..12]));
            let root = ["--root", &last];
            let ran = world.publish(&root).expect(5);
            assert!(ran.err.contains("is not trusted") && ran.err.contains(trailer), "{}", ran.err);
        }
    }
}

#[test]
fn a_moment_in_the_future_and_the_last_number_do_not_stick() {
    let edits: [(Edit, &str); 2] = [
        (
            |message| {
                let from = message.lines().find(|line| line.starts_with("Berth-Now")).expect("a moment");
                next(message).replace(from, "Berth-Now: 9999-12-30T00:00:00Z")
            },
            "9999-12-30",
        ),
        (|message| message.replace("Berth-Seq: 1", &format!("Berth-Seq: {}", u64::MAX)), "change nothing"),
    ];
    for world in World::both() {
        world.publish(&[]).expect(0);
        let last = world.repo.id(RENDERED);
        for (edit, why) in edits {
            let thief = world.attacker();
            forge(&thief, &tree_of(&thief), &[&last], edit);
            world.push(&thief);
            world.is_disproved(why);
            world.refuses(&last, why);
        }
    }
}

/// A commit as the daemon itself would make it next, made by somebody else: the thief, with the source merged.
fn made_by_another(world: &World) -> (String, Repo) {
    world.publish(&[]).expect(0);
    let last = world.repo.id(RENDERED);
    world.repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    world.repo.commit("an addition");
    let thief = world.attacker();
    thief.publish().expect(0);
    (last, thief)
}

#[test]
fn labels_that_members_may_not_report_place_nothing() {
    for world in World::both() {
        world.repo.write("clusters/d.yaml", cluster("d", &[("pci", "yes")]));
        let safe = "{clusterSelector: {matchLabels: {pci: \"yes\"}}}";
        world.repo.write("apps/cards.yaml", config_map("cards", "one", safe));
        world.repo.commit("cards are for d alone");
        world.publish(&[]).expect(0);
        let last = world.repo.id(RENDERED);
        let thief = world.attacker();
        report(&thief, "a", 60, "labels: {pci: \"yes\"}\n");
        run(&["run", "--once", "--repo", thief.arg(), "--member-labels", "pci"]).expect(0);
        assert!(thief.files(RENDERED).contains_key("clusters/a/shop/ConfigMap_cards.yaml"));
        forge(&thief, &tree_of(&thief), &[&last], |message| message.replace("labels=pci", "labels=none"));
        world.push(&thief);
        world.is_disproved("it has the label `pci` from a status of `a`");
        world.refuses(&last, "it has the label `pci` from a status of `a`");
        // A status that cannot be read leaves the facts, and no such label among them.
        run(&["run", "--once", "--repo", world.repo.arg(), "--root", &last]).expect(0);
        report(&world.repo, "a", 61, "labels: {pci: \"yes\"}\n");
        world.publish(&["--member-labels", "pci"]).expect(0);
        report(&world.repo, "a", 62, "labels: [\n");
        world.publish(&[]);
        assert!(!world.repo.files(RENDERED).contains_key("clusters/a/shop/ConfigMap_cards.yaml"));
    }
}

#[test]
fn a_commit_that_is_dated_back_dates_no_folder_back() {
    for world in World::both() {
        let (_, thief) = made_by_another(&world);
        let date = thief.git(&["log", "-1", "--format=%ct", RENDERED]);
        let raw = thief.git(&["cat-file", "commit", RENDERED]).replace(&format!("{date} +0000"), "1 +0000");
        let old = feed(&thief, &["hash-object", "-t", "commit", "-w", "--stdin"], &format!("{raw}\n"));
        thief.git(&["update-ref", RENDERED, &old]);
        world.push(&thief);
        world.is_disproved("the date is 1,");
        // A key that is valid from some day on would not count for an older folder.
        world.publish(&[]).expect(0);
        assert_eq!(world.repo.git(&["log", "-1", "--format=%ct", "refs/berth/clusters/a"]), date);
    }
}

#[test]
fn a_permit_that_no_gate_gave_is_disproved() {
    for world in World::both() {
        world.publish(&[]).expect(0);
        world.repo.git(&["rm", "-q", "apps/web.yaml"]);
        world.repo.commit("retire web");
        world.publish(&[]).expect(5);
        let last = world.repo.id(RENDERED);
        let thief = world.attacker();
        thief.git(&["checkout", "-q", "--detach", RENDERED]);
        let ledger =
            std::fs::read_to_string(thief.path().join("ledger/ledger.yaml")).expect("something is held");
        assert!(ledger.contains("stage: held"), "{ledger}");
        thief.write("ledger/ledger.yaml", ledger.replace("stage: held", "stage: permitted"));
        thief.git(&["add", "-A"]);
        let tree = thief.git(&["write-tree"]);
        forge(&thief, &tree, &[&last], next);
        world.push(&thief);
        world.is_disproved("ledger/ledger.yaml");
        world.refuses(&last, "ledger/ledger.yaml");
    }
}

/// A held removal, and what the daemon knows of it.
fn held(world: &World) -> String {
    world.publish(&[]).expect(0);
    world.repo.write("apps/web.yaml", config_map("web", "one", "{clusters: []}"));
    world.repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    world.repo.commit("web goes");
    world.publish(&[]).expect(5);
    world.repo.id(RENDERED)
}

#[test]
fn a_tip_on_another_line_is_refused() {
    for world in World::both() {
        let last = held(&world);
        let thief = world.attacker();
        let tree = tree_of(&thief);
        let stranger = thief.git(&["commit-tree", &tree, "-m", "a beginning"]);
        thief.git(&["update-ref", RENDERED, &last]);
        let tip = thief.git(&["commit-tree", &tree, "-p", &stranger, "-p", &last, "-m", "a merge"]);
        thief.git(&["update-ref", RENDERED, &tip]);
        world.push(&thief);
        let ran = world.publish(&[]).expect(5);
        assert!(ran.err.contains("its first parents do not lead to any commit"), "{}", ran.err);
        world.repo.git(&["update-ref", RENDERED, &last]);
        world.publish(&[]).expect(5);
        assert_eq!(world.repo.id(RENDERED), last);
        assert!(world.repo.files(RENDERED).contains_key("clusters/a/shop/ConfigMap_web.yaml"));
    }
}

#[test]
fn a_thousand_commits_of_others_change_no_number_and_release_nothing() {
    for world in World::both() {
        let last = held(&world);
        let mut stream = String::new();
        for index in 0..1_001 {
            let from = if index == 0 { format!("from {last}\n") } else { String::new() };
            stream.push_str(&format!(
                "commit {RENDERED}\ncommitter x <x@x> {} +0000\ndata 1\nx\n{from}\n",
                1_767_300_000 + index
            ));
        }
        feed(&world.repo, &["fast-import", "--quiet", "--force"], &stream);
        assert_eq!(world.repo.git(&["rev-list", "--count", &format!("{last}..{RENDERED}")]), "1001");
        world.repo.write("apps/more.yaml", config_map("more", "one", EVERYWHERE));
        world.repo.commit("more");
        world.publish(&[]).expect(5);
        let message = world.repo.git(&["log", "-1", "--format=%B", RENDERED]);
        assert!(message.contains("Berth-Seq: 3\n") && message.contains("Berth-Held"), "{message}");
        assert!(world.repo.files(RENDERED).contains_key("clusters/a/shop/ConfigMap_web.yaml"));
    }
}

#[test]
fn a_commit_made_with_the_gate_off_is_refused() {
    for world in World::both() {
        let last = held(&world);
        let thief = world.attacker();
        thief.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
        let more = [&["run", "--once", "--repo", thief.arg()][..], &OFF].concat();
        run(&more).expect(0);
        assert!(!thief.files(RENDERED).contains_key("clusters/a/shop/ConfigMap_web.yaml"));
        // The commit's source is merged, so that nothing but the gate is wrong with it.
        world.repo.git(&["fetch", "-q", "--update-head-ok", thief.arg(), "+refs/heads/main:refs/heads/main"]);
        world.push(&thief);
        world.is_disproved("looser than those of the commit before it");
        world.refuses(&last, "looser than those expected");
        assert!(world.repo.files(RENDERED).contains_key("clusters/a/shop/ConfigMap_web.yaml"));
    }
}

#[test]
fn a_commit_made_from_or_by_the_rules_of_an_unmerged_branch_is_refused() {
    for world in World::both() {
        world.publish(&[]).expect(0);
        world.repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
        world.repo.commit("an addition");
        world.publish(&[]).expect(0);
        let last = world.repo.id(RENDERED);
        // From the branch itself.
        let thief = world.attacker();
        thief.git(&["checkout", "-q", "-b", "mine"]);
        thief.write("apps/mine.yaml", config_map("mine", "evil", EVERYWHERE));
        thief.write("access/mine.yaml", "# rules of my own\n");
        thief.commit("mine");
        let one = |source: &str| {
            let args = ["run", "--once", "--repo", thief.arg(), "--source", source, "--allow-rewind"];
            run(&[&args[..], &["--allow-rewritten"]].concat())
        };
        one("mine").expect(0);
        world.push(&thief);
        world.repo.git(&["fetch", "-q", thief.arg(), "+refs/heads/mine:refs/heads/mine"]);
        world.is_disproved("is not part of the source branch");
        world.refuses(&last, "is not part of the source branch");
        // From the source, after the branch was processed: its rules count then.
        thief.git(&["update-ref", RENDERED, &last]);
        thief.git(&["checkout", "-q", "main"]);
        thief.write("apps/more.yaml", config_map("more", "one", EVERYWHERE));
        thief.commit("more, merged");
        thief.git(&["checkout", "-q", "mine"]);
        thief.git(&["rm", "-q", "apps/mine.yaml"]);
        thief.commit("rules alone");
        one("mine").expect(0);
        one("main").expect(0);
        world.repo.git(&["fetch", "-q", "--update-head-ok", thief.arg(), "+refs/heads/m*:refs/heads/m*"]);
        world.push(&thief);
        world.is_disproved("Berth-Processed");
        world.refuses(&last, "Berth-Processed");
    }
}

#[test]
fn what_another_machine_made_costs_one_proof_and_ones_own_none() {
    let world = World { repo: small_fleet(), keys: None };
    world.publish(&[]).expect(0);
    let other = world.attacker();
    other.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    other.commit("an addition");
    let ran = other.publish().expect(0);
    assert!(!ran.err.contains("knew no commit"), "all of it is proven: {}", ran.err);
    let fetch = ["fetch", "-q", "--update-head-ok", other.arg(), "+refs/heads/*:refs/heads/*"];
    world.repo.git(&fetch);
    world.repo.git(&["reset", "-q", "--hard"]);
    let ran = world.publish(&[]).expect(0);
    assert!(ran.err.contains("proved 1 commit of"), "{}", ran.err);
    let ran = world.publish(&[]).expect(0);
    assert!(!ran.err.contains("proved"), "it is remembered: {}", ran.err);
    world.repo.write("apps/more.yaml", config_map("more", "one", EVERYWHERE));
    world.repo.commit("more");
    world.publish(&[]).expect(0);
    let ran = world.publish(&[]).expect(0);
    assert!(!ran.err.contains("proved"), "it was made here: {}", ran.err);
}

#[test]
fn a_machine_that_knows_nothing_proves_the_last_commits_or_from_a_root_or_asks_for_a_signature() {
    let world = World { repo: small_fleet(), keys: None };
    for number in 0..6 {
        world.repo.write("apps/web.yaml", config_map("web", &number.to_string(), EVERYWHERE));
        world.repo.commit("another");
        world.publish(&[]).expect(0);
    }
    let fresh = || {
        let clone = world.attacker();
        std::fs::remove_dir_all(clone.path().join(".git/berth")).ok();
        clone
    };
    let ran = fresh().publish().expect(0);
    let trusted = world.repo.id(&format!("{RENDERED}~3"));
    assert!(ran.err.contains("it proved 3 commits") && ran.err.contains(&trusted), "{}", ran.err);
    let clone = fresh();
    let root = world.repo.id(&format!("{RENDERED}~5"));
    let ran = run(&["run", "--once", "--repo", clone.arg(), "--root", &root]).expect(0);
    assert!(ran.err.contains("proved 5 commits"), "{}", ran.err);
    let clone = fresh();
    let ran = run(&["run", "--once", "--repo", clone.arg(), "--root", &"1".repeat(40)]).expect(5);
    assert!(ran.err.contains("its first parents do not lead"), "{}", ran.err);
    run(&["run", "--once", "--repo", clone.arg(), "--root", "berth/rendered"]).expect(2);
    // With a key, only what is signed begins the trust.
    let Some(keys) = Keys::new() else { return };
    let clone = fresh();
    let signed = |clone: &Repo, more: &[&str]| {
        let mut command = berth();
        command.args(["run", "--once", "--repo", clone.arg(), "--signing-key"]).arg(keys.path("berth"));
        Ran::of(command.args(more))
    };
    let ran = signed(&clone, &[]).expect(5);
    assert!(ran.err.contains("no commit of it is signed by an allowed key"), "{}", ran.err);
    let tip = clone.id(RENDERED);
    let ran = signed(&clone, &["--root", &tip]).expect(0);
    assert!(ran.out.contains("published "), "a signed publication follows: {}", ran.out);
    std::fs::remove_dir_all(clone.path().join(".git/berth")).expect("a memory");
    assert!(signed(&clone, &[]).expect(0).out.contains("nothing to publish"));
    clone.write("apps/web.yaml", config_map("web", "last", EVERYWHERE));
    clone.commit("last");
    signed(&clone, &[]).expect(0);
    let ran = {
        std::fs::remove_dir_all(clone.path().join(".git/berth")).expect("a memory");
        signed(&clone, &[]).expect(0)
    };
    assert!(!ran.err.contains("proved"), "a signature costs no proof: {}", ran.err);
}

#[test]
fn a_forged_record_of_what_was_processed_gives_no_rules() {
    for world in World::both() {
        world.publish(&[]).expect(0);
        world.repo.write("apps/shop.yaml", namespace("shop"));
        world.repo.write("clusters/d.yaml", cluster("d", &[("env", "dev")]));
        let source = world.repo.commit("a cluster more");
        world.publish(&[]).expect(0);
        let good = world.repo.id("refs/berth/processed");
        let thief = world.attacker();
        thief.git(&["checkout", "-q", "-b", "mine"]);
        thief.write("access/mine.yaml", "# rules of my own\n");
        let mine = thief.commit("rules");
        let text = thief.git(&["show", "refs/berth/processed:processed.json"]);
        let rules = text.lines().find(|line| line.contains("\"rules\"")).expect("rules").to_owned();
        let forged = text.replace(&rules, &format!("  \"rules\": \"{mine}\""));
        assert!(forged.contains(&source));
        let blob = feed(&thief, &["hash-object", "-w", "--stdin"], &forged);
        let tree = feed(&thief, &["mktree"], &format!("100644 blob {blob}\tprocessed.json\n"));
        let commit = thief.git(&["commit-tree", &tree, "-m", "forged"]);
        world.repo.git(&["fetch", "-q", thief.arg(), "+refs/heads/mine:refs/heads/mine"]);
        world.repo.git(&["fetch", "-q", thief.arg(), &commit]);
        world.repo.git(&["update-ref", "refs/berth/processed", &commit]);
        world.publish(&[]).expect(0);
        let said = world.repo.git(&["show", "refs/berth/processed:processed.json"]);
        assert!(!said.contains(&mine), "{said}");
        assert_ne!(good, commit);
    }
}

#[test]
fn old_copies_of_the_branch_and_of_what_was_processed_are_refused_together() {
    for world in World::both() {
        world.publish(&[]).expect(0);
        let old = world.attacker();
        world.repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
        world.repo.commit("an addition");
        world.publish(&[]).expect(0);
        let last = world.repo.id(RENDERED);
        world.repo.git(&[
            "fetch",
            "-q",
            old.arg(),
            &format!("+{RENDERED}:{RENDERED}"),
            "+refs/berth/*:refs/berth/*",
        ]);
        let ran = world.publish(&[]).expect(5);
        assert!(ran.err.contains("does not come after") && ran.err.contains(&last), "{}", ran.err);
        world.repo.git(&["update-ref", RENDERED, &last]);
        world.publish(&[]).expect(0);
        assert!(world.repo.git(&["log", "-1", "--format=%B", RENDERED]).contains("Berth-Seq: 2\n"));
    }
}

#[test]
fn every_promise_of_the_threat_model_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/threat-model.md")).expect("the page");
    let (_, table) = page.split_once("## Who may do what").expect("its table");
    let table = table.split("\n## ").next().expect("its section");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).skip(2).collect();
    assert!(rows.len() > 15, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [power, without, with, tests] = cells[..] else { panic!("four cells: {row}") };
        let named: Vec<_> = tests.split('`').filter_map(|word| word.split_once("::")).collect();
        let promises = ![without, with]
            .iter()
            .all(|cell| ["no key", "nothing"].contains(cell) || cell.starts_with("None"));
        assert!(!promises || !named.is_empty(), "no test of: {power}");
        for (file, test) in named {
            let folder = if file.starts_with("src/") { "" } else { "tests/it/" };
            let text = std::fs::read_to_string(root.join(format!("{folder}{file}.rs"))).unwrap_or_default();
            assert!(text.contains(&format!("fn {test}()")), "there is no test `{file}::{test}`");
        }
    }
    let policy = std::fs::read_to_string(root.join("SECURITY.md")).expect("the policy");
    assert!(policy.contains("docs/threat-model.md"));
}
