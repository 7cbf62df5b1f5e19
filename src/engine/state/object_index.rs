//! An index of decisions by the paths of their objects: the workloads that may have a file at a path.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use berth_base::model::{Decision, Key, Map, ObjectId, path};

/// Decisions with an index of their objects' paths. Upper and lower case are treated alike, because two paths
/// that differ only by case may be one file.
#[derive(Clone, Debug, Default)]
pub struct ObjectIndex {
    decisions: Map<Key, Decision>,
    /// The hashes of lower-case paths, each with a workload: the paths themselves would take several times as
    /// much memory. The second update makes this map; a process with a single query is faster by reading all
    /// names.
    hashes: Option<Map<(u64, Key), ()>>,
}

impl ObjectIndex {
    /// Updates the index to other decisions.
    pub fn update(&mut self, decisions: &Map<Key, Decision>) {
        let before = std::mem::replace(&mut self.decisions, decisions.clone());
        match &mut self.hashes {
            None if before.is_empty() => {}
            None => {
                let mut all: Vec<_> = decisions.iter().flat_map(hashes).collect();
                // Building the map takes few searches if its keys ascend.
                all.sort_unstable();
                self.hashes = Some(all.into_iter().map(|one| (one, ())).collect());
            }
            Some(known) => {
                for one in before.changes_by(decisions, |old, new| old.objects == new.objects) {
                    for gone in one.before.into_iter().flat_map(|decision| hashes((one.key, decision))) {
                        known.remove(&gone);
                    }
                    let come = one.after.into_iter().flat_map(|decision| hashes((one.key, decision)));
                    known.extend(come.map(|one| (one, ())));
                }
            }
        }
    }

    /// Returns the workloads with an object at one of these paths.
    pub fn at<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> BTreeMap<&Key, &Decision> {
        let paths: BTreeSet<String> = paths.into_iter().map(str::to_ascii_lowercase).collect();
        let is_at = |decision: &Decision| decision.objects.iter().any(|one| paths.contains(&path_of(one)));
        match &self.hashes {
            _ if paths.is_empty() => BTreeMap::new(),
            Some(hashes) => {
                let keys = paths.iter().flat_map(|path| keys_of(hashes, hash(path)));
                let found = keys.filter_map(|key| self.decisions.get_key_value(key));
                found.filter(|(_, decision)| is_at(decision)).collect()
            }
            None => {
                let names = ObjectNames::of(&paths);
                let may_be = |decision: &Decision| decision.objects.iter().any(|one| names.have(&one.name));
                self.decisions.iter().filter(|(_, one)| may_be(one) && is_at(one)).collect()
            }
        }
    }
}

fn keys_of(hashes: &Map<(u64, Key), ()>, hash: u64) -> impl Iterator<Item = &Key> {
    let all = hashes.range_from(&(hash, Key::default())).map(|((hash, key), ())| (*hash, key));
    all.take_while(move |(other, _)| *other == hash).map(|(_, key)| key)
}

fn hashes<'d>((key, decision): (&'d Key, &'d Decision)) -> impl Iterator<Item = (u64, Key)> + use<'d> {
    decision.objects.iter().map(|object| (hash(&path_of(object)), key.clone()))
}

fn hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn path_of(object: &ObjectId) -> String {
    path::of_object(object).to_ascii_lowercase()
}

/// The lower-case names of the objects at paths. `None` if a path does not show its object's name.
struct ObjectNames(Option<BTreeSet<String>>);

impl ObjectNames {
    fn of(paths: &BTreeSet<String>) -> ObjectNames {
        ObjectNames(paths.iter().map(|path| path::object_name(path)).collect())
    }

    /// Reports whether an object with this name may be at one of the paths: comparing names is cheaper than
    /// writing the paths of all objects.
    fn have(&self, name: &str) -> bool {
        let has = |names: &BTreeSet<String>| match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => names.contains(&name.to_ascii_lowercase()),
            false => names.contains(name),
        };
        self.0.as_ref().is_none_or(has)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn object_ids() -> impl Strategy<Value = ObjectId> {
        let cut = "x".repeat(210);
        let names = ["web", "Web", "system:web", "System:web", "é", "É", &cut].map(str::to_owned);
        let name = prop::sample::select(names.to_vec());
        (name, any::<bool>(), any::<bool>()).prop_map(|(name, is_secret, is_shop)| {
            let kind = if is_secret { "Secret" } else { "ConfigMap" };
            ObjectId::new("", kind, if is_shop { "shop" } else { "" }, &name)
        })
    }

    fn decisions() -> impl Strategy<Value = Map<Key, Decision>> {
        btree_map("[a-d]", vec(object_ids(), 0..4), 0..4).prop_map(|all| {
            let decision = |(name, objects): (String, Vec<ObjectId>)| {
                let key = Key::new("example.org", "Placement", "", &name);
                (key.clone(), Decision { objects, ..Decision::new(key, "a.yaml") })
            };
            all.into_iter().map(decision).collect()
        })
    }

    proptest! {
        /// Reading all names, building the index and updating it find the same workloads.
        #[test]
        fn an_index_finds_who_has_an_object_at_a_path(
            steps in vec((decisions(), vec(object_ids(), 0..4)), 1..6),
        ) {
            let mut index = ObjectIndex::default();
            for (decisions, wanted) in steps {
                index.update(&decisions);
                let wanted: BTreeSet<String> = wanted.iter().map(path_of).collect();
                let is_there = |decision: &Decision| {
                    decision.objects.iter().any(|object| wanted.contains(&path_of(object)))
                };
                let found = index.at(wanted.iter().map(String::as_str));
                let expected: BTreeMap<_, _> = decisions.iter().filter(|(_, one)| is_there(one)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
