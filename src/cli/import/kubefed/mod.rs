//! Imports a KubeFed host cluster: its objects, ready to commit, and the present clusters of each Federated object:
//! from `status.clusters`, and their replicas from its overrides.
//!
//! The settings, the type configs and the clusters are read first: they define the Federated types, and the scope of
//! the control plane.
//!
//! - [`conversion`]: converts each kind for its file, and removes the replica scheduler's fields from Federated objects.

mod conversion;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{Gathered, Importer, Options, Placed, Standing, key_of, objects, some_of, take};
use berth_base::diag::{Diagnostic, Severity};
use berth_member::live::{Host, LiveError, Query, Resource};
use conversion::REPLICAS;

pub(super) use conversion::namespace as plain_namespace;

pub(crate) const IMPORTER: Importer = Importer {
    name: "kubefed",
    about: "Import from a KubeFed host cluster",
    details: "Brings in the settings, type configs and clusters of the control plane, the Federated \
              objects of every type it knows, replica preferences, and the plain Namespaces that hold \
              them. What the server added (uids, statuses, managed fields and the like) is left out.",
    examples: "Example:\n  berth import kubefed --context host --out fleet\n  berth import kubefed --kubeconfig host.yaml --out fleet --repo fleet --no-secrets",
    namespace: Some(USUAL_NAMESPACE),
    gather,
    settle: conversion::settle,
};

/// The default namespace of KubeFed's own objects.
const USUAL_NAMESPACE: &str = "kube-federation-system";

/// The name of the settings in effect.
const SETTINGS: &str = "kubefed";

const CORE: &str = "core.kubefed.io";
const SCHEDULING: &str = "scheduling.kubefed.io";
const TYPES: &str = "types.kubefed.io";
const FEDERATED_SECRET: &str = "FederatedSecret";

fn gather(host: &dyn Host, options: &Options) -> Result<Gathered, LiveError> {
    let groups = host.groups()?;
    if !groups.contains(CORE) {
        let server = host.server().to_owned();
        return Err(LiveError::NoHub { server, system: "KubeFed".to_owned(), group: CORE.to_owned() });
    }
    let mut gathered = Gathered::default();
    let [settings, configs, clusters] = ask_core(host, options, &mut gathered)?;
    // KubeFed only uses the settings of this name.
    let in_force = settings.iter().find(|one| text(one, "/metadata/name") == SETTINGS);
    let scope = in_force.map(|one| text(one, "/spec/scope"));
    let within = (scope == Some("Namespaced")).then_some(options.namespace.as_str());
    let types = federated_types(&configs, options, within.is_some(), &mut gathered);
    let mut queries: Vec<Query> =
        types.iter().map(|one| Query::all(one.resource.clone()).within(within)).collect();
    if groups.contains(SCHEDULING) {
        let preferences = "replicaschedulingpreferences";
        let preference =
            Resource::new(SCHEDULING, "v1alpha1", preferences, "ReplicaSchedulingPreference", true);
        queries.push(Query::all(preference).within(within));
    }
    let answers = host.list(&queries);
    for object in settings.into_iter().chain(configs) {
        take(&mut gathered, object, objects::object);
    }
    for cluster in clusters {
        take_cluster(&mut gathered, cluster);
    }
    for (index, answer) in answers.into_iter().enumerate() {
        let federated = types.get(index);
        match answer {
            Ok(objects) => {
                for object in objects {
                    match federated {
                        Some(federated) => take_federated(&mut gathered, federated, object, options),
                        None => {
                            take(&mut gathered, object, objects::object);
                        }
                    }
                }
            }
            Err(error @ LiveError::NotServed { .. }) if federated.is_some() => {
                let hint = "delete the type config if it is not needed: its definition is missing";
                let message = format!("{error}, although a type config of the host names it");
                gathered.warn(message, Some(hint));
            }
            Err(error @ LiveError::NotServed { .. }) => {
                gathered.warn(format!("{error}, so there are no preferences"), None);
            }
            Err(error) if error.is_final() => return Err(error),
            Err(error) => gathered.missing.push(error),
        }
    }
    if within.is_none() {
        take_namespaces(host, options, &mut gathered)?;
    }
    conversion::report(&mut gathered);
    Ok(gathered)
}

