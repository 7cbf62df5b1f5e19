//! Judges a live object: whether it equals the wanted form, and whether it is being removed.
//!
//! Finds fields that berth applied and owns, and whose live value differs: the cluster's admission, a mutating
//! webhook or policy, changed them within berth's own request.
//!
//! Pure. Another notation of the same value is no change: quantities, line breaks, omitted empty values.

use serde_json::Value as Json;

use super::super::BEING_REMOVED;
use super::field_paths::{self, Keep};
use super::identity::{Identity, PART_OF};
use super::managed_fields::{self, is_key_of, is_nothing};
use super::stored_shape;
use super::unmanaged_fields::UnmanagedFields;
use crate::sync::desired::Desired;
use crate::sync::field_differences::{self, Difference};
use crate::sync::strategy::{self, Finding, ObservedObject, Strategy};
use berth_base::model::annotation::{APPLIED, INITIAL, PREFIX, RETAIN, SEALED, TOLERATE};
use berth_base::model::quantity::Quantity;
use berth_base::model::status::ProblemKind;

/// Reports whether two forms are equal in all fields of the manifest. Berth's own marks count only on objects that it
/// owns.
pub(crate) fn is_equal(live: &Json, after: &Json, owned: bool) -> bool {
    let content = |object: &Json| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
            for key in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(key);
            }
            if !owned {
                for key in ["labels", "annotations"] {
                    let Some(map) = metadata.get_mut(key).and_then(Json::as_object_mut) else { continue };
                    map.retain(|name, _| !name.starts_with(PREFIX) && name != PART_OF);
                    if map.is_empty() {
                        metadata.remove(key);
                    }
                }
            }
        }
        object
    };
    content(live) == content(after)
}

/// Returns the hash in an object's annotation.
pub(crate) fn applied_hash(live: &Json) -> Option<&str> {
    live.get("metadata")?.get("annotations")?.get(APPLIED)?.as_str()
}

/// Reports whether a part of the object came from a Secret when berth last applied it.
pub(crate) fn is_sealed(live: &Json) -> bool {
    let annotations = live.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.is_some_and(|annotations| annotations.get(SEALED).is_some())
}

/// Compares an object with the form last applied to it. Returns `None` if they may differ: the object has another
/// hash, or berth does not own every wanted field. Otherwise returns the fields that the cluster's admission changed.
pub(crate) fn as_applied(
    identity: &Identity,
    live: &Json,
    wanted: &Desired,
    hash: &str,
) -> Option<Vec<Difference>> {
    let own = managed_fields::applied_by(live, &identity.manager)?;
    if applied_hash(live) != Some(hash) {
        return None;
    }
    let mut shaped = stored_shape::as_kept(wanted.object());
    let kept = field_paths::all_kept(wanted.annotation(RETAIN), wanted.annotation(INITIAL));
    let left = UnmanagedFields::of(wanted);
    if !kept.is_empty() || !left.is_nothing() {
        kept.iter().for_each(|path| field_paths::keep(&mut shaped, live, path, Keep::LeaveOut));
        left.take_out(&mut shaped, live);
    }
    if !managed_fields::covers(own, &shaped) {
        return None;
    }
    let mut altered = altered(live, &shaped, own);
    if !altered.is_empty() {
        let tolerated = wanted.annotation(TOLERATE).map(field_paths::pointers).unwrap_or_default();
        altered.retain(|one| !field_differences::is_below(one, &tolerated));
    }
    Some(altered)
}

/// Reports fields that the cluster's admission changes.
pub(crate) fn altered_finding(altered: &[Difference], is_secret: bool) -> Finding {
    let words = field_differences::words(altered, is_secret);
    let message =
        format!("FoundDrifts: an admission policy or webhook changed it when berth applied it: {words}");
    Finding::reported(ProblemKind::Drifted, altered, message)
}

/// Applies the object's strategy to its live form and the changes that a write would make.
pub fn finding(
    wanted: &Desired,
    hash: &str,
    live: &Json,
    owned: bool,
    changes: &[Difference],
) -> Option<Finding> {
    let strategy = Strategy::of(wanted);
    if changes.is_empty() && !strategy.looks_beside() {
        return None;
    }
    let found = ObservedObject {
        live,
        wanted: &stored_shape::as_kept(wanted.object()),
        owned,
        applied_before: applied_hash(live) == Some(hash),
        changes,
        is_secret: wanted.is_secret() || is_sealed(live),
    };
    strategy::judge(&strategy, &found)
}

pub(crate) fn uid_of(object: &Json) -> &str {
    object.pointer("/metadata/uid").and_then(Json::as_str).unwrap_or_default()
}

/// Describes the pending removal that blocks a wanted object.
pub fn leaving(object: &Json) -> Option<String> {
    let since = object.pointer("/metadata/deletionTimestamp")?.as_str()?;
    let finalizers = object.pointer("/metadata/finalizers").and_then(Json::as_array).into_iter().flatten();
    let names: Vec<String> = finalizers.filter_map(Json::as_str).map(|name| format!("`{name}`")).collect();
    Some(match names.is_empty() {
        true => format!("{BEING_REMOVED}, since {since}"),
        false => {
            format!("{BEING_REMOVED}, since {since}, and waits for its finalizers {}", names.join(", "))
        }
    })
}

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
        let at =
            OwnedPlace { path: format!("/{key}"), owned: owned.get(format!("f:{key}")), live: live.get(key) };
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
struct OwnedPlace<'a> {
    path: String,
    owned: Option<&'a Json>,
    live: Option<&'a Json>,
}

impl OwnedPlace<'_> {
    fn below(&self, key: &str, wanted: Option<&Json>, found: &mut Vec<Difference>) {
        let Some(wanted) = wanted else { return };
        let path = format!("{}/{}", self.path, key.replace('~', "~0").replace('/', "~1"));
        let owned = self.owned.and_then(|owned| owned.get(format!("f:{key}")));
        OwnedPlace { path, owned, live: self.live.and_then(|live| live.get(key)) }.compare(wanted, found);
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
                        live => OwnedPlace { path, owned: Some(owned), live }.compare(item, found),
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
