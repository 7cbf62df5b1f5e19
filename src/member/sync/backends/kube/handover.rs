//! The hand-over before a write: whose fields become berth's, and which fields are removed as a result.
//!
//! Pure. A dry run and the write use the same hand-over, so a dry run shows everything that the write removes.

use serde_json::{Value as Json, json};

use super::failure::quoted;
use super::identity::{Identity, LAST_APPLIED};
use super::managed_fields::{self, Rearrange};
use crate::sync::strategy::is_of_a_hub;
use berth_base::meta::SERVER_FIELDS;
use berth_base::text::some_quoted;

/// The new owners of one object's fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandOver {
    /// `metadata.managedFields` as berth writes it before an apply.
    entries: Vec<Json>,
    manager: String,
    /// The object becomes berth's.
    is_take_over: bool,
    /// Earlier appliers whose fields become berth's.
    pub from: Vec<String>,
}

impl HandOver {
    /// Returns the hand-over that a live object needs, if any. Berth releases the fields in `leaving`.
    pub fn of(
        live: &Json,
        identity: &Identity,
        owned: bool,
        legacy: &[&str],
        leaving: &[Vec<String>],
    ) -> Option<HandOver> {
        let how = Rearrange { manager: &identity.manager, keeper: &identity.keeper, legacy, leaving };
        let entries = managed_fields::rearranged(live, &how)?;
        let from = managed_fields::managers(live)
            .filter(|(manager, operation)| legacy.contains(manager) && *operation == "Update")
            .map(|(manager, _)| manager.to_owned())
            .collect();
        Some(HandOver { entries, manager: identity.manager.clone(), is_take_over: !owned, from })
    }

    /// Returns the operations that carry out the hand-over on this version of the object.
    pub fn operations(&self, live: &Json) -> Json {
        let version = live.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        let mut operations = vec![
            json!({"op": "replace", "path": "/metadata/managedFields", "value": self.entries}),
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}),
        ];
        let had = live.pointer("/metadata/annotations").and_then(|it| it.get(LAST_APPLIED)).is_some();
        if had && self.is_take_over {
            let path = format!("/metadata/annotations/{}", escaped(LAST_APPLIED));
            operations.push(json!({"op": "remove", "path": path}));
        }
        let owners = live.pointer("/metadata/ownerReferences").and_then(Json::as_array);
        if let Some(owners) = owners.filter(|owners| self.is_take_over && owners.iter().any(is_of_a_hub)) {
            // Removing an earlier hub's record would delete the object.
            let rest: Vec<&Json> = owners.iter().filter(|owner| !is_of_a_hub(owner)).collect();
            operations.push(json!({"op": "replace", "path": "/metadata/ownerReferences", "value": rest}));
        }
        json!(operations)
    }

    /// Describes the former owners, and the fields that the hand-over removes.
    pub fn words(&self, live: &Json, wanted: &Json) -> String {
        const MOST: usize = 10;
        let gone = self.remove_gone(&mut live.clone(), wanted);
        let from: Vec<&str> = self.from.iter().map(String::as_str).collect();
        let removed =
            if gone.is_empty() { String::new() } else { format!("; removed {}", some_quoted(&gone, MOST)) };
        format!("took over the fields of {}{removed}", quoted(&from))
    }

    /// Removes the fields that disappear when `wanted` is applied after the hand-over: an earlier applier set them,
    /// and nobody else owns them. Returns their paths.
    pub(crate) fn remove_gone(&self, object: &mut Json, wanted: &Json) -> Vec<String> {
        let nothing = json!({});
        let mut own = nothing.clone();
        let mut others = Vec::new();
        for entry in &self.entries {
            let fields = entry.get("fieldsV1").unwrap_or(&nothing);
            let text = |key: &str| entry.get(key).and_then(Json::as_str).unwrap_or_default();
            if text("manager") == self.manager && text("operation") == "Apply" && own == nothing {
                own.clone_from(fields);
            } else {
                others.push(fields);
            }
        }
        if let Some(own) = own.as_object_mut() {
            own.remove("f:status");
        }
        let mut gone = remove_unowned(object, Some(wanted), &own, &others, "");
        let last_applied = format!("/metadata/annotations/{}", escaped(LAST_APPLIED));
        gone.retain(|path| *path != last_applied);
        gone
    }
}

/// Removes the fields in `own` that are neither in `wanted` nor in `others`, as a server does at an apply. Returns
/// their paths.
fn remove_unowned(
    object: &mut Json,
    wanted: Option<&Json>,
    own: &Json,
    others: &[&Json],
    at: &str,
) -> Vec<String> {
    let mut gone = Vec::new();
    for (key, below) in own.as_object().into_iter().flatten().filter(|(key, _)| *key != ".") {
        let others: Vec<&Json> = others.iter().filter_map(|other| other.get(key)).collect();
        match object {
            Json::Object(map) => {
                let Some(name) = key.strip_prefix("f:") else { continue };
                let Some(value) = map.get_mut(name) else { continue };
                let wanted = wanted.and_then(|wanted| wanted.get(name)).filter(|value| !value.is_null());
                let at = format!("{at}/{}", escaped(name));
                if wanted.is_none() && others.is_empty() {
                    map.remove(name);
                    gone.push(at);
                } else {
                    gone.extend(remove_unowned(value, wanted, below, &others, &at));
                }
            }
            Json::Array(items) => {
                let is_meant = |item: &Json| managed_fields::is_key_of(key, item);
                let Some(index) = items.iter().position(is_meant) else { continue };
                let wanted = wanted.and_then(Json::as_array);
                let wanted = wanted.and_then(|all| all.iter().find(|item| is_meant(item)));
                let at = format!("{at}/{}", item_name(key));
                if wanted.is_none() && others.is_empty() {
                    items.remove(index);
                    gone.push(at);
                } else {
                    gone.extend(remove_unowned(&mut items[index], wanted, below, &others, &at));
                }
            }
            _ => {}
        }
    }
    gone
}

