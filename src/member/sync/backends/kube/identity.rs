//! Berth's names in a cluster: its field manager, the label of its objects, and the parent object.
//!
//! Follows the ApplySet convention. The label is written with each object, so no crash separates an object from its
//! owner, and no inventory grows too large. A copied label does not make an owner: berth must also be among the
//! object's managers.

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::super::Record;
use super::{managed_fields, stored_shape};
use crate::sync::desired::Desired;
use berth_base::model::ObjectId;
use berth_base::model::annotation::{APPLIED, SEALED};
use berth_base::text::{base64, hex};

pub(crate) const PART_OF: &str = "applyset.kubernetes.io/part-of";
pub(crate) const SET_ID: &str = "applyset.kubernetes.io/id";
pub(crate) const TOOLING: &str = "applyset.kubernetes.io/tooling";
pub(crate) const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";

/// The annotation of `kubectl apply`.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Managers used by people who applied whole objects before berth did.
const LEGACY: [&str; 2] = ["kubectl-client-side-apply", "before-first-apply"];
/// The manager of KubeFleet's agent.
const LEGACY_KUBEFLEET: &str = "work-api-agent";
/// The managers of KubeFed. Other programs use these names too, so they count only on objects with KubeFed's label.
const LEGACY_KUBEFED: [&str; 2] = ["controller-manager", "hyperfed"];

/// Berth's names for one fleet.
#[derive(Clone, Debug)]
pub struct Identity {
    pub manager: String,
    /// The manager of fields that berth has released and nobody else has taken.
    pub keeper: String,
    /// The namespace of the parent object, a ConfigMap.
    pub namespace: String,
    pub parent: String,
    pub set: String,
}

impl Identity {
    pub fn new(fleet: &str, namespace: &str) -> Identity {
        let manager = shortened(&format!("berth/{fleet}"));
        let keeper = shortened(&format!("berth/{fleet}/kept"));
        let parent = object_name(fleet);
        let whole = format!("{parent}.{namespace}.ConfigMap.");
        let set = format!("applyset-{}-v1", base64::encode_name(&Sha256::digest(whole.as_bytes())));
        Identity { manager, keeper, namespace: namespace.to_owned(), parent, set }
    }

    /// Returns the path of the collection that holds the parent object.
    pub(crate) fn parent_path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Reports whether an object is the parent itself, which no folder may contain.
    pub(crate) fn is_parent(&self, id: &ObjectId) -> bool {
        *id == self.parent_id()
    }

    pub(crate) fn parent_id(&self) -> ObjectId {
        ObjectId::new("", "ConfigMap", &self.namespace, &self.parent)
    }

    pub fn selector(&self) -> String {
        format!("{PART_OF}={}", self.set)
    }

    /// Reports whether berth owns an object: it has the label, and berth is one of its managers.
    pub fn owns(&self, object: &Json) -> bool {
        part_of(object) == Some(&self.set) && managed_fields::applied_by(object, &self.manager).is_some()
    }

    /// Returns a wanted object as berth sends it: without the server's fields, with the label and the hash.
    pub fn payload(&self, desired: &Desired, hash: &str) -> Json {
        let mut object = stored_shape::as_kept(desired.object());
        let Some(map) = object.as_object_mut() else { return object };
        map.remove("status");
        let metadata = map.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            for key in
                ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"]
            {
                metadata.remove(key);
            }
            put(metadata, "labels", PART_OF, &self.set);
            put(metadata, "annotations", APPLIED, hash);
            if desired.sealed {
                put(metadata, "annotations", SEALED, "true");
            }
        }
        object
    }

    /// Returns the hash of the applied bytes. Keyed by fleet, so that equal contents in two fleets have different
    /// hashes.
    pub fn hash(&self, bytes: &[u8]) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.set.as_bytes());
        hasher.update([0]);
        hasher.update(bytes);
        base64::encode_name(&hasher.finalize())
    }

    /// Returns the parent object as berth sends it.
    pub(crate) fn parent_object(&self, record: &Record, kinds: &str, version: Option<&str>) -> Json {
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.parent,
                "namespace": self.namespace,
                "labels": { SET_ID: self.set },
                "annotations": {
                    TOOLING: concat!("berth/v", env!("CARGO_PKG_VERSION")),
                    GROUP_KINDS: kinds,
                },
            },
            "data": {
                "fleet": record.fleet,
                "cluster": record.cluster,
                "sequence": record.sequence.to_string(),
                "tree": record.tree,
            },
        });
        if let Some(version) = version {
            object["metadata"]["resourceVersion"] = json!(version);
        }
        object
    }
}

