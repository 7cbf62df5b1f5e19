//! Judges a live object: whether it equals the wanted form, and whether it is being removed.

use serde_json::Value as Json;

use super::super::BEING_REMOVED;
use super::altered_fields::altered;
use super::field_paths::{self, Keep};
use super::identity::{Identity, PART_OF};
use super::unmanaged_fields::UnmanagedFields;
use super::{managed_fields, stored_shape};
use crate::sync::desired::Desired;
use crate::sync::field_differences::{self, Difference};
use crate::sync::strategy::{self, Finding, ObservedObject, Strategy};
use berth_base::model::annotation::{APPLIED, INITIAL, PREFIX, RETAIN, SEALED, TOLERATE};
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
