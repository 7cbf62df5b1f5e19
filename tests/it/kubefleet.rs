//! What somebody who comes from KubeFleet looks for: the status in its words, who touched which path, and
//! what a hub would refuse of a change.

use crate::support::{Repo, fleet_member, run};

const MEMBERS: &str = "\
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: oslo, labels: {region: north}}
spec: {identity: {kind: ServiceAccount, name: a}}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: turin, labels: {region: south}}
spec: {identity: {kind: ServiceAccount, name: a}}
";

const OBJECTS: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {greeting: hello}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: northern, namespace: shop}
data: {a: b}
";

const OVERRIDES: &str = "\
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: greeting, namespace: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: settings}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: south}}}]}
      jsonPatchOverrides:
      - {op: replace, path: /data/greeting, value: ciao}
      - {op: add, path: /data/from, value: '${MEMBER-CLUSTER-NAME}'}
    - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: nowhere}}}]}
      jsonPatchOverrides: [{op: remove, path: /data}]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: only-north, namespace: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: northern}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: south}}}]}
      overrideType: Delete
";

fn placement(policy: &str) -> String {
    format!(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\n\
         metadata: {{name: web}}\nspec:\n  resourceSelectors:\n  \
         - {{group: '', version: v1, kind: Namespace, name: shop}}\n  policy: {policy}\n"
    )
}

fn fleet(policy: &str) -> Repo {
    let repo = Repo::new();
    repo.write("members.yaml", MEMBERS);
    repo.write("objects.yaml", OBJECTS);
    repo.write("overrides.yaml", OVERRIDES);
    repo.write("web.yaml", placement(policy));
    repo.commit("a fleet");
    repo
}

#[test]
fn a_placement_is_described_as_its_hub_would() {
    let repo = fleet("{placementType: PickN, numberOfClusters: 3}");
    let unpublished = run(&["describe", "web", "--repo", repo.arg()]).expect(2);
    assert!(unpublished.err.contains("nothing is published yet"), "{}", unpublished.err);
    repo.publish().expect(0);
    let describe = || {
        run(&["describe", "crp/web", "--repo", repo.arg(), "-o", "json"]).expect(0).json()["items"][0].take()
    };
    let conditions = |described: &serde_json::Value| -> Vec<String> {
        let all = described["status"]["conditions"].as_array().expect("conditions").clone();
        let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let one = |one: &serde_json::Value| {
            format!("{}={} {}", text(one, "type"), text(one, "status"), text(one, "reason"))
        };
        all.iter().map(one).collect()
    };
    let kind = "ClusterResourcePlacement";
    let described = describe();
    assert_eq!(
        conditions(&described),
        [
            format!("{kind}Scheduled=False SchedulingPolicyUnfulfilled"),
            format!("{kind}RolloutStarted=True RolloutStarted"),
            format!("{kind}Overridden=True OverriddenSucceeded"),
            format!("{kind}WorkSynchronized=True WorkSynchronized"),
            format!("{kind}Applied=Unknown ApplyPending"),
        ]
    );
    let statuses = &described["status"]["placementStatuses"];
    assert_eq!(statuses.as_array().expect("a list").len(), 3);
    assert_eq!(statuses[1]["clusterName"], "turin");
    assert_eq!(
        statuses[1]["applicableResourceOverrides"],
        serde_json::json!(["shop/greeting", "shop/only-north"])
    );
    assert_eq!(statuses[2].get("clusterName"), None);
    assert_eq!(statuses[2]["conditions"][0]["reason"], "ScheduleFailed");
    assert_eq!(described["status"]["selectedResources"].as_array().expect("a list").len(), 3);

    let member = tempfile::tempdir().expect("a folder");
    for cluster in ["oslo", "turin"] {
        repo.sync(cluster, &member.path().join(cluster), &[]).expect(0);
    }
    let described = describe();
    assert_eq!(
        conditions(&described)[4..],
        [format!("{kind}Applied=True ApplySucceeded"), format!("{kind}Available=True ResourceAvailable")]
    );
    let text = run(&["describe", "web", "--repo", repo.arg()]).expect(0).out;
    for line in
        ["Name:         web", "  Placement Statuses:", "      Cluster Name:  oslo", "  Selected Resources:"]
    {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}\n{text}");
    }
    let unknown = run(&["describe", "wep", "--repo", repo.arg()]).expect(2);
    assert!(unknown.err.contains("did you mean `web`?"), "{}", unknown.err);
}

