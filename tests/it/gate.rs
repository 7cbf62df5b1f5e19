//! Nobody deletes by accident: what the gate holds, what it prints, and what lets a removal pass.

use berth_engine::state::Comparison;
use berth_git::GitContents;
use berth_git::shared_refs::Refs;
use berth_hub::inputs::gate::{Basis, Step, ask};
use berth_hub::inputs::{BuildCache, PassInputs, Reports, SourceCommit};
use berth_hub::publish::{Trailers, read_current};

use crate::support::{RENDERED, Ran, Repo, cluster, config_map, namespace, run, small_fleet};

const EVERYWHERE: &str = "{clusterSelector: {}}";

/// Three clusters, a namespace and two config maps on those labelled so, published.
fn fleet() -> Repo {
    let repo = small_fleet();
    repo.write("apps/web.yaml", config_map("web", "one", "{clusterSelector: {matchLabels: {tier: web}}}"));
    repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    label(&repo, "web");
    repo.commit("label the clusters");
    repo.publish().expect(0);
    repo
}

fn label(repo: &Repo, tier: &str) {
    for name in ["a", "b", "c"] {
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("tier", tier)]));
    }
}

/// The line that berth printed to paste, alone on its line.
#[track_caller]
fn printed(ran: &Ran) -> String {
    let lines: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("Berth-Allow-Delete: ")).collect();
    assert_eq!(lines.len(), 1, "one line to paste\n{}\n{}", ran.out, ran.err);
    lines[0].to_owned()
}

fn digest(line: &str) -> &str {
    line.split_once(": ").expect("a trailer").1
}

fn has(repo: &Repo, path: &str) -> bool {
    repo.files(RENDERED).contains_key(path)
}

fn approval(digest: &str, expires: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: Approval\nmetadata: {{name: web-goes}}\n\
         spec: {{digest: \"{digest}\", expires: \"{expires}\", reason: web is retired}}\n"
    )
}

const WEB_IN_A: &str = "clusters/a/shop/ConfigMap_web.yaml";

#[test]
fn a_label_edit_that_empties_a_selector_is_held_and_the_rest_is_published() {
    let repo = fleet();
    label(&repo, "wbe");
    repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
    repo.commit("a typing error beside a change");
    let ran = repo.publish().expect(5);
    assert!(ran.out.contains("FederatedConfigMap shop/web"), "{}", ran.out);
    assert!(ran.out.contains("it would be removed from all of its clusters (3)"), "{}", ran.out);
    printed(&ran);
    let files = repo.files(RENDERED);
    assert!(files[WEB_IN_A].contains("one"), "the last good form stays");
    assert!(files["clusters/a/shop/ConfigMap_api.yaml"].contains("two"), "what is not held is published");
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(message.contains("FederatedConfigMap shop/web is held"), "{message}");
    assert!(message.contains("Berth-Held: ") && message.contains("Berth-Gate: clusters=50%/2"), "{message}");
    let processed = repo.git(&["show", "refs/berth/processed:processed.json"]);
    assert!(processed.contains("\"held\"") && processed.contains("shop/web"), "{processed}");

    let before = repo.id(RENDERED);
    repo.publish().expect(5);
    assert_eq!(repo.id(RENDERED), before, "held again, and nothing new to commit");

    label(&repo, "web");
    repo.commit("mend it");
    repo.publish().expect(0);
    assert!(repo.files(RENDERED)[WEB_IN_A].contains("one"));
}

#[test]
fn plan_shows_before_what_run_will_hold_and_the_approval_may_be_in_the_very_commit() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    let plan = run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5);
    let line = printed(&plan);
    let json = run(&["plan", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    assert_eq!(json["held"][0]["digest"], digest(&line));
    repo.git(&["commit", "-q", "--amend", "-m", &format!("retire web\n\n{line}")]);
    run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(0);
    repo.publish().expect(0);
    assert!(!has(&repo, WEB_IN_A));
}

#[test]
fn an_approval_in_a_later_commit_lets_a_held_workload_pass_and_is_recorded() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    repo.commit("something else");
    assert_eq!(printed(&repo.publish().expect(5)), line, "the digest stays the same");
    let status = run(&["status", "--repo", repo.arg()]).expect(0);
    assert!(
        status.out.contains(&format!("held for approval: FederatedConfigMap shop/web ({line})")),
        "{}",
        status.out
    );
    let commit = repo.commit(&format!("web may go\n\n{line}"));
    let ran = repo.publish().expect(0);
    let by = format!("shop/web: its removals are approved by commit {}", &commit[..12]);
    assert!(ran.err.contains(&by), "{}", ran.err);
    assert!(!has(&repo, WEB_IN_A));
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(message.contains(&format!("Berth-Used-Approval: {}", digest(&line))), "{message}");
}

