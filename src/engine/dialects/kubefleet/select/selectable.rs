//! The objects of the repository that placements may select, by kind, namespace and name; without the
//! fields that a hub added to them: identity, status, assigned addresses.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::dialects::kubefleet::envelope::Envelope;
use crate::dialects::kubefleet::kinds::{self, CLUSTER_GROUP, PLACEMENT_GROUP};
use crate::dialects::object_scopes::{DEFINITION, ObjectScope};
use crate::dialects::{Document, ParsedDocument, ReadingContext, variants};
use berth_base::model::object::ObjectId;
use berth_base::model::selector::Labels;
use berth_base::model::{Object, Override, Shared};
use berth_base::packed::{Packed, View};

/// A selectable item: an object, or an envelope with its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Plain(usize),
    Envelope(usize),
}

impl Item {
    /// Returns the index among the plain objects.
    pub fn plain(self) -> Option<usize> {
        match self {
            Item::Plain(index) => Some(index),
            Item::Envelope(_) => None,
        }
    }
}

/// Group, kind, namespace and name.
pub type Parts<'a> = [&'a str; 4];

/// The selectable items. Objects that stay on the hub, or that are being deleted, are left out.
#[derive(Debug)]
pub struct Selectable<'a> {
    plain: &'a [&'a Document],
    envelopes: &'a [Shared<Envelope>],
    /// Ordered by their parts.
    by_name: Vec<Item>,
    /// The namespaced items, ordered by their namespaces.
    by_namespace: Vec<Item>,
    scopes: Scopes<'a>,
}

impl<'a> Selectable<'a> {
    pub fn new(plain: &'a [&'a Document], envelopes: &'a [Shared<Envelope>]) -> Selectable<'a> {
        let services: BTreeSet<(&str, &str)> = plain
            .iter()
            .map(|document| &document.key)
            .filter(|key| key.group.is_empty() && &*key.kind == "Service")
            .map(|key| (&*key.namespace, &*key.name))
            .collect();
        let travels = |index: &usize| travels(plain[*index], &services);
        let mut by_name: Vec<Item> = (0..plain.len()).filter(travels).map(Item::Plain).collect();
        by_name.extend((0..envelopes.len()).map(Item::Envelope));
        let scopes = Scopes::new(plain);
        let stock = Selectable { plain, envelopes, by_name: Vec::new(), by_namespace: Vec::new(), scopes };
        let mut by_namespace = by_name.clone();
        by_namespace.retain(|item| !stock.namespace(*item).is_empty());
        by_namespace.sort_by_key(|item| stock.namespace(*item));
        by_name.sort_by_key(|item| stock.parts(*item));
        Selectable { by_name, by_namespace, ..stock }
    }

    /// Returns the items of a kind in a namespace; with a name, only those with that name.
    pub fn of_kind(&self, group: &str, kind: &str, namespace: &str, name: Option<&str>) -> &[Item] {
        let wanted = [group, kind, namespace, name.unwrap_or_default()];
        let compared = if name.is_some() { 4 } else { 3 };
        equal(&self.by_name, |item| self.parts(item)[..compared].cmp(&wanted[..compared]))
    }

    pub fn in_namespace(&self, namespace: &str) -> &[Item] {
        equal(&self.by_namespace, |item| self.namespace(item).cmp(namespace))
    }

    pub fn scope(&self, group: &str, kind: &str) -> Option<ObjectScope> {
        self.scopes.of(group, kind)
    }

