//! Imports a KubeFleet hub: its objects and those that its placements select, ready to commit, and the present
//! clusters of each placement, from its bindings and its status. Each kind of object is converted for its file, with the
//! same meaning for berth as for the hub.
//!
//! - [`selected_objects`]: queries for the objects that placements select.

mod selected_objects;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json};

use super::{Gathered, Importer, Options, Placed, Standing, key_of, kubefed, objects, some_of, take};
use berth_base::model::{Fleet, Key};
use berth_member::live::{Host, LiveError, Query, Resource};
use selected_objects::Wanted;

pub(crate) const IMPORTER: Importer = Importer {
    name: "kubefleet",
    about: "Import from a KubeFleet hub",
    details: "Brings in the member clusters, placements, overrides and envelopes, and the objects that the \
              placements select. Where everything is comes from the hub's bindings. What the server and \
              the agents added (uids, statuses, heartbeats and the like) is left out.",
    examples: "Example:\n  berth import kubefleet --context hub --out fleet\n  berth import kubefleet --kubeconfig hub.yaml --out fleet --repo fleet --no-secrets",
    namespace: None,
    gather,
    settle,
};

const CLUSTERS: &str = "cluster.kubernetes-fleet.io";
const PLACEMENTS: &str = "placement.kubernetes-fleet.io";

/// The versions that a hub may serve, in order of preference.
const VERSIONS: [&str; 2] = ["v1beta1", "v1"];

/// The kinds that users write: group, plural, kind, and true for a namespaced kind.
const WRITTEN: [(&str, &str, &str, bool); 10] = [
    (CLUSTERS, "memberclusters", "MemberCluster", false),
    (PLACEMENTS, "clusterresourceplacements", "ClusterResourcePlacement", false),
    (PLACEMENTS, "resourceplacements", "ResourcePlacement", true),
    (PLACEMENTS, "clusterresourceoverrides", "ClusterResourceOverride", false),
    (PLACEMENTS, "resourceoverrides", "ResourceOverride", true),
    (PLACEMENTS, "clusterresourceenvelopes", "ClusterResourceEnvelope", false),
    (PLACEMENTS, "resourceenvelopes", "ResourceEnvelope", true),
    (
        PLACEMENTS,
        "clusterresourceplacementdisruptionbudgets",
        "ClusterResourcePlacementDisruptionBudget",
        false,
    ),
    (PLACEMENTS, "clusterstagedupdatestrategies", "ClusterStagedUpdateStrategy", false),
    (PLACEMENTS, "stagedupdatestrategies", "StagedUpdateStrategy", true),
];

/// The kinds in which the hub stores its scheduler's decisions.
const BINDINGS: [(&str, &str, &str, bool); 2] = [
    (PLACEMENTS, "clusterresourcebindings", "ClusterResourceBinding", false),
    (PLACEMENTS, "resourcebindings", "ResourceBinding", true),
];

fn gather(host: &dyn Host, options: &Options) -> Result<Gathered, LiveError> {
    if !host.groups()?.contains(PLACEMENTS) {
        let (server, group) = (host.server().to_owned(), PLACEMENTS.to_owned());
        return Err(LiveError::NoHub { server, system: "KubeFleet".to_owned(), group });
    }
    let mut gathered = Gathered::default();
    let mut placements = Vec::new();
    let mut answers = ask_own(host, &mut gathered)?;
    let bindings = answers.split_off(WRITTEN.len());
    for object in answers.into_iter().flatten() {
        match object["kind"].as_str() {
            Some("MemberCluster") => take_cluster(&mut gathered, object),
            Some("ClusterResourcePlacement" | "ResourcePlacement") => {
                placements.push(object.clone());
                take_placement(&mut gathered, object);
            }
            _ => _ = take(&mut gathered, object, objects::object),
        }
    }
    for binding in bindings.into_iter().flatten() {
        bind(&mut gathered, &binding);
    }
    take_selected(host, options, &placements, &mut gathered)?;
    Ok(gathered)
}

/// Changes nothing: the hub's controllers write nothing into users' objects.
fn settle(_: &mut Gathered, _: &Fleet) {}

