//! Finds fields that berth applied and owns, and whose live value differs: the cluster's admission, a mutating
//! webhook or policy, changed them within berth's own request.
//!
//! Pure. Another notation of the same value is no change: quantities, line breaks, omitted empty values.

use serde_json::Value as Json;

use super::managed_fields::{is_key_of, is_nothing};
use crate::sync::field_differences::Difference;
use berth_base::model::quantity::Quantity;

/// Returns the owned fields whose live value differs from the wanted one.
pub(crate) fn altered(live: &Json, wanted: &Json, owned: &Json) -> Vec<Difference> {
    let mut found = Vec::new();
    // Another version of a kind may name its fields differently.
    if live.get("apiVersion") != wanted.get("apiVersion") {
        return found;
    }
    for (key, value) in wanted.as_object().into_iter().flatten() {
        let parts: &[&str] = match key.as_str() {
            "apiVersion" | "kind" | "status" => continue,
            "metadata" => &["labels", "annotations"],
            _ => &[],
        };
        let at = Walk { path: format!("/{key}"), owned: owned.get(format!("f:{key}")), live: live.get(key) };
        if key != "metadata" {
            at.compare(value, &mut found);
        }
        for part in parts {
            at.below(part, value.get(part), &mut found);
        }
    }
    found
}

/// A place in an object: its owned fields, and its live value.
struct Walk<'a> {
    path: String,
    owned: Option<&'a Json>,
    live: Option<&'a Json>,
}

impl Walk<'_> {
    fn below(&self, key: &str, wanted: Option<&Json>, found: &mut Vec<Difference>) {
        let Some(wanted) = wanted else { return };
        let path = format!("{}/{}", self.path, key.replace('~', "~0").replace('/', "~1"));
        let owned = self.owned.and_then(|owned| owned.get(format!("f:{key}")));
        Walk { path, owned, live: self.live.and_then(|live| live.get(key)) }.compare(wanted, found);
    }

    fn compare(&self, wanted: &Json, found: &mut Vec<Difference>) {
        let Some(owned) = self.owned.and_then(Json::as_object).filter(|_| !is_nothing(wanted)) else {
            return;
        };
        match wanted {
            Json::Object(map) if !owned.is_empty() => {
                for (key, value) in map {
                    self.below(key, Some(value), found);
                }
            }
            Json::Array(items) if !owned.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    let Some((key, owned)) = owned.iter().find(|(key, _)| is_key_of(key, item)) else {
                        continue;
                    };
                    let mut live = self.live.and_then(Json::as_array).into_iter().flatten();
                    let live = live.find(|live| is_key_of(key, live));
                    let path = format!("{}/{index}", self.path);
                    match live {
                        // A single value is its own key.
                        Some(_) if key.starts_with("v:") => {}
                        live => Walk { path, owned: Some(owned), live }.compare(item, found),
                    }
                }
            }
            _ if fits(self.live, wanted) => {}
            _ => found.push(Difference::of(self.path.clone(), self.live, Some(wanted))),
        }
    }
}

/// Reports whether a live value equals a wanted one, apart from additions of the server.
fn fits(live: Option<&Json>, wanted: &Json) -> bool {
    if is_nothing(wanted) || wanted == "" {
        return true;
    }
    let Some(live) = live else { return *wanted == false || wanted.as_f64() == Some(0.0) };
    match (live, wanted) {
        (Json::Object(live), Json::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| fits(live.get(key), wanted))
        }
        (Json::Array(live), Json::Array(wanted)) => {
            live.len() == wanted.len()
                && live.iter().zip(wanted).all(|(live, wanted)| fits(Some(live), wanted))
        }
        (live, wanted) => live == wanted || is_same_text(live, wanted),
    }
}

fn is_same_text(live: &Json, wanted: &Json) -> bool {
    let text = |value: &Json| match value {
        Json::String(text) => Some(text.replace(['\n', '\r'], "")),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let (Some(live), Some(wanted)) = (text(live), text(wanted)) else { return false };
    let quantity = |text: &str| text.parse::<Quantity>().ok();
    live == wanted || quantity(&live).is_some_and(|live| Some(live) == quantity(&wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(live: &Json, wanted: &Json, owned: &Json) -> Vec<String> {
        altered(live, wanted, owned).into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn a_value_that_admission_changed_is_found_and_another_way_to_write_one_is_not() {
        let container = "k:{\"name\":\"web\"}";
        let owned = json!({
            "f:metadata": {"f:labels": {"f:team": {}}},
            "f:spec": {"f:replicas": {}, "f:paused": {}, "f:nodeSelector": {}, "f:template": {"f:containers": {
                container: {".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}}}}}},
        });
        let wanted = json!({
            "metadata": {"name": "web", "labels": {"team": "a", "theirs": "x"}},
            "spec": {"replicas": 3, "paused": false, "nodeSelector": {"a": "b"}, "strategy": {"type": "Recreate"},
                "template": {"containers": [{"name": "web", "image": "web:1", "args": ["a"],
                    "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}}]}},
        });
        let mut live = json!({
            "metadata": {"name": "web", "labels": {"team": "a", "theirs": "y", "more": "z"}},
            "spec": {"replicas": 3, "nodeSelector": {"a": "b", "more": "c"}, "strategy": {"type": "RollingUpdate"},
                "template": {"containers": [{"name": "sidecar"}, {"name": "web", "image": "web:1", "args": ["a"],
                    "pullPolicy": "Always", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}},
        });
        assert_eq!(paths(&live, &wanted, &owned), [""; 0]);
        live["metadata"]["labels"]["team"] = json!("b");
        live["spec"]["paused"] = json!(true);
        live["spec"]["template"]["containers"][1]["image"] = json!("mirror/web:1");
        live["spec"]["template"]["containers"][1]["args"] = json!(["a", "b"]);
        assert_eq!(
            paths(&live, &wanted, &owned),
            [
                "/metadata/labels/team",
                "/spec/paused",
                "/spec/template/containers/0/args",
                "/spec/template/containers/0/image"
            ]
        );
    }
}
