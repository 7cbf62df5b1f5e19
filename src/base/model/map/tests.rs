//! Compares the map with a plain one, and measures the cost of a comparison.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Applies edits to a map and to a plain one: a value sets a key, `None` removes it.
fn edit(map: &mut Map<u16, u8>, plain: &mut BTreeMap<u16, u8>, edits: &[(u16, Option<u8>)]) {
    for (key, value) in edits {
        let [one, other] = match value {
            Some(value) => [map.insert(*key, *value), plain.insert(*key, *value)],
            None => [map.remove(key), plain.remove(key)],
        };
        assert_eq!(one, other);
    }
}

fn edits(most: usize) -> impl Strategy<Value = Vec<(u16, Option<u8>)>> {
    prop::collection::vec((0..1_000_u16, prop::option::weighted(0.7, 0..3_u8)), 0..most)
}

proptest! {
    #[test]
    fn it_is_the_map_that_a_plain_one_is(first in edits(1_500), second in edits(40), at in 0..1_000_u16) {
        let (mut before, mut plain) = (Map::new(), BTreeMap::new());
        edit(&mut before, &mut plain, &first);
        let (mut after, old) = (before.clone(), plain.clone());
        edit(&mut after, &mut plain, &second);
        prop_assert!(before.iter().eq(&old) && before.len() == old.len());
        prop_assert!(after.iter().eq(&plain) && after.len() == plain.len());
        prop_assert!(after.range_from(&at).eq(plain.range(at..)));
        prop_assert_eq!(after.get(&at), plain.get(&at));
        let mut cursor = after.cursor();
        for key in (0..1_000).chain([at, 7, 7, 8, 3]) {
            prop_assert_eq!(cursor.get(&key), plain.get(&key));
        }
        let keys: std::collections::BTreeSet<u16> = old.keys().chain(plain.keys()).copied().collect();
        let wanted = keys.iter().map(|key| (key, old.get(key), plain.get(key)));
        let found = before.changes(&after).map(|one| (one.key, one.before, one.after));
        prop_assert!(found.eq(wanted.filter(|(_, before, after)| before != after)));
        prop_assert_eq!(before == after, old == plain);
        prop_assert!(after.clone().into_iter().eq(plain.clone()));
        let mut adopted: Map<u16, u8> = plain.iter().map(|(key, value)| (*key, *value)).collect();
        adopted.adopt(&before, u8::eq);
        prop_assert_eq!(&adopted, &after);
        let even = |key: &u16| key.is_multiple_of(2);
        let mut updated = after.clone();
        updated.update(|key, value| even(key).then_some(value + 10));
        let wanted = plain.iter().map(|(key, value)| (*key, if even(key) { value + 10 } else { *value }));
        prop_assert!(updated.into_iter().eq(wanted));
        let pairs = second.iter().filter_map(|(key, value)| Some((*key, (*value)?)));
        let (mut extended, mut wanted) = (before.clone(), old.clone());
        extended.extend(pairs.clone());
        wanted.extend(pairs);
        prop_assert_eq!(extended.len(), wanted.len());
        prop_assert!(extended.into_iter().eq(wanted));
        let mut all = after.clone();
        all.values_mut().for_each(|value| *value += 1);
        prop_assert!(all.values().copied().eq(plain.values().map(|value| value + 1)));
        let mut kept = after.clone();
        kept.retain(|key, _| even(key));
        prop_assert!(kept.keys().eq(plain.keys().filter(|key| even(key))));
        prop_assert_eq!(kept.len(), kept.iter().count());
        prop_assert_eq!(after, plain.into_iter().collect::<Map<u16, u8>>());
    }
}

#[test]
fn one_change_looks_at_one_chunk() {
    /// A value that counts its comparisons.
    #[derive(Clone)]
    struct Counted<'c>(u8, &'c std::cell::Cell<usize>);
    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }
    let compared = std::cell::Cell::new(0);
    let before: Map<u32, Counted<'_>> = (0..100_000).map(|key| (key, Counted(0, &compared))).collect();
    let mut after = before.clone();
    after.insert(70_000, Counted(1, &compared));
    after.insert(100_001, Counted(1, &compared));
    let keys: Vec<u32> = before.changes(&after).map(|one| *one.key).collect();
    assert_eq!(keys, [70_000, 100_001]);
    assert!(compared.get() <= 2 * FULL, "{} values were compared", compared.get());
}
