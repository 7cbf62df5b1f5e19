//! Workloads that wait for others (`after`), and workloads that are one release (`together`).

use crate::support::rollouts::Rollouts;
use crate::support::{Repo, cluster, config_map, fleet_member, namespace};

const CLUSTERS: [&str; 2] = ["a", "b"];

fn map(name: &str, value: &str) -> String {
    config_map(name, value, "{clusterSelector: {}}")
}

/// A fleet with the config maps `web` and `api` in two clusters, and this policy.
fn fleet(policy: &str) -> Rollouts {
    let header =
        "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: shop, namespace: shop}\n";
    Rollouts::of(Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &map("web", "one")),
        ("apps/api.yaml", &map("api", "one")),
        ("policy.yaml", &format!("{header}spec:\n{policy}")),
    ]))
}

/// The values of `web`, then those of `api`.
fn values(rollouts: &Rollouts) -> [String; 2] {
    ["web", "api"].map(|name| rollouts.values(&CLUSTERS, name))
}

const AFTER: &str = "  workloads: [{kind: FederatedConfigMap, name: web}]\n  after: [{kind: FederatedConfigMap, name: api}]\n";

/// Edits `api` alone, and sees both workloads go from cluster to cluster.
#[track_caller]
fn a_newer_api_reaches_both(rollouts: &Rollouts) {
    rollouts.edit(&[("apps/api.yaml", &map("api", "three"))]);
    assert_eq!(values(rollouts), ["a=two b=one", "a=three b=one"]);
    for cluster in CLUSTERS {
        rollouts.succeed(&[cluster]);
        rollouts.publish();
    }
    assert_eq!(values(rollouts), ["a=two b=two", "a=three b=three"]);
    rollouts.verify();
}

#[test]
fn a_workload_goes_after_another_one_is_proven_everywhere() {
    let rollouts = fleet(AFTER);
    assert_eq!(values(&rollouts), ["a=- b=-", "a=one b=one"]);
    rollouts.succeed(&["a"]);
    rollouts.publish();
    assert_eq!(values(&rollouts)[0], "a=- b=-", "b has not reported");
    rollouts.succeed(&["b"]);
    rollouts.publish();
    assert_eq!(values(&rollouts)[0], "a=one b=one", "both are proven");
    rollouts.succeed(&CLUSTERS);
    rollouts.publish();

    rollouts.edit(&[("apps/web.yaml", &map("web", "two")), ("apps/api.yaml", &map("api", "two"))]);
    assert_eq!(values(&rollouts), ["a=one b=one", "a=two b=two"]);
    let shown = rollouts.order(&["show", "web"]).expect(0).out;
    let reason = "waits for FederatedConfigMap shop/api, which is not proven in every cluster yet";
    assert!(shown.contains(reason), "{shown}");
    rollouts.succeed(&["a"]);
    rollouts.fail("b", "api", "no room");
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=one b=one", "a=two b=two"], "a failure proves nothing");
    rollouts.succeed(&["b"]);
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=two b=two", "a=two b=two"]);
    rollouts.verify();
}

#[test]
fn an_order_counts_also_where_the_first_workload_has_no_strategy_that_somebody_asked_for() {
    let placement = |name: &str| {
        format!(
            "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {{name: {name}}}\n\
             spec:\n  resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: {name}}}]\n  \
             policy: {{placementType: PickAll}}\n---\n\
             apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"
        )
    };
    let rollouts = Rollouts::of(Repo::with(&[
        ("a.yaml", &fleet_member("a", "prod")),
        ("api.yaml", &placement("api")),
        ("web.yaml", &placement("web")),
        (
            "policy.yaml",
            "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: order}\nspec:\n  \
             workloads: [{kind: ClusterResourcePlacement, name: web}]\n  after: [{kind: ClusterResourcePlacement, name: api}]\n",
        ),
    ]));
    let has = |name: &str| {
        let files = rollouts.repo.files(crate::support::RENDERED);
        files
            .keys()
            .any(|path| path.starts_with("clusters/a/") && path.contains(&format!("Namespace_{name}")))
    };
    assert_eq!([has("api"), has("web")], [true, false]);
    rollouts.succeed(&["a"]);
    rollouts.publish();
    assert_eq!([has("api"), has("web")], [true, true]);
    rollouts.verify();
}

