//! Imports an Open Cluster Management hub: its objects, ready to commit, and the present clusters of each placement:
//! from PlacementDecisions, and those of a ManifestWorkReplicaSet from its ManifestWorks, with the state of each work.
//!
//! - [`conversion`]: converts each object for its file, and distinguishes the ManifestWorks that people wrote from those
//!   that a hub made.
//!
//! Secrets are never read, nor are the objects with which a cluster joined.

mod conversion;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{Gathered, Importer, Options, Standing, key_of, objects, some_of, take};
use berth_base::model::{Fleet, Group, Key};
use berth_member::live::{Host, LiveError, Query, Resource};

pub(crate) const IMPORTER: Importer = Importer {
    name: "ocm",
    about: "Import from an Open Cluster Management hub",
    details: "Brings in the managed clusters, cluster sets and their bindings, placements, scores of add-ons, \
              and works that people wrote. Where everything is comes from the hub's \
              PlacementDecisions and ManifestWorks. What the server and the agents added (uids, \
              conditions, leases and the like) is left out, and so is what clusters join with.",
    examples: "Example:\n  berth import ocm --context hub --out fleet\n  berth import ocm --kubeconfig hub.yaml --out fleet --repo fleet --no-secrets",
    namespace: None,
    gather,
    settle,
};

const CLUSTERS: &str = "cluster.open-cluster-management.io";
const WORKS: &str = "work.open-cluster-management.io";

/// The requested kinds: group, plural, kind, namespaced or not, versions with the newest first.
const ASKED: [(&str, &str, &str, bool, &[&str]); 8] = [
    (CLUSTERS, "managedclusters", "ManagedCluster", false, &["v1"]),
    (CLUSTERS, "managedclustersets", "ManagedClusterSet", false, &["v1beta2", "v1beta1"]),
    (CLUSTERS, "managedclustersetbindings", "ManagedClusterSetBinding", true, &["v1beta2", "v1beta1"]),
    (CLUSTERS, "placements", "Placement", true, &["v1beta1", "v1alpha1"]),
    (CLUSTERS, "placementdecisions", "PlacementDecision", true, &["v1beta1", "v1alpha1"]),
    (CLUSTERS, "addonplacementscores", "AddOnPlacementScore", true, &["v1alpha1"]),
    (WORKS, "manifestworkreplicasets", "ManifestWorkReplicaSet", true, &["v1alpha1"]),
    (WORKS, "manifestworks", "ManifestWork", true, &["v1"]),
];

fn gather(host: &dyn Host, options: &Options) -> Result<Gathered, LiveError> {
    if !host.groups()?.contains(CLUSTERS) {
        let (server, group) = (host.server().to_owned(), CLUSTERS.to_owned());
        return Err(LiveError::NoHub { server, system: "Open Cluster Management".to_owned(), group });
    }
    let mut gathered = Gathered::default();
    let [clusters, sets, bindings, placements, decisions, scores, replica_sets, works] =
        ask(host, &mut gathered)?;
    // Conditions that an expression reads must exist; all others would be outdated in a file.
    let conditions = placements.iter().any(|one| one["spec"].to_string().contains("conditions"));
    for cluster in clusters {
        warn_of_cluster(&mut gathered, &cluster);
        take(&mut gathered, conversion::cluster(cluster, conditions), conversion::cleaned);
    }
    for set in sets.into_iter().filter(|set| !conversion::is_kept_by_the_hub(set)) {
        take(&mut gathered, set, conversion::set);
    }
    bindings.into_iter().for_each(|binding| _ = take(&mut gathered, binding, objects::object));
    scores.into_iter().for_each(|score| _ = take(&mut gathered, score, conversion::score));
    for placement in placements {
        take_placed(&mut gathered, placement, objects::object);
    }
    decisions.iter().for_each(|decision| decide(&mut gathered, decision));
    take_works(replica_sets, works, options, &mut gathered);
    Ok(gathered)
}

/// Changes nothing: the hub's controllers write nothing into users' objects.
fn settle(_: &mut Gathered, _: &Fleet) {}

