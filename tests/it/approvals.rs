//! Approvals: one for one change, where trailers count, and who may give them.

use crate::support::removals::feed;
use crate::support::{RENDERED, Ran, Repo, cluster, config_map, namespace, run, run_at, small_fleet};

const EVERYWHERE: &str = "{clusterSelector: {}}";

/// A published fleet of three clusters, a namespace and two config maps, of which a commit retires one.
fn retired() -> (Repo, String) {
    let repo = small_fleet();
    repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    repo.commit("more");
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "apps/web.yaml"]);
    repo.commit("retire web");
    let line = lines(&repo.publish().expect(5)).remove(0);
    (repo, line)
}

fn lines(ran: &Ran) -> Vec<String> {
    ran.out.lines().filter(|line| line.starts_with("Berth-Allow-Delete: ")).map(str::to_owned).collect()
}

fn has_web(repo: &Repo) -> bool {
    repo.files(RENDERED).contains_key("clusters/a/shop/ConfigMap_web.yaml")
}

#[test]
fn a_plan_of_an_approval_counts_the_removals_that_it_lets_go() {
    let (repo, line) = retired();
    let base = repo.id("HEAD");
    repo.git(&["checkout", "-q", "-b", "by-file"]);
    repo.write("approvals/web.yaml", approval(&line));
    repo.commit("web may go");
    repo.git(&["checkout", "-q", "-b", "by-message", "main"]);
    repo.commit(&format!("web may go\n\n{line}"));
    for head in ["by-file", "by-message"] {
        for upon in [&[][..], &["--base", &base]] {
            let args = [&["plan", "--head", head, "--repo", repo.arg()], upon].concat();
            let plan = run(&args).expect(0);
            assert!(plan.out.starts_with("3 objects removed"), "{head} {upon:?}: {}", plan.out);
            assert!(!plan.err.contains("matches no removal"), "{}", plan.err);
            run(&[&args[..], &["--fail-on", "removals"]].concat()).expect(3);
        }
    }
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--ff-only", "by-message"]);
    repo.publish().expect(0);
    assert!(!has_web(&repo));
}

#[test]
fn one_line_approves_everything_that_a_change_removes() {
    let repo = Repo::new();
    repo.write("apps/shop.yaml", namespace("shop"));
    for n in 0..12 {
        repo.write(&format!("clusters/c{n}.yaml"), cluster(&format!("c{n}"), &[]));
    }
    for n in 0..21 {
        repo.write(&format!("apps/m{n}.yaml"), config_map(&format!("m{n}"), "one", EVERYWHERE));
    }
    repo.commit("start");
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "clusters/c3.yaml"]);
    repo.commit("c3 leaves");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert_eq!(lines(&plan).len(), 1, "{}", plan.out);
    let ran = repo.publish().expect(5);
    assert_eq!(lines(&ran), lines(&plan));
    assert!(ran.out.contains("22 workloads held"), "{}", ran.out);
    let status = run(&["status", "--repo", repo.arg()]).expect(0);
    assert!(status.out.contains(&lines(&plan)[0]), "{}", status.out);
    let alone = |text: &str| text.lines().filter(|line| line.starts_with("  Berth-Allow-Delete: ")).count();
    let whole = run(&["plan", "-v", "--repo", repo.arg()]).expect(0);
    assert_eq!((alone(&plan.out), alone(&whole.out), alone(&ran.out)), (5, 22, 22));
    let comment = run(&["plan", "-o", "markdown", "--repo", repo.arg()]).expect(0);
    assert_eq!(alone(&comment.out), 22, "{}", comment.out);
    assert_eq!(status.out.lines().filter(|line| line.contains("(alone: Berth-Allow-Delete: ")).count(), 22);
    repo.commit(&format!("c3 may go\n\n{}", lines(&plan)[0]));
    repo.publish().expect(0);
    assert!(!repo.files(RENDERED).keys().any(|path| path.starts_with("clusters/c3/")));
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_workload_that_moves_from_its_only_cluster_to_another_is_no_mass_removal() {
    let repo = small_fleet();
    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: a}]}"));
    repo.commit("web on a");
    repo.publish_ungated().expect(0);
    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: b}]}"));
    repo.commit("web moves to b");
    repo.publish().expect(0);
    let files = repo.files(RENDERED);
    assert!(files.contains_key("clusters/b/shop/ConfigMap_web.yaml") && !has_web(&repo));
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn approvals_count_where_git_finds_trailers_and_forges_leave_them() {
    let by = "Co-authored-by: Bo <bo@example.com>";
    let (repo, line) = retired();
    let refs = ["refs/heads/main", RENDERED, "refs/berth/processed"].map(|name| (name, repo.id(name)));
    for (message, counts) in [
        ("LINE is for later", false),
        ("web\n\nLINE", true),
        ("web\n\nLINE\nCO", true),
        // As GitHub squashes a branch of one commit, and of several whose last one approves.
        ("web (#7)\n\nLINE\n\nCO", true),
        (
            "web (#7)\n\n* retire\n\n* approve\n\nLINE\n\n---------\n\nCO\nSigned-off-by: Al <al@example.com>",
            true,
        ),
        // As GitLab writes a merge.
        ("Merge branch 'web' into 'main'\n\nRetire web\n\nSee merge request shop/fleet!7\n\nLINE", true),
        ("web\r\n\r\nLINE\r\n", true),
        ("web\n\nLINE-WITHOUT-SPACE", true),
        ("web\n\nwords of people\nLINE\nSigned-off-by: Al <al@example.com>", true),
        ("web\n\nLINE\n# a comment", true),
        ("web\n\nwords of people\nLINE", false),
        ("web\r\n\r\nLINE\r\n\r\nwords of people\r\n", false),
        ("web\n\nLINE\n\nwords of people", false),
        ("web (#7)\n\n* approve\n\nLINE\n\n* fix\n\n---------\n\nCO", false),
        ("web\n\n  LINE", false),
        ("web\n\nwords\n---\nLINE", false),
        ("LINE", false),
    ] {
        refs.iter().for_each(|(name, id)| drop(repo.git(&["update-ref", name, id])));
        let tight = line.replace(": ", ":");
        let message = message.replace("LINE-WITHOUT-SPACE", &tight).replace("LINE", &line).replace("CO", by);
        let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
        let commit = feed(&repo, &["commit-tree", &tree, "-p", "HEAD", "-F", "-"], &message);
        repo.git(&["update-ref", "refs/heads/main", &commit]);
        let again = ["run", "--once", "--allow-rewritten", "--repo", repo.arg()];
        let ran = run(&again).expect(if counts { 0 } else { 5 });
        assert_eq!(has_web(&repo), !counts, "{message:?}\n{}", ran.err);
        let stands_elsewhere = !counts && message.lines().any(|one| one.trim().starts_with(&line));
        assert_eq!(
            ran.err.contains("outside the trailers of the message"),
            stands_elsewhere,
            "{message:?}\n{}",
            ran.err
        );
        // Git's own reader, which knows nothing of what forges append.
        let parsed = feed(&repo, &["interpret-trailers", "--parse"], &message);
        if parsed.contains(&line) {
            assert!(counts, "git finds it: {message:?}");
        } else if counts {
            assert!(parsed.contains(by) || message.contains(&tight), "git does not find it: {message:?}");
        }
    }
}