/// Reads all of KubeFleet's own objects, kind by kind, each in the first version that the hub serves.
fn ask_own(host: &dyn Host, gathered: &mut Gathered) -> Result<Vec<Vec<Json>>, LiveError> {
    let kinds: Vec<&(&str, &str, &str, bool)> = WRITTEN.iter().chain(&BINDINGS).collect();
    let mut found: Vec<Vec<Json>> = kinds.iter().map(|_| Vec::new()).collect();
    let mut open: Vec<usize> = (0..kinds.len()).collect();
    for version in VERSIONS {
        let query = |at: &usize| {
            let (group, plural, kind, namespaced) = *kinds[*at];
            Query::all(Resource::new(group, version, plural, kind, namespaced))
        };
        let queries: Vec<Query> = open.iter().map(query).collect();
        let mut left = Vec::new();
        for (at, answer) in open.into_iter().zip(host.list(&queries)) {
            match answer {
                Ok(objects) => found[at] = objects,
                // An older hub lacks some of the kinds.
                Err(LiveError::NotServed { .. }) => left.push(at),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => gathered.missing.push(error),
            }
        }
        open = left;
    }
    Ok(found)
}

/// Returns the answers in the order of the queries. A failed query is recorded and gives an empty list.
fn ask(host: &dyn Host, queries: &[Query], gathered: &mut Gathered) -> Result<Vec<Vec<Json>>, LiveError> {
    let mut found = Vec::new();
    for answer in host.list(queries) {
        found.push(match answer {
            Ok(objects) => objects,
            Err(LiveError::NotServed { .. }) => Vec::new(),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => {
                gathered.missing.push(error);
                Vec::new()
            }
        });
    }
    Ok(found)
}

fn take_cluster(gathered: &mut Gathered, cluster: Json) {
    let name = cluster.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
    if !objects::is_deleting(&cluster) && !is_fit(&cluster) {
        let message = format!(
            "cluster `{name}` has not joined or is not healthy on the hub, and its file does not show that"
        );
        gathered.warn(message, Some("to keep new placements off it, taint it"));
    }
    take(gathered, cluster, tidy_cluster);
}

fn take_placement(gathered: &mut Gathered, placement: Json) {
    if let Some(key) = key_of(&placement).filter(|_| !objects::is_deleting(&placement)) {
        gathered.placed.insert(key, placed(&placement));
    }
    take(gathered, placement, objects::object);
}

/// Takes the objects that the placements select, because the repository replaces the hub for these too.
fn take_selected(
    host: &dyn Host,
    options: &Options,
    placements: &[Json],
    gathered: &mut Gathered,
) -> Result<(), LiveError> {
    let resources = host.resources()?;
    let namespaces = Query::all(Resource::new("", "v1", "namespaces", "Namespace", false));
    let namespaces = ask(host, &[namespaces], gathered)?.pop().unwrap_or_default();
    let wanted = Wanted::of(placements, &resources, &namespaces);
    if !wanted.unknown.is_empty() {
        let message = format!("placements select {}, which the hub does not have", some_of(&wanted.unknown));
        gathered.warn(message, Some("these selectors select nothing"));
    }
    let answers = ask(host, &wanted.queries, gathered)?;
    let objects: Vec<Json> = answers.into_iter().flatten().filter(|one| wanted.holds(one)).collect();
    let services = selected_objects::services(&objects);
    let mut left_out = 0;
    for object in objects.into_iter().filter(|object| selected_objects::travels(object, &services)) {
        let is_secret = object["kind"] == "Secret" && object["apiVersion"] == "v1";
        if is_secret && !options.secrets {
            left_out += 1;
            continue;
        }
        let before = gathered.objects.len();
        take(gathered, object, tidy_selected);
        gathered.secrets += if is_secret { gathered.objects.len() - before } else { 0 };
    }
    if left_out > 0 {
        let message = format!("no Secret was imported (--no-secrets); {left_out} are selected");
        gathered.warn(message, Some("the copies in members stay unchanged, and berth does not manage them"));
    }
    Ok(())
}

/// The label that names a binding's placement.
const PARENT: &str = "/metadata/labels/kubernetes-fleet.io~1parent-CRP";

/// Condition names of older hubs → the current names.
const OLD_NAMES: [(&str, &str); 6] = [
    ("ClusterResourcePlacementSynchronized", "WorkSynchronized"),
    ("ResourceApplied", "Applied"),
    ("ResourceScheduled", "Scheduled"),
    ("ResourcesApplied", "Applied"),
    ("SynchronizeSucceeded", "WorkSynchronized"),
    ("WorkSynchronizeSucceeded", "WorkSynchronized"),
];

/// Conditions of a cluster that are False if a member may have other objects than the hub's.
const TELLING: [&str; 3] = ["Overridden", "WorkSynchronized", "Applied"];

/// Returns the current name of a condition, with or without its kind's prefix.
fn condition_name(name: &str) -> &str {
    let known = |name: &str| OLD_NAMES.iter().find(|(old, _)| *old == name).map(|(_, new)| *new);
    let bare = name.strip_prefix("ClusterResourcePlacement").or(name.strip_prefix("ResourcePlacement"));
    known(name).or_else(|| bare.map(|bare| known(bare).unwrap_or(bare))).unwrap_or(name)
}

