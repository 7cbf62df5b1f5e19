//! Plans show where a change leads, and not its first step alone.

use crate::support::rollouts::Rollouts;
use crate::support::{Ran, Repo, cluster, config_map, namespace, run};

const NAMES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];

const PROD: &str = "{clusterSelector: {matchLabels: {tier: prod}}}";

/// First the canary `c0`, an hour later the others, two at a time. No cluster is in the last stage.
const POLICY: &str = "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: web, namespace: shop}\nspec:\n  \
     workloads: [{kind: FederatedConfigMap, name: web}]\n  strategy:\n    stages:\n    \
     - name: canary\n      labelSelector: {matchLabels: {ring: canary}}\n      \
     afterStageTasks: [{type: TimedWait, waitTime: 1h}]\n    \
     - {name: rest, labelSelector: {matchLabels: {ring: rest}}, maxConcurrency: 2}\n    \
     - {name: none, labelSelector: {matchLabels: {ring: nowhere}}}\n";

/// A fleet whose web rolls out in stages, and is healthy everywhere.
fn fleet() -> Rollouts {
    let repo = Repo::new();
    for (number, name) in NAMES.iter().enumerate() {
        let ring = if number == 0 { "canary" } else { "rest" };
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("tier", "prod"), ("ring", ring)]));
    }
    repo.write("shop/namespace.yaml", namespace("shop"));
    repo.write("shop/web.yaml", config_map("web", "one", PROD));
    repo.commit("start");
    let rollouts = Rollouts::of(repo);
    rollouts.edit(&[("policy.yaml", POLICY)]);
    rollouts
}

/// Commits a file, and plans it.
fn planned(rollouts: &Rollouts, (path, text): (&str, &str), flags: &[&str]) -> Ran {
    let repo = &rollouts.repo;
    repo.write(path, text);
    repo.commit("a change");
    plan(rollouts, flags)
}

fn plan(rollouts: &Rollouts, flags: &[&str]) -> Ran {
    let now = rollouts.now().to_string();
    run(&[&["plan", "--repo", rollouts.repo.arg(), "--now", &now], flags].concat())
}

#[test]
fn a_change_that_rolls_out_in_stages_is_counted_to_its_end() {
    let rollouts = fleet();
    let ran = planned(&rollouts, ("shop/web.yaml", &config_map("web", "two", PROD)), &["--diff"]).expect(0);
    let title = "6 objects changed in 6 of 6 clusters, in 4 steps, now in 1\n";
    assert!(ran.out.starts_with(title), "{}", ran.out);
    assert!(ran.out.contains("(5 of 6 clusters later)"), "{}", ran.out);
    plan(&rollouts, &["--fail-on", "changes"]).expect(3);
    let json = plan(&rollouts, &["-o", "json"]).json();
    assert_eq!((&json["counts"]["changed"], &json["now"]["changed"]), (&6.into(), &1.into()));
    let changes = json["workloads"][0]["changes"].as_array().expect("changes").iter();
    assert_eq!(changes.filter(|change| change["later"] == true).count(), 5);
}

#[test]
fn a_render_is_of_the_end_unless_the_step_is_asked_for() {
    let rollouts = fleet();
    let repo = &rollouts.repo;
    repo.write("shop/web.yaml", config_map("web", "two", PROD));
    repo.commit("two");
    let folder = tempfile::tempdir().expect("a folder");
    let values = |flags: &[&str]| {
        let out = folder.path().join(format!("out{}", flags.len()));
        let args = ["render", "--out", out.to_str().expect("a path")];
        run(&[&args, flags, &["--repo", repo.arg()]].concat()).expect(0);
        let map = |name: &&str| out.join(format!("clusters/{name}/shop/ConfigMap_web.yaml"));
        let texts = NAMES.iter().map(|name| std::fs::read_to_string(map(name)).expect("a manifest"));
        texts.filter(|text| text.contains("two")).count()
    };
    assert_eq!((values(&[]), values(&["--step"])), (6, 1));
}

#[test]
fn a_typing_error_is_seen_while_a_canary_soaks() {
    let rollouts = fleet();
    rollouts.edit(&[("shop/web.yaml", &config_map("web", "two", PROD))]);
    rollouts.succeed(&NAMES);
    rollouts.pass();
    let half = config_map("web", "two", "{clusters: [{name: c0}, {name: c1}, {name: c2}, {name: c3}]}");
    let ran = planned(&rollouts, ("shop/web.yaml", &half), &["--fail-on", "removals"]).expect(3);
    let title = "2 objects removed in 2 of 6 clusters, step by step, none now; earlier edits are on their way to 3 clusters\n";
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with(title.trim()), "{}", ran.out);
}