#[test]
fn rendered_manifests_say_which_override_touched_which_path() {
    let repo = fleet("{placementType: PickAll}");
    let out = tempfile::tempdir().expect("a folder");
    let folder = out.path().to_string_lossy().into_owned();
    let plain = run(&["render", "--repo", repo.arg(), "--out", &folder]).expect(0);
    let read = |path: &str| std::fs::read_to_string(out.path().join("clusters").join(path)).expect(path);
    let turin = read("turin/shop/ConfigMap_settings.yaml");
    assert!(!turin.contains('#') && plain.out.is_empty(), "{turin}{}", plain.out);
    let annotated = run(&["render", "--repo", repo.arg(), "--out", &folder, "--annotate"]).expect(0);
    assert_eq!(
        read("turin/shop/ConfigMap_settings.yaml"),
        format!(
            "# replace /data/greeting by ResourceOverride shop/greeting (overrides.yaml:10:9)\n\
             # add /data/from by ResourceOverride shop/greeting (overrides.yaml:11:9)\n{turin}"
        )
    );
    assert!(!read("oslo/shop/ConfigMap_settings.yaml").contains('#'));
    assert_eq!(
        annotated.out,
        "turin gets no ConfigMap shop/northern: taken away by ResourceOverride shop/only-north (overrides.yaml:22:7)\n"
    );
    let miss = "overrides.yaml:12:7: warning: this rule of ResourceOverride shop/greeting has no effect";
    assert!(annotated.err.contains(miss), "{}", annotated.err);
}

#[test]
fn a_name_that_no_cluster_has_is_warned_of_at_the_name() {
    let repo = fleet("{placementType: PickFixed, clusterNames: [oslo, turn]}");
    let told = run(&["validate", repo.arg()]).expect(0).err;
    let of = |name: &str, place: u32| {
        let key = "ClusterResourcePlacement web";
        format!("web.yaml:7:{place}: warning: {key} names `{name}`, which is not a cluster of the fleet")
    };
    assert!(told.contains(&format!("{}\n  hint: did you mean `turin`?\n", of("turn", 59))), "{told}");
    repo.write("web.yaml", placement("{placementType: PickFixed, clusterNames: [munich]}"));
    let told = run(&["validate", repo.arg()]).expect(0).err;
    assert!(told.contains(&of("munich", 53)), "{told}");
    let none = "web picks no cluster: none of the clusters that it names exists";
    assert!(told.contains(none) && !told.contains("web.yaml:1:1"), "{told}");
}

#[test]
fn a_plan_warns_of_what_a_hub_would_refuse_and_does_it() {
    let repo = fleet("{placementType: PickAll, tolerations: [{key: a}, {key: b}]}");
    repo.publish().expect(0);
    repo.write("web.yaml", placement("{placementType: PickFixed, clusterNames: [oslo]}"));
    repo.commit("another type");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    let warning = "web.yaml:7:27: warning: ClusterResourcePlacement web: spec.policy.placementType changes from PickAll to PickFixed, which a KubeFleet hub refuses";
    assert!(plan.err.contains(warning), "{}", plan.err);
    assert!(plan.out.contains("would leave turin"), "{}", plan.out);
    let same = run(&["plan", "--repo", repo.arg(), "--base", "HEAD~1", "--head", "HEAD~1"]).expect(0);
    assert!(!same.err.contains("hub refuses"), "{}", same.err);
    let by_base = run(&["plan", "--repo", repo.arg(), "--base", "HEAD~1"]).expect(0);
    assert!(by_base.err.contains(warning), "{}", by_base.err);
}

