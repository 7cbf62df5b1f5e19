//! The options for federating objects, from the command line.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::resources::Resources;
use super::types::KnownTypes;

/// The placement of Federated objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Where {
    /// To every cluster, as with KubeFed's own command.
    #[default]
    Everywhere,
    Clusters(Vec<String>),
    /// A label selector in its JSON form.
    Selector(Json),
}

impl Where {
    pub fn placement(&self) -> Json {
        match self {
            Where::Everywhere => json!({"clusterSelector": {"matchLabels": {}}}),
            Where::Clusters(names) => {
                json!({"clusters": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
            }
            Where::Selector(selector) => json!({"clusterSelector": selector}),
        }
    }
}

/// The options of `federate`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub placement: Where,
    /// The namespace of namespaced objects that name none; with `contents`, the namespace to federate.
    pub namespace: Option<String>,
    /// Only the namespaces and their objects.
    pub contents: bool,
    /// Types to skip: by short name, kind, plural, plural with group, or whole group.
    pub skip_api_resources: BTreeSet<String>,
    /// Make type configs for types without a Federated kind.
    pub enable_types: bool,
    pub types: KnownTypes,
    pub resources: Resources,
    /// Namespaces that are already federated elsewhere.
    pub federated_namespaces: BTreeSet<String>,
}