    pub fn parts(&self, item: Item) -> Parts<'a> {
        match item {
            Item::Plain(index) => {
                let key = &self.plain[index].key;
                [&key.group, &key.kind, &key.namespace, &key.name]
            }
            Item::Envelope(index) => {
                let id = &self.envelopes[index].id;
                [&id.group, &id.kind, &id.namespace, &id.name]
            }
        }
    }

    pub fn name(&self, item: Item) -> &'a str {
        self.parts(item)[3]
    }

    fn namespace(&self, item: Item) -> &'a str {
        self.parts(item)[2]
    }

    pub fn id(&self, item: Item) -> ObjectId {
        match item {
            Item::Plain(index) => self.plain[index].id(),
            Item::Envelope(index) => self.envelopes[index].id.clone(),
        }
    }

    pub fn version(&self, item: Item) -> &'a str {
        match item {
            Item::Plain(index) => &self.plain[index].version,
            Item::Envelope(index) => &self.envelopes[index].version,
        }
    }

    pub fn labels(&self, item: Item) -> Labels {
        match item {
            Item::Plain(index) => labels_of(&self.plain[index].root),
            Item::Envelope(index) => self.envelopes[index].labels.clone(),
        }
    }

    /// Returns the objects of an item, as clusters get them. An envelope's contents are unchanged.
    pub fn objects(&self, item: Item) -> Vec<Arc<Object>> {
        match item {
            Item::Plain(index) => {
                let document = self.plain[index];
                let against = ReadingContext::alone("travelling object");
                vec![document.recall(against, || without_hub_fields(document))]
            }
            Item::Envelope(index) => self.envelopes[index].objects.clone(),
        }
    }

    /// Returns the overrides that give clusters their form of an item's objects. `None` if they are not known.
    pub fn overrides(&self, item: Item) -> Option<Vec<Override>> {
        match item {
            Item::Plain(index) => {
                let objects = self.objects(item);
                let of_object = |object: &Arc<Object>| {
                    variants::overrides(self.plain[index], object, |form| without_hub_fields(form))
                };
                objects.first().map_or(Some(Vec::new()), of_object)
            }
            Item::Envelope(_) => Some(Vec::new()),
        }
    }
}

/// Returns the items that compare as equal, from a list in the order of this comparison.
fn equal(items: &[Item], compare: impl Fn(Item) -> Ordering) -> &[Item] {
    let start = items.partition_point(|item| compare(*item).is_lt());
    let end = items.partition_point(|item| compare(*item).is_le());
    items.get(start..end).unwrap_or_default()
}

fn labels_of(content: &Packed) -> Labels {
    let labels = content.get("metadata").and_then(|metadata| metadata.get("labels"));
    let text = |(key, value): (&str, View<'_>)| Some((key.to_owned(), value.as_str()?.to_owned()));
    labels.into_iter().flat_map(View::entries).filter_map(text).collect()
}

/// Reports whether an object may go to members. `services` are those of the repository, by namespace and
/// name.
pub fn travels(object: &ParsedDocument, services: &BTreeSet<(&str, &str)>) -> bool {
    let metadata = object.root.get("metadata");
    let has =
        |key: &str| metadata.and_then(|metadata| metadata.get(key)).is_some_and(|value| !value.is_null());
    let owned = || {
        let owners = metadata.and_then(|metadata| metadata.get("ownerReferences"));
        owners.is_some_and(|owners| owners.items().next().is_some())
    };
    if has("deletionTimestamp") {
        return false;
    }
    let key = &object.key;
    match (&*key.group, &*key.kind, &*key.name) {
        (CLUSTER_GROUP | PLACEMENT_GROUP, ..) => false,
        ("events.k8s.io" | "coordination.k8s.io" | "metrics.k8s.io", ..) => false,
        (
            "networking.fleet.azure.com",
            "ServiceImport" | "TrafficManagerProfile" | "TrafficManagerBackend",
            _,
        ) => false,
        ("", "Pod" | "Node", _) => false,
        ("apps", "ReplicaSet" | "ControllerRevision", _) => !owned(),
        ("", "ConfigMap", "kube-root-ca.crt") | ("", "ServiceAccount", "default") => false,
        ("", "Secret", _) => {
            object.root.get("type").and_then(View::as_str) != Some("kubernetes.io/service-account-token")
        }
        ("", "Endpoints", name) => !services.contains(&(&*key.namespace, name)),
        ("discovery.k8s.io", "EndpointSlice", _) => {
            let labels = metadata.and_then(|metadata| metadata.get("labels"));
            labels.and_then(|labels| labels.get("endpointslice.kubernetes.io/managed-by")).is_none()
        }
        _ => true,
    }
}

/// The scopes that the repository shows for kinds beyond Kubernetes' own.
#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    known: BTreeMap<(&'a str, &'a str), ObjectScope>,
}

