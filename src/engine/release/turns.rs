//! One placement's clusters, their progress, and its strategy → the clusters that may have the workload now.

use std::collections::BTreeSet;

use berth_base::model::Group;
use berth_base::model::rollout::{GroupRef, Pace, Rollout};

/// The progress of a cluster's rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    New,
    /// The cluster has the workload; its health there is not known yet.
    UnderWay,
    Done,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Turn<'a> {
    pub(super) cluster: &'a str,
    pub(super) group: Option<&'a Group>,
    pub(super) progress: Progress,
}

/// Returns the clusters that are served now, including those that have the workload already. `turns` ascend
/// by name.
pub(super) fn now<'a>(rollout: &Rollout, turns: &[Turn<'a>]) -> BTreeSet<&'a str> {
    if rollout.pace == Pace::Together {
        return turns.iter().map(|turn| turn.cluster).collect();
    }
    let has_it = turns.iter().filter(|turn| turn.progress != Progress::New);
    let mut served: BTreeSet<&str> = has_it.map(|turn| turn.cluster).collect();
    let (groups, rest) = in_order(rollout, turns);
    let next = groups.into_iter().find(|group| !is_done(group));
    match (next, rollout.pace) {
        (Some(group), _) => served.extend(group.iter().map(|turn| turn.cluster)),
        (None, Pace::ByCluster(most)) => {
            // None, more than there are, and nothing at all mean everybody.
            let most = most.map_or(0, |most| most.of(rest.len()));
            let most = if most == 0 || most > rest.len() { rest.len() } else { most };
            let under_way = rest.iter().filter(|turn| turn.progress == Progress::UnderWay).count();
            let new = rest.iter().filter(|turn| turn.progress == Progress::New);
            served.extend(new.take(most.saturating_sub(under_way)).map(|turn| turn.cluster));
        }
        (None, Pace::ByGroup | Pace::Together) => {}
    }
    served
}

/// The groups that go one after the other, and the clusters that are in none of these.
fn in_order<'t, 'a>(rollout: &Rollout, turns: &'t [Turn<'a>]) -> (Vec<Vec<&'t Turn<'a>>>, Vec<&'t Turn<'a>>) {
    let is_first = |group: &Group| {
        rollout.first.iter().any(|wanted| match wanted {
            GroupRef::Name(name) => group.name == *name,
            GroupRef::Index(index) => group.index == *index,
        })
    };
    let groups = || turns.iter().filter_map(|turn| turn.group);
    // In the order of their indexes, however the strategy lists them.
    let first: BTreeSet<usize> = groups().filter(|group| is_first(group)).map(|group| group.index).collect();
    let mut indexes: BTreeSet<usize> =
        groups().map(|group| group.index).filter(|index| !first.contains(index)).collect();
    let mut order: Vec<usize> = first.into_iter().collect();
    if rollout.pace == Pace::ByGroup {
        order.extend(std::mem::take(&mut indexes));
    }
    let of = |index: &usize| {
        turns.iter().filter(|turn| turn.group.is_some_and(|group| group.index == *index)).collect()
    };
    let is_rest = |turn: &&Turn<'_>| turn.group.is_none_or(|group| indexes.contains(&group.index));
    (order.iter().map(of).collect(), turns.iter().filter(is_rest).collect())
}

fn is_done(group: &[&Turn<'_>]) -> bool {
    group.iter().all(|turn| turn.progress == Progress::Done)
}
