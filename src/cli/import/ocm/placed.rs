//! Reads placements' clusters from PlacementDecisions, and the clusters of a ManifestWorkReplicaSet from its
//! ManifestWorks, with the state of each work.

use serde_json::Value as Json;

use super::{CLUSTERS, WORKS};
use crate::import::{Gathered, Standing, clean};
use berth_base::model::{Group, Key};

/// The label that names a decision's placement, as its owner reference does.
const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
const GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
const GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";

/// The state of a work whose manifests are not those of its set's template.
const OUTDATED: &str = "an earlier version";

/// Adds a decision's clusters to its placement, which may have several decisions.
pub(super) fn decide(gathered: &mut Gathered, decision: &Json) {
    let metadata = &decision["metadata"];
    let label = |key: &str| metadata["labels"][key].as_str();
    let owners = metadata["ownerReferences"].as_array();
    let owner = owners.into_iter().flatten().find(|owner| owner["kind"] == "Placement");
    let placement = label(PLACEMENT).or_else(|| owner.and_then(|owner| owner["name"].as_str()));
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let Some(placement) = placement.filter(|_| !clean::is_deleting(decision)) else { return };
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
pub(super) fn standing(work: &Json) -> Standing {
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
pub(super) fn work(gathered: &mut Gathered, set: &Key, work: &Json, templates: &[(Key, Json)]) {
    let cluster = work["metadata"]["namespace"].as_str().unwrap_or_default();
    if clean::is_deleting(work) || !gathered.placed.contains_key(set) {
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
pub(super) fn wait_for_works(gathered: &mut Gathered) {
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
