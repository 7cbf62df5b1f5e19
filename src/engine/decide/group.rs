//! Picked clusters → ordered groups: named ones first, each cut into chunks, then the rest likewise.

use super::cluster_table::Table;
use super::filter::TermNeeds;
use berth_base::model::placement::{GroupSize, Grouping};
use berth_base::model::rollout::share_of;
use berth_base::model::{Group, Pick};

/// Gives each pick its group. The picks are in name order, which is the order within a group.
pub(super) fn assign(table: &Table<'_>, grouping: &Grouping, picks: &mut [Pick]) {
    picks.iter_mut().for_each(|pick| pick.group = None);
    let size = chunk(grouping.size, picks.len());
    let mut index = 0;
    for (name, term) in &grouping.named {
        let needs = TermNeeds::new(table, term);
        // A cluster of an uncertain decision may be missing from the inventory, and so from every named
        // group.
        let fits = |pick: &Pick| table.row(&pick.cluster).is_some_and(|row| needs.matches(row));
        index = fill(picks, fits, name, size, index);
    }
    fill(picks, |_| true, "", size, index);
}

/// Puts the picks that fit and have no group yet into chunks of one name; gives the next index.
fn fill(picks: &mut [Pick], fits: impl Fn(&Pick) -> bool, name: &str, size: usize, first: usize) -> usize {
    let mut taken = 0;
    for pick in picks.iter_mut().filter(|pick| pick.group.is_none()) {
        if fits(pick) {
            pick.group = Some(Group { index: first + taken / size, name: name.to_owned() });
            taken += 1;
        }
    }
    first + taken.div_ceil(size)
}

/// Returns the number of clusters in a chunk. A size of 0, or above the number picked, puts all into one.
fn chunk(size: GroupSize, picked: usize) -> usize {
    let wanted = match size {
        GroupSize::Count(count) => count,
        GroupSize::Percent(percent) => share_of(percent, picked),
    };
    if wanted == 0 || wanted > picked { picked.max(1) } else { wanted }
}
