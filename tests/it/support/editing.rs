//! A random fleet of all systems, and random edits of it, each of one thing.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::random::Random;
use berth_base::source::{SourceFile, SourceTree};
use berth_base::yaml::emit_documents;

/// Documents by file.
pub type Files = BTreeMap<String, Vec<Json>>;

/// An edit that was made: the file that shows it, and a word of its description.
#[derive(Clone, Debug)]
pub struct Made {
    pub file: String,
    pub word: String,
}

pub fn tree(files: &Files) -> SourceTree {
    let file = |(path, documents): (&String, &Vec<Json>)| {
        SourceFile::new(path.as_str(), text(documents).into_bytes())
    };
    SourceTree { files: files.iter().map(file).collect(), ..SourceTree::default() }
}

pub fn text(documents: &[Json]) -> String {
    emit_documents(documents)
}

const REGIONS: [&str; 3] = ["north", "south", "west"];
const ENVS: [&str; 2] = ["prod", "test"];

/// A fleet in which most edits move something.
pub fn fleet(random: &mut Random) -> Files {
    let mut files = Files::new();
    for n in 0..5 {
        let labels = json!({"env": random.pick(&ENVS), "region": random.pick(&REGIONS)});
        files.insert(format!("kubefed/clusters/k{n}.yaml"), vec![kubefed_cluster(n, &labels)]);
        let labels = json!({"env": random.pick(&ENVS), "region": random.pick(&REGIONS)});
        files.insert(format!("fleet/members/m{n}.yaml"), vec![json!({
            "apiVersion": "cluster.kubernetes-fleet.io/v1", "kind": "MemberCluster",
            "metadata": {"name": format!("m{n}"), "labels": labels},
            "spec": {"identity": {"kind": "ServiceAccount", "name": "hub", "namespace": "fleet-system"}, "taints": []},
        })]);
        let labels = json!({"env": random.pick(&ENVS), "region": random.pick(&REGIONS)});
        files.insert(
            format!("ocm/clusters/o{n}.yaml"),
            vec![json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": format!("o{n}"), "labels": labels},
                "spec": {"hubAcceptsClient": true, "taints": []},
            })],
        );
    }
    files.insert(
        "kubefed/shop.yaml".to_owned(),
        vec![json!({
            "apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedNamespace",
            "metadata": {"name": "shop", "namespace": "shop"}, "spec": {"placement": {"clusterSelector": {}}},
        })],
    );
    for n in 0..3 {
        let mut documents = vec![deployment(random, n)];
        if n == 0 {
            documents.push(json!({
                "apiVersion": "scheduling.kubefed.io/v1alpha1", "kind": "ReplicaSchedulingPreference",
                "metadata": {"name": "web0", "namespace": "shop"},
                "spec": {"targetKind": "FederatedDeployment", "totalReplicas": 7,
                    "clusters": {"*": {"weight": 1}, "k1": {"weight": 2}}},
            }));
        }
        files.insert(format!("kubefed/web{n}.yaml"), documents);
        files.insert(format!("fleet/apps{n}.yaml"), placement_and_objects(random, n));
        files.insert(format!("ocm/apps{n}.yaml"), ocm_placement_and_work(random, n));
    }
    files.insert("ocm/sets.yaml".to_owned(), vec![
        json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
            "metadata": {"name": "global"},
            "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}}),
        json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "global", "namespace": "shop"}, "spec": {"clusterSet": "global"}}),
    ]);
    files
}

fn kubefed_cluster(n: u64, labels: &Json) -> Json {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"name": format!("k{n}"), "namespace": "kube-federation-system", "labels": labels},
        "spec": {"apiEndpoint": format!("https://k{n}.example.com"), "secretRef": {"name": format!("k{n}")}},
    })
}

fn deployment(random: &mut Random, n: u64) -> Json {
    let placement = match random.below(3) {
        0 => json!({"clusters": [{"name": "k0"}, {"name": "k2"}, {"name": "k3"}]}),
        1 => json!({"clusterSelector": {"matchLabels": {"env": random.pick(&ENVS)}}}),
        _ => json!({"clusterSelector": {"matchExpressions":
            [{"key": "region", "operator": "In", "values": ["north", "south"]}]}}),
    };
    json!({
        "apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedDeployment",
        "metadata": {"name": format!("web{n}"), "namespace": "shop"},
        "spec": {
            "placement": placement,
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": "web:1.0"}]}}}},
            "overrides": [
                {"clusterName": "k0", "clusterOverrides": [{"path": "/spec/revisionHistoryLimit", "op": "add", "value": 3}]},
                {"clusterName": "k2", "clusterOverrides":
                    [{"path": "/spec/template/spec/containers/0/image", "value": "web:1.1"}]},
            ],
        },
    })
}

