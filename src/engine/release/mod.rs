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
//! - [`units`]: workloads that go as one, in their order. [`advance`]: one workload's step. [`course`]: its strategy and
//!   the release that clusters go to. [`sight`]: its clusters. [`answer`]: what its strategy gives. [`record`]: its
//!   releases after the step. [`apply`]: the steps become the state.

mod advance;
mod answer;
mod apply;
mod changes;
pub mod copies;
mod course;
mod inputs;
mod measure;
mod next_release;
pub mod next_step;
pub mod outlook;
mod places;
pub mod policy;
pub mod progressive;
mod record;
pub mod rolling;
pub mod runs;
mod sight;
mod staged;
pub mod stages;
pub mod strategies;
pub mod turn;
mod units;
pub mod verdict;
pub mod works;

#[cfg(test)]
mod strategy_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::Diagnostics;
use berth_base::model::rollout::{Pace, Strategy};
use berth_base::model::staged::Standing;
use berth_base::model::{
    ClusterStatus, ContentError, Contents, Decision, Fleet, Key, Pick, Timestamp, Workload,
    cluster::WorkloadName,
};

use crate::state::State;
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
    /// The standing of a staged rollout.
    pub standing: Option<Standing>,
    /// The next moment at which the workload goes on by itself.
    pub next: Option<Timestamp>,
}

/// Forgets which clusters waited for their turn when a decision was made that stands.
pub fn forget_turns(decision: &mut Decision) {
    if decision.picks.iter().any(|pick| pick.pending || pick.leaving) {
        let picked = decision.picked().cloned();
        decision.picks = picked.map(|pick| Pick { pending: false, ..pick }).collect::<Vec<_>>().into();
    }
}

/// Turns the desired state into the one that clusters get now.
pub fn release(
    given: Given<'_>,
    desired: &mut State,
    contents: &mut dyn Contents,
) -> Result<Released, ContentError> {
    let firsts = gone_first(given.fleet);
    let workloads: BTreeMap<&Key, &Workload> = observed(given.fleet)
        .filter(|workload| !workload.frozen && is_rolled(workload, given, &firsts))
        .map(|workload| (&workload.key, workload))
        .collect();
    let is_frozen = |key: &Key| given.fleet.workloads.get(key).is_some_and(|workload| workload.frozen);
    let stands = given.current.releases.iter().filter(|(key, _)| is_frozen(key));
    let stands: Vec<_> =
        stands.map(|(key, releases)| advance::stands(key, releases, given, desired)).collect();
    if workloads.is_empty() && stands.is_empty() {
        return Ok(Released::default());
    }
    let mut advances = {
        let (current, wanted) = (Places::of(given.current), Places::of(desired));
        units::advance(&workloads, given, [&current, &wanted], contents)?
    };
    advances.extend(stands);
    Ok(apply::apply(advances, given, desired))
}

/// Returns the workloads whose members' reports matter to releases, with any strategy that goes step by step.
pub fn observed(fleet: &Fleet) -> impl Iterator<Item = &Workload> {
    let firsts = gone_first(fleet);
    let is_observed = move |workload: &&Workload| {
        let orders = policy::Orders::of(fleet, &workload.key);
        firsts.contains(&workload.key)
            || !orders.policies().is_empty()
            || match orders.strategy() {
                Strategy::AtOnce => false,
                Strategy::Progressive(rollouts) => rollouts.iter().any(|one| one.pace != Pace::Together),
                Strategy::Rolling(_) | Strategy::Stages(_) | Strategy::Runs => true,
            }
    };
    fleet.workloads.values().map(|workload| &**workload).filter(is_observed)
}

/// Returns the workloads that others wait for: these must be observed, whatever their strategy.
fn gone_first(fleet: &Fleet) -> BTreeSet<&Key> {
    let policies = || fleet.rollout_policies.values();
    let after = policies().flat_map(|policy| &policy.after);
    let together =
        policies().filter(|policy| policy.together).flat_map(|policy| policy.workloads.iter().flatten());
    after.chain(together).flat_map(|pattern| fleet.workloads_of(pattern)).collect()
}

/// Reports whether an observed workload goes step by step now. A strategy that nobody asked for counts once a member
/// has reported on the workload: without any report there is nothing to go by.
fn is_rolled(workload: &Workload, given: Given<'_>, firsts: &BTreeSet<&Key>) -> bool {
    is_asked(given.fleet, workload, firsts) || is_reported(&workload.key, given)
}

/// Reports whether people asked for the way in which an observed workload goes, or let others wait for it.
fn is_asked(fleet: &Fleet, workload: &Workload, firsts: &BTreeSet<&Key>) -> bool {
    let orders = policy::Orders::of(fleet, &workload.key);
    firsts.contains(&workload.key)
        || !orders.policies().is_empty()
        || !matches!(orders.strategy(), Strategy::Rolling(rolling) if !rolling.asked)
}

/// Returns the workloads that go step by step from the start, before any report.
pub fn asked(fleet: &Fleet) -> BTreeSet<&Key> {
    let firsts = gone_first(fleet);
    let asked = observed(fleet).filter(|workload| is_asked(fleet, workload, &firsts));
    asked.map(|workload| &workload.key).collect()
}

fn is_reported(key: &Key, given: Given<'_>) -> bool {
    let name = WorkloadName::of(key);
    given.current.releases.contains_key(key)
        || given.statuses.values().any(|status| status.copies.contains_key(&name))
}
