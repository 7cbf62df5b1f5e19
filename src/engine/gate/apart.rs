//! Workloads that roll out without their held removals, because only silent clusters lose copies.
//!
//! The gate keeps a held workload unchanged, so that its objects do not run in two places while people
//! decide. That protects nothing in a silent cluster: its member removes nothing now, approved or not. So the
//! gate publishes such a workload at once, and keeps only the copies in the silent clusters. This stays so
//! when a silent cluster reports again, because the other clusters have their copies by then.
//!
//! A workload with divided replicas is held as a whole: with the replicas of the silent cluster there would
//! be too many.

use std::collections::BTreeMap;

use super::losses::{ByWorkload, Losses};
use super::question::Question;
use super::verdict::Why;
use crate::state::State;
use crate::state::ledger::{Places, Stage};
use berth_base::model::Key;

/// The workloads that are published without their held removals.
pub(super) type Apart<'a> = BTreeMap<&'a Key, Kept>;

/// The held removals of such a workload.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) places: Places,
    /// The workload has more clusters than before.
    grows: bool,
}

/// Finds the workloads that are published without their held removals.
pub(super) fn find<'a>(question: &Question<'_>, lost: &'a ByWorkload) -> Apart<'a> {
    if !question.limits.failover {
        return Apart::new();
    }
    let of_workload = |(key, losses): (&'a Key, &Losses)| {
        // An edit causes a later loss, and a permitted removal happens.
        let waits = losses.0.values().all(|loss| loss.due.is_none() && loss.stage == Stage::Held);
        Some((key, kept(question, key, losses.unpermitted()).filter(|_| waits)?))
    };
    lost.iter().filter_map(of_workload).collect()
}

/// Reports whether a workload that is held for these reasons is published without its removals.
pub(super) fn goes_on(apart: &Apart<'_>, key: &Key, why: &[Why]) -> bool {
    let Some(kept) = apart.get(key) else { return false };
    why.iter().all(|why| match why {
        // With more clusters, the same removal is a smaller share.
        Why::Clusters { .. } => !kept.grows,
        Why::Objects { .. } | Why::Risky { .. } | Why::Still => true,
        // `Evictions`: too many clusters lose something at once. `Policy` and `Along` concern more than
        // removals.
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

/// Reports whether a cluster is silent and has not reported again.
fn is_silent(state: &State, cluster: &str) -> bool {
    let silence = state.facts.get(cluster).and_then(|fact| fact.silence());
    silence.is_some_and(|silence| silence.frozen.is_none())
}
