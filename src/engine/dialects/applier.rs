//! The annotation `berth.dev/applier` of a cluster, whatever kind describes it.

use berth_base::diag::{Diagnostic, nearest};
use berth_base::model::Applier;
use berth_base::model::applier::{ANNOTATION, APPLIERS};
use berth_base::yaml::{Node, Scope};

/// Reads the name of the program that applies the cluster's folder. `None` if the document names none.
pub(super) fn read(scope: &Scope, root: &Node) -> Option<&'static Applier> {
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
