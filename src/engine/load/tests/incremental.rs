//! An independent small change is loaded by itself, with the same result as a full load.

use std::collections::BTreeMap;

use super::super::{FileCache, History, again, load_with_cache};
use berth_base::source::{RulesFrom, SourceFile, SourceTree};

/// One document of each kind that others are read against, and one of each independent kind.
const FILES: [(&str, &str); 13] = [
    (
        "fed/clusters.yaml",
        "{apiVersion: core.kubefed.io/v1beta1, kind: KubeFedCluster, metadata: {name: f1, namespace: fed, labels: {size: s}}, spec: {apiEndpoint: 'https://f1', secretRef: {name: f1}}}",
    ),
    (
        "fed/namespace.yaml",
        "{apiVersion: types.kubefed.io/v1beta1, kind: FederatedNamespace, metadata: {name: team, namespace: team}, spec: {placement: {clusterSelector: {}}}}",
    ),
    (
        "fed/type.yaml",
        "{apiVersion: core.kubefed.io/v1beta1, kind: FederatedTypeConfig, metadata: {name: widgets.example.com, namespace: fed}, spec: {federatedType: {group: fed.example.com, kind: FederatedWidget, version: v1, pluralName: federatedwidgets, scope: Namespaced}, targetType: {group: example.com, kind: Widget, version: v1, pluralName: widgets, scope: Namespaced}, propagation: Enabled}}",
    ),
    (
        "fed/config-map.yaml",
        "{apiVersion: types.kubefed.io/v1beta1, kind: FederatedConfigMap, metadata: {name: a, namespace: team, labels: {tier: one}}, spec: {placement: {clusters: [{name: f1}]}, template: {data: {k: v}}}}",
    ),
    (
        "fed/shared.yaml",
        "{apiVersion: types.kubefed.io/v1beta1, kind: FederatedConfigMap, metadata: {name: shared, namespace: team}, spec: {placement: {clusters: [{name: f1}]}, templateRef: {name: map}}}",
    ),
    (
        "shared/map.yaml",
        "{apiVersion: berth.dev/v1alpha1, kind: Template, metadata: {name: map, namespace: team}, template: {data: {k: v}}}",
    ),
    (
        "fleet/cluster.yaml",
        "{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {name: k1, labels: {size: s}}, spec: {identity: {kind: User, name: k1}}}",
    ),
    (
        "fleet/placement.yaml",
        "{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: crp}, spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: plain}]}}",
    ),
    ("fleet/namespace.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: plain}}"),
    (
        "ocm/cluster.yaml",
        "{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: o1, labels: {cluster.open-cluster-management.io/clusterset: green}}, spec: {hubAcceptsClient: true}}",
    ),
    (
        "ocm/sets.yaml",
        "---\n{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSet, metadata: {name: green}, spec: {}}\n---\n{apiVersion: cluster.open-cluster-management.io/v1beta2, kind: ManagedClusterSetBinding, metadata: {name: green, namespace: team}, spec: {clusterSet: green}}\n",
    ),
    (
        "ocm/placement.yaml",
        "{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: p, namespace: team}, spec: {numberOfClusters: 1}}",
    ),
    (
        "ocm/work.yaml",
        "{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet, metadata: {name: w, namespace: team}, spec: {placementRefs: [{name: p}], manifestWorkTemplate: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: d}, data: {k: v}}]}}}}",
    ),
];

struct Repository {
    files: BTreeMap<String, String>,
    cache: FileCache,
}

