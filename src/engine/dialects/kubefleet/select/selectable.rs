//! The objects of the repository that placements may select, by kind, namespace and name.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::object_scope::Scopes;
use super::{hub_fields, hub_only};
use crate::dialects::kubefleet::envelope::Envelope;
use crate::dialects::kubefleet::kinds::Scope;
use berth_base::model::object::{ObjectId, version_of};
use berth_base::model::selector::Labels;
use berth_base::model::{Object, Shared};
use berth_base::packed::{Packed, View};

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
    /// By group, kind, namespace and name.
    by_name: BTreeMap<[&'a str; 4], Vec<Item>>,
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
            by_name: BTreeMap::new(),
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
        self.by_name.entry([&id.group, &id.kind, &id.namespace, &id.name]).or_default().push(item);
        if !id.namespace.is_empty() {
            self.by_namespace.entry(&id.namespace).or_default().push(item);
        }
    }

    /// The items of a kind in a namespace, those of one name only where a name is given.
    pub fn of_kind<'s>(
        &'s self,
        group: &'s str,
        kind: &'s str,
        namespace: &'s str,
        name: Option<&'s str>,
    ) -> impl Iterator<Item = Item> + 's {
        let from = [group, kind, namespace, name.unwrap_or_default()];
        let wanted = if name.is_some() { 4 } else { 3 };
        let found = self.by_name.range(from..).take_while(move |(key, _)| key[..wanted] == from[..wanted]);
        found.flat_map(|(_, items)| items.iter().copied())
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
                self.plain[index].content.get("apiVersion").and_then(View::as_str).unwrap_or_default(),
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

fn labels_of(content: &Packed) -> Labels {
    let labels = content.get("metadata").and_then(|metadata| metadata.get("labels"));
    let text = |(key, value): (&str, View<'_>)| Some((key.to_owned(), value.as_str()?.to_owned()));
    labels.into_iter().flat_map(View::entries).filter_map(text).collect()
}