const TOGETHER: &str =
    "  workloads: [{kind: FederatedConfigMap, name: web}, {kind: FederatedConfigMap, name: api}]
  together: true
  onFailure: RollBack
  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}
";

/// Both workloads in both clusters, proven.
fn proven() -> Rollouts {
    let rollouts = fleet(TOGETHER);
    assert_eq!(values(&rollouts), ["a=one b=-", "a=one b=-"]);
    rollouts.succeed(&["a"]);
    rollouts.publish();
    rollouts.succeed(&["b"]);
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=one b=one", "a=one b=one"]);
    let shown = rollouts.order(&["list"]).expect(0).out;
    assert_eq!(shown.matches(" done").count(), 2, "{shown}");
    rollouts
}

#[test]
fn workloads_that_go_together_are_promoted_as_a_combination_that_was_seen_to_work() {
    let rollouts = proven();
    rollouts.edit(&[("apps/web.yaml", &map("web", "two")), ("apps/api.yaml", &map("api", "two"))]);
    assert_eq!(values(&rollouts), ["a=two b=one", "a=two b=one"]);
    // One of the two is well: b waits for both.
    rollouts.fail("a", "elsewhere", "nothing of these");
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=two b=two", "a=two b=two"]);
    // A newcomer begins with the combination that is proven, not with parts of two.
    rollouts.repo.write("clusters/c.yaml", cluster("c", &[]));
    rollouts.repo.commit("c joins");
    rollouts.publish();
    let of_c = ["web", "api"].map(|name| rollouts.values(&["c"], name));
    assert_eq!(of_c, ["c=one", "c=one"]);
    rollouts.succeed(&["b"]);
    rollouts.publish();
    let list = rollouts.order(&["list"]).expect(0).out;
    assert_eq!(list.matches(" done").count(), 0, "c is missing: {list}");
    rollouts.succeed(&["c"]);
    rollouts.publish();
    rollouts.succeed(&["c"]);
    rollouts.publish();
    let of_c = ["web", "api"].map(|name| rollouts.values(&["c"], name));
    assert_eq!(of_c, ["c=two", "c=two"]);
    let list = rollouts.order(&["list"]).expect(0).out;
    assert_eq!(list.matches(" done").count(), 2, "{list}");
    rollouts.verify();
}

#[test]
fn workloads_that_go_together_go_back_as_one() {
    let rollouts = proven();
    rollouts.edit(&[("apps/web.yaml", &map("web", "two")), ("apps/api.yaml", &map("api", "two"))]);
    rollouts.fail("a", "api", "no room");
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=one b=one", "a=one b=one"]);
    let message = rollouts.message();
    for name in ["web", "api"] {
        assert!(
            message.contains(&format!("shop/{name}: release 2 taken back to release 1; halted: a failed: ConfigMap shop/api: no room; release 1 assigned to a")),
            "{message}"
        );
    }
    rollouts.succeed(&CLUSTERS);
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=one b=one", "a=one b=one"], "it is not tried again");
    // The fix of one of them brings the other along.
    a_newer_api_reaches_both(&rollouts);
}

#[test]
fn an_abort_of_one_takes_all_back_that_go_together() {
    let rollouts = proven();
    rollouts.edit(&[("apps/web.yaml", &map("web", "two")), ("apps/api.yaml", &map("api", "two"))]);
    rollouts.succeed(&["a"]);
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=two b=two", "a=two b=two"]);
    rollouts.order(&["abort", "web", "--reason", "wrong prices"]).expect(0);
    rollouts.edit(&[]);
    assert_eq!(values(&rollouts), ["a=one b=one", "a=one b=one"]);
    let list = rollouts.order(&["list"]).expect(0).out;
    assert_eq!(list.matches("taken back").count(), 2, "{list}");
    // Nobody wants release 2 of `web` with whatever comes: only its own successor goes on.
    rollouts.edit(&[("apps/api.yaml", &map("api", "three"))]);
    rollouts.succeed(&CLUSTERS);
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=one b=one", "a=one b=one"]);
    rollouts.edit(&[("apps/web.yaml", &map("web", "three"))]);
    assert_eq!(values(&rollouts), ["a=three b=one", "a=three b=one"]);
    rollouts.verify();
}

