//! Slips in the templates of a fleet, each at the place in its file.

use std::collections::{BTreeMap, BTreeSet};

use crate::slips::{self, Slip};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{Object, Workload};
use berth_base::parallel;
use berth_base::source::SourceTree;
use berth_base::yaml::{self, Limits, Mark, Node, Value};

/// Warnings for fields of built-in kinds that are surely misspelt, for every object of these workloads.
pub fn of<'f>(workloads: impl Iterator<Item = &'f Workload>, tree: &SourceTree) -> Diagnostics {
    let mut found = Diagnostics::new();
    let mut files = BTreeMap::new();
    let templates = workloads.flat_map(|workload| &workload.templates);
    let mut seen = BTreeSet::new();
    let objects = templates.map(|template| &*template.object);
    // Several placements may carry one object.
    let objects: Vec<&Object> = objects.filter(|object| seen.insert((&object.origin, &object.id))).collect();
    let slips = parallel::map(&objects, |object| slips::slips(&object.content.to_json()));
    for (object, slips) in objects.into_iter().zip(slips) {
        for slip in slips {
            let roots = files.entry(object.origin.file.clone()).or_insert_with(|| {
                let file = tree.files.get(&object.origin.file);
                file.map(|file| yaml::read(&file.bytes, &Limits::default()).documents).unwrap_or_default()
            });
            let nodes = roots.iter().map(|document| &document.root);
            let at = place(nodes, &object.origin, &slip).unwrap_or_else(|| object.origin.clone());
            let message = format!("{}: unknown field `{}`", object.id, slip.shown());
            let hint = format!("did you mean `{}`?", slip.meant);
            found.push(Diagnostic::warning(at, message).hint(hint));
        }
    }
    found
}

/// The place of the misspelt key, in the document itself or in its template.
fn place<'n>(nodes: impl Iterator<Item = &'n Node>, origin: &Pos, slip: &Slip) -> Option<Pos> {
    let start = Mark { line: origin.line, column: origin.column };
    let mut documents: Vec<&Node> = nodes.collect();
    // The last document that begins no later than the object is described.
    documents.retain(|node| node.at <= start);
    let root = documents.into_iter().max_by_key(|node| node.at)?;
    let template = root.get("spec").and_then(|spec| spec.get("template"));
    let mark = [Some(root), template].into_iter().flatten().find_map(|node| key_mark(node, &slip.path))?;
    Some(Pos::new(origin.file.clone(), mark.line, mark.column))
}

fn key_mark(node: &Node, path: &[String]) -> Option<Mark> {
    let (first, rest) = path.split_first()?;
    match &node.value {
        Value::Map(entries) => {
            let entry = entries.iter().find(|entry| entry.key == *first)?;
            if rest.is_empty() { Some(entry.at) } else { key_mark(&entry.value, rest) }
        }
        Value::List(items) => key_mark(items.get(first.parse::<usize>().ok()?)?, rest),
        _ => None,
    }
}
