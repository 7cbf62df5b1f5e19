//! The desired state, the releases so far, facts and a moment → the state that clusters get now.
//!
//! Each workload with a strategy goes its own way. A cluster whose turn has come gets the wanted copies. Until then
//! it keeps its copies, byte for byte; a cluster that joins gets the last good release, rendered anew from its stored
//! inputs; and a removal that must wait leaves its copies where they are. Success is a report on exactly the copies
//! that a cluster has.
//!
//! - [`turn`]: a cluster as a strategy sees it, and the answer. [`strategies`]: every strategy behind one question;
//!   [`progressive`], [`rolling`]: each of them.
//! - [`copies`]: the digest that names copies. [`inputs`]: a release's inputs as they are stored.
//! - [`advance`]: one workload's step. [`next_release`]: its releases where its inputs changed. [`places`]: the
//!   copies that a workload has in a cluster. [`apply`]: the steps become the state.

mod advance;
mod answer;
mod apply;
mod changes;
pub mod copies;
mod inputs;
mod next_release;
pub mod outlook;
mod places;
pub mod policy;
pub mod progressive;
mod record;
pub mod rolling;
pub mod runs;
mod sight;
pub mod staged;
pub mod stages;
pub mod strategies;
pub mod turn;
pub mod verdict;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::Diagnostics;
use berth_base::model::release::Releases;
use berth_base::model::rollout::{Pace, Strategy};
use berth_base::model::{
    ClusterStatus, ContentError, Contents, Fleet, Key, Timestamp, Workload, cluster::WorkloadName,
};

use crate::state::State;
use advance::Advance;
use places::Places;

/// All that a step reads beside the desired state.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub fleet: &'a Fleet,
    pub current: &'a State,
    pub statuses: &'a BTreeMap<String, ClusterStatus>,
    pub now: Timestamp,
}

/// The outcome of a step beside the state.
#[derive(Debug, Default)]
pub struct Released {
    pub diagnostics: Diagnostics,
    /// The next moment at which a rollout goes on by itself.
    pub next_change: Option<Timestamp>,
    /// The reasons for those that wait.
    pub traces: BTreeMap<Key, Trace>,
}

/// The reasons behind one workload's step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The reason for each cluster that waits, for its turn or for the removal of its copy.
    pub waits: BTreeMap<String, String>,
    /// The parts of the strategy that do not do what their author may expect.
    pub notes: BTreeSet<String>,
    /// The next moment at which the workload goes on by itself.
    pub next: Option<Timestamp>,
}

/// Turns the desired state into the one that clusters get now.
pub fn release(
    given: Given<'_>,
    desired: &mut State,
    contents: &mut dyn Contents,
) -> Result<Released, ContentError> {
    let workloads: Vec<&Workload> =
        given.fleet.workloads.values().map(|one| &**one).filter(|one| is_rolled(one, given)).collect();
    if workloads.is_empty() {
        return Ok(Released::default());
    }
    let mut advances: Vec<Advance> = Vec::new();
    {
        let (current, wanted) = (Places::of(given.current), Places::of(desired));
        for workload in workloads {
            advances.push(advance::advance(workload, given, [&current, &wanted], contents)?);
        }
    }
    Ok(apply::apply(advances, given, desired))
}

/// Reports whether a workload's changes go step by step. A strategy that nobody asked for counts once a member has
/// reported on the workload: without any report there is nothing to go by.
fn is_rolled(workload: &Workload, given: Given<'_>) -> bool {
    if workload.frozen {
        return false;
    }
    match &workload.strategy {
        Strategy::AtOnce => false,
        Strategy::Progressive(rollouts) => rollouts.iter().any(|one| one.pace != Pace::Together),
        Strategy::Rolling(rolling) => rolling.asked || is_reported(&workload.key, given),
        Strategy::Stages(_) | Strategy::Runs => true,
    }
}

fn is_reported(key: &Key, given: Given<'_>) -> bool {
    let name = WorkloadName::of(key);
    given.current.releases.contains_key(key)
        || given.statuses.values().any(|status| status.copies.contains_key(&name))
}

/// The releases of a workload before a step, if there are any.
fn releases_of<'a>(key: &Key, given: Given<'a>) -> Option<&'a Releases> {
    given.current.releases.get(key)
}
