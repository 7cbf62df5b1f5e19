//! A placement's clusters → its slices: objects that name at most a hundred clusters each. A cluster stays in
//! its slice, so that one change affects one object.

use std::collections::{BTreeMap, BTreeSet};

/// The number of clusters that one object may name.
pub const MOST: usize = 100;

/// One object of a placement, in its current or wanted form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub number: usize,
    /// The index of the decision group of its clusters.
    pub group: usize,
    pub clusters: BTreeSet<String>,
}

/// Returns the wanted slices of a placement. `wanted` has the clusters of each decision group; `taken` are
/// the numbers that others use, and `first` is the lowest number. Without any cluster there is one empty
/// slice.
pub fn assign(
    wanted: &BTreeMap<usize, BTreeSet<String>>,
    live: &[Slice],
    taken: &BTreeSet<usize>,
    first: usize,
) -> Vec<Slice> {
    let mut slices: BTreeMap<usize, Slice> = BTreeMap::new();
    let mut placed: BTreeSet<(usize, &str)> = BTreeSet::new();
    for one in live {
        let Some(group) = wanted.get(&one.group) else { continue };
        let stays = |cluster: &&String| {
            group.get(*cluster).is_some_and(|cluster| placed.insert((one.group, cluster)))
        };
        let clusters: BTreeSet<String> = one.clusters.iter().filter(stays).take(MOST).cloned().collect();
        slices.insert(one.number, Slice { clusters, ..*one });
    }
    let is_free = |slices: &BTreeMap<usize, Slice>, number: &usize| {
        !slices.contains_key(number)
            && !taken.contains(number)
            && live.iter().all(|one| one.number != *number)
    };
    for (group, clusters) in wanted {
        let mut new =
            clusters.iter().filter(|cluster| !placed.contains(&(*group, cluster.as_str()))).peekable();
        for slice in slices.values_mut().filter(|slice| slice.group == *group) {
            let room = MOST - slice.clusters.len();
            slice.clusters.extend(new.by_ref().take(room).cloned());
        }
        while new.peek().is_some() {
            let Some(number) = (first..).find(|number| is_free(&slices, number)) else { break };
            let clusters = new.by_ref().take(MOST).cloned().collect();
            slices.insert(number, Slice { number, group: *group, clusters });
        }
    }
    let filled: Vec<Slice> = slices.values().filter(|slice| !slice.clusters.is_empty()).cloned().collect();
    if !filled.is_empty() {
        return filled;
    }
    let kept = live.iter().map(|one| one.number).min();
    let number = kept.or_else(|| (first..).find(|number| !taken.contains(number))).unwrap_or(first);
    vec![Slice { number, group: 0, clusters: BTreeSet::new() }]
}

