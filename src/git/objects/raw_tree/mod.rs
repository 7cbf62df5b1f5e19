//! Trees as Git stores them, and the differences of two. Reading and editing them creates no value per entry,
//! since one folder may hold all clusters of a fleet. A comparison skips ranges that are equal between marks.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;

use super::repo::{Entry, EntryKind, MODE_FILE, MODE_FOLDER};

const ID: usize = 20;

/// The size from which a tree gets marks, in bytes.
const MARKED: usize = 1 << 11;

/// The entries from one mark to the next.
const APART: usize = 32;

/// A tree as Git stores it. Clones share the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    bytes: Arc<[u8]>,
    /// The offsets of some entries of a larger tree, for binary search.
    marks: Arc<[usize]>,
    /// A larger tree is valid to its end and in Git's order.
    is_sorted: bool,
}

impl Tree {
    pub(super) fn of(bytes: Arc<[u8]>) -> Tree {
        if bytes.len() < MARKED {
            return Tree { bytes, ..Tree::default() };
        }
        let (mut marks, mut at, mut ascends) = (Vec::new(), 0, true);
        let mut last: Option<RawEntry<'_>> = None;
        for (number, entry) in entries(&bytes).enumerate() {
            if number % APART == 0 {
                marks.push(at);
            }
            ascends &= last.is_none_or(|last| in_order(last.place(), entry.place()).is_lt());
            at += entry.bytes.len();
            last = Some(entry);
        }
        let is_sorted = ascends && at == bytes.len();
        Tree { bytes, marks: marks.into(), is_sorted }
    }

    pub(super) fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Returns the id of a folder.
    pub(super) fn folder(&self, name: &[u8]) -> Option<[u8; ID]> {
        Some(self.entry(self.seek(0, (name, true)), (name, true))?.id)
    }

    /// Reports whether the tree holds a file with this name.
    pub(super) fn has_file(&self, name: &[u8]) -> bool {
        self.entry(self.seek(0, (name, false)), (name, false)).is_some()
    }

    /// Returns the edited tree. Each name gets its new entry, or is removed if it has none.
    pub(super) fn edited<'e>(&self, edits: &BTreeMap<&'e [u8], Option<EntryKind>>) -> Tree {
        // Git sorts a folder elsewhere than a file of the same name, and an edit may replace one with the other.
        let at_both = |(name, kind): (&&'e [u8], &Option<EntryKind>)| {
            [false, true]
                .map(|is_folder| (*name, is_folder, kind.filter(|kind| place(name, *kind).1 == is_folder)))
        };
        let mut places: Vec<(&[u8], bool, Option<EntryKind>)> = edits.iter().flat_map(at_both).collect();
        places.sort_by(|one, other| in_order((one.0, one.1), (other.0, other.1)));
        let mut bytes = Vec::with_capacity(self.bytes.len() + 48 * edits.len());
        // Unchanged entries are copied in one piece, up to the next edited place.
        let (mut begin, mut stay_in_place) = (0, true);
        for (name, is_folder, kind) in places {
            let at = self.seek(begin, (name, is_folder));
            bytes.extend(self.bytes.get(begin..at).unwrap_or_default());
            let old = self.entry(at, (name, is_folder)).map_or(0, |old| old.bytes.len());
            let length = bytes.len();
            kind.into_iter().for_each(|kind| write(&mut bytes, name, kind));
            stay_in_place &= bytes.len() - length == old;
            begin = at + old;
        }
        bytes.extend(self.bytes.get(begin..).unwrap_or_default());
        match stay_in_place {
            true => Tree { bytes: bytes.into(), ..self.clone() },
            false => Tree::of(bytes.into()),
        }
    }

    /// Returns the offset of the first entry that does not sort before `place`. The caller knows that it is at or
    /// after `behind`.
    fn seek(&self, behind: usize, place: (&[u8], bool)) -> usize {
        let comes_before = |entry: &RawEntry<'_>| in_order(entry.place(), place).is_lt();
        let marks_before = self
            .marks
            .partition_point(|mark| self.entries_from(*mark).next().is_some_and(|one| comes_before(&one)));
        let mark = marks_before.checked_sub(1).and_then(|last| self.marks.get(last));
        let from = behind.max(mark.copied().unwrap_or_default());
        let passed = self.entries_from(from).take_while(comes_before);
        from + passed.map(|entry| entry.bytes.len()).sum::<usize>()
    }

    fn entry(&self, at: usize, place: (&[u8], bool)) -> Option<RawEntry<'_>> {
        self.entries_from(at).next().filter(|entry| entry.place() == place)
    }

    fn entries_from(&self, at: usize) -> Entries<'_> {
        entries(self.bytes.get(at..).unwrap_or_default())
    }
}

