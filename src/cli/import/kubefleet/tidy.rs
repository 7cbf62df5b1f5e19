//! Converts each kind of object for its file, with the same meaning for berth as for the hub.

use serde_json::{Map, Value as Json};

use crate::import::{clean, kubefed};

/// Keeps the parts of a cluster that policies read. The agent's own status would be outdated in a file.
pub(super) fn cluster(object: &mut Json) {
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
    clean::object(object);
    if let (Some(fields), false) = (object.as_object_mut(), status.is_empty()) {
        fields.insert("status".to_owned(), status.into());
    }
}

/// Reports whether the hub would place new work there: the agent has joined and is not unhealthy.
pub(super) fn is_fit(cluster: &Json) -> bool {
    let agents = cluster.pointer("/status/agentStatus").and_then(Json::as_array);
    let agent = agents.into_iter().flatten().find(|agent| agent["type"] == "MemberAgent");
    let conditions = agent.and_then(|agent| agent["conditions"].as_array());
    let is = |kind: &str| {
        conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == "True")
    };
    is("Joined") && is("Healthy")
}

/// Cleans an object that placements select from the hub's additions.
pub(super) fn selected(object: &mut Json) {
    let is = |kind: &str| object["kind"] == kind && object["apiVersion"] == "v1";
    if is("Namespace") {
        return kubefed::plain_namespace(object);
    }
    let is_service = is("Service");
    clean::object(object);
    let spec = object.get_mut("spec").and_then(Json::as_object_mut).filter(|_| is_service);
    if let Some(spec) = spec.filter(|spec| spec.get("clusterIP").and_then(Json::as_str) != Some("None")) {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
}
