//! Clones as CI makes them: every command goes on from the published state or says what to fetch.

use std::path::{Path, PathBuf};

use crate::support::{RENDERED, Ran, Repo, cluster, config_map, hermetic, namespace, run};

/// A fleet at a forge, published twice, with a branch under review that is behind and has a typing error.
struct Forge {
    repo: Repo,
    folder: tempfile::TempDir,
}

/// How a clone is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// actions/checkout of a pull request: its merge ref, detached, depth 1.
    GithubMerge,
    /// The same with `fetch-depth: 0`.
    GithubFull,
    /// actions/checkout of a push to main: depth 1.
    GithubPush,
    /// GitLab's branch pipeline: detached, depth 20, the branch alone.
    GitlabBranch,
    /// GitLab's merge request pipeline of the merged result, depth 20.
    GitlabMerged,
    /// GitLab with `GIT_DEPTH: 0`.
    GitlabFull,
    /// `git clone` and `git checkout`.
    Usual,
    /// `git clone --single-branch`.
    SingleBranch,
    /// `git clone --bare`.
    Bare,
}

const KINDS: [Kind; 9] = [
    Kind::GithubMerge,
    Kind::GithubFull,
    Kind::GithubPush,
    Kind::GitlabBranch,
    Kind::GitlabMerged,
    Kind::GitlabFull,
    Kind::Usual,
    Kind::SingleBranch,
    Kind::Bare,
];

/// One of two clusters, and the one that was picked first stays.
const PICKY: &str = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
    metadata: {name: one}\nspec:\n  resourceSelectors:\n  - {group: '', version: v1, kind: Namespace, name: picked}\n  \
    policy: {placementType: PickN, numberOfClusters: 1}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: picked}\n";

const WEB: &str = "{clusterSelector: {matchLabels: {tier: web}}}";

impl Forge {
    fn new() -> Forge {
        let labelled = |name: &str| cluster(name, &[("tier", "web")]);
        let repo = Repo::with(&[
            ("clusters/b.yaml", &labelled("b")),
            ("clusters/c.yaml", &labelled("c")),
            ("apps/shop.yaml", &namespace("shop")),
            ("apps/one.yaml", PICKY),
            ("apps/web.yaml", &config_map("web", "one", WEB)),
        ]);
        repo.publish().expect(0);
        // More history than GitLab fetches.
        for number in 0..25 {
            repo.commit(&format!("nothing {number}"));
        }
        repo.git(&["checkout", "-q", "-b", "my-change"]);
        for name in ["b", "c"] {
            repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("tier", "wbe")]));
        }
        repo.commit("a typing error");
        repo.git(&["checkout", "-q", "main"]);
        repo.write("clusters/z.yaml", cluster("z", &[]));
        repo.write("apps/api.yaml", config_map("api", "one", "{clusterSelector: {}}"));
        repo.commit("z joins, and would have been picked");
        repo.publish().expect(0);
        let forge = Forge { repo, folder: tempfile::tempdir().expect("a folder") };
        forge.merge_ref();
        forge
    }

    /// Writes the merge that a forge keeps for a pull request.
    fn merge_ref(&self) {
        let repo = &self.repo;
        repo.git(&["checkout", "-q", "--detach", "main"]);
        repo.git(&["merge", "-q", "--no-ff", "-m", "Merge my-change", "my-change"]);
        repo.git(&["update-ref", "refs/pull/1/merge", "HEAD"]);
        repo.git(&["update-ref", "refs/pull/1/head", "my-change"]);
        repo.git(&["update-ref", "refs/pipelines/7", "my-change"]);
        repo.git(&["update-ref", "refs/pipelines/8", "HEAD"]);
        repo.git(&["checkout", "-q", "main"]);
    }

    fn url(&self) -> String {
        format!("file://{}", self.repo.arg())
    }

    fn clone(&self, kind: Kind) -> PathBuf {
        let path = self.folder.path().join(format!("{kind:?}"));
        let url = self.url();
        let arg = path.to_str().expect("text");
        let simple: Option<&[&str]> = match kind {
            Kind::Usual => Some(&["--branch", "my-change"]),
            Kind::SingleBranch => Some(&["--single-branch", "--branch", "my-change"]),
            Kind::Bare => Some(&["--bare"]),
            _ => None,
        };
        if let Some(flags) = simple {
            self.repo.git(&[&["clone", "-q"], flags, &[&url, arg]].concat());
            return path;
        }
        let (depth, refs, head): (&[&str], &[&str], &str) = match kind {
            Kind::GithubMerge => (
                &["--depth=1"],
                &["+refs/pull/1/merge:refs/remotes/pull/1/merge"],
                "refs/remotes/pull/1/merge",
            ),
            Kind::GithubFull => (
                &[],
                &["+refs/heads/*:refs/remotes/origin/*", "+refs/pull/1/merge:refs/remotes/pull/1/merge"],
                "refs/remotes/pull/1/merge",
            ),
            Kind::GithubPush => {
                (&["--depth=1"], &["+refs/heads/main:refs/remotes/origin/main"], "refs/remotes/origin/main")
            }
            Kind::GitlabBranch => (
                &["--depth=20"],
                &[
                    "+refs/heads/my-change:refs/remotes/origin/my-change",
                    "+refs/pipelines/7:refs/pipelines/7",
                ],
                "refs/pipelines/7",
            ),
            Kind::GitlabMerged => {
                (&["--depth=20"], &["+refs/pipelines/8:refs/pipelines/8"], "refs/pipelines/8")
            }
            Kind::GitlabFull => (
                &[],
                &["+refs/heads/*:refs/remotes/origin/*", "+refs/pipelines/7:refs/pipelines/7"],
                "refs/pipelines/7",
            ),
            _ => unreachable!("cloned above"),
        };
        self.repo.git(&["init", "-q", arg]);
        git(&path, &["remote", "add", "origin", &url]);
        let fetch = ["fetch", "-q", "--no-tags", "--prune", "--no-recurse-submodules"];
        git(&path, &[&fetch[..], depth, &["origin"], refs].concat());
        let branch: &[&str] = if kind == Kind::GithubPush { &["-B", "main"] } else { &["--detach"] };
        git(&path, &[&["checkout", "-q"], branch, &[head]].concat());
        path
    }
}