/// An entry within a tree's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawEntry<'b> {
    pub(super) name: &'b [u8],
    pub(super) is_folder: bool,
    pub(super) id: [u8; ID],
    bytes: &'b [u8],
}

impl<'b> RawEntry<'b> {
    /// Returns the name and whether the entry is a folder. Git orders by both.
    pub(super) fn place(&self) -> (&'b [u8], bool) {
        (self.name, self.is_folder)
    }

    pub(super) fn kind(&self) -> EntryKind {
        let octal = |mode: u32, digit: &u8| (mode << 3) | u32::from(digit & 7);
        let mode = self.bytes.iter().take_while(|byte| **byte != b' ').fold(0, octal);
        EntryKind::of(mode, self.id)
    }
}

/// Iterates over a tree's entries in the order of its bytes. Stops at the first malformed entry.
#[derive(Clone, Debug)]
pub(super) struct Entries<'b> {
    rest: &'b [u8],
}

pub(super) fn entries(tree: &[u8]) -> Entries<'_> {
    Entries { rest: tree }
}

impl<'b> Iterator for Entries<'b> {
    type Item = RawEntry<'b>;

    fn next(&mut self) -> Option<RawEntry<'b>> {
        // A mode usually has five or six digits.
        let mode = self.rest.iter().take(8).take_while(|byte| (b'0'..=b'7').contains(*byte)).count();
        let name = self.rest.get(mode..)?.strip_prefix(b" ").filter(|_| mode > 0)?;
        let length = name.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
        let (bytes, after) = self.rest.split_at_checked(mode + 1 + length + 1 + ID)?;
        self.rest = after;
        // Some old tools wrote a leading zero.
        let is_folder = bytes.iter().skip_while(|byte| **byte == b'0').take(6).eq(b"40000 ");
        Some(RawEntry { name: &name[..length], is_folder, id: *bytes.last_chunk()?, bytes })
    }
}

/// Returns the bytes of a tree with these entries, which may come in any order.
pub(super) fn of(mut entries: Vec<Entry>) -> Vec<u8> {
    entries.sort_by(|one, other| in_order(place(&one.name, one.kind), place(&other.name, other.kind)));
    let mut bytes = Vec::with_capacity(48 * entries.len());
    entries.iter().for_each(|entry| write(&mut bytes, &entry.name, entry.kind));
    bytes
}

fn place(name: &[u8], kind: EntryKind) -> (&[u8], bool) {
    (name, matches!(kind, EntryKind::Folder(_)))
}

fn write(bytes: &mut Vec<u8>, name: &[u8], kind: EntryKind) {
    let (mode, id) = match kind {
        EntryKind::File(id) => (MODE_FILE, id.0),
        EntryKind::Folder(id) => (MODE_FOLDER, id.0),
        EntryKind::Other { mode, id } => (mode, id),
    };
    let _ = write!(bytes, "{mode:o} ");
    bytes.extend(name);
    bytes.push(0);
    bytes.extend(id);
}

/// Compares two names, each with a flag for a folder. Git sorts a folder's name as if it ended in a slash.
pub(super) fn in_order((a, a_is_folder): (&[u8], bool), (b, b_is_folder): (&[u8], bool)) -> Ordering {
    let common = a.len().min(b.len());
    let ((a_common, a_rest), (b_common, b_rest)) = (a.split_at(common), b.split_at(common));
    let slash = |is_folder: bool| is_folder.then_some(&b'/');
    a_common
        .cmp(b_common)
        .then_with(|| a_rest.iter().chain(slash(a_is_folder)).cmp(b_rest.iter().chain(slash(b_is_folder))))
}

/// An entry that differs between two trees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'b> {
    pub(super) name: &'b [u8],
    pub(super) is_folder: bool,
    pub(super) before: Option<EntryKind>,
    pub(super) after: Option<EntryKind>,
}

/// Returns the entries that differ between two trees, in Git's order. `None` if one of the two is not a valid tree.
pub(super) fn changes<'b>(before: &'b Tree, after: &'b Tree) -> Option<Vec<Change<'b>>> {
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

#[cfg(test)]
mod tests;
