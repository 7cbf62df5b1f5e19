//! Held removals that the rest of their workload does not wait for.
//!
//! A held workload keeps everything, so that nothing runs in two places while people decide. That protects nothing
//! where it leaves a silent cluster: its member would remove nothing now, approved or not. So a workload that loses
//! copies in silent clusters alone goes on without these removals. It still does when such a cluster reports again,
//! since its copies elsewhere are there by then.
//!
//! Divided replicas wait: with those of the silent cluster there would be too many.

use std::collections::BTreeMap;

use super::losses::{ByWorkload, Losses};
use super::question::Question;
use super::verdict::Why;
use crate::state::State;
use crate::state::ledger::{Places, Stage};
use berth_base::model::Key;

/// The workloads that may go on.
pub(super) type Apart<'a> = BTreeMap<&'a Key, Kept>;

/// The removals of a workload that may go on without them.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) places: Places,
    /// More clusters are assigned to it than before.
    grows: bool,
}

/// Finds the workloads that may go on without their removals.
pub(super) fn find<'a>(question: &Question<'_>, lost: &'a ByWorkload) -> Apart<'a> {
    if !question.limits.failover {
        return Apart::new();
    }
    let of_workload = |(key, losses): (&'a Key, &Losses)| {
        // Losses that come later belong to an edit, and what is permitted goes.
        let waits = losses.0.values().all(|loss| loss.due.is_none() && loss.stage == Stage::Held);
        Some((key, kept(question, key, losses.unpermitted()).filter(|_| waits)?))
    };
    lost.iter().filter_map(of_workload).collect()
}

/// Reports whether a workload that is held for these reasons goes on.
pub(super) fn goes_on(apart: &Apart<'_>, key: &Key, why: &[Why]) -> bool {
    let Some(kept) = apart.get(key) else { return false };
    why.iter().all(|why| match why {
        // Among more clusters the same removal would be a smaller share.
        Why::Clusters { .. } => !kept.grows,
        Why::Objects { .. } | Why::Risky { .. } | Why::Still => true,
        // With too many clusters away nothing moves, and the others are not about removals alone.
        Why::Evictions { .. } | Why::Policy { .. } | Why::Along { .. } => false,
    })
}

fn kept(question: &Question<'_>, key: &Key, places: Places) -> Option<Kept> {
    let [current, next] = [question.states.current, question.states.next];
    let (before, after) = (current.decisions.get(key)?, next.decisions.get(key)?);
    let is_divided =
        [before, after].into_iter().any(|one| one.picks.iter().any(|pick| pick.replicas.is_some()));
    let waits = |cluster: &str| before.pick(cluster).is_some_and(|pick| pick.held);
    let is_left = |cluster: &str| !after.has(cluster) && (waits(cluster) || is_silent(next, cluster));
    if is_divided
        || !places.iter().all(|(cluster, object)| is_left(cluster) && after.objects.contains(object))
    {
        return None;
    }
    let [had, has] = [before, after].map(|one| one.picks.iter().filter(|pick| !pick.held).count());
    Some(Kept { places, grows: has > had })
}

/// Reports whether a cluster is silent, and was not heard again since.
fn is_silent(state: &State, cluster: &str) -> bool {
    let silence = state.facts.get(cluster).and_then(|fact| fact.silence());
    silence.is_some_and(|silence| silence.frozen.is_none())
}
