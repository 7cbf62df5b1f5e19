//! Trees as Git stores them: read, written and edited without a value for each entry, since a fleet's clusters may
//! stand in one folder.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::Write as _;

use super::repo::{Entry, EntryKind, MODE_FILE, MODE_FOLDER};

const ID: usize = 20;

/// An entry of a tree's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawEntry<'b> {
    pub(super) name: &'b [u8],
    pub(super) is_folder: bool,
    pub(super) id: [u8; ID],
    bytes: &'b [u8],
}

impl<'b> RawEntry<'b> {
    /// Returns the name, and whether it is a folder's: Git orders by both.
    pub(super) fn place(&self) -> (&'b [u8], bool) {
        (self.name, self.is_folder)
    }

    pub(super) fn kind(&self) -> EntryKind {
        let octal = |mode: u32, digit: &u8| (mode << 3) | u32::from(digit & 7);
        let mode = self.bytes.iter().take_while(|byte| **byte != b' ').fold(0, octal);
        EntryKind::of(mode, self.id)
    }
}

/// The entries of a tree, in the order of its bytes. They end before the first that is none.
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
        // Five or six digits are usual.
        let mode = self.rest.iter().take(8).take_while(|byte| (b'0'..=b'7').contains(*byte)).count();
        let name = self.rest.get(mode..)?.strip_prefix(b" ").filter(|_| mode > 0)?;
        let length = name.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
        let (bytes, after) = self.rest.split_at_checked(mode + 1 + length + 1 + ID)?;
        self.rest = after;
        let is_folder = bytes.starts_with(b"40000 ");
        Some(RawEntry { name: &name[..length], is_folder, id: *bytes.last_chunk()?, bytes })
    }
}

/// An entry that is not the same in two trees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'b> {
    pub(super) name: &'b [u8],
    pub(super) is_folder: bool,
    pub(super) before: Option<EntryKind>,
    pub(super) after: Option<EntryKind>,
}

/// Returns the entries that are not the same in two trees, in Git's order. `None` where one of them is no tree.
pub(super) fn changes<'b>(before: &'b [u8], after: &'b [u8]) -> Option<Vec<Change<'b>>> {
    let (mut old, mut new) = (entries(before), entries(after));
    let mut changes = merged(&mut old, &mut new);
    if changes.is_none() {
        // Only a tree that somebody made by hand has another order, or a name twice.
        (old, new) = (entries(before), entries(after));
        changes = merged(sorted(&mut old).into_iter(), sorted(&mut new).into_iter());
    }
    changes.filter(|_| old.rest.is_empty() && new.rest.is_empty())
}

/// `None` where one side does not ascend.
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

/// Returns all entries in Git's order. Of those with one name, the last counts.
fn sorted<'b>(tree: &mut Entries<'b>) -> Vec<RawEntry<'b>> {
    let mut all: Vec<_> = tree.collect();
    all.reverse();
    all.sort_by(|one, other| in_order(one.place(), other.place()));
    all.dedup_by(|later, kept| later.place() == kept.place());
    all
}

/// Returns the bytes of a tree with these entries, which may come in any order.
pub(super) fn of(mut entries: Vec<Entry>) -> Vec<u8> {
    entries.sort_by(|one, other| in_order(place(&one.name, one.kind), place(&other.name, other.kind)));
    let mut bytes = Vec::with_capacity(48 * entries.len());
    entries.iter().for_each(|entry| write(&mut bytes, &entry.name, entry.kind));
    bytes
}