#[track_caller]
fn git(at: &Path, args: &[&str]) -> String {
    let ran = Ran::of(hermetic("git").current_dir(at).args(args)).expect(0);
    ran.out.trim_end().to_owned()
}

/// Runs the command that berth prints after `fetch it:` or `fetch the rest:`, as somebody would paste it.
#[track_caller]
fn paste_fetch(at: &Path, ran: &Ran) {
    let line = fetch_of(ran);
    Ran::of(hermetic("sh").current_dir(at).args(["-c", &format!("git fetch -q {line}")])).expect(0);
}

/// The arguments of the `git fetch` that a message names.
fn fetch_of(ran: &Ran) -> String {
    let line = ran.err.lines().find_map(|line| line.split_once(": git fetch ").map(|(_, rest)| rest));
    line.unwrap_or_else(|| panic!("no line to fetch with: {}", ran.err)).to_owned()
}

fn at(path: &Path, args: &[&str]) -> Ran {
    let repo = path.to_str().expect("text");
    run(&[args, &["--repo", repo]].concat())
}

/// What a plan comes to, without the names of what it was read from.
fn sum(plan: &Ran) -> serde_json::Value {
    let form = plan.json();
    let keys = ["counts", "placements", "clusters", "held", "refused", "workloads"];
    keys.into_iter().map(|key| (key.to_owned(), form[key].clone())).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn a_plan_in_any_clone_says_what_run_will_do_or_what_to_fetch() {
    let forge = Forge::new();
    let args = ["plan", "--fail-on", "held", "-o", "json"];
    let there = |head: &str| at(forge.repo.path(), &[&args[..], &["--head", head]].concat()).expect(5);
    let wanted = sum(&there("refs/pull/1/merge"));
    assert!(!wanted["held"].as_array().expect("a list").is_empty(), "{wanted}");
    assert_eq!(sum(&there("my-change")), wanted, "a branch is planned as merged");
    for kind in KINDS {
        let clone = forge.clone(kind);
        let ask = || match kind {
            Kind::Bare => at(&clone, &[&args[..], &["--head", "my-change"]].concat()),
            _ => at(&clone, &args),
        };
        let mut plan = ask();
        let whole = [Kind::GithubFull, Kind::GitlabFull, Kind::Usual, Kind::Bare].contains(&kind);
        assert_eq!(plan.code == 6, !whole, "{kind:?}: {} {}", plan.out, plan.err);
        if plan.code == 6 {
            assert_eq!(plan.out, "", "{kind:?}");
            paste_fetch(&clone, &plan);
            plan = ask();
        }
        if kind == Kind::GithubPush {
            let plan = plan.expect(0);
            assert_eq!(plan.json()["counts"]["clusters"], 0, "main is published already: {}", plan.out);
            continue;
        }
        let plan = plan.expect(5);
        assert_eq!(sum(&plan), wanted, "{kind:?}: {}", plan.err);
        assert!(
            plan.err.lines().next().is_some_and(|line| line.contains("berth/rendered number 2")),
            "{}",
            plan.err
        );
    }
}

#[test]
fn every_command_finds_the_state_in_any_clone_or_says_what_to_fetch() {
    let forge = Forge::new();
    for kind in KINDS.into_iter().filter(|kind| *kind != Kind::Bare) {
        let clone = forge.clone(kind);
        let out = forge.folder.path().join(format!("{kind:?}-out"));
        let out = out.to_str().expect("text");
        let commands: [&[&str]; 8] = [
            &["plan"],
            &["validate", "--base", "HEAD"],
            &["decide"],
            &["explain", "one"],
            &["render", "--out", out],
            &["status"],
            &["describe", "one"],
            &["verify"],
        ];
        let has_state = [Kind::GithubFull, Kind::GitlabFull, Kind::Usual].contains(&kind);
        let code = if has_state { 0 } else { 6 };
        for command in commands {
            let ran = at(&clone, command).expect(code);
            if !has_state {
                assert!(
                    ran.err.contains("git fetch") && ran.err.contains("--first"),
                    "{command:?} {}",
                    ran.err
                );
                assert_eq!(ran.out, "", "{command:?} says nothing on its own");
            }
        }
        if !has_state {
            paste_fetch(&clone, &at(&clone, &["plan"]));
        }
        for command in commands {
            let ran = at(&clone, command).expect(0);
            let first = ran.err.lines().next().unwrap_or_default();
            assert!(first.contains("origin/berth/rendered"), "{kind:?} {command:?}: {}", ran.err);
        }
        let decided = at(&clone, &["decide", "-o", "json"]).out;
        assert_eq!(sticky(&decided), "c", "{decided}");
        // A second history would begin.
        let ran = at(&clone, &["run", "--once"]).expect(5);
        assert!(ran.err.contains("has one: `refs/remotes/origin/berth/rendered`"), "{}", ran.err);
        assert_eq!(git(&clone, &["for-each-ref", RENDERED]), "");
    }
}

#[test]
fn files_are_checked_in_a_clone_without_the_state() {
    let forge = Forge::new();
    for kind in [Kind::GithubMerge, Kind::GitlabBranch, Kind::SingleBranch] {
        let clone = forge.clone(kind);
        let fetch = fetch_of(&at(&clone, &["plan"]).expect(6));
        for revision in [&[][..], &["--rev", "HEAD"]] {
            let ran = at(&clone, &[&["validate"], revision].concat()).expect(0);
            assert!(ran.out.contains("placements"), "{}", ran.out);
            assert!(
                ran.err.contains("warning: the current state is not in this clone")
                    && ran.err.contains("only the files were checked")
                    && ran.err.contains(&fetch),
                "{}",
                ran.err
            );
            at(&clone, &[&["validate", "--strict"], revision].concat()).expect(1);
        }
        std::fs::write(clone.join("apps/bad.yaml"), "apiVersion: v1\nkind: [\n").expect("a file");
        let ran = at(&clone, &["validate"]).expect(1);
        assert!(ran.err.contains("apps/bad.yaml:"), "{}", ran.err);
    }
}

/// The cluster that was picked first, and stays although another one would be picked now.
fn sticky(decisions: &str) -> String {
    let all: serde_json::Value = serde_json::from_str(decisions).expect("JSON");
    let one = all["placements"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "one"));
    one.expect("the placement")["clusters"][0]["name"].as_str().expect("a cluster").to_owned()
}