#[test]
fn an_approval_of_a_merged_branch_counts() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.commit(&format!("web may go\n\n{line}"));
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge the approval", "side"]);
    repo.publish().expect(0);
    assert!(!has(&repo, WEB_IN_A));
}

#[test]
fn an_approval_for_another_removal_does_nothing_and_is_named() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web\n\nBerth-Allow-Delete: 00112233445566778899aabbccddeeff");
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains("`00112233445566778899aabbccddeeff` matches no removal now"), "{}", ran.err);
    repo.commit("again\n\nBerth-Allow-Delete: yes please");
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains("32 digits"), "{}", ran.err);
    assert!(has(&repo, WEB_IN_A));
}

#[test]
fn an_approval_that_stands_where_it_does_not_count_is_named() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    for message in [format!("web may go\n\n{line}\n\nand these words"), format!("web may go\n\n  {line}")] {
        repo.commit(&message);
        let ran = repo.publish().expect(5);
        assert!(ran.err.contains("outside the trailers of the message"), "{message}\n{}", ran.err);
    }
    repo.commit(&format!("web may go\n\n{line}\nCo-authored-by: Bo <bo@example.com>"));
    let ran = repo.publish().expect(0);
    assert!(!ran.err.contains("has no effect"), "{}", ran.err);
}

#[test]
fn an_approval_counts_once() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    repo.commit(&format!("web may go\n\n{line}"));
    repo.publish().expect(0);
    label(&repo, "web");
    repo.commit("web is back");
    repo.publish().expect(0);
    // Far enough from the state without it that this is no rollback.
    repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
    label(&repo, "none");
    repo.commit(&format!("web goes once more\n\n{line}"));
    let ran = repo.publish().expect(5);
    assert!(ran.out.contains(&format!("the approval `{}` was used already", digest(&line))), "{}", ran.out);
    assert!(has(&repo, WEB_IN_A));
    let second = printed(&ran);
    assert_ne!(second, line);
    repo.commit(&format!("really\n\n{second}"));
    repo.publish().expect(0);
    assert!(!has(&repo, WEB_IN_A));
}

#[test]
fn an_approval_file_counts_until_it_expires() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    repo.write("approvals/web.yaml", approval(digest(&line), "2025-12-31T00:00:00Z"));
    repo.commit("approve too late");
    let ran = repo.publish().expect(5);
    assert!(ran.out.contains("its approval expired at 2025-12-31T00:00:00Z"), "{}", ran.out);
    assert!(!ran.err.contains("held"), "once is enough: {}", ran.err);
    assert!(has(&repo, WEB_IN_A));
    repo.write("approvals/web.yaml", approval("00112233445566778899aabbccddeeff", "2126-12-31T00:00:00Z"));
    repo.commit("approve something else");
    let ran = repo.publish().expect(5);
    let nothing = "approvals/web.yaml:1:1: warning: the approval `00112233445566778899aabbccddeeff` matches no removal now";
    assert!(ran.err.contains(nothing), "{}", ran.err);
    repo.write("approvals/web.yaml", approval(digest(&line), "2126-12-31T00:00:00Z"));
    repo.commit("approve in time");
    let ran = repo.publish().expect(0);
    assert!(ran.err.contains("its removals are approved by approvals/web.yaml"), "{}", ran.err);
    assert!(!has(&repo, WEB_IN_A));
}

#[test]
fn an_approval_file_counts_nowhere_else_and_its_faults_are_reported() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    repo.write("apps/approval.yaml", approval(digest(&line), "2126-12-31T00:00:00Z"));
    repo.commit("approve in the wrong place");
    let ran = repo.publish().expect(1);
    assert!(
        ran.err.contains("apps/approval.yaml:1:1: error") && ran.err.contains("approvals/"),
        "{}",
        ran.err
    );
    assert!(has(&repo, WEB_IN_A));
    let ran = run(&["validate", repo.arg()]).expect(1);
    assert!(ran.err.contains("approvals/"), "{}", ran.err);
    repo.git(&["rm", "-q", "apps/approval.yaml"]);
    repo.write("approvals/web.yaml", approval("not a digest", "soon"));
    let ran = run(&["validate", repo.arg()]).expect(1);
    assert!(ran.err.contains("spec.digest") && ran.err.contains("spec.expires"), "{}", ran.err);
}

