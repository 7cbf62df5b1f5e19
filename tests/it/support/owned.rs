//! Of a live object, that which one manager owns, as its `managedFields` say: to be held against what was
//! wanted.

use serde_json::{Map, Value as Json};

/// What a manager applied, as it stands in the object now.
pub fn applied_part(object: &Json, manager: &str) -> Option<Json> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let own = entries.iter().find(|entry| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    })?;
    Some(part(object, &own["fieldsV1"]))
}

fn part(value: &Json, fields: &Json) -> Json {
    let keys: Vec<&String> =
        fields.as_object().map(|map| map.keys().filter(|key| *key != ".").collect()).unwrap_or_default();
    if keys.is_empty() {
        return value.clone();
    }
    match value {
        Json::Array(items) => items
            .iter()
            .filter_map(|item| {
                let key = keys.iter().find(|key| names(key, item))?;
                Some(part(item, &fields[key.as_str()]))
            })
            .collect(),
        Json::Object(map) => keys
            .iter()
            .filter_map(|key| {
                let name = key.strip_prefix("f:")?;
                Some((name.to_owned(), part(map.get(name)?, &fields[key.as_str()])))
            })
            .collect::<Map<String, Json>>()
            .into(),
        other => other.clone(),
    }
}

/// Whether a key of a list means this item.
fn names(key: &str, item: &Json) -> bool {
    let read = |text: &str| serde_json::from_str::<Json>(text).unwrap_or(Json::Null);
    if let Some(value) = key.strip_prefix("v:") {
        return read(value) == *item;
    }
    let Some(key) = key.strip_prefix("k:") else { return false };
    read(key).as_object().is_some_and(|key| key.iter().all(|(name, value)| item[name] == *value))
}

/// Without what says nothing: nulls and empty mappings and lists.
pub fn pruned(value: &Json) -> Json {
    let says = |value: &Json| match value {
        Json::Null => false,
        Json::Object(map) => !map.is_empty(),
        Json::Array(items) => !items.is_empty(),
        _ => true,
    };
    match value {
        Json::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), pruned(value)))
            .filter(|(_, value)| says(value))
            .collect::<Map<String, Json>>()
            .into(),
        Json::Array(items) => items.iter().map(pruned).collect(),
        other => other.clone(),
    }
}
