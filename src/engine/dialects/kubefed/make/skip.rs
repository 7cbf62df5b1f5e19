//! Objects that are not federated, with the reason: records of controllers, objects that every member creates
//! itself, and objects that are already federated.

use serde_json::Value as Json;

use super::Options;
use super::resources::ApiResource;
use crate::dialects::kubefed::kinds::{CORE, SCHEDULING, TYPES};

/// Types whose objects controllers create; KubeFed's own command skips them, too.
const OF_CONTROLLERS: [(&str, &str); 5] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
];

/// Returns the reason for leaving an object out, or `None`.
pub(super) fn reason(object: &Json, resource: &ApiResource, options: &Options) -> Option<String> {
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
