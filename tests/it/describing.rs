//! `berth describe` of what rolls out: staged runs, and works of several placements.

use serde_json::{Value as Json, json};

use crate::support::removals::{GLOBAL_SET, managed};
use crate::support::rollouts::{Rollouts, staged_shop};
use crate::support::{Repo, fleet_member, run};

const STAGES: &str =
    "  - {name: canary, labelSelector: {matchLabels: {env: canary}}, afterStageTasks: [{type: Approval}]}
  - {name: rest, labelSelector: {matchLabels: {env: prod}}}
";

fn staged_run(name: &str, state: &str) -> String {
    format!(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterStagedUpdateRun\nmetadata: {{name: {name}}}\n\
         spec: {{placementName: shop, stagedRolloutStrategyName: rings, state: {state}}}\n"
    )
}

fn described(rollouts: &Rollouts, name: &str) -> Json {
    run(&["describe", name, "--repo", rollouts.repo.arg(), "-o", "json"]).expect(0).json()["items"][0].take()
}

/// Type, status and reason of each condition.
fn conditions(described: &Json) -> String {
    let conditions = described["status"]["conditions"].as_array().expect("conditions");
    let text = |one: &Json, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let words = conditions
        .iter()
        .map(|one| format!("{}={} {}", text(one, "type"), text(one, "status"), text(one, "reason")));
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_staged_run_is_described_as_its_hub_shows_it() {
    let rollouts = Rollouts::of(Repo::with(&[
        ("a.yaml", &fleet_member("a", "canary")),
        ("b.yaml", &fleet_member("b", "prod")),
        ("shop.yaml", &staged_shop(STAGES)),
        ("runs/shop-1.yaml", &staged_run("shop-1", "Initialize")),
    ]));
    let initialized = "Initialized=True UpdateRunInitializedSuccessfully";
    let of_one = || described(&rollouts, "shop-1");
    assert_eq!(conditions(&of_one()), initialized);
    rollouts.edit(&[("runs/shop-1.yaml", &staged_run("shop-1", "Run"))]);
    // Its cluster was told months ago by the clock of this machine.
    assert_eq!(conditions(&of_one()), format!("{initialized}, Progressing=False UpdateRunStuck"));
    let now = rollouts.now().to_string();
    let at_once = run(&[
        "describe",
        "ClusterStagedUpdateRun/shop-1",
        "--repo",
        rollouts.repo.arg(),
        "--now",
        &now,
        "-o",
        "json",
    ]);
    let at_once = at_once.expect(0).json()["items"][0].take();
    assert_eq!(at_once["status"]["resourceSnapshotIndexUsed"], "1");
    rollouts.succeed(&["a"]);
    rollouts.publish();
    let waiting = of_one();
    assert_eq!(conditions(&waiting), format!("{initialized}, Progressing=False UpdateRunWaiting"));
    let stages = waiting["status"]["stagesStatus"].as_array().expect("stages").clone();
    assert_eq!([&stages[0]["stageName"], &stages[1]["stageName"]], [&json!("canary"), &json!("rest")]);
    let text = run(&["describe", "shop-1", "--repo", rollouts.repo.arg()]).expect(0).out;
    assert!(text.starts_with("Name:         shop-1\n") && text.contains("UpdateRunWaiting"), "{text}");

    rollouts.edit(&[("runs/shop-2.yaml", &staged_run("shop-2", "Run"))]);
    let replaced = of_one();
    assert!(conditions(&replaced).contains("Succeeded=False UpdateRunFailed"), "another took its place");
    let message = "cannot continue the updateRun: a concurrent updateRun took its place";
    assert!(replaced.to_string().contains(message), "{replaced}");
    let unknown = run(&["describe", "shop-3", "--repo", rollouts.repo.arg()]).expect(2);
    assert!(unknown.err.contains("no placement `shop-3`"), "{}", unknown.err);

    let clones = tempfile::tempdir().expect("a folder");
    let clone = clones.path().join("rendered").display().to_string();
    let url = format!("file://{}", rollouts.repo.arg());
    rollouts.repo.git(&["clone", "-q", "--single-branch", "--branch", "berth/rendered", &url, &clone]);
    let ran = run(&["describe", "shop-2", "--repo", &clone]).expect(2);
    let wanted = "no placement `shop-2` in this fleet; staged runs need the source: ";
    assert!(ran.err.contains(wanted) && ran.err.contains("hint: fetch the branch"), "{}", ran.err);
}

#[test]
fn a_placement_that_waits_for_its_first_run_has_started_nothing() {
    let rollouts = Rollouts::of(Repo::with(&[
        ("a.yaml", &fleet_member("a", "canary")),
        ("b.yaml", &fleet_member("b", "prod")),
        ("shop.yaml", &staged_shop(STAGES)),
    ]));
    let placement = described(&rollouts, "crp/shop");
    let words = conditions(&placement);
    let wanted = "ClusterResourcePlacementRolloutStarted=False RolloutNotStartedYet";
    assert!(words.ends_with(wanted), "{words}");
    let first = &placement["status"]["placementStatuses"][0]["conditions"][1];
    assert_eq!(first["message"], "no copy yet; waiting for a staged run");
    let show = rollouts.order(&["show", "crp/shop"]).expect(0).out;
    assert!(show.contains("release: none yet") && show.contains("reason: for a staged run"), "{show}");
    let list = rollouts.order(&["list"]).expect(0).out;
    assert!(list.contains("0 of 2") && list.contains("waiting"), "{list}");
    rollouts.edit(&[("runs/shop-1.yaml", &staged_run("shop-1", "Run"))]);
    assert!(rollouts.order(&["show", "crp/shop"]).expect(0).out.contains("release: 1, since"));
}

#[test]
fn the_work_of_each_placement_is_counted_by_itself() {
    let placement = |name: &str, spec: &str| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
             metadata: {{name: {name}, namespace: shop}}\nspec: {spec}\n"
        )
    };
    let rollouts = Rollouts::of(Repo::with(&[
        ("a.yaml", &managed("a", "")),
        ("b.yaml", &managed("b", "")),
        ("c.yaml", &managed("c", "")),
        ("sets.yaml", GLOBAL_SET),
        ("all.yaml", &placement("all", "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 1}}}")),
        ("one.yaml", &placement("one", "{numberOfClusters: 1}")),
        (
            "web.yaml",
            "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
             metadata: {name: web, namespace: shop}\nspec:\n  placementRefs: [{name: all}, {name: one}]\n  \
             manifestWorkTemplate:\n    workload:\n      manifests:\n      \
             - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}\n",
        ),
    ]));
    rollouts.succeed(&["a"]);
    rollouts.fail("b", "web", "no room");
    let status = described(&rollouts, "ManifestWorkReplicaSet/shop/web")["status"].clone();
    let counts = |total: u64, applied: u64, degraded: u64| {
        let progressing = total - applied - degraded;
        json!({"total": total, "applied": applied, "degraded": degraded, "progressing": progressing})
    };
    assert_eq!(status["summary"], counts(3, 1, 1));
    assert_eq!(
        status["placementSummary"],
        json!([
            {"name": "all", "availableDecisionGroups": "1/3", "summary": counts(3, 1, 1)},
            {"name": "one", "availableDecisionGroups": "1/1", "summary": counts(1, 1, 0)},
        ])
    );
}