fn placement_and_objects(random: &mut Random, n: u64) -> Vec<Json> {
    let term = |key: &str, value: &str| json!({"labelSelector": {"matchLabels": {key: value}}});
    let policy = match n {
        0 => json!({"placementType": "PickAll", "affinity": {"clusterAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": [term("env", random.pick(&ENVS))]}}}}),
        1 => json!({"placementType": "PickN", "numberOfClusters": 2, "affinity": {"clusterAffinity":
            {"preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 20, "preference": term("region", random.pick(&REGIONS))}]}}}),
        _ => json!({"placementType": "PickFixed", "clusterNames": ["m0", "m1", "m4"]}),
    };
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("ns{n}"), "labels": {"team": "a"}}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": format!("ns{n}")},
            "data": {"value": "old"}}),
        json!({"apiVersion": "placement.kubernetes-fleet.io/v1", "kind": "ClusterResourcePlacement",
            "metadata": {"name": format!("place{n}")},
            "spec": {"resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": format!("ns{n}")}],
                "policy": policy}}),
    ]
}

fn ocm_placement_and_work(random: &mut Random, n: u64) -> Vec<Json> {
    let selector = json!({"labelSelector": {"matchLabels": {"env": random.pick(&ENVS)}}});
    let mut spec = json!({"predicates": [{"requiredClusterSelector": selector}]});
    if n == 1 {
        spec = json!({"numberOfClusters": 2, "tolerations": [{"key": "drain", "operator": "Exists"}]});
    }
    vec![
        json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": format!("place{n}"), "namespace": "shop"}, "spec": spec}),
        json!({"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
            "metadata": {"name": format!("work{n}"), "namespace": "shop"},
            "spec": {"placementRefs": [{"name": format!("place{n}")}], "manifestWorkTemplate": {"workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map{n}"), "namespace": "shop"},
                    "data": {"value": "old"}}]}}}}),
    ]
}