#[test]
fn the_revert_of_an_addition_passes() {
    let repo = fleet();
    repo.write("apps/new.yaml", config_map("new", "one", EVERYWHERE));
    repo.commit("add new");
    repo.publish().expect(0);
    assert!(has(&repo, "clusters/c/shop/ConfigMap_new.yaml"));
    repo.git(&["revert", "--no-edit", "HEAD"]);
    let earlier = repo.id(&format!("{RENDERED}^"));
    let ran = repo.publish().expect(0);
    assert!(ran.err.contains(&format!("the state of rendered commit {}", &earlier[..12])), "{}", ran.err);
    assert!(!has(&repo, "clusters/c/shop/ConfigMap_new.yaml"));
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(message.contains("Berth-Rollback: "), "{message}");
}

#[test]
fn a_rollback_goes_back_so_far_and_no_further() {
    let repo = fleet();
    repo.write("apps/new.yaml", config_map("new", "one", EVERYWHERE));
    repo.commit("add new");
    repo.publish().expect(0);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    run(&["run", "--once", "--repo", repo.arg(), "--rollback-depth", "0"]).expect(5);
    assert!(has(&repo, "clusters/c/shop/ConfigMap_new.yaml"));
}

#[test]
fn a_namespace_is_never_removed_without_a_word() {
    let repo = fleet();
    repo.write("apps/shop.yaml", namespace("shop").replace(EVERYWHERE, "{clusters: [{name: a}, {name: b}]}"));
    repo.commit("shop leaves c");
    let ran = repo.publish().expect(5);
    printed(&ran);
    assert!(ran.out.contains("it would remove Namespace shop"), "{}", ran.out);
    assert!(has(&repo, "clusters/c/_cluster/Namespace_shop.yaml"));
    run(&["run", "--once", "--repo", repo.arg(), "--allow-risky-removals"]).expect(0);
    assert!(!has(&repo, "clusters/c/_cluster/Namespace_shop.yaml"));
}

#[test]
fn an_approved_namespace_is_pruned_by_its_member_and_an_unapproved_one_is_not() {
    let repo = fleet();
    let target = tempfile::tempdir().expect("a folder");
    repo.sync("c", target.path(), &[]).expect(0);
    let file = target.path().join("_cluster/Namespace_shop.yaml");
    let narrow = namespace("shop").replace(EVERYWHERE, "{clusters: [{name: a}, {name: b}]}");
    repo.write("apps/shop.yaml", &narrow);
    repo.commit("shop leaves c");
    let flags = ["run", "--once", "--repo", repo.arg(), "--allow-risky-removals"];
    run(&flags).expect(0);
    repo.sync("c", target.path(), &[]).expect(7);
    assert!(file.exists(), "a flag of the daemon is no approval for a member");

    repo.write("apps/shop.yaml", namespace("shop"));
    repo.commit("shop is back");
    repo.publish().expect(0);
    repo.sync("c", target.path(), &[]).expect(0);
    repo.write("apps/shop.yaml", &narrow);
    repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
    repo.commit("shop leaves c again");
    let lines = repo.publish().expect(5).out;
    let lines: Vec<&str> = lines.lines().filter(|line| line.starts_with("Berth-Allow-Delete")).collect();
    repo.commit(&format!("it may\n\n{}", lines.join("\n")));
    repo.publish().expect(0);
    // A member that missed the very commit still knows of the approval.
    repo.write("apps/more.yaml", config_map("more", "one", "{clusters: [{name: c}]}"));
    repo.write("apps/shop.yaml", &narrow);
    repo.commit("one commit later");
    repo.publish().expect(0);
    let said = repo.git(&["log", "-1", "--format=%B", "refs/berth/clusters/c"]);
    assert!(said.contains("Berth-Allow-Prune: _cluster/Namespace_shop.yaml"), "{said}");
    repo.sync("c", target.path(), &[]).expect(0);
    assert!(!file.exists());

    repo.write("apps/shop.yaml", namespace("shop"));
    repo.commit("shop is back once more");
    repo.publish().expect(0);
    let said = repo.git(&["log", "-1", "--format=%B", "refs/berth/clusters/c"]);
    assert!(!said.contains("Berth-Allow-Prune"), "the approval was for the removal, not for ever: {said}");
}

