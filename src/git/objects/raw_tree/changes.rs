//! Compares two trees. Ranges that are equal between marks are skipped.

use std::cmp::Ordering;
use std::ops::Range;

use super::super::repo::EntryKind;
use super::{Entries, RawEntry, Tree, entries, in_order};

/// An entry that differs between two trees.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Change<'b> {
    pub(in super::super) name: &'b [u8],
    pub(in super::super) is_folder: bool,
    pub(in super::super) before: Option<EntryKind>,
    pub(in super::super) after: Option<EntryKind>,
}

/// Returns the entries that differ between two trees, in Git's order. `None` if one of the two is not a valid tree.
pub(in super::super) fn changes<'b>(before: &'b Tree, after: &'b Tree) -> Option<Vec<Change<'b>>> {
    let (start, end) = common(before, after);
    let [before, after] =
        [before, after].map(|tree| tree.bytes.get(start..tree.bytes.len() - end).unwrap_or_default());
    let (mut old, mut new) = (entries(before), entries(after));
    let mut changes = merged(&mut old, &mut new);
    if changes.is_none() {
        // Only a handmade tree has another order, or a name twice.
        (old, new) = (entries(before), entries(after));
        changes = merged(sorted(&mut old).into_iter(), sorted(&mut new).into_iter());
    }
    changes.filter(|_| old.rest.is_empty() && new.rest.is_empty())
}

/// Returns the lengths of the equal beginnings and the equal ends of two trees, rounded to marks.
fn common(before: &Tree, after: &Tree) -> (usize, usize) {
    if !before.is_sorted || !after.is_sorted {
        return (0, 0);
    }
    let is_same = |piece: Range<usize>| before.bytes.get(piece.clone()) == after.bytes.get(piece);
    let same_marks = before.marks.iter().zip(&*after.marks).take_while(|(one, other)| one == other);
    let same_marks: Vec<usize> = same_marks.map(|(mark, _)| *mark).collect();
    let same = same_marks.windows(2).take_while(|pair| is_same(pair[0]..pair[1])).count();
    let start = same_marks.get(same).copied().unwrap_or_default();
    let length = before.bytes.len();
    if length != after.bytes.len() || same_marks.len() < before.marks.len() {
        return (start, 0);
    }
    let ends = same_marks.iter().rev().scan(length, |end, mark| Some((*mark, std::mem::replace(end, *mark))));
    let last = ends.take_while(|(mark, end)| *mark > start && is_same(*mark..*end)).last();
    (start, last.map_or(0, |(mark, _)| length - mark))
}

/// Merges both sides. `None` if one of them is not in ascending order.
fn merged<'b>(
    mut before: impl Iterator<Item = RawEntry<'b>>,
    mut after: impl Iterator<Item = RawEntry<'b>>,
) -> Option<Vec<Change<'b>>> {
    let mut changes = Vec::new();
    let (mut old, mut new) = (before.next(), after.next());
    let next = |from: &mut dyn Iterator<Item = RawEntry<'b>>, last: RawEntry<'b>| {
        let next = from.next();
        let ascends = next.is_none_or(|next| in_order(last.place(), next.place()).is_lt());
        ascends.then_some(next)
    };
    loop {
        let order = match (&old, &new) {
            (Some(old), Some(new)) => in_order(old.place(), new.place()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return Some(changes),
        };
        let gone = old.filter(|_| order.is_le());
        let come = new.filter(|_| order.is_ge());
        if gone.map(|entry| entry.bytes) != come.map(|entry| entry.bytes)
            && let Some(RawEntry { name, is_folder, .. }) = gone.or(come)
        {
            let [before, after] = [gone, come].map(|side| side.map(|entry| entry.kind()));
            changes.push(Change { name, is_folder, before, after });
        }
        if let Some(gone) = gone {
            old = next(&mut before, gone)?;
        }
        if let Some(come) = come {
            new = next(&mut after, come)?;
        }
    }
}

/// Returns all entries in Git's order. Of entries with the same name, the last counts.
fn sorted<'b>(tree: &mut Entries<'b>) -> Vec<RawEntry<'b>> {
    let mut all: Vec<_> = tree.collect();
    all.reverse();
    all.sort_by(|one, other| in_order(one.place(), other.place()));
    all.dedup_by(|later, kept| later.place() == kept.place());
    all
}
