//! For any two folders and any foreign files: berth owns exactly the wanted files, and no foreign file changes.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;

use super::*;

/// Names with values: one folder's ConfigMaps.
fn maps() -> impl Strategy<Value = BTreeMap<u8, u8>> {
    proptest::collection::btree_map(0..8_u8, 0..3_u8, 0..8)
}

fn objects(maps: &BTreeMap<u8, u8>) -> Vec<Json> {
    maps.iter().map(|(name, value)| map(&format!("m{name}"), &value.to_string())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_owned_becomes_what_is_wanted(
        first in maps(),
        second in maps(),
        foreign in proptest::collection::btree_set(0..8_u8, 0..3),
        edited in proptest::collection::btree_set(0..8_u8, 0..3),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &u8| dir.path().join(place(&map(&format!("m{name}"), "")));
        fs::create_dir(dir.path().join("shop")).unwrap();
        for name in &foreign {
            fs::write(at(name), "foreign").unwrap();
        }
        sync(dir.path(), &folder(1, &objects(&first)));
        for name in edited.iter().filter(|name| first.contains_key(name) && !foreign.contains(name)) {
            fs::write(at(name), "edited").unwrap();
        }
        let outcome = sync(dir.path(), &folder(2, &objects(&second)));

        // A conflict blocks all removals, so the rest of the first folder may stay.
        let conflicts: BTreeSet<u8> = second.keys().copied().filter(|name| foreign.contains(name)).collect();
        let kept = first.keys().filter(|name| !second.contains_key(name) && !foreign.contains(name)).count();
        let said = conflicts.len() + if conflicts.is_empty() { 0 } else { kept };
        prop_assert_eq!(messages(&outcome).len(), said);
        let now = files(dir.path());
        for name in 0..8 {
            let found = now.get(&place(&map(&format!("m{name}"), ""))).map(String::as_str);
            if foreign.contains(&name) {
                prop_assert_eq!(found, Some("foreign"));
            } else if let Some(value) = second.get(&name) {
                let wanted = text(&map(&format!("m{name}"), &value.to_string()));
                prop_assert_eq!(found, Some(wanted.as_str()));
            } else if conflicts.is_empty() {
                prop_assert_eq!(found, None);
            } else {
                prop_assert_eq!(found.is_some(), first.contains_key(&name));
            }
        }
        prop_assert_eq!(outcome.applied.objects, second.len() - conflicts.len());
    }
}