/// Returns the answers, each in the newest version that the hub serves. A failed query is recorded and gives an empty
/// list.
fn ask(host: &dyn Host, gathered: &mut Gathered) -> Result<[Vec<Json>; ASKED.len()], LiveError> {
    let mut answers: [Vec<Json>; ASKED.len()] = Default::default();
    let mut open: Vec<usize> = (0..ASKED.len()).collect();
    for attempt in 0..ASKED.iter().map(|asked| asked.4.len()).max().unwrap_or_default() {
        let query = |index: &usize| {
            let (group, plural, kind, namespaced, versions) = ASKED[*index];
            Some(Query::all(Resource::new(group, versions.get(attempt)?, plural, kind, namespaced)))
        };
        open.retain(|index| query(index).is_some());
        let queries: Vec<Query> = open.iter().filter_map(query).collect();
        let mut not_served = Vec::new();
        for (index, answer) in open.iter().zip(host.list(&queries)) {
            match answer {
                Ok(objects) => answers[*index] = objects,
                // An older hub serves an older version, or lacks the kind.
                Err(LiveError::NotServed { .. }) => not_served.push(*index),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => gathered.missing.push(error),
            }
        }
        open = not_served;
    }
    Ok(answers)
}

fn warn_of_cluster(gathered: &mut Gathered, cluster: &Json) {
    if objects::is_deleting(cluster) {
        return;
    }
    let name = cluster.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
    if cluster.pointer("/spec/hubAcceptsClient") != Some(&true.into()) {
        let message = format!("cluster `{name}` was never accepted on the hub, but placements still pick it");
        gathered.warn(message, Some("to keep work off it, taint it"));
    }
    let kept = conversion::taints_of_the_hub(cluster);
    if !kept.is_empty() {
        let message = format!(
            "cluster `{name}` has the hub's taint `{}`, which stays in its file until somebody removes it",
            kept.join("` and `")
        );
        let hint = format!("remove it once the cluster is back: `berth taint {name} {}-`", kept[0]);
        gathered.warn(message, Some(&hint));
    }
    if conversion::has_undated_taints(cluster) {
        let message = format!(
            "a taint of cluster `{name}` has no timeAdded; its file has the cluster's creation time instead"
        );
        gathered.warn(message, Some("a hub treats a time-limited toleration of such a taint as expired"));
    }
}

/// Takes an object with a placement. It has no cluster until another object names one.
fn take_placed(gathered: &mut Gathered, object: Json, clean: fn(&mut Json)) -> Option<Key> {
    let key = key_of(&object).filter(|_| !objects::is_deleting(&object));
    take(gathered, object, clean);
    gathered.placed.entry(key.clone()?).or_default();
    key
}