/// Reads the control plane's own objects: settings, type configs, clusters.
fn ask_core(
    host: &dyn Host,
    options: &Options,
    gathered: &mut Gathered,
) -> Result<[Vec<Json>; 3], LiveError> {
    let query = |plural, kind| {
        Query::all(Resource::new(CORE, "v1beta1", plural, kind, true)).within(Some(&options.namespace))
    };
    let queries = [
        query("kubefedconfigs", "KubeFedConfig"),
        query("federatedtypeconfigs", "FederatedTypeConfig"),
        query("kubefedclusters", "KubeFedCluster"),
    ];
    let mut answers = host.list(&queries).into_iter();
    let mut next = || match answers.next() {
        Some(Ok(objects)) => Ok(objects),
        Some(Err(error)) if error.is_final() || matches!(error, LiveError::Malformed { .. }) => Err(error),
        Some(Err(error)) => {
            gathered.missing.push(error);
            Ok(Vec::new())
        }
        None => Ok(Vec::new()),
    };
    let found = [next()?, next()?, next()?];
    if found.iter().all(Vec::is_empty) && gathered.missing.is_empty() {
        let (system, namespace) = ("KubeFed".to_owned(), options.namespace.clone());
        return Err(LiveError::NoPlane { system, namespace, others: planes(host) });
    }
    Ok(found)
}

/// Returns the namespaces with settings or clusters of KubeFed, as far as they can be read.
fn planes(host: &dyn Host) -> Vec<String> {
    let query = |plural, kind| Query::all(Resource::new(CORE, "v1beta1", plural, kind, true));
    let queries = [query("kubefedconfigs", "KubeFedConfig"), query("kubefedclusters", "KubeFedCluster")];
    let found = host.list(&queries).into_iter().flatten().flatten();
    let names: BTreeSet<String> =
        found.map(|object| text(&object, "/metadata/namespace").to_owned()).collect();
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

/// A federated type that a type config names.
#[derive(Debug)]
struct Federated {
    resource: Resource,
    /// True if objects of the type contain data of Secrets.
    secret: bool,
}

fn federated_types(
    configs: &[Json],
    options: &Options,
    namespaced_plane: bool,
    gathered: &mut Gathered,
) -> Vec<Federated> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for config in configs {
        let text = |pointer: &str| text(config, pointer);
        let (kind, version) = (text("/spec/federatedType/kind"), text("/spec/federatedType/version"));
        if kind.is_empty() || version.is_empty() {
            continue;
        }
        let namespaced = text("/spec/federatedType/scope") != "Cluster";
        if namespaced_plane && !namespaced {
            // A namespace-scoped control plane never places these.
            continue;
        }
        let group =
            Some(text("/spec/federatedType/group")).filter(|group| !group.is_empty()).unwrap_or(TYPES);
        let plural = Some(text("/spec/federatedType/pluralName")).filter(|plural| !plural.is_empty());
        let plural = plural.map_or_else(|| plural_of(kind), str::to_owned);
        let resource = Resource::new(group, version, &plural, kind, namespaced);
        if let Some(why) = resource.fault() {
            gathered.diagnostics.push(Diagnostic {
                at: None,
                severity: Severity::Error,
                message: format!(
                    "no {kind} was imported: the federatedType of the type config `{}` is invalid: {why}",
                    text("/metadata/name")
                ),
                hint: Some("correct or delete the type config on the host, and import again".to_owned()),
            });
            continue;
        }
        // Both the target in the config and the resource's name are checked, because either may be wrong.
        let secret = text("/spec/targetType/kind") == "Secret" && text("/spec/targetType/group").is_empty()
            || text("/spec/targetType/pluralName") == "secrets"
            || kind == FEDERATED_SECRET
            || plural == "federatedsecrets";
        if secret && !options.secrets {
            let message = format!("no {kind} was imported (--no-secrets)");
            let hint = "the copies in members stay unchanged, and berth does not manage them";
            gathered.warn(message, Some(hint));
            continue;
        }
        if seen.insert((resource.group.clone(), resource.kind.clone())) {
            found.push(Federated { resource, secret });
        }
    }
    found
}