#[test]
fn run_begins_no_second_history_where_the_remote_may_have_one() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::GithubPush);
    let ran = at(&clone, &["run", "--once"]).expect(6);
    assert!(ran.err.contains("--first") && ran.err.contains("git fetch --unshallow origin"), "{}", ran.err);
    assert_eq!(git(&clone, &["for-each-ref", RENDERED]), "");
    at(&clone, &["run", "--once", "--first"]).expect(0);
    assert_ne!(git(&clone, &["for-each-ref", RENDERED]), "");
}

#[test]
fn a_fresh_fleet_without_a_remote_needs_no_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    run(&["init", folder.path().to_str().expect("text")]).expect(0);
    git(folder.path(), &["add", "-A"]);
    git(folder.path(), &["commit", "-q", "-m", "start"]);
    for command in [&["validate"][..], &["decide"], &["plan"], &["status"], &["run", "--once"], &["plan"]] {
        at(folder.path(), command).expect(0);
    }
}

#[test]
fn a_fleet_whose_remote_has_nothing_yet_is_planned_with_first() {
    let forge =
        Repo::with(&[("clusters/b.yaml", &cluster("b", &[])), ("apps/shop.yaml", &namespace("shop"))]);
    let folder = tempfile::tempdir().expect("a folder");
    let clone = folder.path().join("clone");
    let url = format!("file://{}", forge.arg());
    forge.git(&["clone", "-q", &url, clone.to_str().expect("text")]);
    at(&clone, &["plan"]).expect(6);
    let plan = at(&clone, &["plan", "--first"]).expect(0);
    assert!(plan.out.starts_with("1 object added in 1 of 1 clusters"), "{}", plan.out);
    // The flag lets a state be missing; one that is there counts.
    forge.publish().expect(0);
    git(&clone, &["fetch", "-q"]);
    assert_eq!(at(&clone, &["plan", "--first"]).expect(0).out, "no changes\n");
}

