//! Fields of an object that berth leaves to others: named by JSON pointer, or set by certain managers.
//!
//! Pure. Berth sets such a field when it creates the object; from then on the field belongs to the cluster. Berth
//! hands the field over before it omits it, since a server removes fields without an owner.

use serde_json::Value as Json;

use super::field_paths;
use super::managed_fields::is_key_of;
use crate::sync::desired::Desired;
use berth_base::model::annotation::{IGNORE, IGNORE_MANAGERS};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnmanagedFields {
    pointers: Vec<Vec<String>>,
    managers: Vec<String>,
}

impl UnmanagedFields {
    /// Reads an object's annotations.
    pub fn of(desired: &Desired) -> UnmanagedFields {
        let names = desired.annotation(IGNORE_MANAGERS).unwrap_or_default().split(',').map(str::trim);
        UnmanagedFields {
            pointers: desired.annotation(IGNORE).map(field_paths::pointers).unwrap_or_default(),
            managers: names.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.pointers.is_empty() && self.managers.is_empty()
    }

    /// Returns the pointers under which a live object has fields for berth to release.
    pub fn leaving(&self, live: &Json) -> Vec<Vec<String>> {
        self.pointers.iter().filter(|path| has(live, path)).cloned().collect()
    }

    /// Removes the fields left to others from a wanted object.
    pub fn take_out(&self, wanted: &mut Json, live: &Json) {
        self.pointers.iter().for_each(|path| leave(wanted, live, path, false));
        self.take_out_managed(wanted, live);
    }

    /// Copies the live values into a wanted object for a dry run, before the fields are handed over.
    pub fn copy(&self, wanted: &mut Json, live: &Json) {
        self.pointers.iter().for_each(|path| leave(wanted, live, path, true));
        self.take_out_managed(wanted, live);
    }

    fn take_out_managed(&self, wanted: &mut Json, live: &Json) {
        let entries = live.pointer("/metadata/managedFields").and_then(Json::as_array);
        for entry in entries.into_iter().flatten() {
            let text = |key: &str| entry.get(key).and_then(Json::as_str).unwrap_or_default();
            if text("subresource") != "status" && self.managers.iter().any(|name| name == text("manager")) {
                take_owned(wanted, entry.get("fieldsV1").unwrap_or(&Json::Null), &[]);
            }
        }
    }
}

fn has(value: &Json, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return !value.is_null() };
    match value {
        Json::Array(items) if first == "*" => items.iter().any(|item| has(item, rest)),
        Json::Object(map) => map.get(first).is_some_and(|value| has(value, rest)),
        _ => false,
    }
}

/// Removes a field, or copies the live value over it. A field without a live value stays.
fn leave(wanted: &mut Json, live: &Json, path: &[String], copy: bool) {
    let Some((first, rest)) = path.split_first() else { return };
    match (wanted, live) {
        (Json::Array(items), Json::Array(theirs)) if first == "*" => {
            for item in items {
                if let Some(theirs) = theirs.iter().find(|theirs| field_paths::is_same_item(item, theirs)) {
                    leave(item, theirs, rest, copy);
                }
            }
        }
        (Json::Object(map), Json::Object(theirs)) => {
            let Some(value) = theirs.get(first).filter(|value| !value.is_null()) else { return };
            match map.get_mut(first) {
                Some(wanted) if !rest.is_empty() => leave(wanted, value, rest, copy),
                Some(wanted) if copy => value.clone_into(wanted),
                Some(_) => drop(map.remove(first)),
                None => {}
            }
        }
        _ => {}
    }
}

/// Removes the fields that a manager owns, except those that identify list items.
fn take_owned(wanted: &mut Json, owned: &Json, keys: &[String]) {
    for (key, own) in owned.as_object().into_iter().flatten() {
        let is_leaf = own.as_object().is_none_or(serde_json::Map::is_empty);
        match wanted {
            Json::Object(map) => {
                let Some(name) = key.strip_prefix("f:").filter(|name| !keys.iter().any(|key| key == name))
                else {
                    continue;
                };
                let Some(value) = map.get_mut(name) else { continue };
                take_owned(value, own, &[]);
                let is_emptied = value.as_object().is_some_and(serde_json::Map::is_empty);
                if is_leaf || is_emptied {
                    map.remove(name);
                }
            }
            Json::Array(items) if key.starts_with("v:") => items.retain(|item| !is_key_of(key, item)),
            Json::Array(items) => {
                let names = key.strip_prefix("k:").and_then(|text| serde_json::from_str::<Json>(text).ok());
                let names: Vec<String> =
                    names.iter().filter_map(Json::as_object).flat_map(|map| map.keys().cloned()).collect();
                if let Some(item) = items.iter_mut().find(|item| is_key_of(key, item)) {
                    take_owned(item, own, &names);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn left(pointers: &str, managers: &[&str]) -> UnmanagedFields {
        let managers = managers.iter().map(|it| (*it).to_owned()).collect();
        UnmanagedFields { pointers: field_paths::pointers(pointers), managers }
    }

    #[test]
    fn what_a_pointer_names_is_left_where_something_is_there() {
        let wanted = json!({"spec": {"replicas": 2, "template": {"containers": [
            {"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}}});
        let live =
            json!({"spec": {"replicas": 0, "template": {"containers": [{"name": "a", "image": "z"}]}}});
        let left = left("/spec/replicas,/spec/template/containers/*/image,/spec/more", &[]);
        let (mut out, mut copied) = (wanted.clone(), wanted.clone());
        left.take_out(&mut out, &live);
        left.copy(&mut copied, &live);
        assert_eq!(
            out,
            json!({"spec": {"template": {"containers": [{"name": "a"}, {"name": "b", "image": "y"}]}}})
        );
        assert_eq!(copied["spec"]["replicas"], 0);
        assert_eq!(copied["spec"]["template"]["containers"][0]["image"], "z");
        assert_eq!(left.leaving(&live).len(), 2);
    }

    #[test]
    fn what_a_manager_has_set_is_left_but_for_names_of_items() {
        let hook = "k:{\"name\":\"a.example.com\"}";
        let live = json!({"metadata": {"managedFields": [
            {"manager": "cainjector", "operation": "Update", "fieldsV1": {"f:webhooks": {hook: {
                ".": {}, "f:name": {}, "f:clientConfig": {"f:caBundle": {}}}}}},
            {"manager": "other", "operation": "Update", "fieldsV1": {"f:data": {"f:a": {}}}},
        ]}});
        let mut wanted = json!({"data": {"a": "1"}, "webhooks": [
            {"name": "a.example.com", "clientConfig": {"caBundle": "x", "url": "y"}}]});
        left("", &["cainjector"]).take_out(&mut wanted, &live);
        assert_eq!(
            wanted,
            json!({"data": {"a": "1"}, "webhooks": [{"name": "a.example.com", "clientConfig": {"url": "y"}}]})
        );
    }
}