/// Returns the plural that KubeFed derives from a kind.
fn plural_of(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "ch", "sh", "z", "o"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

fn text<'a>(object: &'a Json, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

fn take_federated(gathered: &mut Gathered, federated: &Federated, object: Json, options: &Options) {
    let Some(key) = key_of(&object) else { return };
    // An object's own kind counts, whatever type it was listed under.
    let secret = federated.secret
        || [FEDERATED_SECRET, "Secret"].contains(&&*key.kind)
        || text(&object, "/spec/template/kind") == "Secret";
    if secret && !options.secrets {
        let message = format!("{key} holds the data of a Secret, so it was not imported, as requested");
        return gathered
            .warn(message, Some("the copies in members stay unchanged, and berth does not manage them"));
    }
    let placed = placed(&object);
    if take(gathered, object, conversion::federated) {
        gathered.placed.insert(key, placed);
        gathered.secrets += usize::from(secret);
    }
}

fn take_cluster(gathered: &mut Gathered, cluster: Json) {
    let name = text(&cluster, "/metadata/name").to_owned();
    if !objects::is_deleting(&cluster) && !conversion::is_ready(&cluster) {
        let message = format!("cluster `{name}` is not ready on the host, and its file carries that status");
        let hint = "remove `status` from the file, or wait for the member's first status, which replaces it";
        gathered.warn(message, Some(hint));
    }
    take(gathered, cluster, conversion::cluster);
}

/// Takes the plain Namespaces that contain imported objects. berth makes members' namespaces from
/// FederatedNamespaces, so without these only the host's own labels would be lost.
fn take_namespaces(host: &dyn Host, options: &Options, gathered: &mut Gathered) -> Result<(), LiveError> {
    let needed: BTreeSet<String> = gathered
        .objects
        .keys()
        .map(|key| key.namespace.to_string())
        .filter(|namespace| !namespace.is_empty() && *namespace != options.namespace)
        .collect();
    if needed.is_empty() {
        return Ok(());
    }
    let query = Query::all(Resource::new("", "v1", "namespaces", "Namespace", false));
    match host.list(&[query]).pop() {
        Some(Ok(objects)) => {
            let is_needed = |object: &Json| needed.contains(text(object, "/metadata/name"));
            for object in objects.into_iter().filter(is_needed) {
                take(gathered, object, conversion::namespace);
            }
        }
        Some(Err(error)) if error.is_final() => return Err(error),
        Some(Err(error)) => {
            let message = format!("no plain Namespace was imported ({}): {error}", some_of(needed));
            gathered.warn(message, Some("FederatedNamespaces work without them"));
        }
        None => {}
    }
    Ok(())
}

/// States in which the member has no object of KubeFed's.
const ABSENT: [&str; 4] = ["AlreadyExists", "CreationFailed", "CreationTimedOut", "ManagedLabelFalse"];

/// States of an object that is being removed and still has its former form.
const LEAVING: [&str; 5] =
    ["DeletionFailed", "DeletionTimedOut", "LabelRemovalFailed", "LabelRemovalTimedOut", "WaitingForRemoval"];

fn placed(object: &Json) -> Placed {
    let clusters = list(object, "/status/clusters").iter().filter_map(|entry| {
        let word = entry.get("status").and_then(Json::as_str).unwrap_or_default();
        Some((entry.get("name")?.as_str()?.to_owned(), standing(word)))
    });
    Placed { clusters: clusters.collect(), replicas: replicas(object), ..Placed::default() }
}

fn standing(word: &str) -> Standing {
    let there = !ABSENT.contains(&word);
    let doubtful = there && !word.is_empty() && !LEAVING.contains(&word);
    Standing { there, doubtful, word: word.to_owned() }
}

fn replicas(object: &Json) -> BTreeMap<String, i64> {
    let of_entry = |entry: &Json| {
        let cluster = entry.get("clusterName")?.as_str()?;
        let operations = entry.get("clusterOverrides")?.as_array()?;
        let ours =
            operations.iter().rev().find(|one| one.get("path").and_then(Json::as_str) == Some(REPLICAS))?;
        Some((cluster.to_owned(), ours.get("value")?.as_i64()?))
    };
    list(object, "/spec/overrides").iter().filter_map(of_entry).collect()
}

fn list<'a>(object: &'a Json, pointer: &str) -> &'a [Json] {
    object.pointer(pointer).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}