/// Returns the bytes of a tree as it becomes with the new entries of some names; none where a name goes.
pub(super) fn edited<'e>(tree: &[u8], edits: &BTreeMap<&'e [u8], Option<EntryKind>>) -> Vec<u8> {
    // A name stands at one place as a folder and at another as anything else, and may go from one to the other.
    let at_both = |(name, kind): (&&'e [u8], &Option<EntryKind>)| {
        [false, true]
            .map(|is_folder| (*name, is_folder, kind.filter(|kind| place(name, *kind).1 == is_folder)))
    };
    let mut places: Vec<(&[u8], bool, Option<EntryKind>)> = edits.iter().flat_map(at_both).collect();
    places.sort_by(|one, other| in_order((one.0, one.1), (other.0, other.1)));
    let mut places = places.into_iter().peekable();
    let mut bytes = Vec::with_capacity(tree.len() + 48 * edits.len());
    // Entries that stay are copied in one piece, up to the next place.
    let (mut begin, mut end) = (0, 0);
    for old in entries(tree) {
        let order =
            |(name, is_folder, _): &(&[u8], bool, _)| in_order((name, *is_folder), (old.name, old.is_folder));
        while let Some((name, _, kind)) = places.next_if(|place| order(place).is_lt()) {
            bytes.extend(tree.get(begin..end).unwrap_or_default());
            begin = end;
            kind.into_iter().for_each(|kind| write(&mut bytes, name, kind));
        }
        let is_edited = places.peek().is_some_and(|place| order(place).is_eq());
        if is_edited {
            bytes.extend(tree.get(begin..end).unwrap_or_default());
            begin = end + old.bytes.len();
        }
        end += old.bytes.len();
    }
    bytes.extend(tree.get(begin..end).unwrap_or_default());
    for (name, _, kind) in places {
        kind.into_iter().for_each(|kind| write(&mut bytes, name, kind));
    }
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

/// Compares two names, each with true for a folder, which Git sorts as if its name ended in a slash.
pub(super) fn in_order((a, a_is_folder): (&[u8], bool), (b, b_is_folder): (&[u8], bool)) -> Ordering {
    let common = a.len().min(b.len());
    let ((a_common, a_rest), (b_common, b_rest)) = (a.split_at(common), b.split_at(common));
    let slash = |is_folder: bool| is_folder.then_some(&b'/');
    a_common
        .cmp(b_common)
        .then_with(|| a_rest.iter().chain(slash(a_is_folder)).cmp(b_rest.iter().chain(slash(b_is_folder))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TreeId;
    use berth_base::model::ContentId;

    const NAMES: [&[u8]; 8] = [b"a", b"a-b", b"a.b", b"a0", b"ab", b"b", b"b c", b"\xff"];
    const KINDS: [EntryKind; 3] = [
        EntryKind::File(ContentId([b' '; ID])),
        EntryKind::Folder(TreeId([0; ID])),
        EntryKind::Other { mode: 0o120_000, id: [7; ID] },
    ];

    type Named<'n> = BTreeMap<&'n [u8], EntryKind>;

    fn bytes(entries: &Named<'_>) -> Vec<u8> {
        of(entries.iter().map(|(name, kind)| Entry { name: name.to_vec(), kind: *kind }).collect())
    }

    /// The names with a kind each, by the digits of a number; none for the digit 0.
    fn named(mut number: usize) -> Named<'static> {
        let mut named = Named::new();
        for name in NAMES {
            if let Some(kind) = (number % 4).checked_sub(1) {
                named.insert(name, KINDS[kind]);
            }
            number /= 4;
        }
        named
    }

    #[test]
    fn an_edited_tree_is_the_tree_of_the_edited_entries() {
        // Steps without a common factor with the number of cases, so that many different pairs are met.
        let cases = 4_usize.pow(8);
        for step in 0..20_000 {
            let (before, after) = (named(step * 7_919 % cases), named(step * 104_729 % cases));
            let names = before.keys().chain(after.keys());
            let changed = names.filter(|name| before.get(*name) != after.get(*name));
            let edits = changed.map(|name| (*name, after.get(name).copied())).collect();
            assert_eq!(edited(&bytes(&before), &edits), bytes(&after), "{before:?} {edits:?}");
        }
    }

    #[test]
    fn two_trees_differ_in_the_entries_that_are_not_the_same() {
        let at_places = |entries: &Named<'static>| -> Vec<_> {
            entries.iter().map(|(name, kind)| (place(name, *kind), *kind)).collect()
        };
        let cases = 4_usize.pow(8);
        for step in 0..20_000 {
            let (before, after) = (named(step * 7_919 % cases), named(step * 104_729 % cases));
            let mut expected: BTreeMap<_, [Option<EntryKind>; 2]> = BTreeMap::new();
            for (side, entries) in [&before, &after].into_iter().enumerate() {
                for (place, kind) in at_places(entries) {
                    expected.entry(place).or_default()[side] = Some(kind);
                }
            }
            expected.retain(|_, [before, after]| before != after);
            let [before, after] = [bytes(&before), bytes(&after)];
            let found = changes(&before, &after).unwrap();
            let is_in_order = |one: &Change<'_>, other: &Change<'_>| {
                in_order((one.name, one.is_folder), (other.name, other.is_folder)).is_lt()
            };
            assert!(found.is_sorted_by(is_in_order));
            let found: BTreeMap<_, _> =
                found.iter().map(|one| ((one.name, one.is_folder), [one.before, one.after])).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn of_entries_with_one_name_the_last_counts_in_any_order() {
        let tree = |entries: &[(&str, u8)]| -> Vec<u8> {
            let entry = |(name, id): &(&str, u8)| [b"100644 ", name.as_bytes(), &[0], &[*id; ID]].concat();
            entries.iter().flat_map(entry).collect()
        };
        let sound = tree(&[("a", 1), ("b", 2), ("c", 3)]);
        let shuffled = tree(&[("c", 4), ("b", 2), ("a", 1), ("c", 3)]);
        assert!(changes(&sound, &shuffled).unwrap().is_empty());
        assert!(changes(&shuffled, &sound).unwrap().is_empty());
        assert_eq!(changes(&shuffled, &tree(&[("a", 1), ("c", 3)])).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_tree_is_not_compared() {
        let sound = b"100644 a\0iiiiiiiiiiiiiiiiiiii".as_slice();
        assert_eq!(changes(b"", sound).unwrap().len(), 1);
        for end in 1..sound.len() {
            assert!(
                changes(b"", &sound[..end]).is_none() && changes(&sound[..end], sound).is_none(),
                "{end}"
            );
        }
        for begin in ["x ", " a", "100644a", "100648 a", "1000000000644 a", "100644 "] {
            let tree = [begin.as_bytes(), &[0; 1 + ID]].concat();
            assert!(changes(b"", &tree).is_none() && changes(&tree, sound).is_none(), "{begin}");
        }
    }

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let all: Named<'_> = NAMES.into_iter().zip(KINDS.into_iter().cycle()).collect();
        let written = bytes(&all);
        let read: Vec<_> = entries(&written).collect();
        assert_eq!(read.iter().map(|entry| entry.bytes).collect::<Vec<_>>().concat(), written);
        for entry in read {
            assert_eq!(entry.is_folder, matches!(all[entry.name], EntryKind::Folder(_)));
        }
        for end in 0..written.len() {
            assert!(entries(&written[..end]).count() < all.len(), "a cut tree has fewer entries");
        }
    }
}
