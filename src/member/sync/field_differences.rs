//! Finds and describes the fields in which two forms of an object differ, without showing Secrets.
//!
//! Pure. Metadata written by servers, berth and Kubernetes' own tools does not count as a difference.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use berth_base::meta::SERVER_FIELDS;
use berth_base::model::annotation::PREFIX;

/// A field as a JSON pointer, with its value in the cluster and in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    pub here: Option<String>,
    pub wanted: Option<String>,
}

impl Difference {
    pub(crate) fn of(path: String, here: Option<&Json>, wanted: Option<&Json>) -> Difference {
        Difference { path, here: here.map(shown), wanted: wanted.map(shown) }
    }
}

/// The number of fields in a message, and the length of a shown value.
const MOST: usize = 10;
const LONGEST: usize = 80;

/// Prefixes of labels and annotations that servers and tools write, not people.
const RESERVED: [&str; 4] = ["kubernetes.io/", "k8s.io/", "kubernetes-fleet.io/", PREFIX];

/// Reports whether a difference at this key counts, given the path above it.
fn counts(above: &[String], key: &str) -> bool {
    match above {
        [] => !matches!(key, "apiVersion" | "kind" | "status"),
        [metadata] if metadata == "metadata" => !SERVER_FIELDS.contains(&key),
        [metadata, map] if metadata == "metadata" && matches!(map.as_str(), "labels" | "annotations") => {
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            !RESERVED
                .iter()
                .map(|one| one.trim_end_matches('/'))
                .any(|one| domain == one || domain.strip_suffix(one).is_some_and(|rest| rest.ends_with('.')))
        }
        _ => true,
    }
}

/// Returns all differences between an object and its form after a write.
pub fn between(live: &Json, after: &Json) -> Vec<Difference> {
    let mut walk = Walk { both: true, ..Walk::default() };
    walk.compare(Some(live), Some(after));
    walk.found
}

/// Returns the fields that a manifest sets and whose live value differs. Additional live fields do not count.
pub fn asked(live: &Json, wanted: &Json) -> Vec<Difference> {
    let mut walk = Walk::default();
    walk.compare(Some(live), Some(wanted));
    walk.found
}

/// Returns the fields that somebody set in addition to a manifest. Defaults of the server do not count.
pub fn beside(live: &Json, wanted: &Json) -> Vec<Difference> {
    let mut walk = Walk::default();
    let managed = live.pointer("/metadata/managedFields").and_then(Json::as_array);
    let fields = managed.into_iter().flatten().filter(|entry| entry.get("subresource").is_none());
    let fields: Vec<&Json> = fields.filter_map(|entry| entry.get("fieldsV1")).collect();
    walk.more(live, wanted, &fields);
    walk.found
}

#[derive(Default)]
struct Walk {
    at: Vec<String>,
    /// True if fields that exist only in the live object count.
    both: bool,
    found: Vec<Difference>,
}

impl Walk {
    fn compare(&mut self, here: Option<&Json>, wanted: Option<&Json>) {
        match (here, wanted) {
            (Some(Json::Object(here)), Some(Json::Object(wanted))) => {
                let more = here.keys().filter(|_| self.both);
                let keys: BTreeSet<&String> = wanted.keys().chain(more).collect();
                for key in keys {
                    self.below(key, |walk| walk.compare(here.get(key), wanted.get(key)));
                }
            }
            (Some(Json::Array(here)), Some(Json::Array(wanted)))
                if wanted.iter().chain(here).any(Json::is_object) =>
            {
                for index in 0..here.len().max(wanted.len()) {
                    let at = index.to_string();
                    self.below(&at, |walk| walk.compare(here.get(index), wanted.get(index)));
                }
            }
            // Some labels do not count, so each one is compared.
            (None, Some(map @ Json::Object(_))) if self.is_labels() => {
                self.compare(Some(&Json::Object(Map::new())), Some(map));
            }
            (Some(map @ Json::Object(_)), None) if self.is_labels() => {
                self.compare(Some(map), Some(&Json::Object(Map::new())));
            }
            (None, Some(wanted)) if is_nothing(wanted) => {}
            (Some(here), None) if is_nothing(here) => {}
            (here, wanted) if here == wanted => {}
            (here, wanted) => self.note(here, wanted),
        }
    }