fn take_works(replica_sets: Vec<Json>, works: Vec<Json>, options: &Options, gathered: &mut Gathered) {
    let mut templates = Vec::new();
    let mut left_out = 0;
    for mut set in replica_sets {
        // The hub's works still contain the Secrets.
        let template = set["spec"]["manifestWorkTemplate"].clone();
        left_out +=
            conversion::settle_secrets(&mut set, "/spec/manifestWorkTemplate/workload", options, gathered);
        if !conversion::has_manifests(&set, "/spec/manifestWorkTemplate/workload") {
            continue;
        }
        if let Some(key) = take_placed(gathered, set, objects::object) {
            templates.push((key, template));
        }
    }
    let (mut made, mut bootstrap): (BTreeSet<String>, BTreeSet<String>) = Default::default();
    for mut work in works {
        let name = key_of(&work).map(|key| key.to_string()).unwrap_or_default();
        match conversion::origin(&work) {
            conversion::Origin::ReplicaSet(key) => place_work(gathered, &key, &work, &templates),
            conversion::Origin::Hub => _ = made.insert(name),
            conversion::Origin::Joining => _ = bootstrap.insert(name),
            conversion::Origin::People => {
                left_out += conversion::settle_secrets(&mut work, "/spec/workload", options, gathered);
                if conversion::has_manifests(&work, "/spec/workload") {
                    let standing = standing(&work);
                    let cluster = work["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
                    if let Some(key) = take_placed(gathered, work, objects::object) {
                        let placed = gathered.placed.entry(key).or_default();
                        placed.clusters.insert(cluster, standing);
                    }
                }
            }
        }
    }
    wait_for_works(gathered);
    if left_out > 0 {
        let message = format!(
            "no Secret was imported (--no-secrets); {left_out} are in the manifests of \
                               works"
        );
        gathered.warn(message, Some("the copies in members stay unchanged, and berth does not manage them"));
    }
    for (works, why) in [(made, "controllers of the hub made them"), (bootstrap, "clusters join with them")] {
        if !works.is_empty() {
            let message = format!("not imported, because {why}: {}", some_of(works));
            gathered.warn(message, Some("the copies in members stay there, unmanaged by berth"));
        }
    }
}

/// The label that names a decision's placement, as its owner reference does.
const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
const GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
const GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";

/// The state of a work whose manifests are not those of its set's template.
const OUTDATED: &str = "an earlier version";

/// Adds a decision's clusters to its placement, which may have several decisions.
fn decide(gathered: &mut Gathered, decision: &Json) {
    let metadata = &decision["metadata"];
    let label = |key: &str| metadata["labels"][key].as_str();
    let owners = metadata["ownerReferences"].as_array();
    let owner = owners.into_iter().flatten().find(|owner| owner["kind"] == "Placement");
    let placement = label(PLACEMENT).or_else(|| owner.and_then(|owner| owner["name"].as_str()));
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let Some(placement) = placement.filter(|_| !objects::is_deleting(decision)) else { return };
    let Some(placed) = gathered.placed.get_mut(&Key::new(CLUSTERS, "Placement", namespace, placement)) else {
        return;
    };
    let index = label(GROUP_INDEX).and_then(|text| text.parse().ok()).unwrap_or_default();
    let group = Group { index, name: label(GROUP_NAME).unwrap_or_default().to_owned() };
    let decisions = decision.pointer("/status/decisions").and_then(Json::as_array);
    for cluster in decisions.into_iter().flatten().filter_map(|one| one["clusterName"].as_str()) {
        let well = Standing { there: true, doubtful: false, word: String::new() };
        placed.clusters.insert(cluster.to_owned(), well);
        placed.groups.insert(cluster.to_owned(), group.clone());
    }
}

/// Returns the state of a work in its cluster, by the agent's records.
fn standing(work: &Json) -> Standing {
    let conditions = work.pointer("/status/conditions").and_then(Json::as_array);
    let applied = conditions.into_iter().flatten().find(|one| one["type"] == "Applied");
    let word = match applied {
        Some(one) if one["status"] == "True" => String::new(),
        Some(one) => {
            one["reason"].as_str().filter(|reason| !reason.is_empty()).unwrap_or("Applied=False").to_owned()
        }
        None => "nothing yet".to_owned(),
    };
    Standing { there: true, doubtful: !word.is_empty(), word }
}

/// Adds a work's cluster to the set that made it. A cluster picked by two placements may have two works.
fn place_work(gathered: &mut Gathered, set: &Key, work: &Json, templates: &[(Key, Json)]) {
    let cluster = work["metadata"]["namespace"].as_str().unwrap_or_default();
    if objects::is_deleting(work) || !gathered.placed.contains_key(set) {
        let message = format!("the hub is removing {set} from `{cluster}`, so it is no longer placed there");
        let hint = "objects that the hub has not removed by the time it is shut down stay there, unmanaged";
        return gathered.warn(message, Some(hint));
    }
    let template = templates.iter().find(|(key, _)| key == set).map(|(_, template)| template);
    let same = template.is_some_and(|template| template["workload"] == work["spec"]["workload"]);
    let mut standing = standing(work);
    if !same {
        standing = Standing { doubtful: true, word: OUTDATED.to_owned(), ..standing };
    }
    let Some(placed) = gathered.placed.get_mut(set) else { return };
    let known = placed.clusters.entry(cluster.to_owned()).or_insert_with(|| standing.clone());
    if known.word.is_empty() {
        *known = standing;
    }
}

/// Marks the picked clusters without a work as pending: the rollout has not reached them.
fn wait_for_works(gathered: &mut Gathered) {
    let mut waiting = Vec::new();
    for (key, object) in &gathered.objects {
        if (&*key.group, &*key.kind) != (WORKS, "ManifestWorkReplicaSet") {
            continue;
        }
        let refs = object.pointer("/spec/placementRefs").and_then(Json::as_array);
        for name in refs.into_iter().flatten().filter_map(|one| one["name"].as_str()) {
            let followed = gathered.placed.get(&Key::new(CLUSTERS, "Placement", &key.namespace, name));
            let picked = followed.into_iter().flat_map(|placed| placed.clusters.keys());
            waiting.extend(picked.map(|cluster| (key.clone(), cluster.clone())));
        }
    }
    for (key, cluster) in waiting {
        let Some(placed) = gathered.placed.get_mut(&key) else { continue };
        if !placed.clusters.contains_key(&cluster) {
            let standing = Standing { there: true, doubtful: false, word: "not rolled out".to_owned() };
            placed.clusters.insert(cluster.clone(), standing);
            placed.pending.insert(cluster);
        }
    }
}