/// Returns the operations that give a live object the content of another form, including labels and annotations.
pub(crate) fn content_operations(live: &Json, after: &Json) -> Json {
    let mut operations = Vec::new();
    let mut compare = |live: &Json, after: &Json, at: &str, skipped: &[&str]| {
        let empty = serde_json::Map::new();
        let (live, after) = (live.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
        let is_meant = |key: &&String| !skipped.contains(&key.as_str());
        for (key, value) in
            after.iter().filter(|(key, value)| is_meant(key) && live.get(*key) != Some(*value))
        {
            operations.push(json!({"op": "add", "path": format!("{at}/{}", escaped(key)), "value": value}));
        }
        for key in live.keys().filter(|key| is_meant(key) && !after.contains_key(*key)) {
            operations.push(json!({"op": "remove", "path": format!("{at}/{}", escaped(key))}));
        }
    };
    compare(live, after, "", &["apiVersion", "kind", "metadata", "status"]);
    compare(&live["metadata"], &after["metadata"], "/metadata", &SERVER_FIELDS);
    json!(operations)
}

/// Returns the name in a list item's key: `web` for `k:{"name":"web"}`.
fn item_name(key: &str) -> String {
    let shown = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (_, text) = key.split_once(':').unwrap_or_default();
    match serde_json::from_str::<Json>(text) {
        Ok(Json::Object(keys)) => escaped(&keys.values().map(shown).collect::<Vec<_>>().join(",")),
        Ok(value) => escaped(&shown(&value)),
        Err(_) => escaped(key),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity::new("f", "berth-system")
    }

    fn live() -> Json {
        json!({
            "metadata": {"resourceVersion": "7", "labels": {"a": "1", "b": "2"}, "managedFields": [
                {"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": {
                    "f:metadata": {"f:labels": {".": {}, "f:a": {}, "f:b": {}}},
                    "f:spec": {"f:paused": {}, "f:shared": {}, "f:limits": {"f:cpu": {}}, "f:containers": {
                        "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:env": {".": {},
                            "k:{\"name\":\"OLD\"}": {".": {}, "f:name": {}, "f:value": {}}}},
                        "k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}}}},
                    "f:status": {"f:done": {}}}},
                {"manager": "hpa", "operation": "Update", "fieldsV1": {"f:spec": {"f:shared": {}}}}]},
            "spec": {"paused": true, "shared": 1, "limits": {"cpu": "1", "defaulted": 1}, "containers": [
                {"name": "web", "env": [{"name": "OLD", "value": "x"}, {"name": "INJECTED", "value": "y"}]},
                {"name": "sidecar"}]},
            "status": {"done": 1},
        })
    }

    #[test]
    fn what_an_earlier_applier_alone_has_set_goes_unless_it_is_wanted() {
        let mut object = live();
        let handover =
            HandOver::of(&object, &identity(), false, &["kubectl-client-side-apply"], &[]).unwrap();
        let wanted = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "web"}]}});
        let mut gone = handover.remove_gone(&mut object, &wanted);
        gone.sort();
        assert_eq!(
            gone,
            [
                "/metadata/labels/b",
                "/spec/containers/sidecar",
                "/spec/containers/web/env",
                "/spec/limits",
                "/spec/paused"
            ]
        );
        assert_eq!(object["spec"], json!({"shared": 1, "containers": [{"name": "web"}]}));
        assert_eq!(object["status"]["done"], 1);
        assert_eq!(handover.from, ["kubectl-client-side-apply"]);
    }

    #[test]
    fn what_berth_leaves_to_the_cluster_stays() {
        let mut object = live();
        let leaving = [vec!["spec".to_owned(), "paused".to_owned()]];
        let handover =
            HandOver::of(&object, &identity(), false, &["kubectl-client-side-apply"], &leaving).unwrap();
        let gone = handover.remove_gone(&mut object, &json!({"spec": {}}));
        assert!(!gone.contains(&"/spec/paused".to_owned()), "{gone:?}");
        assert_eq!(object["spec"]["paused"], true);
    }

    #[test]
    fn a_form_is_reached_by_operations_on_its_top_fields() {
        let operations = content_operations(
            &json!({"kind": "A", "metadata": {"uid": "1", "labels": {"a": "1"}}, "spec": 1, "data": 2}),
            &json!({"kind": "A", "metadata": {"uid": "2"}, "spec": 3, "data": 2}),
        );
        assert_eq!(
            operations,
            json!([{"op": "add", "path": "/spec", "value": 3}, {"op": "remove", "path": "/metadata/labels"}])
        );
    }
}