#[test]
fn a_branch_is_planned_as_merged_and_its_conflicts_are_named() {
    let forge = Forge::new();
    let repo = &forge.repo;
    repo.git(&["checkout", "-q", "-b", "clash", "my-change"]);
    repo.write("clusters/z.yaml", cluster("z", &[("tier", "other")]));
    repo.commit("z joins here too");
    let clone = forge.clone(Kind::GithubFull);
    let head = ["--head", "origin/clash"];
    let base = ["--base", "origin/main"];
    for more in [&head[..], &[head, base].concat()] {
        let clash = at(&clone, &[&["plan"], more].concat());
        // Without the source's name the published source stands for it.
        let clash = clash.expect(1);
        assert!(clash.err.contains("conflicts in 1 file:\n  clusters/z.yaml"), "{}", clash.err);
        let form = at(&clone, &[&["plan", "-o", "json"], more].concat()).expect(1).json();
        assert_eq!(form["conflicts"], serde_json::json!(["clusters/z.yaml"]));
        at(&clone, &[&["plan", "--no-merge"], more].concat()).expect(0);
    }
    let merged = at(&clone, &["plan", "--base", "origin/main", "--head", "origin/my-change"]).expect(0);
    assert!(merged.err.contains("`origin/my-change` is 1 commit behind origin/main"), "{}", merged.err);
    assert!(!merged.out.contains("in z"), "{}", merged.out);
    let as_is = ["plan", "--no-merge", "--base", "origin/main", "--head", "origin/my-change"];
    assert!(at(&clone, &as_is).expect(0).out.contains("no object would stay in z"));
}

#[test]
fn an_approval_in_a_branch_counts_in_its_plan_as_it_will_once_merged() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::Usual);
    let form = at(&clone, &["plan", "-o", "json"]).expect(0).json();
    let held = form["held"].as_array().expect("a list");
    let lines: Vec<&str> = held.iter().filter_map(|one| one["approval"].as_str()).collect();
    assert!(!lines.is_empty(), "{form}");
    git(&clone, &["commit", "-q", "--allow-empty", "-m", &format!("retire web\n\n{}", lines.join("\n"))]);
    let plan = at(&clone, &["plan", "--fail-on", "held"]).expect(0);
    assert!(plan.err.contains("are approved by commit"), "{}", plan.err);
}

#[test]
fn a_copy_of_the_branch_that_was_left_behind_is_not_gone_on_from() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::Usual);
    git(&clone, &["branch", "-q", "berth/rendered", "origin/berth/rendered~1"]);
    let plan = at(&clone, &["plan"]).expect(0);
    assert!(plan.err.starts_with("the state origin/berth/rendered number 2"), "{}", plan.err);
    // Whoever wants another one says so.
    let plan = at(&clone, &["plan", "--rendered", "berth/rendered"]).expect(0);
    assert!(plan.err.starts_with("the state berth/rendered number 1"), "{}", plan.err);
    at(&clone, &["plan", "--rendered", "nothing"]).expect(2);
}