#[test]
fn what_earlier_edits_lead_to_is_no_part_of_a_change() {
    let rollouts = fleet();
    rollouts.edit(&[("shop/web.yaml", &config_map("web", "two", PROD))]);
    let api = config_map("api", "one", "{clusters: [{name: c0}]}");
    let ran = planned(&rollouts, ("shop/api.yaml", &api), &[]).expect(0);
    let title = "1 object added in 1 of 6 clusters; earlier edits are on their way to 5 clusters\n";
    assert!(ran.out.starts_with(title), "{}", ran.out);
    assert!(ran.out.contains("earlier edits, which were held or are still on their way"), "{}", ran.out);
}

#[test]
fn an_edited_policy_shows_whom_it_concerns_and_which_stage_is_empty() {
    let rollouts = fleet();
    let slower = POLICY.replace("waitTime: 1h", "waitTime: 3h");
    let ran = planned(&rollouts, ("policy.yaml", &slower), &[]).expect(0);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with("no changes"), "{}", ran.out);
    let concerned = "workloads whose next rollout this change orders otherwise ! FederatedConfigMap shop/web: \
                     stage `canary` (1 cluster), then stage `rest` (5 clusters, 2 at a time), then stage `none` (0 clusters)";
    assert!(words.contains(concerned), "{}", ran.out);
    assert!(words.contains("no cluster is in stage `none`"), "{}", ran.out);
}

#[test]
fn a_pinned_cluster_is_no_part_of_the_end() {
    let rollouts = fleet();
    let pins = format!("{POLICY}  pins: [{{clusters: [c5], reason: an audit}}]\n");
    rollouts.edit(&[("policy.yaml", &pins)]);
    let ran = planned(&rollouts, ("shop/web.yaml", &config_map("web", "two", PROD)), &[]).expect(0);
    assert!(ran.out.starts_with("5 objects changed in 5 of 6 clusters"), "{}", ran.out);
}

#[test]
fn a_broken_file_comes_first_in_the_title() {
    let rollouts = fleet();
    let ran = planned(&rollouts, ("shop/web.yaml", "kind: ["), &[]).expect(1);
    assert!(ran.out.starts_with("1 error; shop/web stays as it is; no changes\n"), "{}", ran.out);
}

#[test]
fn decisions_that_others_read_are_changes() {
    let repo = Repo::new();
    for name in NAMES {
        repo.write(&format!("clusters/{name}.yaml"), crate::support::removals::managed(name, ""));
    }
    repo.write("sets.yaml", crate::support::removals::GLOBAL_SET);
    let placement = |count: usize| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
             metadata: {{name: readers, namespace: shop}}\nspec: {{numberOfClusters: {count}}}\n"
        )
    };
    repo.write("readers.yaml", placement(4));
    repo.commit("start");
    let rollouts = Rollouts::of(repo);
    let ran = planned(&rollouts, ("readers.yaml", &placement(3)), &["--fail-on", "removals"]).expect(3);
    assert!(ran.out.starts_with("a placement leaves 1 cluster\n"), "{}", ran.out);
}

#[test]
fn a_cluster_that_leaves_without_objects_is_a_change() {
    let repo = Repo::new();
    for name in NAMES {
        repo.write(&format!("clusters/{name}.yaml"), crate::support::removals::managed(name, ""));
    }
    repo.commit("start");
    let rollouts = Rollouts::of(repo);
    let renamed = crate::support::removals::managed("c9", "");
    let changed = ("clusters/c5.yaml", renamed.as_str());
    let ran = planned(&rollouts, changed, &["--fail-on", "removals", "-o", "json"]).expect(3);
    let json = ran.json();
    assert_eq!(json["title"], "c5 leaves the fleet and c9 joins the fleet");
    assert_eq!(json["fleet"], serde_json::json!({"joined": ["c9"], "left": ["c5"]}));
    let ran = plan(&rollouts, &["-o", "markdown"]).expect(0);
    assert!(ran.out.contains("```diff\n- c5 leaves\n+ c9 joins\n```"), "{}", ran.out);
}
