//! The options for federating objects, as given on the command line.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::resources::Resources;
use super::types::KnownTypes;

/// The placement of Federated objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Where {
    /// To every cluster, as KubeFed's own command has it.
    #[default]
    Everywhere,
    Clusters(Vec<String>),
    /// A label selector as objects hold it.
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
    /// For namespaced objects that name no namespace; and, with `contents`, the namespace that is meant.
    pub namespace: Option<String>,
    /// Namespaces with what stands in them, and nothing else.
    pub contents: bool,
    /// Types left out: by short name, kind, plural, plural with group, or a whole group.
    pub skip_api_resources: BTreeSet<String>,
    /// Make type configs where a type has no Federated kind yet.
    pub enable_types: bool,
    pub types: KnownTypes,
    pub resources: Resources,
    /// Namespaces that are federated elsewhere already.
    pub federated_namespaces: BTreeSet<String>,
}
