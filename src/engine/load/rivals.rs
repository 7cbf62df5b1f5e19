//! Rivals: documents of which only one can be valid, because they describe one object, or because they
//! contradict each other about one cluster.
//!
//! Rivals count as broken until people remove one of them. The last good form of the described object stays
//! in effect, so an added description never wins over the earlier one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::assemble::Assembled;
use super::last_good::{History, LastGood, chunk_of};
use super::tree_objects::TreeObjects;
use crate::dialects::Claim;
use berth_base::model::Key;
use berth_base::source::SourceTree;

/// Documents of which only one can be valid.
#[derive(Clone, Debug, Default)]
pub(super) struct Rivals {
    /// The first document that describes an object, or all that describe a cluster.
    pub documents: BTreeSet<usize>,
    /// The files of further descriptions of the same object, which are otherwise ignored.
    pub others: BTreeSet<Arc<str>>,
}

impl Rivals {
    /// Returns the files of all documents.
    fn files<'o>(&'o self, objects: &'o TreeObjects) -> impl Iterator<Item = &'o Arc<str>> {
        let own = self.documents.iter().map(|index| &objects.documents[*index].at.file);
        own.chain(&self.others)
    }
}

/// Adds the last good forms of rivals to those of broken files. Returns the rivals that these forms replace.
/// `own_faults` are the documents with their own faults.
pub(super) fn settle(
    objects: &TreeObjects,
    first: &Assembled,
    own_faults: &BTreeSet<usize>,
    (tree, history): (&SourceTree, History<'_>),
    kept: &mut LastGood,
) -> BTreeSet<usize> {
    let mut dropped = BTreeSet::new();
    for rivals in &first.rivals {
        let known: BTreeSet<&Key> = kept.documents.iter().map(|document| &document.key).collect();
        let (has_form, has_none): (Vec<usize>, Vec<usize>) =
            rivals.documents.iter().partition(|index| known.contains(&objects.documents[**index].key));
        match history {
            History::Unavailable => {
                // As with an unreadable file, current objects stay. A cluster must not be missing.
                let is_cluster = |index: &usize| first.claims.get(*index) == Some(&Claim::Inventory);
                dropped.extend(has_none.into_iter().filter(|index| !is_cluster(index)));
                continue;
            }
            // No earlier form exists: the first description becomes the last good form.
            History::None | History::Known(_) if has_form.is_empty() => {
                for index in has_none.into_iter().filter(|index| !own_faults.contains(index)) {
                    let (document, slot) = (&objects.documents[index], &objects.slots[index]);
                    let text =
                        tree.files.get(&*document.at.file).map(|file| &*file.bytes).unwrap_or_default();
                    let rest = || objects.countable_text(tree, &document.at.file, &first.faulty);
                    kept.add(document, &chunk_of(text, document, slot), rest);
                }
            }
            History::None | History::Known(_) => dropped.extend(has_none),
        }
        // A later pass must not find a second description in the last good forms.
        for file in rivals.files(objects) {
            let rest = || objects.countable_text(tree, file, &first.faulty);
            kept.files.entry(file.to_string()).or_insert_with(rest);
        }
    }
    dropped
}