#[test]
fn a_deleted_cluster_file_is_held() {
    let repo = fleet();
    repo.git(&["rm", "-q", "clusters/c.yaml"]);
    repo.commit("c leaves");
    let ran = repo.publish().expect(5);
    assert!(ran.out.contains("cluster `c` would lose 3 of its 3 objects"), "{}", ran.out);
    let lines: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("Berth-Allow-Delete")).collect();
    assert_eq!(lines.len(), 1, "{}", ran.out);
    assert!(has(&repo, "clusters/c/shop/ConfigMap_web.yaml"));
    repo.id("refs/berth/clusters/c");
    repo.commit(&format!("c may go\n\n{}", lines.join("\n")));
    repo.publish().expect(0);
    assert!(!has(&repo, "clusters/c/shop/ConfigMap_web.yaml"));
}

#[test]
fn a_file_that_moves_removes_nothing() {
    let repo = fleet();
    repo.git(&["mv", "apps/web.yaml", "clusters/elsewhere.yaml"]);
    repo.commit("move");
    run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(0);
    repo.publish().expect(0);
    assert!(has(&repo, WEB_IN_A));
}

#[test]
fn a_deleted_workload_is_held_even_when_its_commit_is_processed_twice() {
    let repo = fleet();
    repo.git(&["rm", "-q", "apps/web.yaml"]);
    repo.commit("web is gone");
    repo.publish().expect(5);
    // What was processed can be lost; the rendered branch and the source are enough to hold it again.
    repo.git(&["update-ref", "-d", "refs/berth/processed"]);
    repo.publish().expect(5);
    assert!(has(&repo, WEB_IN_A));
}

#[test]
fn a_pass_that_was_cut_short_after_publishing_is_taken_up_where_it_stopped() {
    let repo = fleet();
    let processed = repo.id("refs/berth/processed");
    label(&repo, "none");
    repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    repo.git(&["update-ref", "refs/berth/processed", &processed]);
    assert_eq!(printed(&repo.publish().expect(5)), line, "still held");
    repo.git(&["update-ref", "refs/berth/processed", &processed]);
    repo.commit(&format!("web may go\n\n{line}"));
    repo.publish().expect(0);
}

#[test]
fn a_rendered_commit_says_all_that_its_verdict_depends_on() {
    let repo = fleet();
    label(&repo, "none");
    repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
    repo.commit("retire web");
    let line = printed(&repo.publish().expect(5));
    repo.commit(&format!("web may go\n\n{line}"));
    repo.publish().expect(0);
    repo.write("apps/new.yaml", config_map("new", "one", EVERYWHERE));
    repo.commit("add new");
    repo.publish().expect(0);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    repo.publish().expect(0);

    let git = berth_git::Repo::open(repo.path()).expect("a repository");
    let commits = repo.git(&["rev-list", "--max-parents=1", "--min-parents=1", RENDERED]);
    assert_eq!(commits.lines().count(), 4, "held, approved, added, rolled back");
    for id in commits.lines() {
        let parent = "refs/heads/parent";
        repo.git(&["update-ref", parent, &format!("{id}^")]);
        let commit = git.commit(id.parse().expect("an id")).expect("a commit");
        let trailers = Trailers::read(&commit.message).expect("trailers");
        let basis = Basis::of_trailers(&trailers).expect("the gate was asked");
        let source = trailers.source.expect("a source");
        let current = read_current(&git, parent).expect("readable").expect("a parent");
        let reports = Reports::read(&git, &Refs::default(), &basis.limits.labels, Some(&current));
        let reports = reports.expect("readable");
        let now = trailers.now.expect("a moment");
        let (rules, known) = (basis.rules_for(source), BuildCache::default());
        let source_commit = SourceCommit { repo: &git, commit: source, rules, current: Some(&current) };
        let inputs = PassInputs::commit(source_commit, reports, now, known).expect("readable");
        let mut contents = GitContents::remembering(&git).expect("opens");
        let built = inputs.build(&mut contents).expect("builds");
        let step = Step {
            source,
            states: &Comparison::of(&current.state, &built.desired),
            first: &built.state,
            failing: &std::collections::BTreeMap::new(),
            files: &built.fleet.approvals,
            now,
            rendered: &current,
            edit_alone: &Vec::new,
            outlook: None,
            fleet: &berth_base::model::Fleet::default(),
        };
        let gated = ask(&git, &step, &basis).expect("a verdict");
        assert_eq!(gated.trailers, trailers.others, "{}", commit.message);
        let mut published = gated.verdict.state;
        published.folders.retain(|_, folder| !folder.is_empty());
        let written = berth_hub::publish::read_state(&git, commit.id).expect("readable").state;
        assert_eq!(published.folders, written.folders);
        assert_eq!(published.decisions, written.decisions);
        assert_eq!(published.ledger, written.ledger);
    }
}

