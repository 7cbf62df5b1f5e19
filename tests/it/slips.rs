//! Slips that berth can tell without a cluster: in templates, in overrides, in what belongs to a hub.

use crate::support::{Ran, Repo, cluster, fleet_member, namespace, run};

const DEPLOYMENT: &str = "\
apiVersion: types.kubefed.io/v1beta1
kind: FederatedDeployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      replica: 2
      template:
        spec:
          containers:
          - name: web
            image: example.com/web:1
            imagePullPolcy: Always
  placement: {clusterSelector: {}}
";

#[track_caller]
fn says(ran: &Ran, lines: &[&str]) {
    let all = format!("{}{}", ran.out, ran.err);
    for line in lines {
        assert!(all.contains(line), "no `{line}` in\n{all}");
    }
}

#[test]
fn a_misspelt_field_of_a_built_in_kind_is_told_with_its_place_and_fails_where_asked() {
    let repo = Repo::with(&[
        ("a.yaml", &cluster("a", &[])),
        ("shop.yaml", &namespace("shop")),
        ("web.yaml", DEPLOYMENT),
    ]);
    let found = [
        "web.yaml:7:7: warning: Deployment.apps shop/web: unknown field `spec.replica`",
        "did you mean `replicas`?",
        "web.yaml:13:13: warning: Deployment.apps shop/web: unknown field `spec.template.spec.containers[0].imagePullPolcy`",
        "did you mean `imagePullPolicy`?",
    ];
    says(&run(&["validate", repo.arg()]).expect(0), &found);
    says(&run(&["validate", "--strict", repo.arg()]).expect(1), &found);
    // A plan tells them of what it changes, and of nothing else.
    repo.commit("two slips");
    says(&run(&["plan", "--repo", repo.arg()]).expect(0), &found);
    repo.publish().expect(0);
    let ran = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(!ran.err.contains("unknown field"), "{}", ran.err);
    let good = DEPLOYMENT.replace("replica:", "replicas:").replace("Polcy", "Policy");
    repo.write("web.yaml", good);
    let ran = run(&["validate", "--strict", repo.arg()]).expect(0);
    assert!(!ran.err.contains("warning:"), "{}", ran.err);
}

#[test]
fn objects_that_a_placement_selects_are_looked_at_and_unknown_kinds_are_not() {
    let plain = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selecter: {app: web}
  ports: [{port: 80}]
---
apiVersion: example.com/v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selecter: {app: web}}
";
    let repo = Repo::with(&[("a.yaml", &fleet_member("a", "prod")), ("all.yaml", plain)]);
    let ran = run(&["validate", repo.arg()]).expect(0);
    says(&ran, &["all.yaml:16:3: warning: Service shop/web: unknown field `spec.selecter`"]);
    assert_eq!(ran.err.matches("selecter").count(), 1, "{}", ran.err);
}

#[test]
fn a_resource_placement_into_a_namespace_that_nothing_places_is_warned_of() {
    let placement = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourcePlacement
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: web}]
  policy: {placementType: PickAll}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
";
    let repo = Repo::with(&[
        ("a.yaml", &fleet_member("a", "prod")),
        ("b.yaml", &fleet_member("b", "prod")),
        ("web.yaml", placement),
    ]);
    let warning = "web.yaml:1:1: warning: ResourcePlacement shop/web is placed in 2 of 2 clusters that get no namespace `shop`";
    says(&run(&["validate", repo.arg()]).expect(0), &[warning, "place the Namespace too"]);
    let namespace = |policy: &str| {
        format!(
            "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {{name: shop}}\n\
             spec:\n  resourceSelectors: [{{group: \"\", version: v1, kind: Namespace, name: shop, selectionScope: NamespaceOnly}}]\n  \
             policy: {policy}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n"
        )
    };
    repo.write("shop.yaml", namespace("{placementType: PickFixed, clusterNames: [a]}"));
    says(
        &run(&["validate", repo.arg()]).expect(0),
        &["is placed in 1 of 2 clusters that get no namespace `shop`"],
    );
    repo.write("shop.yaml", namespace("{placementType: PickAll}"));
    let ran = run(&["validate", repo.arg()]).expect(0);
    assert!(!ran.err.contains("that get no namespace"), "{}", ran.err);
}

