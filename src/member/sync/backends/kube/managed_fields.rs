//! The owners of an object's fields (`metadata.managedFields`), and changes to them.
//!
//! Pure. Once somebody else sets a field, berth no longer owns it. If berth owns all wanted fields, the object is as
//! berth applied it. A server removes fields without an owner, so berth hands the fields that it releases to a
//! keeper.

use serde_json::{Map, Value as Json, json};

/// Returns the fields that a manager applied. `None` if it applied none.
pub(crate) fn applied_by<'a>(object: &'a Json, manager: &str) -> Option<&'a Json> {
    entries(object)?.iter().find(|entry| is_apply(entry, manager))?.get("fieldsV1")
}

/// Returns all field managers except those of the status.
pub fn managers(object: &Json) -> impl Iterator<Item = (&str, &str)> {
    let entries = entries(object).map(Vec::as_slice).unwrap_or_default();
    let own = entries.iter().filter(|entry| text(entry, "subresource").is_empty());
    own.map(|entry| (text(entry, "manager"), text(entry, "operation")))
}

fn entries(object: &Json) -> Option<&Vec<Json>> {
    object.get("metadata")?.get("managedFields")?.as_array()
}

fn text<'a>(entry: &'a Json, key: &str) -> &'a str {
    entry.get(key).and_then(Json::as_str).unwrap_or_default()
}

fn is_apply(entry: &Json, manager: &str) -> bool {
    text(entry, "manager") == manager
        && text(entry, "operation") == "Apply"
        && text(entry, "subresource").is_empty()
}

/// Returns the entries of all other managers. A server ignores an empty list, so an empty result has one empty entry.
pub fn without(object: &Json, names: &[&str]) -> Vec<Json> {
    let all = entries(object).map(Vec::as_slice).unwrap_or_default();
    let rest: Vec<Json> =
        all.iter().filter(|entry| !names.contains(&text(entry, "manager"))).cloned().collect();
    if rest.is_empty() { vec![json!({})] } else { rest }
}

/// Reports whether a manager applied its fields when the object was created, and never since.
pub(crate) fn is_maker(object: &Json, manager: &str) -> bool {
    let own = entries(object).into_iter().flatten().find(|entry| is_apply(entry, manager));
    let made = object.pointer("/metadata/creationTimestamp").and_then(Json::as_str);
    own.is_some_and(|own| made.is_some_and(|made| text(own, "time") == made))
}

/// Reports whether every field of a wanted object is among the owned ones.
pub fn covers(owned: &Json, wanted: &Json) -> bool {
    let Some(fields) = wanted.as_object() else { return false };
    fields.iter().all(|(key, value)| match key.as_str() {
        "apiVersion" | "kind" | "status" => true,
        "metadata" => {
            let own = owned.get("f:metadata").unwrap_or(&Json::Null);
            let parts = value.as_object().into_iter().flatten();
            parts.filter(|(key, _)| matches!(key.as_str(), "labels" | "annotations")).all(|(key, value)| {
                own.get(format!("f:{key}")).is_some_and(|own| covers_value(own, value)) || is_nothing(value)
            })
        }
        key => owned.get(format!("f:{key}")).is_some_and(|own| covers_value(own, value)) || is_nothing(value),
    })
}

pub(crate) fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Object(map) => map.is_empty(),
        Json::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn covers_value(owned: &Json, wanted: &Json) -> bool {
    let Some(owned) = owned.as_object() else { return false };
    // The manager owns the whole value with all its fields.
    if owned.is_empty() {
        return true;
    }
    match wanted {
        Json::Object(map) => map.iter().all(|(key, value)| {
            value.is_null() || owned.get(&format!("f:{key}")).is_some_and(|own| covers_value(own, value))
        }),
        Json::Array(items) => items
            .iter()
            .all(|item| owned.iter().any(|(key, own)| is_key_of(key, item) && covers_value(own, item))),
        _ => true,
    }
}

/// Reports whether a key of `managedFields` names this list item.
pub(crate) fn is_key_of(key: &str, item: &Json) -> bool {
    if let Some(value) = key.strip_prefix("v:") {
        return serde_json::from_str::<Json>(value).is_ok_and(|value| value == *item);
    }
    let Some(key) = key.strip_prefix("k:") else { return false };
    let Ok(Json::Object(key)) = serde_json::from_str::<Json>(key) else { return false };
    // A key field that the item omits has its default value.
    key.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value))
}

/// The managers involved in a change of owners.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rearrange<'a> {
    pub manager: &'a str,
    /// The manager of fields that berth releases.
    pub keeper: &'a str,
    /// Earlier appliers whose fields become berth's.
    pub legacy: &'a [&'a str],
    /// Paths of fields that berth releases; `*` stands for every item of a list.
    pub leaving: &'a [Vec<String>],
}