#[test]
fn the_limits_are_flags_of_the_daemon() {
    let repo = fleet();
    label(&repo, "none");
    repo.commit("retire web");
    repo.publish().expect(5);
    run(&["run", "--once", "--repo", repo.arg(), "--max-removed-clusters", "half"]).expect(2);
    run(&["run", "--once", "--repo", repo.arg(), "--max-removed-clusters", "100%"]).expect(0);
    assert!(!has(&repo, WEB_IN_A));
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(message.contains("Berth-Gate: clusters=100%/2"), "{message}");
}

#[test]
fn an_empty_result_is_refused_and_writes_nothing() {
    let repo = fleet();
    let (before, processed) = (repo.id(RENDERED), repo.id("refs/berth/processed"));
    repo.git(&["rm", "-q", "-r", "apps"]);
    repo.commit("all of it");
    let ran = repo.publish().expect(5);
    assert!(
        ran.err.contains("the next state has no objects") && ran.err.contains("--allow-empty"),
        "{}",
        ran.err
    );
    assert_eq!((repo.id(RENDERED), repo.id("refs/berth/processed")), (before, processed));
    let ran = run(&["run", "--once", "--repo", repo.arg(), "--allow-empty"]).expect(5);
    let lines: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("Berth-Allow-Delete")).collect();
    assert_eq!(lines.len(), 1, "the removals still need their approval: {}", ran.out);
    repo.commit(&format!("all may go\n\n{}", lines.join("\n")));
    run(&["run", "--once", "--repo", repo.arg(), "--allow-empty"]).expect(0);
    assert!(!repo.files(RENDERED).keys().any(|path| path.starts_with("clusters/")));
}

#[test]
fn a_rewound_source_is_refused_unless_told() {
    let repo = fleet();
    repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
    let last = repo.commit("two");
    repo.publish().expect(0);
    let before = repo.id(RENDERED);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.commit("another two");
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains(&last) && ran.err.contains("--allow-rewind"), "{}", ran.err);
    assert_eq!(repo.id(RENDERED), before);
    run(&["run", "--once", "--repo", repo.arg(), "--allow-rewind"]).expect(0);
    assert_ne!(repo.id(RENDERED), before);
    repo.publish().expect(0);
}

#[test]
fn a_rendered_branch_that_is_gone_is_refused() {
    let repo = fleet();
    let last = repo.id(RENDERED);
    repo.git(&["update-ref", "-d", RENDERED]);
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains(&format!("git update-ref {RENDERED} {last}")), "{}", ran.err);
    repo.git(&["update-ref", RENDERED, &last]);
    repo.publish().expect(0);
}

#[test]
fn a_branch_of_others_and_a_newer_format_are_refused() {
    let repo = fleet();
    repo.git(&["update-ref", RENDERED, "main"]);
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains("was not made by berth"), "{}", ran.err);
    run(&["plan", "--repo", repo.arg()]).expect(5);

    let repo = Repo::with(&[("berth.json", "{\"format\": 99}\n")]);
    repo.git(&["update-ref", RENDERED, "main"]);
    repo.write("clusters/a.yaml", cluster("a", &[]));
    repo.commit("a fleet");
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains("format 99") && ran.err.contains("newer"), "{}", ran.err);
}

#[test]
fn the_same_held_and_approved_history_gives_the_same_commits() {
    let ids: Vec<String> = (0..2)
        .map(|_| {
            let repo = fleet();
            label(&repo, "none");
            repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
            repo.commit("retire web");
            let line = printed(&repo.publish_at(repo.dated()).expect(5));
            repo.commit(&format!("web may go\n\n{line}"));
            repo.publish_at(repo.dated()).expect(0);
            repo.id(RENDERED)
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_branch_that_only_head_names_is_not_published_by_accident() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let published = repo.id(RENDERED);
    repo.git(&["switch", "-qc", "feature"]);
    repo.write("apps/web.yaml", config_map("web", "unmerged", "{clusterSelector: {}}"));
    repo.commit("unmerged");
    let refused = repo.publish().expect(2);
    assert!(
        refused.err.contains("HEAD is on `feature`, and the source processed last is `main`"),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("git switch main") && refused.err.contains("--source feature"),
        "{}",
        refused.err
    );
    assert_eq!(repo.id(RENDERED), published);
    // A plan on the branch is what the merge would publish.
    assert!(run(&["plan", "--repo", repo.arg()]).expect(0).out.contains("unmerged"));
    repo.git(&["switch", "-q", "main"]);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), published);
    // Somebody who names the branch means it.
    run(&["run", "--once", "--repo", repo.arg(), "--source", "feature"]).expect(0);
    assert_ne!(repo.id(RENDERED), published);
}