#[test]
fn a_state_is_fetched_from_an_address_and_moves_nothing_of_the_clones_own() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::GithubFull);
    let wanted = sum(&at(&clone, &["plan", "-o", "json"]).expect(0));
    git(&clone, &["update-ref", "-d", "refs/remotes/origin/berth/rendered"]);
    let before = git(&clone, &["for-each-ref"]);
    let (url, args) = (forge.url(), ["plan", "-o", "json", "--rendered"]);
    let plan = at(&clone, &[&args[..], &[&url]].concat()).expect(0);
    assert_eq!(sum(&plan), wanted, "{}", plan.err);
    let after = git(&clone, &["for-each-ref"]);
    let own: Vec<&str> = after.lines().filter(|line| !line.contains("refs/berth-local/given/")).collect();
    assert_eq!(own, before.lines().collect::<Vec<_>>());
    at(&clone, &["decide", "--rendered", &url]).expect(0);
    let nowhere = format!("{url}-nowhere");
    at(&clone, &["plan", "--rendered", &nowhere]).expect(6);
}

#[test]
fn refs_that_were_fetched_at_different_times_are_noticed() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::Usual);
    forge.repo.write("apps/more.yaml", config_map("more", "one", "{clusterSelector: {}}"));
    forge.repo.commit("more");
    forge.repo.publish().expect(0);
    git(&clone, &["fetch", "-q", "origin", "+refs/berth/*:refs/berth/*"]);
    let plan = at(&clone, &["plan"]).expect(6);
    assert!(plan.err.contains("is older in this clone"), "{}", plan.err);
    paste_fetch(&clone, &plan);
    let plan = at(&clone, &["plan"]).expect(0);
    assert!(plan.err.contains("number 3"), "{}", plan.err);
}

#[test]
fn a_history_that_was_cut_off_is_fetched_and_not_guessed() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::GithubMerge);
    let tips = [
        "+refs/heads/main:refs/remotes/origin/main",
        "+refs/heads/berth/rendered:refs/remotes/origin/berth/rendered",
    ];
    git(&clone, &[&["fetch", "-q", "--depth=1", "origin"][..], &tips].concat());
    let plan = at(&clone, &["plan"]).expect(6);
    assert!(plan.err.contains("is incomplete in this clone"), "{}", plan.err);
    paste_fetch(&clone, &plan);
    at(&clone, &["plan", "--fail-on", "held"]).expect(5);
}

#[test]
fn files_that_are_not_committed_are_named_and_reasons_and_ids_are_told() {
    let forge = Forge::new();
    let repo = &forge.repo;
    repo.git(&["checkout", "-q", "my-change"]);
    repo.write("apps/extra.yaml", config_map("extra", "two", WEB));
    repo.write("README.md", "not read");
    repo.write(".github/ci.yaml", "a: b");
    let plan = at(repo.path(), &["plan"]).expect(0);
    assert!(plan.err.contains("1 file is uncommitted and not in this plan: apps/extra.yaml"), "{}", plan.err);
    assert!(
        plan.out.contains("would leave b and c (2 objects)\n      label tier=web is required"),
        "{}",
        plan.out
    );
    repo.write("apps/broken.yaml", "a: [");
    repo.commit("break a file");
    let form = at(repo.path(), &["plan", "-o", "json"]).expect(1).json();
    assert_eq!((&form["apiVersion"], &form["kind"]), (&"berth.dev/v1alpha1".into(), &"Plan".into()));
    let errors = form["diagnostics"].as_array().expect("a list");
    let broken = errors.iter().find(|one| one["severity"] == "error").expect("an error");
    assert_eq!(broken["file"], "apps/broken.yaml");
    assert_eq!(form["state"]["sequence"], 2);
    assert_eq!(form["head"]["commit"], repo.id("HEAD"));
    assert_eq!(form["head"]["mergedInto"]["revision"], "main");
    let web = form["placements"].as_array().expect("a list").iter().find(|one| one["name"] == "web");
    let reason = web.expect("web is placed otherwise")["reasons"]["b"].as_str().expect("a reason");
    assert!(reason.contains("tier"), "{reason}");
    let change = &form["workloads"][0]["changes"][0];
    assert!(change["before"].as_str().is_some_and(|id| id.len() == 40), "{change}");
}