    fn more(&mut self, here: &Json, wanted: &Json, fields: &[&Json]) {
        match (here, wanted) {
            (Json::Object(here), Json::Object(wanted)) => {
                for (key, value) in here {
                    let own: Vec<&Json> = below(fields, &format!("f:{key}"));
                    if own.is_empty() || is_nothing(value) {
                        continue;
                    }
                    self.below(key, |walk| match wanted.get(key) {
                        Some(wanted) => walk.more(value, wanted, &own),
                        None => walk.all_of(value, &own),
                    });
                }
            }
            (Json::Array(here), Json::Array(wanted)) => {
                for (index, item) in here.iter().enumerate() {
                    let keyed = fields.iter().filter_map(|one| one.as_object()).flatten();
                    let keys: BTreeSet<&String> =
                        keyed.map(|(key, _)| key).filter(|key| means(key, item)).collect();
                    let own: Vec<&Json> = keys.iter().flat_map(|key| below(fields, key)).collect();
                    let twin = wanted.iter().find(|wanted| {
                        item == *wanted || keys.iter().any(|key| key.starts_with("k:") && means(key, wanted))
                    });
                    self.below(&index.to_string(), |walk| match twin {
                        _ if own.is_empty() => {}
                        Some(twin) => walk.more(item, twin, &own),
                        None => walk.note(Some(item), None),
                    });
                }
            }
            _ => {}
        }
    }

    /// Adds the fields of an unwanted value that somebody has set.
    fn all_of(&mut self, value: &Json, fields: &[&Json]) {
        let whole = fields.iter().any(|one| one.as_object().is_none_or(|map| map.keys().all(|it| it == ".")));
        match value {
            Json::Object(map) if !whole => {
                for (key, value) in map {
                    let own = below(fields, &format!("f:{key}"));
                    if !own.is_empty() {
                        self.below(key, |walk| walk.all_of(value, &own));
                    }
                }
            }
            value => self.note(Some(value), None),
        }
    }

    fn is_labels(&self) -> bool {
        matches!(self.at.as_slice(), [metadata, map]
            if metadata == "metadata" && matches!(map.as_str(), "labels" | "annotations"))
    }

    fn below(&mut self, key: &str, then: impl FnOnce(&mut Walk)) {
        if counts(&self.at, key) {
            self.at.push(key.to_owned());
            then(self);
            self.at.pop();
        }
    }

    fn note(&mut self, here: Option<&Json>, wanted: Option<&Json>) {
        let parts = self.at.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")));
        self.found.push(Difference::of(parts.collect(), here, wanted));
    }
}

fn below<'f>(fields: &[&'f Json], key: &str) -> Vec<&'f Json> {
    fields.iter().filter_map(|one| one.get(key)).collect()
}

/// Reports whether a key among managed fields names this list item.
fn means(key: &str, item: &Json) -> bool {
    if let Some(value) = key.strip_prefix("v:") {
        return serde_json::from_str::<Json>(value).is_ok_and(|value| value == *item);
    }
    let keys = key.strip_prefix("k:").and_then(|key| serde_json::from_str::<Map<String, Json>>(key).ok());
    keys.is_some_and(|keys| keys.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value)))
}

fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Object(map) => map.is_empty(),
        Json::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn shown(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    format!("{}…", text.chars().take(LONGEST).collect::<String>())
}

/// Reports whether a field is at or below one of these paths; `*` stands for any part.
pub fn is_below(difference: &Difference, paths: &[Vec<String>]) -> bool {
    let parts = difference.path.split('/').skip(1);
    let parts: Vec<String> = parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let fits = |path: &Vec<String>| {
        path.len() <= parts.len() && path.iter().zip(&parts).all(|(want, part)| want == "*" || want == part)
    };
    paths.iter().any(fits)
}