impl<'a> Scopes<'a> {
    pub fn new(plain: &'a [&'a Document]) -> Scopes<'a> {
        let mut known = BTreeMap::new();
        for key in plain.iter().map(|document| &document.key) {
            let scope = if key.namespace.is_empty() { ObjectScope::Cluster } else { ObjectScope::Namespaced };
            // An object without a namespace does not contradict one with a namespace.
            let scope_of_kind = known.entry((&*key.group, &*key.kind)).or_insert(scope);
            if scope == ObjectScope::Namespaced {
                *scope_of_kind = scope;
            }
        }
        known.extend(plain.iter().filter_map(|document| definition(document)));
        Scopes { known }
    }

    pub fn of(&self, group: &str, kind: &str) -> Option<ObjectScope> {
        ObjectScope::of_built_in(group, kind)
            .or_else(|| kinds::scope(group, kind))
            .or_else(|| self.known.get(&(group, kind)).copied())
    }
}

fn definition(document: &ParsedDocument) -> Option<((&str, &str), ObjectScope)> {
    let key = &document.key;
    if (&*key.group, &*key.kind) != DEFINITION {
        return None;
    }
    let spec = document.root.get("spec")?;
    let group = spec.get("group")?.as_str()?;
    let kind = spec.get("names")?.get("kind")?.as_str()?;
    Some(((group, kind), ObjectScope::of_word(spec.get("scope")?.as_str()?)))
}

const METADATA: [&str; 8] = [
    "resourceVersion",
    "generation",
    "uid",
    "selfLink",
    "deletionTimestamp",
    "managedFields",
    "creationTimestamp",
    "ownerReferences",
];

const ANNOTATIONS: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"];

const CONTROLLER_UID: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Returns the object of a document as members get it.
fn without_hub_fields(document: &ParsedDocument) -> Object {
    let mut content = document.root.to_json();
    if let Some(fields) = content.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = inner(fields, "metadata") {
            METADATA.iter().for_each(|key| drop(metadata.remove(*key)));
            remove_from(metadata, "annotations", &ANNOTATIONS);
        }
        match (&*document.key.group, &*document.key.kind) {
            ("", "Service") => service(fields),
            ("batch", "Job") => job(fields),
            _ => {}
        }
    }
    Object { id: document.id(), origin: document.at.clone(), content: Packed::of(&content) }
}

/// Removes addresses and ports that the hub assigned. Chosen node ports cannot be distinguished from assigned
/// ones.
fn service(fields: &mut Map<String, Json>) {
    let Some(spec) = inner(fields, "spec") else { return };
    if spec.get("clusterIP").and_then(Json::as_str) != Some("None") {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    spec.remove("healthCheckNodePort");
    let ports = spec.get_mut("ports").and_then(Json::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Json::as_object_mut) {
        port.remove("nodePort");
    }
}

/// Removes the labels by which a Job's controller finds its pods, if the controller added them.
fn job(fields: &mut Map<String, Json>) {
    let Some(spec) = inner(fields, "spec") else { return };
    if spec.get("manualSelector").and_then(Json::as_bool) == Some(true) {
        return;
    }
    if let Some(selector) = inner(spec, "selector") {
        remove_in(selector, "matchLabels", &CONTROLLER_UID);
    }
    if let Some(metadata) = inner(spec, "template").and_then(|template| inner(template, "metadata")) {
        metadata.remove("creationTimestamp");
        remove_in(metadata, "labels", &CONTROLLER_UID);
    }
}

fn inner<'a>(fields: &'a mut Map<String, Json>, key: &str) -> Option<&'a mut Map<String, Json>> {
    fields.get_mut(key)?.as_object_mut()
}

/// Removes keys from a mapping, which may become empty.
fn remove_in(fields: &mut Map<String, Json>, key: &str, unwanted: &[&str]) {
    if let Some(map) = inner(fields, key) {
        unwanted.iter().for_each(|key| drop(map.remove(*key)));
    }
}

/// Removes keys like [`remove_in`], and the mapping too if it becomes empty.
fn remove_from(fields: &mut Map<String, Json>, key: &str, unwanted: &[&str]) {
    let had = inner(fields, key).is_some_and(|map| !map.is_empty());
    remove_in(fields, key, unwanted);
    if had && inner(fields, key).is_some_and(|map| map.is_empty()) {
        fields.remove(key);
    }
}