#[test]
fn the_daemon_can_take_approvals_from_files_only() {
    let (repo, line) = retired();
    repo.commit(&format!("web may go\n\n{line}"));
    let args = ["run", "--once", "--repo", repo.arg(), "--no-approval-trailers"];
    let ran = run(&args).expect(5);
    assert!(ran.err.contains("--no-approval-trailers") && ran.err.contains("approvals/"), "{}", ran.err);
    repo.write("approvals/web.yaml", approval(&line));
    repo.commit("approve in a file");
    run(&args).expect(0);
    assert!(!has_web(&repo));
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(message.contains(" trailers=off "), "{message}");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

fn approval(line: &str) -> String {
    let digest = line.split_once(": ").expect("a trailer").1;
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: Approval\nmetadata: {{name: web-goes}}\n\
         spec: {{digest: \"{digest}\", expires: \"2126-12-31T00:00:00Z\", reason: web is retired}}\n"
    )
}

#[test]
fn approval_files_need_the_right_that_access_rules_grant_their_folder() {
    let repo = small_fleet();
    repo.write(
        "access/rules.yaml",
        "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: all-but-approvals}\n\
         spec:\n  folders: [apps, clusters]\n  clusterSets: {admin: [\"*\"], join: [\"*\"]}\n  clusters: {edit: [\"*\"], place: [\"*\"]}\n  \
         namespaces: [\"*\"]\n  kinds: [\"*\"]\n",
    );
    repo.commit("rules");
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "apps/web.yaml"]);
    repo.commit("retire web");
    let line = lines(&repo.publish().expect(5)).remove(0);
    repo.write("approvals/web.yaml", approval(&line));
    repo.commit("approve without the right");
    let ran = repo.publish().expect(1);
    assert!(
        ran.err.contains("approvals/web.yaml:1:1: error") && ran.err.contains("clusterKinds: [Approval]"),
        "{}",
        ran.err
    );
    assert!(has_web(&repo));
    repo.write(
        "access/approvals.yaml",
        "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: approvers}\n\
         spec:\n  folders: [approvals]\n  clusterKinds: [Approval.berth.dev]\n",
    );
    repo.commit("grant it");
    repo.publish().expect(1);
    repo.commit("the grant counts from the next commit on");
    repo.publish().expect(0);
    assert!(!has_web(&repo));
}

#[test]
fn a_rollback_goes_back_by_time_as_well_as_by_count() {
    let repo = small_fleet();
    repo.publish_at(repo.dated()).expect(0);
    let good = repo.id("HEAD");
    repo.write("apps/new.yaml", config_map("new", "one", EVERYWHERE));
    for value in 0..13 {
        repo.write("apps/web.yaml", config_map("web", &format!("v{value}"), EVERYWHERE));
        repo.commit("edit");
        repo.publish_at(repo.dated()).expect(0);
    }
    repo.git(&["rm", "-q", "apps/new.yaml"]);
    repo.git(&["checkout", "-q", &good, "--", "apps"]);
    repo.commit("back to the morning");
    let short = ["run", "--once", "--repo", repo.arg(), "--rollback-window", "5m"];
    run_at(repo.dated(), &short).expect(5);
    repo.publish_at(repo.dated()).expect(0);
    assert!(!repo.files(RENDERED).contains_key("clusters/c/shop/ConfigMap_new.yaml"));
    run(&["verify", "--repo", repo.arg(), "--expect-gate", "any"]).expect(0);
}
