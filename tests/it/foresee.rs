//! `berth plan` says before what `berth run` would refuse, and does not mistake a branch that is behind.

use crate::support::{RENDERED, Ran, Repo, cluster, config_map, hermetic, run, small_fleet};

const EVERYWHERE: &str = "{clusterSelector: {}}";

fn fleet() -> Repo {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo
}

/// A plan whose text, JSON and exit code all say that run would refuse, and a run that does.
#[track_caller]
fn refused(repo: &Repo, why: &str, help: &str) {
    let plan = run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5);
    assert!(plan.out.starts_with("berth run would refuse this"), "{}", plan.out);
    assert!(plan.out.contains(why) && plan.out.contains(help), "{}", plan.out);
    let form = run(&["plan", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    assert!(form["refused"][0]["message"].as_str().is_some_and(|text| text.contains(why)), "{form}");
    assert!(form["refused"][0]["hint"].as_str().is_some_and(|text| text.contains(help)), "{form}");
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains(why), "{}", ran.err);
}

#[test]
fn nothing_is_refused_where_run_refuses_nothing() {
    let repo = fleet();
    repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    repo.commit("an addition");
    let form = run(&["plan", "--repo", repo.arg(), "-o", "json", "--fail-on", "held"]).expect(0).json();
    assert_eq!(form["refused"], serde_json::json!([]));
}

#[test]
fn an_empty_result_is_foreseen() {
    let repo = fleet();
    repo.git(&["rm", "-q", "-r", "apps"]);
    repo.commit("clean up");
    refused(&repo, "the next state has no objects", "--allow-empty");
}

#[test]
fn a_rewound_source_is_foreseen() {
    let repo = fleet();
    repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    repo.commit("an addition");
    repo.publish().expect(0);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.commit("rewritten");
    refused(&repo, "does not come after", "--allow-rewind");
}

#[test]
fn a_vanished_branch_is_nothing_to_plan_from() {
    let repo = fleet();
    let last = repo.id(RENDERED);
    repo.git(&["update-ref", "-d", RENDERED]);
    let help = format!("git update-ref {RENDERED} {last}");
    for command in [&["plan"][..], &["validate"], &["decide"], &["status"]] {
        let ran = run(&[command, &["--repo", repo.arg()]].concat()).expect(6);
        assert!(ran.err.contains("is missing, although") && ran.err.contains(&help), "{}", ran.err);
    }
    let ran = repo.publish().expect(5);
    assert!(ran.err.contains("is missing, although"), "{}", ran.err);
}

#[test]
fn a_branch_that_is_behind_is_planned_as_merged() {
    let repo = fleet();
    repo.git(&["checkout", "-q", "-b", "review"]);
    repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    repo.commit("an addition");
    let plan = |more: &[&str]| run(&[&["plan", "--repo", repo.arg(), "--fail-on", "held"], more].concat());
    assert!(!plan(&[]).expect(0).err.contains("behind"));
    repo.git(&["checkout", "-q", "main"]);
    repo.write("clusters/d.yaml", cluster("d", &[]));
    repo.commit("d joins");
    repo.publish().expect(0);
    repo.git(&["checkout", "-q", "review"]);
    for more in [&[][..], &["--base", "main"]] {
        let merged = plan(more).expect(0);
        assert!(
            merged.err.contains("`HEAD` is 1 commit behind main; the plan merges them first"),
            "{}",
            merged.err
        );
        assert!(merged.out.starts_with("4 objects added in 4 of 4 clusters"), "{}", merged.out);
    }
    // As it is, the branch would take d out again: run refuses it as a source.
    let as_it_is = plan(&["--no-merge"]).expect(5);
    assert!(as_it_is.out.contains("does not come after"), "{}", as_it_is.out);
}

#[test]
fn a_head_from_the_future_is_refused_beside_a_base_too() {
    let repo = fleet();
    repo.git(&["checkout", "-q", "-b", "review"]);
    let mut git = hermetic("git");
    git.current_dir(repo.path()).env("GIT_COMMITTER_DATE", "2099-01-01T00:00:00Z");
    Ran::of(git.args(["commit", "-q", "--allow-empty", "-m", "from the future"])).expect(0);
    for base in [&["--base", "main"][..], &[]] {
        let ran = run(&[&["plan", "--repo", repo.arg()], base].concat()).expect(5);
        assert!(ran.err.contains("in the future"), "{}", ran.err);
    }
}

#[test]
fn the_rendered_branch_is_no_head() {
    let repo = fleet();
    let ran = run(&["plan", "--repo", repo.arg(), "--head", RENDERED]).expect(2);
    assert!(ran.err.contains("cannot be the source"), "{}", ran.err);
}

