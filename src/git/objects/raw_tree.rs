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

/// Returns the entries of a tree, in Git's order. They end before the first that is none.
pub(super) fn entries(tree: &[u8]) -> impl Iterator<Item = RawEntry<'_>> {
    let mut rest = tree;
    std::iter::from_fn(move || {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (bytes, after) = rest.split_at_checked(end + 1 + ID)?;
        rest = after;
        let (mode, name) = (bytes.get(..space)?, bytes.get(space + 1..end)?);
        let id = bytes.last_chunk::<ID>()?;
        Some(RawEntry { name, is_folder: mode == b"40000", id: *id, bytes })
    })
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
