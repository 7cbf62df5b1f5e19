//! The recipes of docs/rollouts.md, taken from the page as they stand there and followed in virtual time.

use std::path::Path;

use crate::support::removals::{GLOBAL_SET, managed};
use crate::support::rollouts::Rollouts;
use crate::support::{Repo, cluster, config_map, namespace, run};

/// The blocks of a recipe in this language.
fn recipe(name: &str, language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rollouts.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let recipes = page.split("\n## ").find(|part| part.starts_with("Recipes\n")).expect("recipes");
    let told: Vec<&str> = recipes.split("\n**").skip(1).collect();
    assert_eq!(told.len(), 4, "each recipe has a test");
    let told = told.into_iter().find(|told| told.starts_with(name)).expect("the recipe");
    let blocks = told.split("```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    blocks.map(str::to_owned).collect()
}

/// The only block.
fn only(name: &str, language: &str) -> String {
    let mut blocks = recipe(name, language);
    assert_eq!(blocks.len(), 1, "{name}: {blocks:?}");
    blocks.remove(0)
}

fn map(value: &str) -> String {
    config_map("web", value, "{clusterSelector: {}}")
}

/// The config map `web` in clusters with a label, and this policy.
fn labelled(key: &str, clusters: &[(&str, &str)], policy: &str) -> Rollouts {
    let repo = Repo::new();
    for (name, value) in clusters {
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[(key, value)]));
    }
    repo.write("apps/shop.yaml", namespace("shop"));
    repo.write("apps/web.yaml", map("one"));
    repo.commit("the fleet");
    let rollouts = Rollouts::of(repo);
    // All have it already, so that the policy begins with a proven release.
    rollouts.repo.write("policy.yaml", policy);
    rollouts.repo.commit("a policy");
    rollouts.pass();
    rollouts
}

#[test]
fn canary_then_two_at_a_time() {
    let strategy = only("Canary", "yaml").replace('\n', "\n    ");
    let work = |value: &str| {
        format!(
            "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
             metadata: {{name: web, namespace: shop}}\nspec:\n  placementRefs:\n  - name: web\n    {strategy}\n  \
             manifestWorkTemplate:\n    workload:\n      manifests:\n      - apiVersion: v1\n        kind: ConfigMap\n        \
             metadata: {{name: web, namespace: shop}}\n        data:\n          value: {value}\n"
        )
    };
    let repo = Repo::new();
    let names = ["a", "b", "c", "d"];
    for name in names {
        let canary = if name == "d" { ", labels: {ring: canary}" } else { "" };
        let cluster = managed(name, "");
        repo.write(
            &format!("clusters/{name}.yaml"),
            cluster.replace(&format!("{{name: {name}}}"), &format!("{{name: {name}{canary}}}")),
        );
    }
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write(
        "apps/placement.yaml",
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: web, namespace: shop}\n\
         spec:\n  decisionStrategy:\n    groupStrategy:\n      decisionGroups:\n      \
         - {groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {ring: canary}}}}\n",
    );
    repo.write("apps/web.yaml", work("one"));
    repo.commit("the fleet");
    let rollouts = Rollouts::of(repo);
    let shown = || rollouts.values(&names, "web");
    assert_eq!(shown(), "a=- b=- c=- d=one");
    rollouts.succeed(&["d"]);
    rollouts.wait(9);
    rollouts.pass();
    assert_eq!(shown(), "a=- b=- c=- d=one", "healthy for nine minutes");
    rollouts.wait(1);
    rollouts.pass();
    assert_eq!(shown(), "a=one b=one c=- d=one");
    rollouts.fail("a", "web", "no room");
    rollouts.succeed(&["b"]);
    rollouts.wait(20);
    rollouts.pass();
    assert_eq!(shown(), "a=one b=one c=- d=one", "one failed, and none may");
    rollouts.succeed(&["a"]);
    rollouts.wait(11);
    rollouts.pass();
    assert_eq!(shown(), "a=one b=one c=one d=one");
    rollouts.verify();
}

#[test]
fn ring_by_ring() {
    let rings =
        [("a", "canary"), ("b", "early"), ("c", "early"), ("d", "rest"), ("e", "rest"), ("f", "rest")];
    let rollouts = labelled("ring", &rings, &only("Ring by ring", "yaml"));
    let shown = || rollouts.values(&["a", "b", "c", "d", "e", "f"], "web");
    rollouts.repo.write("apps/web.yaml", map("two"));
    rollouts.repo.commit("two");
    rollouts.pass();
    assert_eq!(shown(), "a=two b=one c=one d=one e=one f=one");
    rollouts.succeed(&["a"]);
    rollouts.pass();
    rollouts.wait(58);
    rollouts.pass();
    assert_eq!(shown(), "a=two b=one c=one d=one e=one f=one", "an hour is not over");
    rollouts.wait(2);
    rollouts.pass();
    assert_eq!(shown(), "a=two b=two c=one d=one e=one f=one");
    rollouts.succeed(&["b"]);
    rollouts.pass();
    rollouts.succeed(&["c"]);
    rollouts.pass();
    assert_eq!(shown(), "a=two b=two c=two d=two e=one f=one");
    rollouts.fail("d", "web", "no room");
    rollouts.pass();
    assert_eq!(shown(), "a=one b=one c=one d=one e=one f=one");
    rollouts.verify();
}