/// Returns the differences shown to people.
pub fn listed(differences: &[Difference]) -> impl Iterator<Item = &Difference> {
    differences.iter().take(MOST)
}

/// Describes the differences. For a Secret, only the names of fields are shown.
pub fn words(differences: &[Difference], is_secret: bool) -> String {
    let one = |it: &Difference| match (&it.here, &it.wanted) {
        _ if is_secret => format!("`{}`", it.path),
        (Some(here), Some(wanted)) => {
            format!("`{}` is {here} in the cluster and {wanted} in the folder", it.path)
        }
        (Some(here), None) => format!("`{}` is {here} in the cluster and missing in the folder", it.path),
        (None, Some(wanted)) => format!("`{}` is missing in the cluster and {wanted} in the folder", it.path),
        (None, None) => format!("`{}`", it.path),
    };
    let mut parts: Vec<String> = listed(differences).map(one).collect();
    if differences.len() > MOST {
        parts.push(format!("and {} more", differences.len() - MOST));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(found: &[Difference]) -> Vec<&str> {
        found.iter().map(|one| one.path.as_str()).collect()
    }

    #[test]
    fn what_servers_and_tools_write_is_no_difference() {
        let live = json!({"apiVersion": "v1", "metadata": {"uid": "1", "annotations": {
            "deployment.kubernetes.io/revision": "1", "kubectl.kubernetes.io/x": "y", "berth.dev/applied": "z"},
            "labels": {"applyset.kubernetes.io/part-of": "a", "app.kubernetes.iox/name": "b"}}, "status": {"a": 1}});
        let bare = json!({"metadata": {}});
        let name = ["/metadata/labels/app.kubernetes.iox~1name"];
        assert_eq!(paths(&between(&live, &bare)), name);
        assert_eq!(paths(&between(&bare, &live)), name);
        assert_eq!(paths(&between(&live, &json!({"metadata": {"labels": {}}}))), name);
    }

    #[test]
    fn fields_that_differ_are_named_with_both_values() {
        let live = json!({"data": {"a": "1", "b": "2"}, "spec": {"list": [{"n": 1}, {"n": 2}]}});
        let after = json!({"data": {"a": "x", "c": "3"}, "spec": {"list": [{"n": 1}]}});
        let found = between(&live, &after);
        assert_eq!(paths(&found), ["/data/a", "/data/b", "/data/c", "/spec/list/1"]);
        assert_eq!(paths(&asked(&live, &after)), ["/data/a", "/data/c", "/spec/list/1"]);
        let text = words(&found, false);
        assert!(text.starts_with("`/data/a` is \"1\" in the cluster and \"x\" in the folder; "), "{text}");
        assert!(!words(&found, true).contains('x'), "a Secret's values are not shown");
    }

    #[test]
    fn what_somebody_has_set_beside_a_manifest_is_found_and_defaults_are_not() {
        let live = json!({
            "metadata": {"managedFields": [
                {"manager": "berth/f", "operation": "Apply", "fieldsV1": {"f:spec": {"f:ports": {
                    "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}},
                {"manager": "hand", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}, "f:ports": {
                    "k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}, "f:data": {".": {}, "f:x": {}}}},
                {"manager": "server", "operation": "Update", "subresource": "status", "fieldsV1": {"f:spec": {"f:type": {}}}},
            ]},
            "spec": {"paused": true, "type": "default", "ports": [
                {"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"}]},
            "data": {"x": "y", "default": "z"},
        });
        let wanted = json!({"spec": {"ports": [{"port": 80}]}});
        let found = beside(&live, &wanted);
        assert_eq!(paths(&found), ["/data/x", "/spec/paused", "/spec/ports/1"]);
    }

    #[test]
    fn long_lists_and_values_are_cut() {
        let many: Map<String, Json> = (0..30).map(|n| (format!("k{n:02}"), json!("v".repeat(200)))).collect();
        let text = words(&between(&json!({"data": many}), &json!({"data": {"other": "1"}})), false);
        assert!(text.ends_with("and 21 more") && text.len() < 2_000, "{text}");
    }
}
