//! The first state has every object where the hub reports it, and the first plan shows only the differences from
//! berth's decisions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::first_state::{first_state, in_force};
use super::{Placed, Standing};
use berth_base::model::{Key, Map, Timestamp};
use berth_base::source::{SourceFile, SourceTree};
use berth_engine::decide;
use berth_engine::load::{self, History};
use berth_engine::pipeline::{self, Inputs};
use berth_engine::plan::plan;
use berth_engine::render::MemoryContents;

const CLUSTERS: [&str; 4] = ["a", "b", "c", "d"];

fn fleet(wanted: &[BTreeSet<usize>]) -> SourceTree {
    let cluster = |name: &&str| {
        format!(
            "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata: {{name: {name}, namespace: k}}\n\
             spec: {{apiEndpoint: \"https://{name}\", secretRef: {{name: {name}}}}}\n---\n"
        )
    };
    let role = |(index, clusters): (usize, &BTreeSet<usize>)| {
        let names: Vec<String> =
            clusters.iter().map(|cluster| format!("{{name: {}}}", CLUSTERS[*cluster])).collect();
        format!(
            "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedClusterRole\nmetadata: {{name: r{index}}}\n\
             spec: {{template: {{rules: []}}, placement: {{clusters: [{}]}}}}\n---\n",
            names.join(", ")
        )
    };
    let text: String = CLUSTERS.iter().map(cluster).chain(wanted.iter().enumerate().map(role)).collect();
    let file = SourceFile::new("fleet.yaml", text.into_bytes());
    SourceTree { files: [file].into(), ..SourceTree::default() }
}

fn key(index: usize) -> Key {
    Key::new("types.kubefed.io", "FederatedClusterRole", "", &format!("r{index}"))
}

fn sets() -> impl Strategy<Value = Vec<BTreeSet<usize>>> {
    prop::collection::vec(prop::collection::btree_set(0..CLUSTERS.len(), 0..=CLUSTERS.len()), 3)
}

#[test]
fn what_kubefed_did_not_propagate_stays_in_members_and_is_in_no_plan() {
    let disabled = "\
apiVersion: core.kubefed.io/v1beta1
kind: FederatedTypeConfig
metadata: {name: clusterroles.rbac.authorization.k8s.io, namespace: k}
spec:
  propagation: Disabled
  targetType: {group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, pluralName: clusterroles, scope: Cluster}
  federatedType: {group: types.kubefed.io, version: v1beta1, kind: FederatedClusterRole, pluralName: federatedclusterroles, scope: Cluster}
";
    let mut tree = fleet(&[[0, 1].into()]);
    tree.files.put(SourceFile::new("type.yaml", disabled.as_bytes()));
    let standing = Standing { there: true, doubtful: false, word: String::new() };
    let clusters = BTreeMap::from([("b".to_owned(), standing.clone()), ("gone".to_owned(), standing)]);
    let placed = BTreeMap::from([(key(0), Placed { clusters, ..Placed::default() })]);
    let loaded = load::load(&tree, History::None);
    let in_force = in_force(&loaded.fleet, &placed);
    let (now, statuses) = (Timestamp::UNIX_EPOCH, Map::new());
    let decided = decide::decide(&loaded.fleet, &in_force, &statuses, now);
    let mut contents = MemoryContents::default();
    let first = first_state(&loaded.fleet, decided, in_force, &placed, &mut contents).expect("memory");
    assert!(first.moves.is_empty(), "{:?}", first.moves);
    assert!(first.state.decisions[&key(0)].has("b") && !first.state.decisions[&key(0)].has("gone"));
    let said: String = first.diagnostics.iter().map(|one| format!("{one}\n")).collect();
    assert!(said.contains("the host has 1 object on `gone`, which is not a cluster of the fleet"), "{said}");
    assert!(said.contains("FederatedClusterRole r0 is not propagated"), "{said}");
    let inputs =
        Inputs { tree: &tree, history: History::None, current: &first.state, statuses: &statuses, now };
    let next = pipeline::build(inputs, &mut contents).expect("memory").state;
    assert_eq!(next, first.state);
}

