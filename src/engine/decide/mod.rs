//! The engine: a fleet, current decisions, statuses and a moment → next decisions, each with its reasons.
//!
//! For every placement: candidates → [`filter`] → [`score`] → [`select`] → [`divide`] → groups. A decision
//! whose inputs are equal (by its [`digest`]) is sticky: it is reused. Placements with their own policy come
//! first, in the order of their keys, then placements that follow others. This module knows no system, and
//! equal inputs give equal output, whatever the order of files.

mod cache;
mod candidates;
mod cluster_table;
mod digest;
pub mod divide;
mod even_constraints;
mod expression_verdicts;
mod filter;
mod findings;
mod followed_placements;
mod in_turn;
mod own_policy;
mod pass;
mod policy_encoding;
mod remembered;
mod score;
mod select;
mod spread;
mod status_overlay;
mod trace;
mod uncertain;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use berth_base::diag::Diagnostics;
use berth_base::model::fleet::Doubt;
use berth_base::model::{ClusterStatus, Decision, Fleet, Key, Map, Shared, Timestamp};

use cache::{DecisionInputs, PlacementResults, Rest};

pub use cache::DecisionCache;
pub use status_overlay::overlay;
pub use trace::{ClusterTrace, DivisionTrace, ReplicaTrace, ScorePart, Stage, Trace, TraceStep};

/// The result of one pass over all placements.
#[derive(Clone, Debug, Default)]
pub struct Decided {
    pub decisions: Map<Key, Decision>,
    /// The part of the statuses that some policy reads.
    pub facts: Map<String, Shared<ClusterStatus>>,
    pub diagnostics: Diagnostics,
    /// The numbers of new and of sticky decisions.
    pub decided: usize,
    pub sticky: usize,
    /// The number of placements that were decided; the results of all others were reused.
    pub looked_at: usize,
    /// The next moment at which time alone changes a verdict: a toleration, heartbeat or score expires.
    pub next_change: Option<Timestamp>,
}

/// Decides every placement of the fleet.
pub fn decide(
    fleet: &Fleet,
    previous: &Map<Key, Decision>,
    statuses: &Map<String, Shared<ClusterStatus>>,
    now: Timestamp,
) -> Decided {
    let statuses = &*status_overlay::heard(fleet, statuses);
    decide_rest(DecisionContext { fleet, previous, statuses, now }, None).decided()
}

/// Decides like [`decide`], starting from an earlier pass.
pub(crate) fn decide_after(
    earlier: Option<&DecisionCache>,
    fleet: &Shared<Fleet>,
    previous: &Map<Key, Decision>,
    statuses: &Map<String, Shared<ClusterStatus>>,
    now: Timestamp,
) -> (Decided, Option<DecisionCache>) {
    let statuses = status_overlay::heard(fleet, statuses).into_owned();
    let (fleet, previous) = (fleet.clone(), previous.clone());
    let inputs = DecisionInputs { fleet, previous, statuses, now };
    let DecisionInputs { fleet, previous, statuses, .. } = &inputs;
    let made = match earlier.and_then(|earlier| earlier.reusable(&inputs)) {
        Some(Rest { results, keys, facts: Some(facts) }) if keys.is_empty() => {
            let placements = fleet.placements.len();
            PassResults { results, facts, decided: 0, looked_at: 0, any_new: false, placements }
        }
        rest => decide_rest(DecisionContext { fleet, previous, statuses, now }, rest),
    };
    // While any decision is uncertain, every pass decides all placements. A new taint has a different moment
    // in every pass.
    let lasts = !made.any_new && fleet.doubt == Doubt::default();
    let (results, facts) = (made.results.clone(), made.facts.clone());
    (made.decided(), lasts.then(|| DecisionCache { inputs, results, facts }))
}

/// The results of a pass.
struct PassResults {
    results: PlacementResults,
    facts: Map<String, Shared<ClusterStatus>>,
    /// The numbers of new decisions, and of decided placements.
    decided: usize,
    looked_at: usize,
    /// Some taint is new.
    any_new: bool,
    placements: usize,
}

impl PassResults {
    fn decided(self) -> Decided {
        let PassResults { results, facts, decided, looked_at, placements, .. } = self;
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(results.diagnostics.values().flatten().cloned());
        Decided {
            facts,
            decisions: results.decisions,
            diagnostics,
            decided,
            looked_at,
            sticky: placements - decided,
            next_change: results.flips.values().min().copied(),
        }
    }
}