#[test]
fn region_by_region_with_an_approval() {
    let name = "Region by region";
    let rollouts = labelled("region", &[("a", "eu"), ("b", "us")], &only(name, "yaml"));
    let shown = || rollouts.values(&["a", "b"], "web");
    rollouts.repo.write("apps/web.yaml", map("two"));
    rollouts.repo.commit("two");
    rollouts.pass();
    rollouts.succeed(&["a"]);
    rollouts.pass();
    assert_eq!(shown(), "a=two b=one");
    let ran = rollouts.shell(&only(name, "sh"));
    assert!(ran.out.contains("for the tasks after the stage `eu`"), "{}", ran.out);
    rollouts.pass();
    assert_eq!(shown(), "a=two b=two");
    rollouts.verify();
}

#[test]
fn emergency() {
    let waves = "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: waves, namespace: shop}\n\
                 spec: {strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}}\n";
    let rollouts = labelled("ring", &[("a", "x"), ("b", "x"), ("c", "x")], waves);
    let shown = || rollouts.values(&["a", "b", "c"], "web");
    rollouts.repo.write("apps/web.yaml", map("two"));
    rollouts.repo.commit("two");
    rollouts.pass();
    assert_eq!(shown(), "a=two b=one c=one");
    let commands = only("Emergency", "sh");
    let (stop, back) = commands.split_once('\n').expect("two commands");
    rollouts.shell(stop);
    rollouts.succeed(&["a"]);
    rollouts.pass();
    assert_eq!(shown(), "a=two b=one c=one", "it is stopped");
    rollouts.shell(back);
    rollouts.pass();
    assert_eq!(shown(), "a=one b=one c=one");

    rollouts.order(&["resume", "web"]).expect(0);
    let fix = map("three")
        .replace("namespace: shop}", "namespace: shop, annotations: {berth.dev/rollout-policy: at-once}}");
    rollouts.repo.write("apps/web.yaml", fix);
    rollouts.repo.write("at-once.yaml", only("Emergency", "yaml"));
    rollouts.repo.commit("the fix");
    rollouts.pass();
    assert_eq!(shown(), "a=one b=three c=three");
    let told = rollouts.order(&["show", "web"]).expect(0).out;
    assert!(told.contains("waiting for its report on the proven release"), "{told}");
    rollouts.succeed(&["a"]);
    rollouts.pass();
    assert_eq!(shown(), "a=three b=three c=three");
    rollouts.verify();
}

/// As with placements: the labels of files, and those that members report and may.
#[test]
fn stages_and_pins_see_the_labels_that_members_may_report() {
    let policy =
        format!("{RINGS}  pins: [{{labelSelector: {{matchLabels: {{hold: \"on\"}}}}, reason: asked}}]\n");
    let rollouts = labelled("zone", &[("a", "1"), ("b", "1"), ("c", "1")], &policy);
    let shown = || rollouts.values(&["a", "b", "c"], "web");
    rollouts.succeed_with_label("a", "ring", "rest");
    rollouts.succeed_with_label("b", "ring", "canary");
    rollouts.succeed_with_label("c", "hold", "on");
    rollouts.repo.write("apps/web.yaml", map("two"));
    rollouts.repo.commit("two");
    let unlabelled = rollouts.repo.publish_at(rollouts.now()).expect(1).err;
    assert!(
        unlabelled.contains("no stage selects `a`, `b`, `c`"),
        "nobody allowed these labels: {unlabelled}"
    );
    assert!(!unlabelled.contains("StagedUpdateRun"), "{unlabelled}");
    rollouts.publish_with_labels("ring,hold", 1);
    assert_eq!(shown(), "a=one b=one c=one", "c is in no stage");
    rollouts.repo.write("clusters/c.yaml", cluster("c", &[("ring", "canary")]));
    rollouts.repo.commit("c is a canary");
    rollouts.publish_with_labels("ring,hold", 0);
    assert_eq!(shown(), "a=one b=two c=one");
    rollouts.succeed_with_label("b", "ring", "canary");
    rollouts.publish_with_labels("ring,hold", 0);
    assert_eq!(shown(), "a=two b=two c=one");
    // The commit before these allows more labels than the one before it, of which a proof tells.
    run(&["verify", "berth/rendered~2..berth/rendered", "--repo", rollouts.repo.arg()]).expect(0);
    rollouts.repo.write("apps/web.yaml", map("three"));
    rollouts.repo.commit("three");
    let plan = run(&["plan", "--repo", rollouts.repo.arg(), "--member-labels", "ring,hold"]).expect(0);
    let plan = plan.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        plan.contains("stage `canary` (2 clusters, 1 at a time), then stage `rest` (1 cluster)"),
        "{plan}"
    );
    assert!(plan.contains("c is pinned"), "{plan}");
}

const RINGS: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: rings, namespace: shop}
spec:
  workloads: [{kind: FederatedConfigMap, name: web}]
  strategy:
    stages:
    - {name: canary, labelSelector: {matchLabels: {ring: canary}}}
    - {name: rest, labelSelector: {matchLabels: {ring: rest}}}
";
