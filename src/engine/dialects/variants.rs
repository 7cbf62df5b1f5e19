//! The forms that a source gives an object in some clusters, as overrides before those of people.

use std::sync::Arc;

use super::{Document, Variants};
use berth_base::diag::Pos;
use berth_base::model::object::Object;
use berth_base::model::{Action, Operation, Override};
use berth_base::patch::operations_between;

/// Returns the overrides that give clusters their form of a document's object, or `None` if the forms are not known.
/// `object` is the object as clusters get it, and `travelling` makes it from a document.
pub(super) fn overrides(
    document: &Document,
    object: &Object,
    travelling: impl Fn(&Document) -> Object,
) -> Option<Vec<Override>> {
    let (by, variants) = match &document.variants {
        Variants::None => return Some(Vec::new()),
        Variants::Unknown => return None,
        Variants::Of { source, forms } => (source, forms),
    };
    let objects = Arc::from([object.id.clone()]);
    let before = object.content.to_json();
    let mut overrides = Vec::new();
    for variant in variants.iter() {
        let (action, origin) = match &variant.document {
            Some(form) => {
                let operations = operations(&before, form, &travelling);
                if operations.is_empty() {
                    continue;
                }
                (Action::Patch(operations.into()), form.at.clone())
            }
            None => (Action::Delete, document.at.clone()),
        };
        let clusters = variant.clusters.clone();
        overrides.push(Override {
            by: by.clone(),
            origin,
            clusters,
            objects: Some(Arc::clone(&objects)),
            action,
        });
    }
    Some(overrides)
}

fn operations(
    before: &serde_json::Value,
    form: &Document,
    travelling: impl Fn(&Document) -> Object,
) -> Vec<Operation> {
    let mut operations = operations_between(before, &travelling(form).content.to_json());
    for operation in &mut operations {
        let mark = form.root.view().nearest(operation.path.parts());
        operation.at = Pos::new(form.at.file.clone(), mark.line, mark.column);
    }
    operations
}