/// The borrowed inputs of all decisions.
struct DecisionContext<'a> {
    fleet: &'a Fleet,
    previous: &'a Map<Key, Decision>,
    statuses: &'a Map<String, Shared<ClusterStatus>>,
    now: Timestamp,
}

/// Decides the remaining placements; all of them without a `rest`.
fn decide_rest(given: DecisionContext<'_>, rest: Option<Rest>) -> PassResults {
    let DecisionContext { fleet, previous, statuses, now } = given;
    let mut clusters = overlay(fleet, statuses);
    let known = rest.as_ref().and_then(|rest| rest.facts.clone());
    // Without undated taints, no decision depends on the reads of other placements.
    let reads = match &known {
        Some(_) if !status_overlay::any_undated(&clusters) => digest::Reads::new(),
        _ => reads_of(fleet),
    };
    let any_new = status_overlay::date_taints(&mut clusters, statuses, &reads, now);
    let table = cluster_table::Table::new(&clusters, now);
    let mut pass = pass::Pass::new(fleet, previous, &table);
    let looked_at = match rest.filter(|_| !any_new) {
        Some(Rest { results, keys, .. }) => {
            pass.some(results, &keys);
            keys.len()
        }
        None => {
            pass.all();
            fleet.placements.len()
        }
    };
    let facts = known.filter(|_| !any_new).unwrap_or_else(|| {
        let mut facts = status_overlay::facts(fleet, statuses, &reads);
        status_overlay::note_taints(
            &mut facts,
            fleet.clusters.values().map(|cluster| &**cluster),
            &clusters,
            &reads,
        );
        facts
    });
    let pass::Pass { results, decided, .. } = pass;
    PassResults { results, facts, decided, looked_at, any_new, placements: fleet.placements.len() }
}

/// The fleet, the current decisions and the statuses.
pub type DecisionSources<'s> = (&'s Fleet, &'s Map<Key, Decision>, &'s Map<String, Shared<ClusterStatus>>);

/// Returns for each cluster why one placement picks it or not; `None` for an unknown placement.
pub fn explain(
    fleet: &Fleet,
    previous: &Map<Key, Decision>,
    statuses: &Map<String, Shared<ClusterStatus>>,
    now: Timestamp,
    key: &Key,
) -> Option<Trace> {
    explain_all(fleet, previous, statuses, now, [key]).remove(key)
}

/// Explains several placements in one pass, as [`explain`] does for one. Unknown placements are left out.
pub fn explain_all<'k>(
    fleet: &Fleet,
    previous: &Map<Key, Decision>,
    statuses: &Map<String, Shared<ClusterStatus>>,
    now: Timestamp,
    keys: impl IntoIterator<Item = &'k Key>,
) -> BTreeMap<Key, Trace> {
    let traces = Mutex::new(BTreeMap::new());
    let add = |trace: Trace| {
        traces.lock().unwrap_or_else(PoisonError::into_inner).insert(trace.key.clone(), trace);
    };
    explain_each((fleet, previous, statuses), now, keys, &add);
    traces.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Explains several placements in one pass, and gives each trace away at once: all of them may need much memory. Several
/// threads call `sink` at a time.
pub fn explain_each<'k>(
    (fleet, previous, statuses): DecisionSources<'_>,
    now: Timestamp,
    keys: impl IntoIterator<Item = &'k Key>,
    sink: &(dyn Fn(Trace) + Sync),
) {
    let statuses = &*status_overlay::heard(fleet, statuses);
    let mut clusters = overlay(fleet, statuses);
    status_overlay::date_taints(&mut clusters, statuses, &reads_of(fleet), now);
    let table = cluster_table::Table::new(&clusters, now);
    let mut pass = pass::Pass::new(fleet, previous, &table);
    let known = keys.into_iter().filter_map(|key| fleet.placements.get_key_value(key));
    pass.watch(known.map(|(key, _)| key), sink);
    pass.all();
}

fn reads_of(fleet: &Fleet) -> digest::Reads<'_> {
    let mut reads = digest::Reads::new();
    for placement in fleet.placements.values() {
        digest::reads_of_placement(placement, &mut reads);
    }
    digest::reads_of_rollouts(fleet, &mut reads);
    reads
}