impl Repository {
    fn new() -> Repository {
        let files = FILES.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let mut repository = Repository { files, cache: FileCache::default() };
        let loaded = load_with_cache(&repository.tree(), History::None, &mut repository.cache);
        assert_eq!(loaded.diagnostics.errors().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
        repository
    }

    fn tree(&self) -> SourceTree {
        let file = |(path, text): (&String, &String)| SourceFile::new(path.as_str(), text.as_bytes());
        let files = self.files.iter().map(file).collect();
        SourceTree { files, rules_from: RulesFrom::Nowhere, ..SourceTree::default() }
    }

    /// Loads after an edit, and reports whether only the change was loaded.
    fn load(&mut self) -> bool {
        let tree = self.tree();
        let fresh = load_with_cache(&tree, History::None, &mut FileCache::default());
        let patched = again(&tree, &mut self.cache);
        let is_patched = patched.is_some();
        let loaded = patched.unwrap_or_else(|| load_with_cache(&tree, History::None, &mut self.cache));
        assert_eq!(format!("{loaded:#?}"), format!("{fresh:#?}"));
        is_patched
    }

    fn replace(&mut self, path: &str, from: &str, to: &str) -> bool {
        let text = self.files.get_mut(path).expect("a file");
        assert!(text.contains(from), "{path} has no {from}");
        *text = text.replace(from, to);
        self.load()
    }

    fn add(&mut self, path: &str, text: &str) -> bool {
        self.files.insert(path.to_owned(), text.to_owned());
        self.load()
    }
}

#[test]
fn what_stands_alone_is_loaded_by_itself() {
    let mut all = Repository::new();
    assert!(all.replace("fed/config-map.yaml", "k: v", "k: w"), "a template");
    assert!(all.replace("fed/config-map.yaml", "{apiVersion", "# moved\n{apiVersion"), "a comment");
    assert!(all.replace("fed/config-map.yaml", "tier: one", "tier: two"), "a label");
    assert!(all.replace("fed/config-map.yaml", ", labels: {tier: two}", ""), "no label");
    assert!(
        all.replace("fed/config-map.yaml", "clusters: [{name: f1}]", "clusterSelector: {}"),
        "a placement"
    );
    assert!(all.replace("fed/shared.yaml", "clusters: [{name: f1}]", "clusters: []"), "reads a file");
    assert!(all.replace("fed/clusters.yaml", "size: s", "size: l"));
    assert!(all.replace("fleet/cluster.yaml", "size: s", "size: l"));
    assert!(all.replace("ocm/cluster.yaml", "clusterset: green", "clusterset: green, size: s"));
    assert!(all.replace("ocm/placement.yaml", "numberOfClusters: 1", "numberOfClusters: 2"));
    assert!(all.replace("ocm/work.yaml", "k: v", "k: w"));
    assert!(all.replace("ocm/work.yaml", "k: w", "k: v"), "as it was");
}

#[test]
fn what_others_are_read_with_takes_a_whole_load() {
    let mut all = Repository::new();
    assert!(!all.replace("fed/namespace.yaml", "clusterSelector: {}", "clusters: []"));
    assert!(!all.replace("fed/type.yaml", "propagation: Enabled", "propagation: Disabled"));
    assert!(!all.replace("shared/map.yaml", "k: v", "k: w"));
    assert!(!all.replace("fleet/placement.yaml", "name: plain", "name: other"));
    assert!(!all.replace("fleet/namespace.yaml", "name: plain", "name: plain, labels: {a: b}"));
    assert!(!all.replace("ocm/sets.yaml", "name: green, namespace: team", "name: green, namespace: other"));
    assert!(
        !all.add("berth.yaml", "{apiVersion: berth.dev/v1alpha1, kind: FleetConfig, unknownFields: warning}")
    );
}

#[test]
fn what_has_a_fault_takes_a_whole_load() {
    let mut all = Repository::new();
    assert!(!all.replace("fed/config-map.yaml", "template:", "temlate:"));
    assert!(!all.replace("fed/config-map.yaml", "temlate:", "template:"), "the tree before is not whole");
    assert!(!all.replace("ocm/work.yaml", "name: p}", "name: missing}"));
    assert!(
        !all.replace("ocm/cluster.yaml", "clusterset: green", "clusterset: blue"),
        "there is no such set"
    );
    assert!(!all.replace("fed/config-map.yaml", "kind: F", "kind: [F"));
}

#[test]
fn two_of_a_name_in_one_change_take_a_whole_load() {
    let mut all = Repository::new();
    let changed = all.files["fed/config-map.yaml"].replace("k: v", "k: w");
    all.files.insert("fed/config-map.yaml".to_owned(), changed.clone());
    assert!(!all.add("lists/again.yaml", &changed), "the first has changed");
    let mut all = Repository::new();
    let new = changed.replace("name: a", "name: b");
    all.files.insert("fed/b.yaml".to_owned(), new.clone());
    assert!(!all.add("lists/b.yaml", &new), "both are new");
}

#[test]
fn a_placement_that_somebody_waits_for_takes_a_whole_load() {
    let mut all = Repository::new();
    let placement = all.files["ocm/placement.yaml"].clone();
    assert!(all.add("ocm/q.yaml", &placement.replace("name: p", "name: q")), "nobody waits for one");
    assert!(!all.replace("ocm/work.yaml", "name: p}", "name: late}"));
    assert!(all.replace("fed/config-map.yaml", "k: v", "k: w"), "no placement comes");
    assert!(!all.add("ocm/lat.yaml", &placement.replace("name: p", "name: lat")), "nearly its name");
    assert!(!all.add("ocm/late.yaml", &placement.replace("name: p", "name: late")));
    assert!(all.add("ocm/r.yaml", &placement.replace("name: p", "name: r")), "it is there");
}

#[test]
fn what_comes_and_goes() {
    let mut all = Repository::new();
    let cluster = all.files["fed/clusters.yaml"].replace("f1", "f2");
    assert!(all.add("fed/f2.yaml", &cluster), "a cluster");
    assert!(!all.add("fed/twice.yaml", &cluster), "described twice");
    all.files.remove("fed/twice.yaml");
    assert!(!all.load(), "a file has gone");
    let other = all.files["fed/config-map.yaml"].replace("name: a", "name: b");
    assert!(all.add("fed/b.yaml", &other), "a workload");
    assert!(!all.replace("fed/b.yaml", "name: b", "name: c"), "another name");
    let status = "{apiVersion: berth.dev/v1alpha1, kind: ClusterStatus, metadata: {name: f3}}";
    assert!(!all.add("statuses/f3.yaml", status));
    assert!(!all.add("fed/f3.yaml", &cluster.replace("f2", "f3")), "the status has a cluster now");
}
