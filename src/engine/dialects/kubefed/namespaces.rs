//! FederatedNamespaces as filters: an object in a namespace reaches only clusters that the namespace
//! reaches.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::config::Planes;
use berth_base::model::placement::{Filter, Rule};
use berth_base::model::{Key, Selector};

/// The federated namespaces by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Namespaces(BTreeMap<String, FederatedNamespace>);

/// A federated namespace and its placement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FederatedNamespace {
    pub(super) key: Key,
    /// `None` if its placement cannot be read.
    pub(super) rule: Option<Rule>,
    /// The placement as written.
    pub(super) text: Json,
    /// Its selector, even if a list of names replaces it.
    pub(super) selector: Option<Selector>,
}

/// The effect of a namespace on the placements in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Narrowing {
    /// No effect: the object has no namespace, or its control plane handles only its own namespace.
    None,
    By {
        filter: Filter,
        text: Json,
    },
    NotFederated(Filter),
    /// The FederatedNamespace exists but cannot be read.
    Unreadable(Key),
}

impl Namespaces {
    pub(super) fn insert(&mut self, name: &str, federated: FederatedNamespace) {
        self.0.insert(name.to_owned(), federated);
    }

    /// Adds the namespaces of another collection.
    pub(super) fn extend(&mut self, others: &Namespaces) {
        self.0.extend(others.0.clone());
    }

    /// Returns the key of a federated namespace, and its selector if it has one.
    pub(super) fn selector(&self, namespace: &str) -> Option<(&Key, Option<&Selector>)> {
        self.0.get(namespace).map(|federated| (&federated.key, federated.selector.as_ref()))
    }

    pub(super) fn narrowing(&self, namespace: &str, planes: &Planes) -> Narrowing {
        match self.0.get(namespace) {
            Some(FederatedNamespace { key, rule: Some(rule), text, .. }) => Narrowing::By {
                filter: Filter { rule: rule.clone(), by: Some(key.clone()) },
                text: text.clone(),
            },
            Some(FederatedNamespace { key, rule: None, .. }) => Narrowing::Unreadable(key.clone()),
            None if planes.is_namespaced(namespace) => Narrowing::None,
            None => {
                let reason = format!(
                    "NamespaceNotFederated: there is no FederatedNamespace `{namespace}/{namespace}`"
                );
                Narrowing::NotFederated(Filter { rule: Rule::Nowhere(reason), by: None })
            }
        }
    }
}
