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

fn tree(entries: &Named<'_>) -> Tree {
    Tree::of(bytes(entries).into())
}

/// Decodes a number into names: each digit chooses the kind of one name, 0 omits the name.
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
    // The steps share no factor with the number of cases, so many different pairs occur.
    let cases = 4_usize.pow(8);
    for step in 0..20_000 {
        let (before, after) = (named(step * 7_919 % cases), named(step * 104_729 % cases));
        let names = before.keys().chain(after.keys());
        let changed = names.filter(|name| before.get(*name) != after.get(*name));
        let edits = changed.map(|name| (*name, after.get(name).copied())).collect();
        assert_eq!(**tree(&before).edited(&edits).bytes(), bytes(&after), "{before:?} {edits:?}");
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
        let [before, after] = [tree(&before), tree(&after)];
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
    let tree = |entries: &[(&str, u8)]| {
        let entry = |(name, id): &(&str, u8)| [b"100644 ", name.as_bytes(), &[0], &[*id; ID]].concat();
        Tree::of(entries.iter().flat_map(entry).collect())
    };
    let sound = tree(&[("a", 1), ("b", 2), ("c", 3)]);
    let shuffled = tree(&[("c", 4), ("b", 2), ("a", 1), ("c", 3)]);
    assert!(changes(&sound, &shuffled).unwrap().is_empty());
    assert!(changes(&shuffled, &sound).unwrap().is_empty());
    assert_eq!(changes(&shuffled, &tree(&[("a", 1), ("c", 3)])).unwrap().len(), 1);
    let folders = |modes: &[&str]| {
        let entry = |mode: &&str| [mode.as_bytes(), b" d\0", &[modes.len() as u8; ID]].concat();
        Tree::of(modes.iter().flat_map(entry).collect())
    };
    let (two, one) = (folders(&["40000", "040000"]), folders(&["40000"]));
    assert_eq!(changes(&two, &one).unwrap().len(), 1);
    assert_eq!(folders(&["040000"]).folder(b"d"), Some([1; ID]));
}

#[test]
fn what_is_no_tree_is_not_compared() {
    let sound = b"100644 a\0iiiiiiiiiiiiiiiiiiii".as_slice();
    let differ = |before: &[u8], after: &[u8]| {
        let [before, after] = [before, after].map(|bytes| Tree::of(bytes.into()));
        changes(&before, &after).map(|changes| changes.len())
    };
    assert_eq!(differ(b"", sound), Some(1));
    for end in 1..sound.len() {
        assert_eq!((differ(b"", &sound[..end]), differ(&sound[..end], sound)), (None, None), "{end}");
    }
    for begin in ["x ", " a", "100644a", "100648 a", "1000000000644 a", "100644 "] {
        let tree = [begin.as_bytes(), &[0; 1 + ID]].concat();
        assert_eq!((differ(b"", &tree), differ(&tree, sound)), (None, None), "{begin}");
    }
    // A large tree takes another code path.
    let large: Vec<u8> = (0..1000)
        .flat_map(|number| [format!("100644 {number:04}\0").as_bytes(), &[7; ID]].concat())
        .collect();
    assert_eq!(differ(&large, &large), Some(0));
    assert_eq!(differ(&large, &[&large[..], b"1"].concat()), None);
    assert_eq!(differ(&large[32..], &large[..large.len() - 1]), None);
    let shuffled = [&large[320..], &large[..320], &large[64..96]].concat();
    assert_eq!(differ(&large, &shuffled), Some(0));
    assert_eq!(differ(&shuffled, &large[32..]), Some(1));
}

#[test]
fn large_trees_are_edited_and_compared_as_small_ones_are() {
    let mut entries: BTreeMap<String, EntryKind> = BTreeMap::new();
    let kind = |number: usize| KINDS[number % 3];
    let mut random = 1_usize;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for number in 0..3_000 {
        entries.insert(format!("{}{}", next(900), ["", "-", "."][number % 3]), kind(number));
    }
    let named = |entries: &BTreeMap<String, EntryKind>| {
        tree(&entries.iter().map(|(name, kind)| (name.as_bytes(), *kind)).collect())
    };
    let mut last = named(&entries);
    assert!(last.bytes().len() > MARKED && last.is_sorted);
    for round in 0..300_usize {
        // Some rounds only change ids, so all entries keep their places.
        let (n_edits, only_ids) = (next(6), round % 3 == 0);
        let names: Vec<String> =
            (0..n_edits).map(|_| format!("{}{}", next(950), ["", "-", "."][next(3)])).collect();
        let before = entries.clone();
        for name in &names {
            match entries.get(name) {
                Some(old) if only_ids => {
                    let new = match old {
                        EntryKind::File(_) => EntryKind::File(ContentId([round as u8; ID])),
                        EntryKind::Folder(_) => EntryKind::Folder(TreeId([round as u8; ID])),
                        EntryKind::Other { mode, .. } => {
                            EntryKind::Other { mode: *mode, id: [round as u8; ID] }
                        }
                    };
                    entries.insert(name.clone(), new);
                }
                None if only_ids => {}
                Some(_) if next(2) == 0 => drop(entries.remove(name)),
                _ => drop(entries.insert(name.clone(), kind(next(3)))),
            }
        }
        let edits = names.iter().map(|name| (name.as_bytes(), entries.get(name).copied())).collect();
        let edited = last.edited(&edits);
        let expected = named(&entries);
        assert_eq!((edited.bytes(), &edited.marks), (expected.bytes(), &expected.marks));
        let n_places = |name: &&String| match (before.get(*name), entries.get(*name)) {
            (Some(old), Some(new)) if place(b"", *old) != place(b"", *new) => 2,
            (old, new) => usize::from(old != new),
        };
        let n_changed: usize =
            names.iter().collect::<std::collections::BTreeSet<_>>().iter().map(n_places).sum();
        assert_eq!(changes(&last, &edited).unwrap().len(), n_changed);
        for name in &names {
            let folder = edited.folder(name.as_bytes());
            assert_eq!(folder.is_some(), matches!(entries.get(name), Some(EntryKind::Folder(_))));
        }
        last = edited;
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
