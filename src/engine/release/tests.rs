use super::turns::{Progress, Turn, now};
use berth_base::model::Group;
use berth_base::model::rollout::{Amount, GroupRef, Pace, Rollout};
use proptest::prelude::*;

use Progress::{Done, New, UnderWay};

fn rollout(pace: Pace, first: Vec<GroupRef>) -> Rollout {
    Rollout { pace, first, ..Rollout::TOGETHER }
}

/// Clusters `a`, `b` … with the number of their group, its name being `g` and that number by twos.
fn served(rollout: &Rollout, clusters: &[(usize, Progress)]) -> String {
    let names: Vec<String> = (0..clusters.len()).map(|n| char::from(b'a' + n as u8).to_string()).collect();
    let groups: Vec<Group> =
        clusters.iter().map(|(index, _)| Group { index: *index, name: format!("g{}", index / 2) }).collect();
    let turn = |index: usize| Turn {
        cluster: &names[index],
        group: Some(&groups[index]),
        progress: clusters[index].1,
    };
    let turns: Vec<Turn<'_>> = (0..clusters.len()).map(turn).collect();
    now(rollout, &turns).into_iter().collect()
}

fn by_cluster(most: Amount) -> Rollout {
    rollout(Pace::ByCluster(Some(most)), Vec::new())
}

#[test]
fn so_many_clusters_by_name_are_served_at_first() {
    let five = [(0, New); 5];
    assert_eq!(served(&by_cluster(Amount::Count(2)), &five), "ab");
    assert_eq!(served(&by_cluster(Amount::Percent(25)), &five), "ab");
    assert_eq!(served(&rollout(Pace::ByCluster(None), Vec::new()), &five), "abcde");
}

#[test]
fn none_and_more_than_there_are_mean_all() {
    assert_eq!(served(&by_cluster(Amount::Count(0)), &[(0, New); 3]), "abc");
    assert_eq!(served(&by_cluster(Amount::Count(4)), &[(0, New); 3]), "abc");
}

#[test]
fn what_is_under_way_takes_a_place_and_what_is_done_does_not() {
    let two = by_cluster(Amount::Count(2));
    assert_eq!(served(&two, &[(0, New), (0, UnderWay), (0, New), (0, New)]), "ab");
    assert_eq!(served(&two, &[(0, UnderWay), (0, UnderWay), (0, New)]), "ab");
    assert_eq!(served(&two, &[(0, Done), (0, New), (0, New), (0, New)]), "abc");
}

#[test]
fn groups_go_one_after_the_other() {
    let by_group = rollout(Pace::ByGroup, Vec::new());
    assert_eq!(served(&by_group, &[(1, New), (0, New), (0, New), (2, New)]), "bc");
    assert_eq!(served(&by_group, &[(1, New), (0, Done), (0, UnderWay), (2, New)]), "bc");
    assert_eq!(served(&by_group, &[(1, New), (0, Done), (0, Done), (2, New)]), "abc");
}

#[test]
fn groups_that_must_go_first_do_so_by_name_or_index() {
    let clusters = [(0, New), (1, New), (2, New), (3, New), (4, New)];
    let first = |groups: Vec<GroupRef>| rollout(Pace::ByCluster(Some(Amount::Count(1))), groups);
    // The name stands for groups 2 and 3, which do not go together.
    assert_eq!(served(&first(vec![GroupRef::Name("g1".to_owned())]), &clusters), "c");
    // The order is that of the indexes.
    assert_eq!(served(&first(vec![GroupRef::Index(4), GroupRef::Index(1)]), &clusters), "b");
    let together = rollout(Pace::Together, Vec::new());
    assert_eq!(served(&together, &clusters), "abcde");
    assert_eq!(served(&first(vec![GroupRef::Name("nobody".to_owned())]), &clusters), "a");
    let by_group = rollout(Pace::ByGroup, vec![GroupRef::Index(3)]);
    assert_eq!(served(&by_group, &clusters), "d");
}

proptest! {
    #[test]
    fn who_has_it_keeps_it_and_a_second_step_serves_nobody_else(
        clusters in prop::collection::vec((0_usize..4, prop::sample::select(vec![New, UnderWay, Done])), 0..12),
        most in prop::option::of(0_usize..6),
        by_group in any::<bool>(),
        first in prop::option::of(0_usize..4),
    ) {
        let pace = if by_group { Pace::ByGroup } else { Pace::ByCluster(most.map(Amount::Count)) };
        let rollout = rollout(pace, first.map(GroupRef::Index).into_iter().collect());
        let once = served(&rollout, &clusters);
        for (index, (_, progress)) in clusters.iter().enumerate() {
            let name = char::from(b'a' + index as u8);
            prop_assert!(*progress == New || once.contains(name));
        }
        let next: Vec<(usize, Progress)> = clusters.iter().enumerate().map(|(index, (group, progress))| {
            let is_served = once.contains(char::from(b'a' + index as u8));
            (*group, if is_served && *progress == New { UnderWay } else { *progress })
        }).collect();
        prop_assert_eq!(served(&rollout, &next), once);
    }
}