#[test]
fn an_override_of_what_another_placement_carries_is_told_so() {
    let files = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: other}
spec:
  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: other}]
  policy: {placementType: PickAll}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourceOverride
metadata: {name: labels}
spec:
  placement: {name: other}
  clusterResourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: []}
      jsonPatchOverrides: [{op: add, path: /metadata/labels/x, value: y}]
";
    let repo = Repo::with(&[("a.yaml", &fleet_member("a", "prod")), ("all.yaml", files)]);
    let ran = run(&["validate", repo.arg()]).expect(0);
    says(
        &ran,
        &[
            "ClusterResourcePlacement other does not carry Namespace shop, so this override has no effect",
            "ClusterResourcePlacement shop does",
        ],
    );
    assert!(!ran.err.contains("no placement carries"), "{}", ran.err);
    run(&["validate", "--strict", repo.arg()]).expect(1);
}

#[test]
fn kinds_that_a_hub_acts_on_have_a_note_of_their_own() {
    let kinds = [
        ("policy.open-cluster-management.io/v1", "Policy"),
        ("policy.open-cluster-management.io/v1", "PlacementBinding"),
        ("apps.open-cluster-management.io/v1beta1", "GitOpsCluster"),
        ("apps.open-cluster-management.io/v1", "Subscription"),
        ("argoproj.io/v1alpha1", "ApplicationSet"),
        ("cluster.open-cluster-management.io/v1beta1", "ClusterCurator"),
        ("cluster.open-cluster-management.io/v1beta1", "BackupSchedule"),
        ("agent.open-cluster-management.io/v1", "KlusterletAddonConfig"),
        ("v1", "ConfigMap"),
    ];
    let text: String = kinds
        .iter()
        .map(|(version, kind)| {
            format!("---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: x, namespace: y}}\n")
        })
        .collect();
    let repo = Repo::with(&[("all.yaml", &text)]);
    let ran = run(&["validate", repo.arg()]).expect(0);
    for (_, kind) in &kinds[..kinds.len() - 1] {
        says(&ran, &[&format!("1 x `{kind}` has no effect in berth")]);
    }
    says(&ran, &["1 x plain Kubernetes objects that no placement selects"]);
}

#[test]
fn an_older_name_of_a_sorter_is_told_with_the_name_it_has() {
    let placement = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]
  policy:
    placementType: PickN
    numberOfClusters: 1
    affinity:
      clusterAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 20
          preference:
            metricSorter: {name: resources.kubernetes-fleet.io/available-cpu, sortOrder: Descending}
";
    let repo = Repo::with(&[("a.yaml", &fleet_member("a", "prod")), ("all.yaml", placement)]);
    let ran = run(&["validate", repo.arg()]).expect(1);
    says(&ran, &["all.yaml:14:", "metricSorter", "did you mean `propertySorter`?"]);
    assert_eq!(ran.err.matches("metricSorter`").count(), 1, "{}", ran.err);
}

#[test]
fn names_that_nothing_has_come_with_the_nearest_one() {
    let files = "\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: clusterset1}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: clusterset1, namespace: shop}
spec: {clusterSet: clusterset1}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: p, namespace: shop}
spec:
  clusterSets: [clustrset1]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourcePlacement
metadata: {name: rp, namespace: shop}
spec:
  resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: prod-deploymnt}]
  policy: {placementType: PickAll}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: prod-deployment, namespace: shop}
spec: {}
";
    let repo = Repo::with(&[("a.yaml", &fleet_member("a", "prod")), ("all.yaml", files)]);
    let ran = run(&["validate", repo.arg()]).expect(0);
    says(
        &ran,
        &[
            "there is no ManagedClusterSet `clustrset1`",
            "did you mean `clusterset1`?",
            "selects nothing: the repository has no apps/v1 Deployment `prod-deploymnt`",
            "did you mean `prod-deployment`?",
        ],
    );
}
