//! Uncertain decisions: while a file that a decision may depend on is unreadable, the decision loses no
//! cluster.
//!
//! An uncertain decision has no digest, so that it is made again as soon as the file can be read.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::select::recorded;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::{Policy, Ranking, Selection};
use berth_base::model::{Decision, Pick};

/// Reports whether a current decision is uncertain, so that it may not lose a cluster now.
pub(super) fn applies(doubt: &Doubt, previous: &Decision) -> bool {
    doubt.everything || doubt.files.contains(&previous.source)
}

/// Reports whether a placement that is nowhere now may stand in a file that cannot be read. Where the last good
/// forms are known, what may have moved there is among them already.
pub(super) fn may_have_moved(doubt: &Doubt, previous: &Decision) -> bool {
    doubt.objects || doubt.files.contains(&previous.source)
}

/// Puts back the picks that the decision lost. Reports whether there were any.
pub(super) fn restore(
    decision: &mut Decision,
    previous: &Decision,
    policy: Option<&Policy>,
    why: &str,
) -> bool {
    let has: BTreeSet<&str> = decision.picks.iter().map(|pick| &*pick.cluster).collect();
    let lost: Vec<Pick> =
        previous.picks.iter().filter(|pick| !has.contains(&*pick.cluster)).cloned().collect();
    if lost.is_empty() {
        return false;
    }
    // The decision is made again in every pass while it is uncertain: picks that stay keep their record, so
    // that it does not change each time.
    for pick in &mut decision.picks {
        if let Some(earlier) = previous.pick(&pick.cluster) {
            pick.reason.clone_from(&earlier.reason);
            pick.scores.clone_from(&earlier.scores);
            // The lost picks keep their replicas, so that no other cluster gets them.
            pick.replicas = earlier.replicas.or(pick.replicas);
        }
    }
    decision
        .picks
        .extend(lost.into_iter().map(|pick| pick.with(|details| why.clone_into(&mut details.reason))));
    decision.picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    if let Some(policy) = policy {
        give_way(decision, previous, policy);
    }
    decision.digest = None;
    true
}

/// Drops the worst new picks where those put back would exceed the wanted number.
fn give_way(decision: &mut Decision, previous: &Decision, policy: &Policy) {
    let Selection::First(count) = policy.selection else { return };
    let earlier: BTreeSet<&str> = previous.picks.iter().map(|pick| &*pick.cluster).collect();
    let excess = decision.picks.len().saturating_sub(count.max(earlier.len()));
    let mut new: Vec<_> = decision
        .picks
        .iter()
        .filter(|pick| !earlier.contains(&*pick.cluster))
        .map(|pick| (recorded(policy, pick), pick.cluster.clone()))
        .collect();
    new.sort_by(|a, b| {
        let by_name = match policy.ranking {
            Ranking::SumThenName => b.1.cmp(&a.1),
            Ranking::PartsThenNameDescending => a.1.cmp(&b.1),
        };
        a.0.cmp(&b.0).then(by_name)
    });
    let goes: BTreeSet<Arc<str>> = new.into_iter().take(excess).map(|(_, cluster)| cluster).collect();
    decision.picks.retain(|pick| !goes.contains(&pick.cluster));
}
