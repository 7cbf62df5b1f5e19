//! Imports a KubeFleet hub: its objects and those that its placements select, ready to commit, and the present
//! clusters of each placement.
//!
//! - [`wanted`]: queries for the objects that placements select. [`placed`]: reads the first decisions from bindings.
//! - [`tidy`]: converts each object for its file.

mod placed;
#[cfg(test)]
mod tests;
mod tidy;
mod wanted;

use serde_json::Value as Json;

use super::{Gathered, Importer, Options, clean, key_of, some_of, take};
use berth_base::model::Fleet;
use berth_member::live::{Host, LiveError, Query, Resource};
use wanted::Wanted;

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
            _ => _ = take(&mut gathered, object, clean::object),
        }
    }
    for binding in bindings.into_iter().flatten() {
        placed::bind(&mut gathered, &binding);
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
    if !clean::is_deleting(&cluster) && !tidy::is_fit(&cluster) {
        let message = format!(
            "cluster `{name}` has not joined or is not healthy on the hub, and its file does not show that"
        );
        gathered.warn(message, Some("to keep new placements off it, taint it"));
    }
    take(gathered, cluster, tidy::cluster);
}

fn take_placement(gathered: &mut Gathered, placement: Json) {
    if let Some(key) = key_of(&placement).filter(|_| !clean::is_deleting(&placement)) {
        gathered.placed.insert(key, placed::placed(&placement));
    }
    take(gathered, placement, clean::object);
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
    let services = wanted::services(&objects);
    let mut left_out = 0;
    for object in objects.into_iter().filter(|object| wanted::travels(object, &services)) {
        let is_secret = object["kind"] == "Secret" && object["apiVersion"] == "v1";
        if is_secret && !options.secrets {
            left_out += 1;
            continue;
        }
        let before = gathered.objects.len();
        take(gathered, object, tidy::selected);
        gathered.secrets += if is_secret { gathered.objects.len() - before } else { 0 };
    }
    if left_out > 0 {
        let message = format!("no Secret was imported (--no-secrets); {left_out} are selected");
        gathered.warn(message, Some("the copies in members stay unchanged, and berth does not manage them"));
    }
    Ok(())
}
