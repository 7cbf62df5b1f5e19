//! Uncertain decisions: while a file that a decision may depend on is unreadable, the decision loses no
//! cluster.
//!
//! An uncertain decision has no digest, so the first pass that can read the file decides again.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::select::recorded;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::{Policy, Ranking, Selection};
use berth_base::model::{Decision, Pick};

/// Reports whether a current decision is uncertain, so it must not lose a cluster now.
pub(super) fn applies(doubt: &Doubt, previous: &Decision) -> bool {
    doubt.everything || doubt.files.contains(&previous.source)
}

/// Reports whether an unreadable file may contain a missing placement. If the last good forms are known, they
/// already contain every moved placement.
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
    // Every pass decides again while the decision is uncertain. Picks that stay keep their details, so that
    // these do not change each time.
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

/// Drops the worst new picks if the restored ones would exceed the wanted number.
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