/// Returns the clusters with problems in the placement's status. Bindings name the other clusters.
fn placed(placement: &Json) -> Placed {
    let statuses = placement.pointer("/status/placementStatuses").and_then(Json::as_array);
    let mut placed = Placed::default();
    for status in statuses.into_iter().flatten() {
        let Some(cluster) = status["clusterName"].as_str() else { continue };
        let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let bad = conditions.iter().find(|one| {
            one["status"] == "False"
                && TELLING.contains(&condition_name(one["type"].as_str().unwrap_or_default()))
        });
        if let Some(bad) = bad {
            let word = bad["reason"].as_str().unwrap_or_default().to_owned();
            // The object counts as missing until a binding shows otherwise.
            placed.clusters.insert(cluster.to_owned(), Standing { there: false, doubtful: false, word });
        }
    }
    placed
}

/// Adds a binding's cluster to its placement.
fn bind(gathered: &mut Gathered, binding: &Json) {
    let text = |pointer: &str| binding.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let (parent, cluster, state) = (text(PARENT), text("/spec/targetCluster"), text("/spec/state"));
    let namespace = text("/metadata/namespace");
    let kind = if namespace.is_empty() { "ClusterResourcePlacement" } else { "ResourcePlacement" };
    let key = Key::new(PLACEMENTS, kind, namespace, parent);
    if !gathered.placed.contains_key(&key) {
        return;
    }
    if state == "Unscheduled" || objects::is_deleting(binding) {
        let message = format!("the hub is removing {key} from `{cluster}`, so it is no longer placed there");
        let hint = "objects that the hub has not removed by the time it is shut down stay there, unmanaged";
        return gathered.warn(message, Some(hint));
    }
    let Some(placed) = gathered.placed.get_mut(&key) else { return };
    let standing = placed.clusters.entry(cluster.to_owned()).or_insert_with(|| Standing {
        there: true,
        doubtful: state == "Scheduled",
        word: if state == "Scheduled" { state.to_owned() } else { String::new() },
    });
    standing.there = true;
    standing.doubtful |= !standing.word.is_empty();
    if state == "Scheduled" {
        placed.pending.insert(cluster.to_owned());
    }
    if let Some(scores) = binding.pointer("/spec/clusterDecision/clusterScore") {
        let names = [("affinityScore", "affinityScore"), ("priorityScore", "topologySpreadScore")];
        let score = |(theirs, ours): (&str, &str)| Some((ours.to_owned(), scores.get(theirs)?.as_i64()?));
        let scores = names.into_iter().map(|names| score(names).unwrap_or((names.1.to_owned(), 0)));
        placed.scores.insert(cluster.to_owned(), scores.collect());
    }
}

/// Keeps the parts of a cluster that policies read. The agent's own status would be outdated in a file.
fn tidy_cluster(object: &mut Json) {
    let mut status = Map::new();
    for key in ["properties", "resourceUsage"] {
        let value = object.pointer(&format!("/status/{key}")).filter(|value| value.is_object());
        status.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    if let Some(usage) = status.get_mut("resourceUsage").and_then(Json::as_object_mut) {
        usage.remove("observationTime");
    }
    let properties = status.get_mut("properties").and_then(Json::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Json::as_object_mut) {
        property.remove("observationTime");
    }
    objects::object(object);
    if let (Some(fields), false) = (object.as_object_mut(), status.is_empty()) {
        fields.insert("status".to_owned(), status.into());
    }
}

/// Reports whether the hub would place new work there: the agent has joined and is not unhealthy.
fn is_fit(cluster: &Json) -> bool {
    let agents = cluster.pointer("/status/agentStatus").and_then(Json::as_array);
    let agent = agents.into_iter().flatten().find(|agent| agent["type"] == "MemberAgent");
    let conditions = agent.and_then(|agent| agent["conditions"].as_array());
    let is = |kind: &str| {
        conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == "True")
    };
    is("Joined") && is("Healthy")
}

/// Cleans an object that placements select from the hub's additions.
fn tidy_selected(object: &mut Json) {
    let is = |kind: &str| object["kind"] == kind && object["apiVersion"] == "v1";
    if is("Namespace") {
        return kubefed::plain_namespace(object);
    }
    let is_service = is("Service");
    objects::object(object);
    let spec = object.get_mut("spec").and_then(Json::as_object_mut).filter(|_| is_service);
    if let Some(spec) = spec.filter(|spec| spec.get("clusterIP").and_then(Json::as_str) != Some("None")) {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
}