#[test]
fn a_number_that_the_template_has_already_is_no_change() {
    let documents = "\
apiVersion: types.kubefed.io/v1beta1
kind: FederatedNamespace
metadata: {name: shop, namespace: shop}
spec: {placement: {clusterSelector: {}}}
---
apiVersion: types.kubefed.io/v1beta1
kind: FederatedDeployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {replicas: 3}}, placement: {clusterSelector: {}}}
---
apiVersion: scheduling.kubefed.io/v1alpha1
kind: ReplicaSchedulingPreference
metadata: {name: web, namespace: shop}
spec: {targetKind: FederatedDeployment, totalReplicas: TOTAL}
";
    let moves = |total: &str| {
        let mut tree = fleet(&[]);
        tree.files.put(SourceFile::new("web.yaml", documents.replace("TOTAL", total).into_bytes()));
        let standing = |name: &&str| {
            ((*name).to_owned(), Standing { there: true, doubtful: false, word: String::new() })
        };
        let clusters: BTreeMap<String, Standing> = CLUSTERS.iter().map(standing).collect();
        let key = |kind: &str, name: &str| Key::new("types.kubefed.io", kind, "shop", name);
        let placed = || Placed { clusters: clusters.clone(), ..Placed::default() };
        let placed = BTreeMap::from([
            (key("FederatedNamespace", "shop"), placed()),
            (key("FederatedDeployment", "web"), placed()),
        ]);
        let loaded = load::load(&tree, History::None);
        assert!(!loaded.diagnostics.has_errors(), "{:?}", loaded.diagnostics);
        let in_force = in_force(&loaded.fleet, &placed);
        let decided = decide::decide(&loaded.fleet, &in_force, &Map::new(), Timestamp::UNIX_EPOCH);
        let mut contents = MemoryContents::default();
        let first = first_state(&loaded.fleet, decided, in_force, &placed, &mut contents).expect("memory");
        first.moves.iter().map(|one| one.replicas.clone()).collect::<Vec<_>>()
    };
    assert_eq!(moves("12"), Vec::<Vec<(String, Option<i64>, Option<i64>)>>::new());
    assert_eq!(moves("13")[0][0], ("a".to_owned(), Some(3), Some(4)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_first_plan_is_the_difference_and_nothing_else(wanted in sets(), live in sets()) {
        let tree = fleet(&wanted);
        let standing = |cluster: &usize| {
            let standing = Standing { there: true, doubtful: false, word: String::new() };
            (CLUSTERS[*cluster].to_owned(), standing)
        };
        let placed: BTreeMap<Key, Placed> = live
            .iter()
            .enumerate()
            .map(|(index, set)| {
                (key(index), Placed { clusters: set.iter().map(standing).collect(), ..Placed::default() })
            })
            .collect();
        let (now, statuses) = (Timestamp::UNIX_EPOCH, Map::new());
        let loaded = load::load(&tree, History::None);
        prop_assert!(!loaded.diagnostics.has_errors());
        let in_force = in_force(&loaded.fleet, &placed);
        let decided = decide::decide(&loaded.fleet, &in_force, &statuses, now);
        let mut contents = MemoryContents::default();
        let first = first_state(&loaded.fleet, decided, in_force, &placed, &mut contents).expect("memory");
        for (index, set) in live.iter().enumerate() {
            for (number, cluster) in CLUSTERS.iter().enumerate() {
                let path = format!("_cluster/ClusterRole.rbac.authorization.k8s.io_r{index}.yaml");
                let there = first.state.folders.get(*cluster).is_some_and(|folder| folder.contains_key(path.as_str()));
                prop_assert_eq!(there, set.contains(&number), "{} on {}", path, cluster);
            }
        }
        let inputs = Inputs { tree: &tree, history: History::None, current: &first.state, statuses: &statuses, now };
        let next = pipeline::build(inputs, &mut contents).expect("memory").state;
        let plan = plan(&first.state, &next);
        let differ: BTreeSet<Key> =
            (0..wanted.len()).filter(|index| wanted[*index] != live[*index]).map(key).collect();
        let changed: BTreeSet<Key> = plan.workloads.keys().cloned().collect();
        prop_assert_eq!(&changed, &differ);
        let named: BTreeSet<Key> = first.moves.iter().map(|one| one.key.clone()).collect();
        prop_assert_eq!(named, differ);
        if changed.is_empty() {
            prop_assert_eq!(next, first.state);
        }
    }
}
