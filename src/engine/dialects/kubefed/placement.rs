//! `spec.placement` → the selected clusters. A list of names, even an empty one, replaces the selector, which
//! is not read then. An empty placement selects no cluster, an empty selector every one.
//!
//! berth's extension: `placementRef` names a placement of another system that picks the clusters.
//!
//! FederatedNamespaces as filters: an object in a namespace reaches only clusters that the namespace
//! reaches.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::config::Planes;
use berth_base::diag::Severity;
use berth_base::meta::label_selector;
use berth_base::model::placement::{Filter, Rule};
use berth_base::model::{Key, PlacementRef, Selector};
use berth_base::yaml::{Fields, Form, Node, Scope, Value};

/// The kinds that `placementRef` may name, and whether they are namespaced.
const FOLLOWED: [(&str, bool); 3] =
    [("ClusterResourcePlacement", false), ("Placement", true), ("ResourcePlacement", true)];

/// The clusters that a placement selects.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SelectedClusters {
    Clusters(Rule),
    Follow(PlacementRef),
}

/// Reads the `placement` of a spec. `None` if it has a fault; `namespace` is the object's own.
pub(super) fn read(spec: &mut Fields<'_>, namespace: &str) -> Option<SelectedClusters> {
    if spec.node("placement").is_none() {
        return Some(nowhere("spec.placement is not given"));
    }
    let mut fields = spec.fields("placement")?;
    fields.takes("clusters", Form::List);
    fields.takes("clusters[0]", Form::Mapping);
    let clusters = fields.node("clusters");
    let selector = fields.node("clusterSelector");
    let follow = fields.fields("placementRef");
    let scope = fields.scope();
    let wanted = match (follow, clusters, selector) {
        (Some(follow), clusters, selector) => {
            if let Some(other) = clusters.or(selector) {
                scope.error(other.at, "spec.placement has a placementRef and must have no other field");
            }
            read_follow(follow, namespace).map(SelectedClusters::Follow)
        }
        (None, Some(clusters), selector) => {
            warn_of_unread(scope, selector);
            read_names(scope, clusters).map(|names| match names.is_empty() {
                true => nowhere("spec.placement.clusters is an empty list"),
                false => SelectedClusters::Clusters(Rule::Named(names)),
            })
        }
        (None, None, Some(selector)) => label_selector(scope, selector, "spec.placement.clusterSelector")
            .map(|selector| SelectedClusters::Clusters(Rule::Labels(selector))),
        (None, None, None) => Some(nowhere("spec.placement has neither clusters nor clusterSelector")),
    };
    fields.finish();
    wanted
}

/// Returns the selector of a Federated object's placement, whatever its other fields. `None` if it is missing
/// or cannot be read.
pub(super) fn selector_of(root: &Node) -> Option<Selector> {
    let node = root.get("spec")?.get("placement")?.get("clusterSelector").filter(|node| !node.is_null())?;
    let aside = Scope::new("".into(), Severity::Error);
    let selector = label_selector(&aside, node, "clusterSelector");
    selector.filter(|_| !aside.has_errors())
}

fn nowhere(reason: &str) -> SelectedClusters {
    SelectedClusters::Clusters(Rule::Nowhere(reason.to_owned()))
}

fn read_names(scope: &Scope, node: &Node) -> Option<BTreeSet<String>> {
    let Value::List(items) = &node.value else {
        scope.error(node.at, format!("spec.placement.clusters must be a list, not {}", node.what()));
        return None;
    };
    let read = |(index, item): (usize, &Node)| {
        let mut fields = scope.fields(item, &format!("spec.placement.clusters[{index}]"))?;
        let name = fields.required_str("name").map(str::to_owned);
        fields.finish();
        name
    };
    let all: Vec<_> = items.iter().enumerate().map(read).collect();
    all.into_iter().collect()
}

/// Warns of a faulty selector beside names. It has no effect, so its faults are no errors.
fn warn_of_unread(scope: &Scope, selector: Option<&Node>) {
    let Some(selector) = selector else { return };
    let aside = Scope::new("".into(), Severity::Error);
    label_selector(&aside, selector, "spec.placement.clusterSelector");
    if let Some(fault) = aside.into_diagnostics().errors().next() {
        let message =
            format!("the selector has no effect beside spec.placement.clusters, and {}", fault.message);
        scope.warning(selector.at, message);
    }
}

fn read_follow(mut fields: Fields<'_>, own: &str) -> Option<PlacementRef> {
    fields.require("kind");
    let kind = fields.choice("kind", &FOLLOWED.map(|(kind, _)| kind));
    let name = fields.required_str("name");
    let namespace = fields.str("namespace");
    let namespaced = FOLLOWED.iter().any(|(known, namespaced)| Some(*known) == kind && *namespaced);
    if let Some(namespace) = namespace.filter(|namespace| *namespace != own || !namespaced) {
        let must = if namespaced {
            format!("must be `{own}`, the object's own")
        } else {
            "must not be given".to_owned()
        };
        fields.error_at(
            "namespace",
            format!("spec.placement.placementRef.namespace is `{namespace}`, but {must}"),
        );
        return None;
    }
    if namespaced && own.is_empty() {
        let message =
            "spec.placement.placementRef: a cluster-scoped object can only follow a ClusterResourcePlacement";
        fields.error_at("kind", message);
        return None;
    }
    let at = fields.scope().pos(fields.at());
    fields.finish();
    let namespace = if namespaced { own.to_owned() } else { String::new() };
    let (kind, name) = (kind?.to_owned(), name?.to_owned());
    Some(PlacementRef { kind, namespace, name, at })
}

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
