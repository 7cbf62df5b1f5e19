//! The objects of the repository that placements may select, by kind, namespace and name.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::object_scope::Scopes;
use super::{hub_fields, hub_only};
use crate::dialects::kubefleet::envelope::Envelope;
use crate::dialects::kubefleet::kinds::Scope;
use crate::dialects::{Document, ReadingContext};
use berth_base::model::object::ObjectId;
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

/// Group, kind, namespace and name.
pub type Parts<'a> = [&'a str; 4];

/// The selectable items. Objects that stay on the hub, or that are being deleted, are left out.
#[derive(Debug)]
pub struct Selectable<'a> {
    plain: &'a [&'a Document],
    envelopes: &'a [Shared<Envelope>],
    /// Ordered by their parts.
    by_name: Vec<Item>,
    /// Those with a namespace, ordered by it.
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
        let travels = |index: &usize| hub_only::travels(plain[*index], &services);
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

    /// The items of a kind in a namespace, those of one name only where a name is given.
    pub fn of_kind(&self, group: &str, kind: &str, namespace: &str, name: Option<&str>) -> &[Item] {
        let wanted = [group, kind, namespace, name.unwrap_or_default()];
        let compared = if name.is_some() { 4 } else { 3 };
        equal(&self.by_name, |item| self.parts(item)[..compared].cmp(&wanted[..compared]))
    }

    pub fn in_namespace(&self, namespace: &str) -> &[Item] {
        equal(&self.by_namespace, |item| self.namespace(item).cmp(namespace))
    }

    pub fn scope(&self, group: &str, kind: &str) -> Option<Scope> {
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

    /// The objects an item stands for, as they go to clusters. What is in an envelope goes as it is.
    pub fn objects(&self, item: Item) -> Vec<Arc<Object>> {
        match item {
            Item::Plain(index) => {
                let document = self.plain[index];
                let against = ReadingContext::alone("travelling object");
                vec![document.recall(against, || hub_fields::without_hub_fields(document))]
            }
            Item::Envelope(index) => self.envelopes[index].objects.clone(),
        }
    }
}

/// The items that compare as equal, of a list in the order of what is compared.
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