#[test]
fn a_policy_of_the_next_api_is_explained_and_described() {
    let repo = Repo::new();
    repo.write("members.yaml", MEMBERS);
    repo.write("objects.yaml", OBJECTS);
    repo.write(
        "policy.yaml",
        "apiVersion: placement.kubefleet.dev/v1alpha1\nkind: ClusterPlacementPolicy\nmetadata: {name: web}\n\
         spec:\n  resourceSelectors:\n  - {apiVersion: v1, kind: Namespace, name: shop}\n  \
         - {apiVersion: v1, kind: ConfigMap, namespace: shop}\n  clusterSelectors:\n  \
         - {terms: [{matchLabels: {region: north}}]}\n  - {terms: [{matchLabels: {region: east}}], count: 2, minCount: 1}\n",
    );
    repo.commit("a policy");
    repo.publish().expect(0);
    let explained = run(&["explain", "web", "--repo", repo.arg()]).expect(0).out;
    for line in [
        "Scheduled=False FailedToFindSomeRequiredClusters: found 1 cluster: clusterSelectors[1] has 0 of 1",
        "clusterSelectors[0]: among the first 1 by score",
        "clusterSelectors[0]: label region=north is required, the cluster has region=south; clusterSelectors[1]: \
         label region=east is required, the cluster has region=south",
    ] {
        assert!(explained.contains(line), "{line}\n{explained}");
    }
    let described = run(&["describe", "web", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let text = described.to_string();
    for part in [
        "\"desiredClusters\":3",
        "\"scheduledClusters\":1",
        "\"type\":\"Synchronized\"",
        "AllResourcesCollected",
    ] {
        assert!(text.contains(part), "{part}\n{described:#}");
    }
    let objects = repo.git(&["ls-tree", "-r", "--name-only", "berth/rendered", "clusters"]);
    assert_eq!(
        objects.lines().collect::<Vec<_>>(),
        [
            "clusters/oslo/_cluster/Namespace_shop.yaml",
            "clusters/oslo/shop/ConfigMap_northern.yaml",
            "clusters/oslo/shop/ConfigMap_settings.yaml",
        ]
    );
}

/// A placement of the old API, and the policy that takes its place.
const OLD: &str = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors:
  - {group: '', version: v1, kind: Namespace, name: shop}
  policy: {placementType: PickFixed, clusterNames: [oslo, turin]}
";

const NEW: &str = "\
apiVersion: placement.kubefleet.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata: {name: web, annotations: {berth.dev/replaces: ClusterResourcePlacement/web}}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: Namespace, name: shop}
  - {apiVersion: v1, kind: ConfigMap, namespace: shop}
  clusterSelectors:
  - terms: [{matchLabelExpressions: [{key: kubefleet.dev/cluster-alias, operator: In, values: [oslo, turin]}]}]
    count: 2
  tolerations: [{operator: Exists}]
  syncStrategy: {whenAlreadyExists: AlwaysTakeOver}
";

fn fleet_of_the_old_api() -> Repo {
    let repo = Repo::new();
    for name in ["oslo", "rome", "turin"] {
        repo.write(&format!("clusters/{name}.yaml"), fleet_member(name, "prod"));
    }
    repo.write("objects.yaml", OBJECTS);
    repo.write("web.yaml", OLD);
    repo.commit("the old API");
    repo
}

#[test]
fn a_policy_that_replaces_a_placement_keeps_its_decision_and_its_copies() {
    let repo = fleet_of_the_old_api();
    repo.publish();
    let before = repo.files("berth/rendered");
    repo.write("web.yaml", NEW);
    run(&["validate", repo.arg()]).expect(0);
    repo.commit("the next API");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(plan.out.contains("no changes"), "{}", plan.out);
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    let after = repo.files("berth/rendered");
    let copies = |files: &std::collections::BTreeMap<String, String>| {
        let of_clusters = files.iter().filter(|(path, _)| path.starts_with("clusters/"));
        of_clusters.map(|(path, id)| (path.clone(), id.clone())).collect::<Vec<_>>()
    };
    assert_eq!(copies(&before), copies(&after), "no cluster sees a change");
    // From here on it is a policy like any other.
    repo.write("web.yaml", NEW.replace("[oslo, turin]", "[turin]").replace("count: 2", "count: 1"));
    let why = run(&["explain", "web", "--repo", repo.arg()]).expect(0);
    assert!(why.out.contains("picks 1 of 3 clusters"), "{}", why.out);
    // The document is of the new kind, and the published workload of the old one: people name it by either.
    for name in ["ClusterPlacementPolicy/web", "ClusterResourcePlacement/web"] {
        assert_eq!(run(&["explain", name, "--repo", repo.arg()]).expect(0).out, why.out, "{name}");
    }
    let described = run(&["describe", "web", "--repo", repo.arg()]).expect(0);
    assert!(described.out.contains("ResourceCollected"), "{}", described.out);
}

#[test]
fn a_placement_is_replaced_once_and_only_when_it_is_gone() {
    let repo = fleet_of_the_old_api();
    let policy = |name: &str, replaces: &str| {
        format!(
            "apiVersion: placement.kubefleet.dev/v1alpha1\nkind: ClusterPlacementPolicy\n\
             metadata: {{name: {name}, annotations: {{berth.dev/replaces: {replaces}}}}}\n\
             spec: {{resourceSelectors: [{{apiGroup: '', apiVersion: v1, kind: Namespace, name: shop}}]}}\n"
        )
    };
    let errors = || run(&["validate", repo.arg()]).expect(1).err;
    repo.write("new.yaml", policy("new", "ClusterResourcePlacement/web"));
    assert!(
        errors().contains("cannot replace ClusterResourcePlacement web, which still exists"),
        "{}",
        errors()
    );
    std::fs::remove_file(repo.path().join("web.yaml")).expect("the placement is removed");
    run(&["validate", repo.arg()]).expect(0);
    repo.write("other.yaml", policy("other", "ClusterResourcePlacement/web"));
    assert!(errors().contains("already replaces it"), "{}", errors());
    for wrong in ["web", "ResourcePlacement/web", "ClusterResourcePlacement/", "ClusterResourcePlacement/a/b"]
    {
        repo.write("other.yaml", policy("other", wrong));
        assert!(errors().contains("must name the placement that this policy takes the place of"), "{wrong}");
    }
}
