//! A live object read: whether it is as wanted or being removed.

use serde_json::Value as Json;

use super::super::BEING_REMOVED;
use super::field_paths::{self, Keep};
use super::identity::{Identity, PART_OF};
use super::unmanaged_fields::UnmanagedFields;
use super::{managed_fields, stored_shape};
use crate::sync::desired::Desired;
use crate::sync::field_differences::Difference;
use crate::sync::strategy::{self, Finding, ObservedObject, Strategy};
use berth_base::model::annotation::{APPLIED, INITIAL, PREFIX, RETAIN, SEALED};

/// Reports whether the two forms are equal in all that was asked for. Berth's own marks count only on objects
/// that it owns.
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

/// Returns the hash that an object carries.
pub(crate) fn applied_hash(live: &Json) -> Option<&str> {
    live.get("metadata")?.get("annotations")?.get(APPLIED)?.as_str()
}

/// Reports whether a part of the object came from a Secret when berth applied it last.
pub(crate) fn is_sealed(live: &Json) -> bool {
    let annotations = live.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.is_some_and(|annotations| annotations.get(SEALED).is_some())
}

/// Reports whether the object is for certain as it was applied: it carries the hash, and berth still owns
/// every wanted field.
pub(crate) fn is_as_applied(identity: &Identity, live: &Json, wanted: &Desired, hash: &str) -> bool {
    let Some(own) = managed_fields::applied_by(live, &identity.manager) else { return false };
    if applied_hash(live) != Some(hash) {
        return false;
    }
    let mut shaped = stored_shape::as_kept(wanted.object());
    let kept = field_paths::all_kept(wanted.annotation(RETAIN), wanted.annotation(INITIAL));
    let left = UnmanagedFields::of(wanted);
    if kept.is_empty() && left.is_nothing() {
        return managed_fields::covers(own, &shaped);
    }
    kept.iter().for_each(|path| field_paths::keep(&mut shaped, live, path, Keep::LeaveOut));
    left.take_out(&mut shaped, live);
    managed_fields::covers(own, &shaped)
}

/// Applies the object's strategy to its live form and to the changes that a write would make.
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

/// Describes the removal under way that blocks a wanted object.
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
