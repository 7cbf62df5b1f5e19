//! The desired state, the releases so far, facts and a moment → the state that clusters get now.
//!
//! Each workload with a strategy rolls out by itself. A cluster whose turn has come gets the desired copies.
//! Until then it keeps its copies, byte for byte. A newcomer gets the last good release, rendered again from
//! its stored inputs. A removal that must wait leaves the copies in place. Success is a report on exactly the
//! copies that a cluster has.
//!
//! - [`strategies`]: a cluster as a strategy sees it, and every strategy behind one question;
//!   [`progressive`], [`rolling`]: single strategies.
//! - [`stages`]: the stages of clusters, and the labels by which they select. [`copies`]: the digest that names
//!   copies. [`inputs`]: a release's inputs as they are stored.
//! - [`units`]: workloads that roll out together, in their order. [`advance`]: one workload's step.
//!   [`workload_rollout`]: its strategy and target release, and the state of its rollout in a word.
//!   [`next_release`]: the wanted release, and one that is rendered again. [`cluster_rollout`]: its clusters.
//!   [`strategy_answer`]: its strategy's answer. [`record`]: its releases after the step. [`apply`]: the steps
//!   become the state.

mod advance;
mod apply;
mod cluster_rollout;
pub mod copies;
mod inputs;
mod next_release;
pub mod next_step;
pub mod outlook;
pub mod policy;
pub mod progressive;
mod record;
pub mod rolling;
pub mod runs;
mod staged;
pub mod stages;
pub mod strategies;
mod strategy_answer;
mod units;
pub mod verdict;
pub mod workload_rollout;

#[cfg(test)]
mod strategy_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::diag::Diagnostics;
use berth_base::model::rollout::{Pace, Strategy};
use berth_base::model::staged::Standing;
use berth_base::model::{
    ClusterStatus, ContentError, Contents, Fleet, Key, Map, Shared, Timestamp, Workload,
    cluster::WorkloadName,
};

use crate::state::ledger::{CopyOwner, Place};
use crate::state::{Ledger, State};
use copies::OwnedPlaces;
use stages::ClusterLabels;

/// All that a step reads beside the desired state.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseInputs<'a> {
    pub fleet: &'a Fleet,
    pub labels: &'a ClusterLabels<'a>,
    pub current: &'a State,
    pub statuses: &'a Map<String, Shared<ClusterStatus>>,
    pub now: Timestamp,
}

/// The outcome of a step beside the state.
#[derive(Debug, Default)]
pub struct Released {
    pub diagnostics: Diagnostics,
    /// The owners of the places that several workloads name.
    owners: BTreeMap<Place, CopyOwner>,
    /// The next moment at which a rollout continues by itself.
    pub next_change: Option<Timestamp>,
    /// The reasons why clusters wait, by workload.
    pub traces: BTreeMap<Key, Trace>,
}

/// The reasons behind one workload's step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The reason for each cluster that waits for its turn or for the removal of its copy.
    pub waits: BTreeMap<String, Arc<str>>,
    /// Parts of the strategy that have no effect, against what their author may expect.
    pub notes: BTreeSet<String>,
    /// The standing of a staged rollout.
    pub standing: Option<Standing>,
    /// The next moment at which the workload continues by itself.
    pub next: Option<Timestamp>,
}

/// Turns the desired state into the one that clusters get now.
pub fn release(
    given: ReleaseInputs<'_>,
    desired: &mut State,
    contents: &mut dyn Contents,
) -> Result<Released, ContentError> {
    let mut released = release_all(given, desired, contents)?;
    let last_releases = next_release::last_numbers(given, &desired.releases);
    let owners = std::mem::take(&mut released.owners);
    if !last_releases.is_empty() || !owners.is_empty() {
        desired.ledger = Ledger { last_releases, owners, ..Ledger::default() }.into();
    }
    Ok(released)
}

fn release_all(
    given: ReleaseInputs<'_>,
    desired: &mut State,
    contents: &mut dyn Contents,
) -> Result<Released, ContentError> {
    let reported = reported(given);
    // A default strategy applies once a member has reported on the workload: without any report no step could
    // succeed.
    let mut unasked: BTreeSet<&Key> = BTreeSet::new();
    let mut workloads: BTreeMap<&Key, &Workload> = BTreeMap::new();
    for Observed { workload, is_asked } in observed(given.fleet).filter(|one| !one.workload.frozen) {
        let key = &workload.key;
        let is_begun = is_asked || given.current.releases.contains_key(key);
        if is_begun || reported.contains(&WorkloadName::of(key)) {
            unasked.extend((!is_begun).then_some(key));
            workloads.insert(key, workload);
        }
    }
    let is_frozen = |key: &Key| given.fleet.workloads.get(key).is_some_and(|workload| workload.frozen);
    let stands = given.current.releases.iter().filter(|(key, _)| is_frozen(key));
    let stands: Vec<_> =
        stands.map(|(key, releases)| advance::stands(key, releases, given, desired)).collect();
    if workloads.is_empty() && stands.is_empty() {
        return Ok(Released::default());
    }
    let mut advances = {
        let (current, wanted) = (OwnedPlaces::of(given.current), OwnedPlaces::of(desired));
        units::advance(&workloads, &unasked, given, [&current, &wanted], contents)?
    };
    advances.extend(stands);
    Ok(apply::apply(advances, given, desired))
}

/// A workload whose releases depend on members' reports.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'f> {
    pub workload: &'f Workload,
    /// A person chose the strategy, or another workload waits for this one.
    is_asked: bool,
}

/// Returns the workloads with any strategy that proceeds in steps.
pub fn observed(fleet: &Fleet) -> impl Iterator<Item = Observed<'_>> {
    let firsts = gone_first(fleet);
    // Most workloads go at once, and most fleets have no policy that changes this.
    let has_policies = !fleet.rollout_policies.is_empty();
    let workloads = fleet.workloads.values().map(|workload| &**workload);
    let may_wait = move |workload: &&Workload| has_policies || workload.strategy != Strategy::AtOnce;
    workloads.filter(may_wait).filter_map(move |workload| {
        let orders = policy::Orders::of_workload(fleet, workload);
        let is_ordered = firsts.contains(&workload.key) || !orders.policies().is_empty();
        let is_asked = match &*orders.strategy() {
            _ if is_ordered => true,
            Strategy::AtOnce => return None,
            Strategy::Progressive(rollouts) if rollouts.iter().all(|one| one.pace == Pace::Together) => {
                return None;
            }
            Strategy::Rolling(rolling) => rolling.asked,
            Strategy::Progressive(_) | Strategy::Stages(_) | Strategy::Runs => true,
        };
        Some(Observed { workload, is_asked })
    })
}

/// Returns the workloads that others wait for. They must be observed, whatever their strategy.
fn gone_first(fleet: &Fleet) -> BTreeSet<&Key> {
    let policies = || fleet.rollout_policies.values();
    let after = policies().flat_map(|policy| &policy.after);
    let together =
        policies().filter(|policy| policy.together).flat_map(|policy| policy.workloads.iter().flatten());
    after.chain(together).flat_map(|pattern| fleet.workloads_of(pattern)).collect()
}

/// Returns the workloads that proceed in steps from the start, before any report.
pub fn asked(fleet: &Fleet) -> BTreeSet<&Key> {
    observed(fleet).filter(|observed| observed.is_asked).map(|observed| &observed.workload.key).collect()
}

/// Returns the workloads that some member has reported on, including reports on earlier copies.
fn reported(given: ReleaseInputs<'_>) -> BTreeSet<&WorkloadName> {
    given.statuses.values().flat_map(|status| status.copies.keys()).collect()
}
