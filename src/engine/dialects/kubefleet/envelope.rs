//! `ClusterResourceEnvelope` and `ResourceEnvelope` → the objects inside, also for access rules.
//!
//! An envelope is selected like any object. Members get its contents, not the envelope. The namespaced
//! kind contains objects of its own namespace, the other kind cluster-scoped objects.

use std::sync::Arc;

use super::kinds::{PLACEMENT_GROUP, Role, role};
use crate::dialects::{CarriedObject, Document};
use berth_base::meta::{self, Metadata};
use berth_base::model::Object;
use berth_base::model::object::ObjectId;
use berth_base::model::selector::Labels;
use berth_base::packed::Packed;
use berth_base::yaml::fields::Scope;
use berth_base::yaml::node::{Entry, Value};
use berth_base::yaml::{self, Limits, Node};

const MOST: usize = 50;

/// A selectable envelope.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Envelope {
    pub id: ObjectId,
    pub version: String,
    pub labels: Labels,
    pub objects: Vec<Arc<Object>>,
}

/// Reads an envelope. Faults go to the scope; if there are any, the result must not be used.
pub fn read(scope: &Scope, root: &Node, kind: &str, version: &str) -> Option<Envelope> {
    let (mut fields, metadata) = meta::open(scope, root)?;
    let data = fields.required_fields("data");
    fields.finish();
    let data = data?;
    let count = data.entries().len();
    if count == 0 || count > MOST {
        scope.error(data.at(), format!("data must have from 1 to {MOST} entries, not {count}"));
    }
    let objects = data.entries().iter().filter_map(|entry| object(scope, entry, kind, &metadata));
    let objects = objects.map(Arc::new).collect::<Vec<_>>();
    // An envelope that is being deleted is not selected any more.
    let objects = if metadata.deleting { Vec::new() } else { objects };
    Some(Envelope {
        id: ObjectId::new(PLACEMENT_GROUP, kind, &metadata.namespace, &metadata.name),
        version: version.to_owned(),
        labels: metadata.labels,
        objects,
    })
}

fn object(scope: &Scope, entry: &Entry, kind: &str, envelope: &Metadata) -> Option<Object> {
    let path = format!("data.{}", entry.key);
    let content = entry.value.to_json();
    let Some(id) = ObjectId::of(&content) else {
        let message = format!("{path} must be an object with apiVersion, kind and metadata.name");
        scope.error(entry.value.at, message);
        return None;
    };
    let fault = match (kind, &*id.namespace) {
        ("ClusterResourceEnvelope", "") => None,
        ("ClusterResourceEnvelope", namespace) => Some(format!(
            "is in namespace {namespace}, but a ClusterResourceEnvelope holds objects without one"
        )),
        (_, "") => {
            Some("has no namespace, but a ResourceEnvelope holds objects of its own namespace".to_owned())
        }
        (_, namespace) if namespace != envelope.namespace => {
            Some(format!("is in namespace {namespace}, but its envelope is in {}", envelope.namespace))
        }
        _ => None,
    };
    if let Some(fault) = fault {
        scope.error(entry.value.at, format!("{path}: {id} {fault}"));
        return None;
    }
    Some(Object { id, origin: scope.pos(entry.value.at), content: Packed::of(&content) })
}

/// Returns the objects in an envelope, including an envelope of the old form.
pub fn carried_objects(document: &Document) -> Vec<CarriedObject> {
    let (key, root) = (&document.key, &document.open());
    let mut found = Vec::new();
    if role(&key.group, &key.kind) == Some(Role::Envelope) {
        found.extend(data(root).filter_map(|node| CarriedObject::of(node, node.at)));
    } else if *key.kind == *"ConfigMap" && key.group.is_empty() && is_marked(root) {
        for node in data(root) {
            let read = yaml::read(node.as_str().unwrap_or_default().as_bytes(), &Limits::of_a_part());
            let objects = read.documents.iter();
            found.extend(objects.filter_map(|document| CarriedObject::of(&document.root, node.at)));
        }
    }
    found
}

fn is_marked(root: &Node) -> bool {
    let mark = ["metadata", "annotations", "kubernetes-fleet.io/envelope-configmap"];
    mark.iter().try_fold(root, |node, part| node.get(part)).and_then(Node::as_str) == Some("true")
}

fn data(root: &Node) -> impl Iterator<Item = &Node> {
    let entries = match root.get("data").map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|entry| &entry.value)
}