/// Returns the contents to write, in order: slices that gain clusters come before those that lose some, so
/// that a moving cluster is always in some slice. A slice that both gains and loses moving clusters is
/// written twice.
pub fn order(live: &[Slice], wanted: &[Slice]) -> Vec<Slice> {
    let all: BTreeSet<&String> = wanted.iter().flat_map(|slice| &slice.clusters).collect();
    let (mut gaining, mut losing) = (Vec::new(), Vec::new());
    for slice in wanted {
        let Some(before) = live.iter().find(|one| one.number == slice.number) else {
            gaining.push(slice.clone());
            continue;
        };
        if before == slice {
            continue;
        }
        let lost = before.clusters.difference(&slice.clusters);
        let moving: BTreeSet<String> = lost.filter(|cluster| all.contains(cluster)).cloned().collect();
        if slice.clusters.is_subset(&before.clusters) && before.group == slice.group {
            losing.push(slice.clone());
            continue;
        }
        let both: BTreeSet<String> = slice.clusters.union(&moving).cloned().collect();
        if moving.is_empty() || both.len() > MOST {
            gaining.push(slice.clone());
        } else {
            gaining.push(Slice { clusters: both, ..*slice });
            losing.push(slice.clone());
        }
    }
    gaining.append(&mut losing);
    gaining
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(range: std::ops::Range<usize>) -> BTreeSet<String> {
        range.map(|number| format!("c{number:03}")).collect()
    }

    fn assigned(clusters: BTreeSet<String>, live: &[Slice]) -> Vec<Slice> {
        assign(&BTreeMap::from([(0, clusters)]), live, &BTreeSet::new(), 0)
    }

    #[test]
    fn one_change_touches_one_slice() {
        let first = assigned(names(0..250), &[]);
        assert_eq!(first.iter().map(|slice| slice.clusters.len()).collect::<Vec<_>>(), [100, 100, 50]);
        let mut fewer = names(0..250);
        fewer.remove("c007");
        let second = assigned(fewer.clone(), &first);
        assert_eq!(order(&first, &second), [second[0].clone()]);
        fewer.insert("b".to_owned());
        let third = assigned(fewer, &second);
        assert_eq!(order(&second, &third), [third[0].clone()]);
        assert!(third[0].clusters.contains("b"));
    }

    #[test]
    fn nothing_is_one_empty_slice_and_numbers_of_others_are_left_alone() {
        let empty = assign(&BTreeMap::new(), &[], &BTreeSet::from([0, 1]), 0);
        assert_eq!(empty, [Slice { number: 2, group: 0, clusters: BTreeSet::new() }]);
        let filled = assign(&BTreeMap::from([(0, names(0..101))]), &empty, &BTreeSet::from([0, 1]), 0);
        assert_eq!(filled.iter().map(|slice| slice.number).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_cluster_that_changes_its_group_is_never_in_none() {
        let live = [
            Slice { number: 1, group: 0, clusters: names(0..3) },
            Slice { number: 2, group: 1, clusters: names(3..6) },
        ];
        let swapped =
            BTreeMap::from([(0, names(1..4)), (1, names(4..6).into_iter().chain(names(0..1)).collect())]);
        let steps = order(&live, &assign(&swapped, &live, &BTreeSet::new(), 1));
        let sizes: Vec<(usize, usize)> =
            steps.iter().map(|step| (step.number, step.clusters.len())).collect();
        assert_eq!(sizes, [(1, 4), (2, 4), (1, 3), (2, 3)]);
    }

    proptest! {
        #[test]
        fn every_cluster_is_in_one_slice_and_on_the_way_there_never_in_none(
            before in prop::collection::btree_map(0..400usize, 0..3usize, 0..350),
            after in prop::collection::btree_map(0..400usize, 0..3usize, 0..350),
        ) {
            let groups = |of: &BTreeMap<usize, usize>| {
                let mut groups: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
                for (cluster, group) in of {
                    groups.entry(*group).or_default().insert(format!("c{cluster:03}"));
                }
                groups
            };
            let live = assign(&groups(&before), &[], &BTreeSet::new(), 0);
            let wanted = assign(&groups(&after), &live, &BTreeSet::new(), 0);
            let mut found: Vec<&String> = wanted.iter().flat_map(|slice| &slice.clusters).collect();
            found.sort();
            let all: Vec<String> = after.keys().map(|cluster| format!("c{cluster:03}")).collect();
            prop_assert_eq!(found, all.iter().collect::<Vec<_>>());
            prop_assert!(wanted.iter().all(|slice| slice.clusters.len() <= MOST));
            let mut hub: BTreeMap<usize, BTreeSet<String>> =
                live.iter().map(|slice| (slice.number, slice.clusters.clone())).collect();
            let steady: Vec<String> = before
                .keys()
                .filter(|cluster| after.contains_key(cluster))
                .map(|cluster| format!("c{cluster:03}"))
                .collect();
            let fits = after.len() + before.len() < MOST;
            for step in order(&live, &wanted) {
                prop_assert!(step.clusters.len() <= MOST);
                hub.insert(step.number, step.clusters);
                for cluster in steady.iter().filter(|_| fits) {
                    prop_assert!(hub.values().any(|clusters| clusters.contains(cluster)), "{}", cluster);
                }
            }
            hub.retain(|number, _| wanted.iter().any(|slice| slice.number == *number));
            let wanted: BTreeMap<usize, BTreeSet<String>> =
                wanted.into_iter().map(|slice| (slice.number, slice.clusters)).collect();
            prop_assert_eq!(hub, wanted);
        }
    }
}
