//! The kind by which a dialect describes clusters: the marks that people may set, and the document of a
//! new cluster. Every kind has labels, and the annotation `berth.dev/applier`.

use serde_json::Value as Json;

use berth_base::diag::{Diagnostic, nearest};
use berth_base::model::Applier;
use berth_base::model::applier::{ANNOTATION, APPLIERS};
use berth_base::model::selector::Labels;
use berth_base::yaml::{Node, Scope};

/// A kind that describes clusters.
#[derive(Debug)]
pub struct ClusterKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// The effects that its taints may have; empty if it has no taints.
    pub effects: &'static [&'static str],
    /// The effect that keeps new work away and leaves current work in place.
    pub cordon: Option<&'static str>,
    /// Taints of this kind record the moment of their beginning.
    pub dated: bool,
    /// A cluster without a set label is in the set `default`, whatever its other documents contain.
    pub in_default_set: bool,
    /// The document is faulty without an address of the API server.
    pub needs_endpoint: bool,
    /// Makes the document of a new member.
    pub document: fn(&NewCluster) -> Json,
}

/// A cluster that is about to join, from `berth join`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewCluster {
    pub name: String,
    pub labels: Labels,
    /// The address of its API server. berth never calls this address: members pull.
    pub endpoint: Option<String>,
    /// The name of the Secret, or of the account, that a hub would use.
    pub account: Option<String>,
}

/// Reads the name of the program that applies the cluster's folder. `None` if the document names none.
pub(super) fn read_applier(scope: &Scope, root: &Node) -> Option<&'static Applier> {
    let annotations = root.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let node = annotations?.get(ANNOTATION)?;
    // The reader of metadata has reported values other than text.
    let name = node.as_str()?;
    let applier = Applier::named(name);
    if applier.is_none() {
        let names = || APPLIERS.into_iter().map(|applier| applier.name);
        let hint = match nearest(name, names()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("use one of {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("unknown applier `{name}` in the annotation `{ANNOTATION}`");
        scope.report(Diagnostic::error(scope.pos(node.at), message).hint(hint));
    }
    applier
}
