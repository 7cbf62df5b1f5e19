//! Merge keys: `<<: *defaults` fills in the keys that a mapping does not set itself.

use std::collections::BTreeSet;

use super::fault::{Fault, error};
use super::node::{Entry, Mark, Node, Value};
use crate::diag::Severity;

/// Adds merged mappings' entries to a mapping's own. Own keys win, then earlier mappings of a list.
pub(super) fn apply(
    mut entries: Vec<Entry>,
    merged: Vec<(Mark, Node)>,
    faults: &mut Vec<Fault>,
    warnings: &mut Vec<Fault>,
) -> Vec<Entry> {
    if merged.is_empty() {
        return entries;
    }
    if let Some((at, _)) = merged.get(1) {
        faults.push(error(*at, "the key `<<` is given twice", Some("merge a list: `<<: [*a, *b]`")));
    }
    let mut own: BTreeSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let first_own_after = |at: Mark| entries.iter().any(|entry| entry.at < at);
    let in_doubt = merged.first().is_some_and(|(at, _)| first_own_after(*at));
    let n_own = entries.len();
    for (at, node) in merged {
        let sources = match node.value {
            Value::List(items) => items,
            _ => vec![node],
        };
        for source in sources {
            let Value::Map(others) = source.value else {
                let message = format!("`<<` merges mappings, not {}", source.what());
                faults.push(error(at, &message, Some("write `<<: *name` or a list of such aliases")));
                continue;
            };
            for entry in others {
                if own.insert(entry.key.clone()) {
                    entries.push(entry);
                } else if in_doubt && entries[..n_own].iter().any(|e| e.key == entry.key && e.at < at) {
                    // In go-yaml v2 the last one wins.
                    let message = format!("`<<` comes after `{}`, which it also sets", entry.key);
                    let hint = "put `<<` first: YAML readers differ in the value they take";
                    warnings.push(Fault { severity: Severity::Warning, ..error(at, &message, Some(hint)) });
                }
            }
        }
    }
    entries
}