/// Returns the earlier appliers whose fields berth takes over from this object.
pub(crate) fn legacy_of(live: &Json) -> Vec<&'static str> {
    LEGACY.into_iter().chain(legacy_hubs_of(live)).collect()
}

/// Returns the earlier appliers that are agents of another hub.
pub(crate) fn legacy_hubs_of(live: &Json) -> Vec<&'static str> {
    let label = live.pointer("/metadata/labels/kubefed.io~1managed").and_then(Json::as_str);
    let kubefed: &[&str] = if label == Some("true") { &LEGACY_KUBEFED } else { &[] };
    std::iter::once(&LEGACY_KUBEFLEET).chain(kubefed).copied().collect()
}

/// Returns the ApplySet that an object's label names.
pub(crate) fn part_of(object: &Json) -> Option<&String> {
    match object.get("metadata")?.get("labels")?.get(PART_OF)? {
        Json::String(set) => Some(set),
        _ => None,
    }
}

/// Returns a kind in the convention's notation, `Deployment.apps`.
pub(crate) fn group_kind(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

pub(crate) fn group_kind_of(id: &ObjectId) -> String {
    group_kind(&id.group, &id.kind)
}

/// Splits `Deployment.apps` into group and kind.
pub(crate) fn parse_group_kind(name: &str) -> (&str, &str) {
    let (kind, group) = name.split_once('.').unwrap_or((name, ""));
    (group, kind)
}

fn put(metadata: &mut Map<String, Json>, key: &str, name: &str, value: &str) {
    let map = metadata.entry(key).or_insert_with(|| json!({}));
    if !map.is_object() {
        *map = json!({});
    }
    map[name] = json!(value);
}

/// The longest name of a field manager that servers accept.
const LONGEST_MANAGER: usize = 128;

fn shortened(name: &str) -> String {
    let plain = name.chars().all(|it| it.is_ascii_graphic());
    if name.len() <= LONGEST_MANAGER && plain {
        return name.to_owned();
    }
    format!("berth/{}", base64::encode_name(&Sha256::digest(name.as_bytes())))
}

/// Returns a valid object name for a fleet: the fleet's own name, if that is valid.
pub(crate) fn object_name(fleet: &str) -> String {
    let fine = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let plain =
        fleet.len() <= 60 && fleet.chars().all(fine) && !fleet.starts_with('-') && !fleet.ends_with('-');
    if plain && !fleet.is_empty() {
        return format!("berth-{fleet}");
    }
    let digest = Sha256::digest(fleet.as_bytes());
    format!("berth-{}", hex(&digest[..10]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ones_that_servers_take() {
        let identity = Identity::new("fleet", "berth-system");
        assert_eq!((identity.manager.as_str(), identity.parent.as_str()), ("berth/fleet", "berth-fleet"));
        assert!(identity.set.len() <= 63 && identity.set.starts_with("applyset-"), "{}", identity.set);
        let strange = Identity::new(&"Ü ".repeat(100), "berth-system");
        assert!(strange.manager.len() <= 128 && strange.manager.is_ascii(), "{}", strange.manager);
        assert!(strange.parent.chars().all(|it| it.is_ascii_alphanumeric() || it == '-'));
    }

    #[test]
    fn a_copied_label_owns_nothing() {
        let identity = Identity::new("fleet", "berth-system");
        let mut object = json!({"metadata": {"labels": {PART_OF: identity.set}}});
        assert!(!identity.owns(&object));
        object["metadata"]["managedFields"] =
            json!([{"manager": "berth/fleet", "operation": "Apply", "fieldsV1": {}}]);
        assert!(identity.owns(&object));
    }
}
