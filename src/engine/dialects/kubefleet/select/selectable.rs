//! The objects of the repository that placements may select, by kind and by namespace.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::object_scope::Scopes;
use super::{hub_fields, hub_only};
use crate::dialects::kubefleet::envelope::Envelope;
use crate::dialects::kubefleet::kinds::Scope;
use berth_base::model::object::{ObjectId, version_of};
use berth_base::model::selector::Labels;
use berth_base::model::{Object, Shared};

/// A selectable item: an object, or an envelope for its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Plain(usize),
    Envelope(usize),
}

impl Item {
    /// The index among the plain objects.
    pub fn plain(self) -> Option<usize> {
        match self {
            Item::Plain(index) => Some(index),
            Item::Envelope(_) => None,
        }
    }
}

/// The selectable items. Objects that stay on the hub, or that are being deleted, are left out.
#[derive(Debug)]
pub struct Selectable<'a> {
    plain: &'a [Arc<Object>],
    envelopes: &'a [Shared<Envelope>],
    by_kind: BTreeMap<&'a str, BTreeMap<&'a str, Vec<Item>>>,
    by_namespace: BTreeMap<&'a str, Vec<Item>>,
    scopes: Scopes<'a>,
    /// As they travel, without what belongs to the hub: made when first needed.
    travelling: Vec<OnceCell<Arc<Object>>>,
}

impl<'a> Selectable<'a> {
    pub fn new(plain: &'a [Arc<Object>], envelopes: &'a [Shared<Envelope>]) -> Selectable<'a> {
        let services: BTreeSet<(&str, &str)> = plain
            .iter()
            .filter(|object| object.id.group.is_empty() && &*object.id.kind == "Service")
            .map(|object| (&*object.id.namespace, &*object.id.name))
            .collect();
        let mut stock = Selectable {
            plain,
            envelopes,
            by_kind: BTreeMap::new(),
            by_namespace: BTreeMap::new(),
            scopes: Scopes::new(plain),
            travelling: plain.iter().map(|_| OnceCell::new()).collect(),
        };
        for (index, object) in plain.iter().enumerate() {
            if hub_only::travels(object, &services) {
                stock.add(&object.id, Item::Plain(index));
            }
        }
        for (index, envelope) in envelopes.iter().enumerate() {
            stock.add(&envelope.id, Item::Envelope(index));
        }
        stock
    }

    fn add(&mut self, id: &'a ObjectId, item: Item) {
        self.by_kind.entry(&id.group).or_default().entry(&id.kind).or_default().push(item);
        if !id.namespace.is_empty() {
            self.by_namespace.entry(&id.namespace).or_default().push(item);
        }
    }

    pub fn of_kind(&self, group: &str, kind: &str) -> &[Item] {
        let kinds = self.by_kind.get(group);
        kinds.and_then(|kinds| kinds.get(kind)).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn in_namespace(&self, namespace: &str) -> &[Item] {
        self.by_namespace.get(namespace).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn scope(&self, group: &str, kind: &str) -> Option<Scope> {
        self.scopes.of(group, kind)
    }

    pub fn id(&self, item: Item) -> &'a ObjectId {
        match item {
            Item::Plain(index) => &self.plain[index].id,
            Item::Envelope(index) => &self.envelopes[index].id,
        }
    }

    pub fn version(&self, item: Item) -> &'a str {
        match item {
            Item::Plain(index) => version_of(
                self.plain[index].content.get("apiVersion").and_then(Json::as_str).unwrap_or_default(),
            ),
            Item::Envelope(index) => &self.envelopes[index].version,
        }
    }

    pub fn labels(&self, item: Item) -> Labels {
        match item {
            Item::Plain(index) => labels_of(&self.plain[index].content),
            Item::Envelope(index) => self.envelopes[index].labels.clone(),
        }
    }

    /// The objects an item stands for, as they go to clusters. What is in an envelope goes as it is.
    pub fn objects(&self, item: Item) -> Vec<Arc<Object>> {
        match item {
            Item::Plain(index) => {
                vec![
                    self.travelling[index]
                        .get_or_init(|| hub_fields::without_hub_fields(&self.plain[index]))
                        .clone(),
                ]
            }
            Item::Envelope(index) => self.envelopes[index].objects.clone(),
        }
    }
}

fn labels_of(content: &Json) -> Labels {
    let labels =
        content.get("metadata").and_then(|metadata| metadata.get("labels")).and_then(Json::as_object);
    let text = |(key, value): (&String, &Json)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.map(|labels| labels.iter().filter_map(text).collect()).unwrap_or_default()
}