#[test]
fn a_plan_leaves_nothing_in_the_repository() {
    let repo = fleet();
    for name in 0..40 {
        repo.write(&format!("apps/more{name}.yaml"), config_map(&format!("more{name}"), "one", EVERYWHERE));
    }
    repo.commit("many additions");
    let everything = || {
        let objects = repo.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
        (objects, repo.git(&["for-each-ref"]))
    };
    let before = everything();
    for more in [&["--diff"][..], &["--base", "HEAD~1"]] {
        let plan = run(&[&["plan", "--repo", repo.arg()], more].concat()).expect(0);
        assert!(plan.out.starts_with("120 objects added"), "{}", plan.out);
        assert!(everything() == before, "{more:?} left something");
    }
}

/// A branch off main with one file written or removed.
fn branch(repo: &Repo, name: &str, path: &str, text: Option<String>) {
    repo.git(&["checkout", "-q", "-b", name, "main"]);
    match text {
        Some(text) => repo.write(path, text),
        None => drop(repo.git(&["rm", "-q", path])),
    }
    repo.commit(name);
    repo.git(&["checkout", "-q", "main"]);
}

#[test]
fn what_two_branches_do_only_together_is_named() {
    let repo = fleet();
    // Alone, the one moves nothing and the other leaves two clusters.
    let selector = "{clusterSelector: {matchLabels: {tier: gold}}}";
    repo.write("apps/web.yaml", config_map("web", "one", EVERYWHERE));
    for name in ["a", "b"] {
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("env", "prod"), ("tier", "gold")]));
    }
    repo.commit("tiers");
    repo.publish().expect(0);
    branch(&repo, "gold", "apps/web.yaml", Some(config_map("web", "one", selector)));
    branch(&repo, "label", "clusters/a.yaml", Some(cluster("a", &[("env", "prod"), ("tier", "tin")])));
    let plan = |more: &[&str]| run(&[&["plan", "--repo", repo.arg(), "--head", "gold"], more].concat());
    assert!(!plan(&[]).expect(0).out.contains("together"));
    let text = plan(&["--with", "label"]).expect(0).out;
    for words in [
        "only with `gold` and `label` together\n",
        "  - FederatedConfigMap shop/web leaves a (1 object)\n",
        "      label tier=gold is required, the cluster has tier=tin\n",
    ] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
    let form = plan(&["--with", "label", "-o", "json"]).expect(0).json();
    let together = &form["together"];
    assert_eq!(together["branches"][1]["revision"], "label");
    let lost = together["only"]["placements"].as_array().expect("placements");
    assert!(lost.len() == 1 && lost[0]["name"] == "web", "{together}");
    let comment = plan(&["--with", "label", "-o", "markdown"]).expect(0).out;
    assert!(comment.contains("only with `gold` and `label` together"), "{comment}");
    // The same in a plan upon a base.
    let text = plan(&["--base", "main", "--with", "label"]).expect(0).out;
    assert!(text.contains("only with `gold` and `label` together\n"), "{text}");
}

#[test]
fn branches_that_do_not_meet_do_what_each_does_alone() {
    let repo = fleet();
    for name in ["one", "two", "three"] {
        let text = config_map(name, "one", EVERYWHERE);
        branch(&repo, name, &format!("apps/{name}.yaml"), Some(text));
    }
    let ran = run(&["plan", "--repo", repo.arg(), "--head", "one", "--with", "two,three"]).expect(0);
    assert!(ran.out.starts_with("9 objects added in 3 of 3 clusters, all at once\n"), "{}", ran.out);
    assert!(ran.out.contains("`one`, `two` and `three` together do what each does alone"), "{}", ran.out);
}

#[test]
fn a_conflict_of_two_branches_names_both_and_the_rest_is_planned() {
    let repo = fleet();
    branch(&repo, "two", "apps/web.yaml", Some(config_map("web", "two", EVERYWHERE)));
    branch(&repo, "api", "apps/api.yaml", Some(config_map("api", "one", EVERYWHERE)));
    branch(&repo, "three", "apps/web.yaml", Some(config_map("web", "three", EVERYWHERE)));
    let args = ["plan", "--repo", repo.arg(), "--head", "api", "--with", "two", "--with", "three"];
    let ran = run(&args).expect(1);
    assert!(ran.out.contains("! `two` and `three` conflict in 1 file; `three` is left out\n"), "{}", ran.out);
    assert!(ran.out.contains("      apps/web.yaml\n"), "{}", ran.out);
    assert!(ran.out.contains("data.value as edited") && !ran.out.contains("→ three"), "{}", ran.out);
    let form = run(&[&args[..], &["-o", "json"]].concat()).expect(1).json();
    assert_eq!(form["together"]["conflicts"][0]["between"], serde_json::json!(["two", "three"]));
}