/// A tip that nothing gives: an approval nobody gave, with a digest that fits.
fn forge_tip(repo: &Repo) -> String {
    let add = |message: &str| {
        message.replace("\nBerth-Digest", "\nBerth-Allow-Prune: shop/Namespace_shop.yaml b\nBerth-Digest")
    };
    let tree = repo.id(&format!("{RENDERED}^{{tree}}"));
    crate::forged::forge(repo, &tree, &[&repo.id(&format!("{RENDERED}~1"))], add)
}

#[test]
fn a_plan_of_a_forged_state_is_refused_in_any_clone() {
    let forge = Forge::new();
    let forged = forge_tip(&forge.repo);
    forge.repo.git(&["update-ref", "-d", "refs/berth/processed"]);
    for kind in KINDS {
        let clone = forge.clone(kind);
        let head: &[&str] = if kind == Kind::Bare { &["--head", "main"] } else { &[] };
        let ask = |more: &[&str]| at(&clone, &[&["plan"], head, more].concat());
        let mut plan = ask(&[]);
        if plan.code == 6 {
            paste_fetch(&clone, &plan);
            plan = ask(&[]);
        }
        let plan = plan.expect(5);
        for said in [&forged, "berth run would refuse this", "is not trusted", "Berth-Allow-Prune", "--root"]
        {
            assert!(plan.out.contains(said), "{kind:?}, {said}: {}", plan.out);
        }
        let plan = ask(&["--root", &forged, "-o", "json"]).expect(0);
        assert_eq!(plan.json()["refused"].as_array().map(Vec::len), Some(0), "{}", plan.out);
        let plan = ask(&["--trust-depth", "0"]).expect(0);
        assert_eq!(plan.err.matches("is not proven here").count(), 1, "{}", plan.err);
    }
}

#[test]
fn a_plan_asks_for_signatures_where_it_is_told_keys() {
    let Some(keys) = crate::signing::Keys::new() else { return };
    let forge = Forge::new();
    let clone = forge.clone(Kind::GithubFull);
    let allowed = keys.allow(&[("berth", "")]);
    let ask = || at(&clone, &["plan", "--allowed-signers", allowed.to_str().expect("text")]);
    let plan = ask().expect(5);
    assert!(plan.out.contains("no commit of it is signed by an allowed key"), "{}", plan.out);
    forge.repo.write("apps/more.yaml", config_map("more", "one", "{clusterSelector: {}}"));
    forge.repo.commit("more");
    let mut signed = crate::support::berth();
    signed.args(["run", "--once", "--repo", forge.repo.arg(), "--signing-key"]).arg(keys.path("berth"));
    let root = forge.repo.id(RENDERED);
    Ran::of(signed.args(["--root", &root])).expect(0);
    git(&clone, &["fetch", "-q", "origin"]);
    ask().expect(0);
}

#[test]
fn a_shallow_clone_that_can_prove_nothing_says_so_in_one_line() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::GithubPush);
    // The state's history, and no more of the source's than the newest commits.
    git(&clone, &["fetch", "-q", "--depth=3", "origin", "+refs/heads/main:refs/remotes/origin/main"]);
    let branch = format!("+{RENDERED}:refs/remotes/origin/berth/rendered");
    git(&clone, &["fetch", "-q", "--depth=2", "origin", &branch, "+refs/berth/*:refs/berth/*"]);
    let plan = at(&clone, &["plan"]).expect(0);
    assert_eq!(plan.err.matches("is not proven here").count(), 1, "{}", plan.err);
    assert!(plan.err.contains("this clone lacks the history for a proof"), "{}", plan.err);
}

#[test]
fn a_state_at_an_address_is_proven_like_any_other() {
    let forge = Forge::new();
    let clone = forge.clone(Kind::GithubFull);
    git(&clone, &["update-ref", "-d", "refs/remotes/origin/berth/rendered"]);
    let url = forge.url();
    let proof = at(&clone, &["verify", "--rendered", &url]).expect(0);
    assert!(proof.err.contains("2 commits proven"), "{}", proof.err);
    forge_tip(&forge.repo);
    let proof = at(&clone, &["verify", "--rendered", &url]).expect(3);
    assert!(proof.out.contains("Berth-Allow-Prune"), "{}", proof.out);
    at(&clone, &["verify", "--rendered", &format!("{url}-nowhere")]).expect(6);
}
