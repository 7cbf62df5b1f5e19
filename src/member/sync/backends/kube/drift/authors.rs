//! Finds the fields that others changed in a live object, by manager and time.
//!
//! Pure. Names fields and never quotes values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::super::managed_fields::{self, is_key_of, is_nothing};
use berth_base::text::some_quoted;

/// The number of fields that a message names.
const NAMED: usize = 8;

/// The fields that one manager changed. Without a name, only the removal of the fields is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub manager: Option<String>,
    /// The time of this manager's last change to the object.
    pub time: String,
    pub fields: BTreeSet<String>,
}

/// Returns the wanted fields that `manager` lost, grouped by their present managers.
pub fn changes(live: &Json, wanted: &Json, manager: &str) -> Vec<Change> {
    let own = managed_fields::applied_by(live, manager).unwrap_or(&Json::Null);
    let mut lost = Vec::new();
    for (key, value) in wanted.as_object().into_iter().flatten() {
        let parts = match key.as_str() {
            "apiVersion" | "kind" | "status" => continue,
            "metadata" => &["labels", "annotations"][..],
            _ => &[][..],
        };
        let owned = own.get(format!("f:{key}")).unwrap_or(&Json::Null);
        if key == "metadata" {
            for part in parts {
                let (owned, value) = (owned.get(format!("f:{part}")), value.get(part));
                let path = vec!["f:metadata".to_owned(), format!("f:{part}")];
                walk(owned.unwrap_or(&Json::Null), value.unwrap_or(&Json::Null), path, &mut lost);
            }
        } else {
            walk(owned, value, vec![format!("f:{key}")], &mut lost);
        }
    }
    let mut found: BTreeMap<Option<String>, Change> = BTreeMap::new();
    for path in lost {
        let (manager, time) = owner(live, &path, manager).unzip();
        let change = found.entry(manager.clone()).or_insert_with(|| Change {
            manager,
            time: String::new(),
            fields: BTreeSet::new(),
        });
        change.time = change.time.clone().max(time.unwrap_or_default());
        change.fields.insert(shown(&path));
    }
    found.into_values().collect()
}

/// Describes changes: `x` changed `.a` and `.b` at some time.
pub fn words(changes: &[Change], with_times: bool) -> String {
    let one = |change: &Change| {
        let fields = some_quoted(&change.fields, NAMED);
        let at = if with_times && !change.time.is_empty() {
            format!(" at {}", change.time)
        } else {
            String::new()
        };
        match &change.manager {
            Some(manager) => format!("`{manager}` changed {fields}{at}"),
            None => format!("somebody removed {fields}"),
        }
    };
    changes.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn walk(owned: &Json, wanted: &Json, path: Vec<String>, lost: &mut Vec<Vec<String>>) {
    if is_nothing(wanted) || owned.as_object().is_some_and(serde_json::Map::is_empty) {
        return;
    }
    let deeper = |key: String| path.iter().cloned().chain([key]).collect::<Vec<String>>();
    match wanted {
        Json::Object(map) => {
            for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                let key = format!("f:{key}");
                let own = owned.get(&key);
                match (own, value) {
                    (None, Json::Object(inner)) if inner.is_empty() => lost.push(deeper(key)),
                    _ => walk(own.unwrap_or(&Json::Null), value, deeper(key), lost),
                }
            }
        }
        Json::Array(items) => {
            for item in items {
                let own = owned.as_object().into_iter().flatten().find(|(key, _)| is_key_of(key, item));
                match own {
                    Some((key, own)) => walk(own, item, deeper(key.clone()), lost),
                    None => lost.push(path.clone()),
                }
            }
        }
        _ if owned.is_object() => {}
        _ => lost.push(path),
    }
}

/// Returns the last manager that set a field, and the time.
fn owner(live: &Json, path: &[String], manager: &str) -> Option<(String, String)> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let text = |entry: &Json, key: &str| entry.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let has = |entry: &&Json| {
        let mut at = entry.get("fieldsV1");
        for key in path {
            at = at.and_then(|it| if it.as_object()?.is_empty() { Some(it) } else { it.get(key) });
        }
        at.is_some() && (text(entry, "manager") != manager || text(entry, "operation") != "Apply")
    };
    let newest = entries.iter().filter(has).max_by_key(|entry| text(entry, "time"))?;
    Some((text(newest, "manager"), text(newest, "time")))
}

/// Writes a path in the usual notation: `.spec.containers[name="web"].image`.
fn shown(path: &[String]) -> String {
    let mut text = String::new();
    for key in path {
        if let Some(name) = key.strip_prefix("f:") {
            text.push('.');
            text.push_str(name);
        } else if let Some(Ok(Json::Object(keys))) = key.strip_prefix("k:").map(serde_json::from_str) {
            let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            text.push_str(&format!("[{}]", pairs.join(",")));
        } else {
            text.push_str(&format!("[{}]", key.trim_start_matches("v:")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_has_a_field_now_is_said_with_its_name_and_time() {
        let container = "k:{\"name\":\"web\"}";
        let live = json!({"metadata": {"managedFields": [
            {"manager": "berth/f", "operation": "Apply", "fieldsV1": {
                "f:data": {"f:a": {}}, "f:spec": {"f:containers": {container: {"f:name": {}}}}}},
            {"manager": "rogue", "operation": "Update", "time": "2026-01-02T03:04:05Z",
             "fieldsV1": {"f:data": {"f:b": {}}, "f:spec": {"f:containers": {container: {"f:image": {}}}}}},
        ]}});
        let wanted = json!({"data": {"a": "1", "b": "2", "c": "3"},
            "spec": {"containers": [{"name": "web", "image": "x"}]}});
        let found = changes(&live, &wanted, "berth/f");
        assert_eq!(
            words(&found, true),
            "somebody removed `.data.c`; `rogue` changed `.data.b`, `.spec.containers[name=\"web\"].image` at 2026-01-02T03:04:05Z"
        );
        assert_eq!(
            words(&found[1..], false),
            "`rogue` changed `.data.b`, `.spec.containers[name=\"web\"].image`"
        );
        assert_eq!(changes(&live, &json!({"data": {"a": "1"}}), "berth/f"), []);
    }
}
