//! Paths into objects: JSON pointers to fields that a member keeps, and fields in a server's notation.
//!
//! Pure. `*` in a pointer stands for every item of a list; items of two lists match by their identifying fields. Zero
//! values count as unset.

use serde_json::Value as Json;

/// Reads the list of an annotation: pointers with commas between them.
pub fn pointers(text: &str) -> Vec<Vec<String>> {
    let parts = |pointer: &str| {
        let parts = pointer.trim().strip_prefix('/')?.split('/');
        Some(parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
    };
    text.split(',').filter_map(parts).collect()
}

/// Reports whether a member keeps this value. Only single values are kept; mappings and lists keep their members one
/// by one.
fn is_kept(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) | Json::Array(_) | Json::Object(_) => false,
        Json::Bool(true) => true,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.is_empty(),
    }
}

/// A path of fields that the member keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub path: Vec<String>,
    /// True if any value is kept, including mappings, lists and zeros.
    pub whole: bool,
}

/// Returns all fields that an object's annotations leave to the member.
pub(crate) fn all_kept(retained: Option<&str>, initial: Option<&str>) -> Vec<Kept> {
    let read = |text: Option<&str>, whole: bool| {
        let paths = text.map(pointers).unwrap_or_default().into_iter();
        paths.map(move |path| Kept { path, whole }).collect::<Vec<_>>()
    };
    let mut all = read(retained, false);
    all.extend(read(initial, true));
    all
}

/// Returns the paths under which a live object has a value to keep.
pub fn kept(live: &Json, paths: &[Kept]) -> Vec<Kept> {
    paths.iter().filter(|kept| has_kept(live, &kept.path, kept.whole)).cloned().collect()
}

fn has_kept(value: &Json, path: &[String], whole: bool) -> bool {
    let Some((first, rest)) = path.split_first() else { return whole || is_kept(value) };
    match value {
        Json::Array(items) if first == "*" => items.iter().any(|item| has_kept(item, rest, whole)),
        Json::Object(map) => map.get(first).is_some_and(|value| has_kept(value, rest, whole)),
        _ => false,
    }
}

/// The treatment of a wanted field that the member keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Removes the field from the wanted form, so that its owner keeps it.
    LeaveOut,
    /// Copies the live value, to be shown or compared.
    Copy,
}

/// Changes the wanted form so that the member's own values stay.
pub fn keep(wanted: &mut Json, live: &Json, kept: &Kept, how: Keep) {
    keep_at(wanted, live, &kept.path, kept.whole, how);
}

fn keep_at(wanted: &mut Json, live: &Json, path: &[String], whole: bool, how: Keep) {
    let Some((first, rest)) = path.split_first() else { return };
    match (wanted, live) {
        (Json::Array(items), Json::Array(theirs)) if first == "*" => {
            for item in items {
                if let Some(theirs) = theirs.iter().find(|theirs| is_same_item(item, theirs)) {
                    keep_at(item, theirs, rest, whole, how);
                }
            }
        }
        (Json::Object(map), Json::Object(theirs)) => {
            let Some(value) = theirs.get(first) else { return };
            if !rest.is_empty() {
                if let Some(wanted) = map.get_mut(first) {
                    keep_at(wanted, value, rest, whole, how);
                }
            } else if whole || is_kept(value) {
                match how {
                    Keep::LeaveOut => drop(map.remove(first)),
                    Keep::Copy => drop(map.insert(first.clone(), value.clone())),
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn is_same_item(one: &Json, other: &Json) -> bool {
    let same = |key: &str, default: &str| {
        let get = |item: &Json| item.get(key).cloned().unwrap_or_else(|| default.into());
        get(one) == get(other)
    };
    let is_port = |item: &Json| item.get("port").is_some();
    if is_port(one) && is_port(other) {
        same("name", "") && same("port", "") && same("protocol", "TCP")
    } else {
        one.get("name").is_some() && same("name", "")
    }
}

/// Removes the field at a server's path, such as `.spec.containers[name="web"].image`. Returns true if it existed.
pub fn remove(object: &mut Json, path: &str) -> bool {
    match object {
        Json::Object(map) => {
            let Some(rest) = path.strip_prefix('.') else { return false };
            // Keys may contain dots and brackets, so the longest matching key is used.
            let fits = |key: &&String| {
                rest.strip_prefix(key.as_str())
                    .is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
            };
            let Some(key) = map.keys().filter(fits).max_by_key(|key| key.len()).cloned() else {
                return false;
            };
            let after = rest.get(key.len()..).unwrap_or_default();
            if after.is_empty() {
                map.remove(&key).is_some()
            } else {
                map.get_mut(&key).is_some_and(|it| remove(it, after))
            }
        }
        Json::Array(items) => {
            let Some((selector, after)) = path.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
                return false;
            };
            let Some(at) = items.iter().position(|item| selects(selector, item)) else { return false };
            if after.is_empty() {
                items.remove(at);
                return true;
            }
            items.get_mut(at).is_some_and(|item| remove(item, after))
        }
        _ => false,
    }
}

fn selects(selector: &str, item: &Json) -> bool {
    let read = |text: &str| serde_json::from_str::<Json>(text).unwrap_or(Json::Null);
    if let Some(value) = selector.strip_prefix('=') {
        return read(value) == *item;
    }
    selector.split(',').all(|part| match part.split_once('=') {
        Some((key, value)) => item.get(key).is_none_or(|own| *own == read(value)),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn single_values_of_the_member_stay_and_zero_is_none() {
        let paths = all_kept(Some("/spec/replicas,/spec/ports/*/nodePort,/metadata/annotations"), None);
        let live = json!({"spec": {"replicas": 5, "ports": [
            {"port": 80, "protocol": "TCP", "nodePort": 30001}, {"port": 81, "nodePort": 0}]},
            "metadata": {"annotations": {"a": "b"}}});
        let wanted = json!({"spec": {"replicas": 2, "ports": [{"port": 80, "nodePort": 1}, {"port": 81, "nodePort": 2}]},
            "metadata": {"annotations": {"c": "d"}}});
        let all = |how: Keep| {
            let mut wanted = wanted.clone();
            paths.iter().for_each(|path| keep(&mut wanted, &live, path, how));
            wanted
        };
        assert_eq!(
            all(Keep::LeaveOut),
            json!({"spec": {"ports": [{"port": 80}, {"port": 81, "nodePort": 2}]}, "metadata": {"annotations": {"c": "d"}}})
        );
        assert_eq!(all(Keep::Copy)["spec"]["replicas"], 5);
        assert_eq!(all(Keep::Copy)["spec"]["ports"][0]["nodePort"], 30001);
        assert_eq!(kept(&live, &paths).len(), 2);
        let initial = all_kept(None, Some("/metadata/annotations,/spec/absent"));
        let mut whole = wanted.clone();
        initial.iter().for_each(|path| keep(&mut whole, &live, path, Keep::LeaveOut));
        assert_eq!(whole["metadata"], json!({}), "what counts only at first is left whole to the member");
    }

    #[test]
    fn a_field_is_found_by_the_name_the_server_gives_it() {
        let mut object = json!({"metadata": {"labels": {"app.kubernetes.io/name": "a"}},
            "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
        assert!(remove(&mut object, ".metadata.labels.app.kubernetes.io/name"));
        assert!(remove(&mut object, ".spec.containers[name=\"b\"].image"));
        assert!(!remove(&mut object, ".spec.replicas"));
        assert_eq!(
            object,
            json!({"metadata": {"labels": {}},
            "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}})
        );
    }
}
