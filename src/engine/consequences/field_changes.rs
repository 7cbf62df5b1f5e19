//! Fields that differ between two forms of an object, each with its path and both values.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value as Json};

/// Replaces a Secret's values.
pub const HIDDEN: &str = "(not shown)";

/// Fields that name an item of a list.
const NAMES: [&str; 4] = ["name", "key", "mountPath", "ip"];

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FieldChange {
    /// For example `spec.template.spec.containers[web].image`.
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Compares two forms of an object. The values of a Secret are hidden, but not the names of its fields.
pub fn field_changes(before: &Json, after: &Json, is_secret: bool) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    if is_secret {
        for change in &mut found {
            for value in [&mut change.before, &mut change.after].into_iter().flatten() {
                HIDDEN.clone_into(value);
            }
        }
    }
    found
}

fn compare(path: &str, before: Option<&Json>, after: Option<&Json>, found: &mut Vec<FieldChange>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Json::Object(old)), Some(Json::Object(new))) => compare_maps(path, old, new, found),
        (Some(Json::Object(old)), None) => compare_maps(path, old, &Map::new(), found),
        (None, Some(Json::Object(new))) => compare_maps(path, &Map::new(), new, found),
        (Some(Json::Array(old)), Some(Json::Array(new))) => compare_lists(path, old, new, found),
        _ => found.push(FieldChange {
            path: path.to_owned(),
            before: before.map(shown),
            after: after.map(shown),
        }),
    }
}

fn compare_maps(path: &str, old: &Map<String, Json>, new: &Map<String, Json>, found: &mut Vec<FieldChange>) {
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    for key in gone.chain(new.keys()) {
        compare(&field(path, key), old.get(key), new.get(key), found);
    }
}

fn compare_lists(path: &str, old: &[Json], new: &[Json], found: &mut Vec<FieldChange>) {
    for name in NAMES {
        let (Some(before), Some(after)) = (by_name(old, name), by_name(new, name)) else { continue };
        let gone = before.keys().filter(|item| !after.contains_key(*item));
        for item in gone.chain(after.keys()) {
            let path = format!("{path}[{item}]");
            compare(&path, before.get(item).copied(), after.get(item).copied(), found);
        }
        return;
    }
    // Items without names are compared by their index, between the equal items at both ends.
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    for index in 0..old.len().max(new.len()) {
        compare(&format!("{path}[{}]", start + index), old.get(index), new.get(index), found);
    }
}

/// Returns the items of a list by a field that names each of them.
fn by_name<'j>(list: &'j [Json], field: &str) -> Option<BTreeMap<&'j str, &'j Json>> {
    let mut items = BTreeMap::new();
    for item in list {
        let name = item.get(field)?.as_str()?;
        if items.insert(name, item).is_some() {
            return None;
        }
    }
    Some(items)
}

fn field(path: &str, key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match (key.bytes().all(is_plain) && !key.is_empty(), path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{}]", Json::from(key)),
    }
}

/// Returns a text unchanged, and any other value as JSON.
fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(before: &Json, after: &Json, is_secret: bool) -> Vec<String> {
        let one = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let changes = field_changes(before, after, is_secret).into_iter();
        changes.map(|it| format!("{}: {} → {}", it.path, one(it.before), one(it.after))).collect()
    }

    #[test]
    fn fields_are_named_by_path_and_items_by_name() {
        let object = |image: &str, ports: Json| {
            json!({"metadata": {"labels": {"a.b/c": image}}, "spec": {"containers":
                [{"name": "side", "image": "x"}, {"name": "web", "image": image, "ports": ports}]}})
        };
        let found = lines(&object("a:1", json!([80])), &object("a:2", json!([80, 81])), false);
        let wanted = [
            r#"metadata.labels["a.b/c"]: a:1 → a:2"#,
            "spec.containers[web].image: a:1 → a:2",
            "spec.containers[web].ports[1]: - → 81",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn an_inserted_item_is_one_change() {
        let found = lines(&json!({"args": ["a", "c"]}), &json!({"args": ["a", "b", "c"]}), false);
        assert_eq!(found, ["args[1]: - → b"]);
    }

    #[test]
    fn the_values_of_a_secret_are_hidden() {
        let found =
            lines(&json!({"data": {"a": "eA==", "b": "eQ=="}}), &json!({"data": {"a": "eg=="}}), true);
        assert_eq!(found, ["data.b: (not shown) → -", "data.a: (not shown) → (not shown)"]);
    }
}