/// Returns the entries that the object needs before berth applies it. `None` if they need no change.
pub(crate) fn rearranged(object: &Json, how: &Rearrange<'_>) -> Option<Vec<Json>> {
    let entries = entries(object)?;
    let is_legacy = |entry: &Json| {
        how.legacy.contains(&text(entry, "manager"))
            && text(entry, "operation") == "Update"
            && text(entry, "subresource").is_empty()
    };
    let (legacy, mut rest): (Vec<Json>, Vec<Json>) = entries.iter().cloned().partition(is_legacy);
    let at = rest.iter().position(|entry| is_apply(entry, how.manager));
    let mut own = at.map(|at| rest.remove(at)).or_else(|| {
        let first = legacy.first()?;
        let mut entry = first.clone();
        entry["manager"] = json!(how.manager);
        entry["operation"] = json!("Apply");
        entry["fieldsV1"] = json!({});
        Some(entry)
    })?;
    let mut fields = own.get("fieldsV1").cloned().unwrap_or_else(|| json!({}));
    for entry in &legacy {
        merge(&mut fields, entry.get("fieldsV1").unwrap_or(&Json::Null));
    }
    let mut kept = json!({});
    for path in how.leaving {
        if let Some(taken) = take(&mut fields, path) {
            merge(&mut kept, &taken);
        }
    }
    let lets_go = kept.as_object().is_some_and(|kept| !kept.is_empty());
    if legacy.is_empty() && !lets_go {
        return None;
    }
    if lets_go {
        let is_keeper = |entry: &&mut Json| {
            text(entry, "manager") == how.keeper
                && text(entry, "operation") == "Update"
                && text(entry, "subresource").is_empty()
        };
        match rest.iter_mut().find(is_keeper) {
            Some(entry) => merge(&mut entry["fieldsV1"], &kept),
            None => {
                let mut entry = own.clone();
                entry["manager"] = json!(how.keeper);
                entry["operation"] = json!("Update");
                entry["fieldsV1"] = kept;
                rest.push(entry);
            }
        }
    }
    own["fieldsV1"] = fields;
    rest.insert(0, own);
    Some(rest)
}

fn merge(into: &mut Json, from: &Json) {
    let Some(from) = from.as_object() else { return };
    if !into.is_object() {
        *into = json!({});
    }
    let Some(into) = into.as_object_mut() else { return };
    for (key, value) in from {
        merge(into.entry(key.clone()).or_insert_with(|| Json::Object(Map::new())), value);
    }
}

/// Removes a path from owned fields. Returns the removed part in a tree of its own.
fn take(fields: &mut Json, path: &[String]) -> Option<Json> {
    let (first, rest) = path.split_first()?;
    let map = fields.as_object_mut()?;
    let keys: Vec<String> = if first == "*" {
        map.keys().filter(|key| key.starts_with("k:") || key.starts_with("v:")).cloned().collect()
    } else {
        vec![format!("f:{first}")]
    };
    let mut taken = Map::new();
    for key in keys {
        let found = if rest.is_empty() {
            map.remove(&key)
        } else {
            let own = map.get_mut(&key);
            let found = own.and_then(|own| take(own, rest));
            // An entry without fields owns nothing, unless the path named it.
            if map.get(&key).and_then(Json::as_object).is_some_and(Map::is_empty) && found.is_some() {
                map.remove(&key);
            }
            found
        };
        if let Some(found) = found {
            taken.insert(key, found);
        }
    }
    (!taken.is_empty()).then_some(Json::Object(taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: Json) -> Json {
        json!({"metadata": {"managedFields": entries}})
    }

    #[test]
    fn wanted_fields_that_somebody_else_has_set_are_not_covered() {
        let owned = json!({
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:replicas": {}, "f:emptyDir": {}, "f:args": {},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
                "f:finalizers": {"v:\"a\"": {}},
            },
        });
        let wanted = |spec: Json| json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "labels": {"app": "x"}}, "spec": spec});
        for good in [
            json!({"replicas": 1}),
            json!({"ports": [{"port": 80, "name": "web"}]}),
            json!({"emptyDir": {}, "args": ["a", "b"], "finalizers": ["a"], "nothing": null}),
        ] {
            assert!(covers(&owned, &wanted(good.clone())), "{good}");
        }
        for bad in [
            json!({"paused": true}),
            json!({"ports": [{"port": 81, "name": "web"}]}),
            json!({"ports": [{"port": 80, "nodePort": 30000}]}),
            json!({"finalizers": ["b"]}),
        ] {
            assert!(!covers(&owned, &wanted(bad.clone())), "{bad}");
        }
    }

    #[test]
    fn fields_of_earlier_appliers_become_ours_and_kept_ones_go_to_the_keeper() {
        let live = object(json!([
            {"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}}}},
            {"manager": "someone", "operation": "Update", "fieldsV1": {"f:spec": {"f:x": {}}}},
        ]));
        let leaving = [vec!["spec".to_owned(), "replicas".to_owned()]];
        let how = Rearrange {
            manager: "berth/f",
            keeper: "berth/f/kept",
            legacy: &["kubectl-client-side-apply"],
            leaving: &leaving,
        };
        let entries = rearranged(&live, &how).unwrap();
        assert_eq!(entries.len(), 3);
        assert_eq!((&entries[0]["manager"], &entries[0]["operation"]), (&json!("berth/f"), &json!("Apply")));
        assert_eq!(entries[0]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
        assert_eq!(entries[2]["manager"], "berth/f/kept");
        assert_eq!(entries[2]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
        assert_eq!(rearranged(&object(json!(entries)), &how), None);
    }

    #[test]
    fn a_path_through_a_list_is_taken_from_each_of_its_items() {
        let mut fields = json!({"f:ports": {"k:{\"port\":80}": {"f:nodePort": {}, "f:port": {}}, "k:{\"port\":81}": {"f:port": {}}}});
        let path: Vec<String> = ["ports", "*", "nodePort"].map(str::to_owned).to_vec();
        let taken = take(&mut fields, &path).unwrap();
        assert_eq!(taken, json!({"f:ports": {"k:{\"port\":80}": {"f:nodePort": {}}}}));
        assert!(!fields.to_string().contains("nodePort"));
    }
}