/// Makes an edit of one thing. `None` where the fleet has no place for it.
pub fn edit(random: &mut Random, files: &mut Files) -> Option<Made> {
    let n = random.below(3);
    let cluster = match random.below(3) {
        0 => format!("kubefed/clusters/k{}.yaml", random.below(5)),
        1 => format!("fleet/members/m{}.yaml", random.below(5)),
        _ => format!("ocm/clusters/o{}.yaml", random.below(5)),
    };
    let value = format!("v{}", random.below(1000));
    let (web, fleet, ocm) =
        (format!("kubefed/web{n}.yaml"), format!("fleet/apps{n}.yaml"), format!("ocm/apps{n}.yaml"));
    match random.below(22) {
        0 => set(files, &cluster, 0, "/metadata/labels/env", &json!(random.pick(&ENVS)), "label env"),
        1 => {
            set(files, &cluster, 0, "/metadata/labels/region", &json!(random.pick(&REGIONS)), "label region")
        }
        2 => set(files, &cluster, 0, "/metadata/labels/env", &json!(value), "label env"),
        3 => {
            let file = if cluster.starts_with("ocm") { cluster } else { "fleet/members/m1.yaml".to_owned() };
            let effect = if file.starts_with("ocm") { "NoSelect" } else { "NoSchedule" };
            push(
                files,
                &file,
                0,
                "/spec/taints",
                &json!({"key": "drain", "value": value, "effect": effect}),
                "taint added",
            )
        }
        4 => set(
            files,
            &web,
            0,
            "/spec/template/spec/template/spec/containers/0/image",
            &json!(value),
            "image",
        ),
        5 => set(
            files,
            &web,
            0,
            "/spec/overrides/0/clusterOverrides/0/value",
            &json!(random.below(9)),
            "value",
        ),
        6 => push(
            files,
            &web,
            0,
            "/spec/overrides/1/clusterOverrides",
            &json!({"path": "/metadata/labels/new", "op": "add", "value": value}),
            "added",
        ),
        7 => set(
            files,
            &web,
            0,
            "/spec/placement/clusterSelector/matchLabels/env",
            &json!(random.pick(&ENVS)),
            "env",
        ),
        8 => push(files, &web, 0, "/spec/placement/clusters", &json!({"name": "k4"}), "added"),
        9 => push(
            files,
            &web,
            0,
            "/spec/placement/clusterSelector/matchExpressions/0/values",
            &json!("west"),
            "added",
        ),
        10 => set(
            files,
            "kubefed/web0.yaml",
            1,
            "/spec/totalReplicas",
            &json!(random.below(12) + 1),
            "totalReplicas",
        ),
        11 => {
            set(files, "kubefed/web0.yaml", 1, "/spec/clusters/k1/weight", &json!(random.below(5)), "weight")
        }
        12 => set(files, &fleet, 1, "/data/value", &json!(value), "data.value"),
        13 => set(
            files,
            "fleet/apps1.yaml",
            2,
            "/spec/policy/numberOfClusters",
            &json!(random.below(5) + 1),
            "numberOf",
        ),
        14 => push(files, "fleet/apps2.yaml", 2, "/spec/policy/clusterNames", &json!("m2"), "added"),
        15 => set(
            files,
            "fleet/apps0.yaml",
            2,
            "/spec/policy/affinity/clusterAffinity/requiredDuringSchedulingIgnoredDuringExecution/clusterSelectorTerms/0/labelSelector/matchLabels/env",
            &json!(random.pick(&ENVS)),
            "env",
        ),
        16 => set(
            files,
            &ocm,
            1,
            "/spec/manifestWorkTemplate/workload/manifests/0/data/value",
            &json!(value),
            "data.value",
        ),
        17 => {
            set(files, "ocm/apps1.yaml", 0, "/spec/numberOfClusters", &json!(random.below(5) + 1), "numberOf")
        }
        18 => {
            let from = random.pick(&["kubefed/web0.yaml", "kubefed/web1.yaml", "kubefed/web2.yaml"]);
            let documents = files.remove(from)?;
            if documents.len() != 1 {
                files.insert(from.to_owned(), documents);
                return None;
            }
            files.insert(format!("moved/{value}.yaml"), documents);
            Some(Made { file: format!("moved/{value}.yaml"), word: "moved".to_owned() })
        }
        19 => {
            let file = format!("kubefed/more-{value}.yaml");
            let mut more = deployment(random, n);
            more["metadata"]["name"] = json!(format!("more{value}"));
            files
                .insert(file.clone(), vec![more])
                .is_none()
                .then_some(Made { file, word: "document added".to_owned() })
        }
        20 => {
            let file = random.pick(&["kubefed/web1.yaml", "kubefed/web2.yaml", "kubefed/clusters/k3.yaml"]);
            files.remove(file)?;
            Some(Made { file: file.to_owned(), word: "document removed".to_owned() })
        }
        _ => {
            let file = format!("kubefed/clusters/new-{value}.yaml");
            let labels = json!({"env": random.pick(&ENVS), "region": random.pick(&REGIONS)});
            let mut cluster = kubefed_cluster(9, &labels);
            cluster["metadata"]["name"] = json!(format!("new-{value}"));
            files
                .insert(file.clone(), vec![cluster])
                .is_none()
                .then_some(Made { file, word: "document added".to_owned() })
        }
    }
}

/// Makes an edit that changes no decision and no object.
pub fn noise(random: &mut Random, files: &mut Files) {
    let paths: Vec<String> = files.keys().filter(|path| path.contains("/clusters/")).cloned().collect();
    let at = usize::try_from(random.below(paths.len() as u64)).expect("a place");
    let cluster = &mut files.get_mut(&paths[at]).expect("a file")[0];
    cluster["metadata"]["annotations"][format!("note-{}", random.below(100))] = json!("seen");
}

fn set(
    files: &mut Files,
    file: &str,
    document: usize,
    pointer: &str,
    value: &Json,
    word: &str,
) -> Option<Made> {
    let place = files.get_mut(file)?.get_mut(document)?.pointer_mut(pointer)?;
    if place == value {
        return None;
    }
    *place = value.clone();
    Some(Made { file: file.to_owned(), word: word.to_owned() })
}

fn push(
    files: &mut Files,
    file: &str,
    document: usize,
    pointer: &str,
    value: &Json,
    word: &str,
) -> Option<Made> {
    let list = files.get_mut(file)?.get_mut(document)?.pointer_mut(pointer)?.as_array_mut()?;
    if list.contains(value) {
        return None;
    }
    list.push(value.clone());
    Some(Made { file: file.to_owned(), word: word.to_owned() })
}