/// A placement of the namespace `shop` and of `others`, and the config map in it.
fn placement(value: &str, others: &str) -> String {
    format!(
        "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {{name: web}}\n\
         spec:\n  resourceSelectors:\n  - {{group: '', version: v1, kind: Namespace, name: shop}}\n{others}  \
         policy: {{placementType: PickAll}}\n---\n\
         apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: shop}}\ndata:\n  value: {value}\n"
    )
}

#[test]
fn a_placement_that_stays_as_it_is_for_a_fault_keeps_the_record_of_its_rollout() {
    let rollouts = Rollouts::of(Repo::with(&[
        ("a.yaml", &fleet_member("a", "prod")),
        ("b.yaml", &fleet_member("b", "prod")),
        ("web.yaml", &placement("one", "")),
        (
            "policy.yaml",
            "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: waves}\nspec:\n  \
             workloads: [{kind: ClusterResourcePlacement, name: web}]\n  \
             strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}\n",
        ),
    ]));
    let shown = || rollouts.values(&CLUSTERS, "web");
    let release = || {
        let shown = rollouts.order(&["show", "web", "-o", "json"]).expect(0).json()["workloads"][0].take();
        (shown["release"].as_u64(), shown["lastGood"].as_u64())
    };
    assert_eq!(shown(), "a=one b=-");
    // The first release is not in b yet.
    let faulty = "  - {group: '', version: v1, kind: Namespace, name: kube-system}\n";
    rollouts.edit(&[("web.yaml", &placement("one", faulty))]);
    assert_eq!((shown(), release()), ("a=one b=-".to_owned(), (Some(1), None)));
    rollouts.edit(&[("web.yaml", &placement("one", ""))]);
    for cluster in CLUSTERS {
        rollouts.succeed(&[cluster]);
        rollouts.publish();
    }
    assert_eq!((shown(), release()), ("a=one b=one".to_owned(), (Some(1), Some(1))));

    rollouts.edit(&[("web.yaml", &placement("two", ""))]);
    assert_eq!((shown(), release()), ("a=two b=one".to_owned(), (Some(2), Some(1))));
    rollouts.edit(&[("web.yaml", &placement("two", faulty))]);
    rollouts.succeed(&["a"]);
    rollouts.publish();
    assert_eq!((shown(), release()), ("a=two b=one".to_owned(), (Some(2), Some(1))));
    rollouts.edit(&[("web.yaml", &placement("two", ""))]);
    assert_eq!((shown(), release()), ("a=two b=two".to_owned(), (Some(2), Some(1))));
    rollouts.succeed(&CLUSTERS);
    rollouts.publish();
    assert_eq!(release(), (Some(2), Some(2)));
    rollouts.verify();
}

#[test]
fn stages_begin_again_for_all_that_go_together() {
    let rollouts = fleet(
        "  workloads: [{kind: FederatedConfigMap, name: web}, {kind: FederatedConfigMap, name: api}]\n  together: true\n  \
         onFailure: RollBack\n  strategy:\n    stages:\n    \
         - {name: canary, labelSelector: {matchLabels: {ring: canary}}}\n    \
         - {name: rest, labelSelector: {matchExpressions: [{key: ring, operator: DoesNotExist}]}}\n",
    );
    rollouts.edit(&[("clusters/a.yaml", &cluster("a", &[("ring", "canary")]))]);
    for cluster in CLUSTERS {
        rollouts.succeed(&[cluster]);
        rollouts.publish();
    }
    assert_eq!(values(&rollouts), ["a=one b=one", "a=one b=one"]);
    rollouts.edit(&[("apps/web.yaml", &map("web", "two")), ("apps/api.yaml", &map("api", "two"))]);
    assert_eq!(values(&rollouts), ["a=two b=one", "a=two b=one"]);
    rollouts.succeed(&["a"]);
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=two b=two", "a=two b=two"]);
    rollouts.fail("b", "api", "no room");
    rollouts.publish();
    assert_eq!(values(&rollouts), ["a=one b=one", "a=one b=one"]);
    rollouts.succeed(&CLUSTERS);
    rollouts.publish();
    // The canary has proven release 2 of `web` before, and goes first all the same.
    a_newer_api_reaches_both(&rollouts);
}
