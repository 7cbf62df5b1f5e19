use std::collections::BTreeMap;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::state::{FileDifference, PlaceOwners};

const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];
const OBJECTS: [&str; 4] = ["ConfigMap one", "ConfigMap two", "Namespace shop", "Secret key"];

/// Objects with their contents, and clusters.
type Drawn = (Vec<(&'static str, u8)>, Vec<&'static str>);

/// Generates random workloads: some objects, each with one content, in some clusters.
pub(super) fn states() -> impl Strategy<Value = State> {
    let workload = (btree_map(0..OBJECTS.len(), 1..3u8, 0..4), btree_set(0..CLUSTERS.len(), 0..5));
    let workloads = btree_map(prop::sample::select(vec!["p", "q", "r", "s"]), workload, 0..4);
    (workloads, 3..=5usize).prop_map(|(workloads, inventory)| {
        let workloads: BTreeMap<&str, Drawn> = workloads
            .into_iter()
            .map(|(name, (objects, clusters))| {
                let objects = objects.into_iter().map(|(index, content)| (OBJECTS[index], content)).collect();
                let known = clusters.into_iter().filter(|index| *index < inventory);
                (name, (objects, known.map(|index| CLUSTERS[index]).collect()))
            })
            .collect();
        let given: Vec<Given<'_>> = workloads
            .iter()
            .map(|(name, (objects, clusters))| (*name, &objects[..], &clusters[..]))
            .collect();
        state(&CLUSTERS[..inventory], &given)
    })
}

fn cases() -> impl Strategy<Value = Case> {
    (states(), states(), any::<bool>(), 0..=100u8).prop_map(|(previous, next, is_edited, share)| {
        let mut case = Case::of(previous, next);
        case.is_edited = is_edited;
        case.limits.clusters.share = Percent::new(share);
        case
    })
}

fn places(state: &State, key: &Key) -> BTreeSet<(String, String)> {
    let claims = PlaceOwners::of(state);
    claims
        .places(key, state)
        .into_iter()
        .map(|(cluster, object)| (cluster.to_owned(), path::of_object(object)))
        .collect()
}

fn content<'s>(state: &'s State, (cluster, path): &(String, String)) -> Option<&'s ContentId> {
    state.folders.get(cluster)?.get(path.as_str())
}

proptest! {
    #[test]
    fn a_digest_depends_on_no_order(
        mut pairs in vec((prop::sample::select(CLUSTERS.to_vec()), prop::sample::select(OBJECTS.to_vec())), 0..12)
            .prop_map(|pairs| pairs.into_iter().map(|(c, o)| (c.to_owned(), object(o))).collect::<Vec<_>>()),
    ) {
        let forwards = digest(&pairs);
        pairs.reverse();
        prop_assert_eq!(forwards, digest(&pairs));
        let set: Places = pairs.iter().cloned().collect();
        prop_assert_eq!(forwards, digest(&set));
        let more: Places = set.iter().cloned().chain([("z".to_owned(), object("Secret z"))]).collect();
        prop_assert_ne!(forwards, digest(&more));
    }

    #[test]
    fn held_workloads_keep_everything_and_nothing_else_changes(case in cases()) {
        let verdict = case.judge();
        let published = case.published();
        let held: BTreeSet<&Key> = verdict.held.iter().map(|held| &held.key).collect();
        let mut touched = BTreeSet::new();
        for key in &held {
            prop_assert_eq!(published.decisions.get(*key), case.previous.decisions.get(*key));
            let had = places(&case.previous, key);
            for place in &had {
                prop_assert_eq!(content(&published, place), content(&case.previous, place), "{:?}", place);
            }
            touched.extend(had);
            touched.extend(places(&case.next, key));
        }
        for (key, decision) in &case.next.decisions {
            prop_assert!(held.contains(key) || published.decisions.get(key) == Some(decision));
        }
        let clusters = published.folders.iter().chain(&case.next.folders);
        let all: BTreeSet<(String, String)> = clusters
            .flat_map(|(cluster, folder)| folder.keys().map(|path| (cluster.clone(), path.to_string())))
            .collect();
        for place in all.iter().filter(|place| !touched.contains(*place)) {
            prop_assert_eq!(content(&published, place), content(&case.next, place), "{:?}", place);
        }
    }

    #[test]
    fn whatever_goes_was_let_go(case in cases()) {
        let verdict = case.judge();
        let published = case.published();
        let held: BTreeSet<&Key> = verdict.held.iter().map(|held| &held.key).collect();
        let step = Comparison::of(&case.previous, &published);
        for FileDifference { cluster, path, .. } in step.removed() {
            prop_assert!(!case.next.folders.get(cluster).is_some_and(|folder| folder.contains_key(path)),
                "{cluster} {path} goes only where the next state has it no more");
            prop_assert!(step.owners.holders(cluster, path).iter().all(|owner| !held.contains(owner.key)));
        }
    }

    #[test]
    fn asking_again_holds_the_same_and_publishes_the_same(mut case in cases()) {
        let held = |verdict: &Verdict| -> BTreeMap<Key, Digest> {
            verdict.held.iter().filter(|held| held.is_of_edit()).map(|held| (held.key.clone(), held.digest)).collect()
        };
        let first = case.publish();
        case.is_edited = false;
        let second = case.publish();
        prop_assert_eq!(held(&first), held(&second));
        if first.held.iter().all(Held::is_of_edit) {
            prop_assert_eq!(second.state, first.state);
        }
    }

    #[test]
    fn approving_all_that_is_held_publishes_the_next_state(mut case in cases()) {
        case.approvals = case.judge().held.iter().map(|held| held.digest).collect();
        prop_assert_eq!(case.judge().held, []);
        prop_assert_eq!(case.published(), case.next);
    }
}
