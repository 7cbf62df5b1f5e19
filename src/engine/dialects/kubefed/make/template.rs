//! An object → the template of its Federated object, without its name, its status and the fields that a
//! server sets.
//!
//! Unlike KubeFed's own command, this keeps annotations, because berth carries a template's annotations. It
//! only removes annotations that tools keep for themselves.
//!
//! Objects that are not federated, with the reason: records of controllers, objects that every member creates
//! itself, and objects that are already federated.

use serde_json::{Map, Value as Json};

use super::FederateOptions;
use super::types::{ApiResource, FederatedKind};
use crate::dialects::kubefed::kinds::{CORE, SCHEDULING, TYPES};

/// Annotations about this very object in the cluster of its origin.
const OF_TOOLS: [&str; 5] = [
    "control-plane.alpha.kubernetes.io/",
    "deployment.kubernetes.io/",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubefed.io/",
    "pv.kubernetes.io/",
];

/// Makes the template of an object.
pub(super) fn template(object: &Json, federated: &FederatedKind) -> Json {
    let mut template = object.as_object().cloned().unwrap_or_default();
    let target = &federated.target;
    template.remove("kind");
    template.remove("status");
    // The type's own version is the default; another one determines the meaning of the fields.
    let own_version =
        template.get("apiVersion").and_then(Json::as_str).map(|own| own.rsplit('/').next().unwrap_or(own));
    if own_version.is_none_or(|own| own == target.version) {
        template.remove("apiVersion");
    }
    let metadata = template.remove("metadata").as_ref().map(kept_metadata).unwrap_or_default();
    if !metadata.is_empty() {
        template.insert("metadata".to_owned(), metadata.into());
    }
    match (&*target.group, &*target.kind) {
        ("", "Namespace") => {
            if let Some(spec) = template.get_mut("spec").and_then(Json::as_object_mut) {
                spec.remove("finalizers");
            }
            if template.get("spec").and_then(Json::as_object).is_some_and(Map::is_empty) {
                template.remove("spec");
            }
        }
        ("", "ServiceAccount") => drop(template.remove("secrets")),
        ("", "Service") => service(&mut template),
        ("batch", "Job") => job(&mut template),
        _ => {}
    }
    let pods = template.get_mut("spec").and_then(|spec| spec.get_mut("template")?.get_mut("metadata"));
    if let Some(pods) = pods.and_then(Json::as_object_mut) {
        pods.remove("creationTimestamp");
    }
    template.into()
}

fn kept_metadata(metadata: &Json) -> Map<String, Json> {
    let mut kept = Map::new();
    let own = |key: &str| !OF_TOOLS.iter().any(|tool| key.starts_with(tool));
    for field in ["labels", "annotations"] {
        let Some(entries) = metadata.get(field).and_then(Json::as_object) else { continue };
        let entries: Map<String, Json> = entries
            .iter()
            .filter(|(key, _)| own(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !entries.is_empty() {
            kept.insert(field.to_owned(), entries.into());
        }
    }
    kept
}

/// Removes addresses and ports that a cluster assigned. A headless Service keeps its setting.
fn service(template: &mut Map<String, Json>) {
    let Some(spec) = template.get_mut("spec").and_then(Json::as_object_mut) else { return };
    if spec.get("clusterIP").is_none_or(|address| address != "None") {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    spec.remove("healthCheckNodePort");
    for port in spec.get_mut("ports").and_then(Json::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.remove("nodePort");
        }
    }
}

/// Removes a Job's selector and the labels that it adds to its pods: they contain the uid of this Job.
fn job(template: &mut Map<String, Json>) {
    const ADDED: [&str; 4] =
        ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"];
    let Some(spec) = template.get_mut("spec").and_then(Json::as_object_mut) else { return };
    if spec.get("manualSelector") == Some(&Json::Bool(true)) {
        return;
    }
    spec.remove("selector");
    let labels = spec.get_mut("template").and_then(|pods| pods.get_mut("metadata")?.get_mut("labels"));
    if let Some(labels) = labels.and_then(Json::as_object_mut) {
        labels.retain(|key, _| !ADDED.contains(&key.as_str()));
    }
}

/// Types whose objects controllers create; KubeFed's own command skips them, too.
const OF_CONTROLLERS: [(&str, &str); 5] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
];

/// Returns the reason for leaving an object out, or `None`.
pub(super) fn skip_reason(
    object: &Json,
    resource: &ApiResource,
    options: &FederateOptions,
) -> Option<String> {
    let (group, kind) = (resource.group.as_str(), resource.kind.as_str());
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if options.types.of_federated(group, kind).is_some() || [CORE, SCHEDULING, TYPES].contains(&group) {
        return Some("it belongs to KubeFed".to_owned());
    }
    if group == "berth.dev" {
        return Some("it belongs to berth".to_owned());
    }
    if OF_CONTROLLERS.contains(&(group, kind)) {
        return Some("controllers of each cluster make their own".to_owned());
    }
    if let Some(asked) =
        options.skip_api_resources.iter().find(|name| resource.is_called(name) || *name == group)
    {
        return Some(format!("--skip-api-resources names `{asked}`"));
    }
    if let Some(owner) = controller(object) {
        return Some(format!("{owner} makes it"));
    }
    match (group, kind) {
        ("", "ConfigMap") if name == "kube-root-ca.crt" => Some("each cluster has its own".to_owned()),
        ("", "Secret") if object["type"] == "kubernetes.io/service-account-token" => {
            Some("a token is valid only in its own cluster".to_owned())
        }
        ("", "ServiceAccount") if name == "default" && is_bare(object) => {
            Some("each namespace has its own".to_owned())
        }
        _ => None,
    }
}

/// Returns the owner whose controller created this object.
fn controller(object: &Json) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    Some(format!("{} {}", text("kind"), text("name")))
}

/// Reports whether a service account has no content beyond its existence.
fn is_bare(account: &Json) -> bool {
    account.as_object().is_some_and(|fields| {
        fields.keys().all(|key| ["apiVersion", "kind", "metadata", "secrets"].contains(&key.as_str()))
    })
}
