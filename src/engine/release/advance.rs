//! One workload's step: each cluster's copies and reports → the clusters that get the release now, and the
//! new record.

use berth_base::text::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health, Releases};
use berth_base::model::rollout::Strategy;
use berth_base::model::{
    ContentError, Contents, Decision, Digest, Folders, Key, Map, ObjectId, Timestamp, Workload,
};

use super::cluster_rollout::{ClusterRollout, assume, cluster_rollouts, keep_reports, rests};
use super::copies::{CopySet, OwnedPlaces};
use super::next_release::{again, lost, picks_of, pin, want};
use super::policy::Closed;
use super::strategies::Version;
use super::strategy_answer::{self, Circumstances, StrategyAnswer, Unhealthy};
use super::workload_rollout::{self, Reversal, WorkloadRollout};
use super::{ReleaseInputs, Trace, inputs, record, strategies};
use crate::state::State;

/// A workload's step, to be applied to the desired state.
#[derive(Debug)]
pub(super) struct Advance {
    pub(super) key: Key,
    /// `None` where there is no release yet.
    pub(super) releases: Option<Releases>,
    /// Other workloads wait until some cluster proves the release.
    pub(super) needs_proof: bool,
    /// By cluster. A missing cluster gets nothing and loses its copies.
    pub(super) outcomes: BTreeMap<String, Outcome>,
    /// The objects of earlier releases that some cluster gets.
    pub(super) earlier_objects: BTreeSet<ObjectId>,
    /// The reports that this step read, for the facts.
    pub(super) reports: BTreeMap<String, CopyReport>,
    pub(super) trace: Trace,
    pub(super) next_change: Option<Timestamp>,
    pub(super) diagnostics: Diagnostics,
}

/// The copies of a workload that a cluster gets now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The desired copies.
    Desired,
    /// The copies that the cluster has.
    Stays,
    /// The copies of another release.
    Gets(CopySet),
    /// No copies: the cluster's turn has not come, and no release is proven yet.
    Waits,
    /// The copies that the cluster has, though the placement no longer picks it.
    Leaves,
}

impl Advance {
    /// Reports whether the decision must name the objects of all releases that clusters have.
    pub(super) fn keeps_objects(&self) -> bool {
        let is_removing = self.releases.as_ref().is_some_and(|releases| !releases.removing.is_empty());
        is_removing || self.outcomes.values().any(|outcome| *outcome != Outcome::Desired)
    }
}

/// A workload whose step is computed but not recorded yet.
pub(super) struct WorkloadStep<'a> {
    pub(super) workload: &'a Workload,
    pub(super) workload_rollout: WorkloadRollout<'a>,
    pub(super) cluster_rollouts: BTreeMap<String, ClusterRollout<'a>>,
    pub(super) answer: StrategyAnswer,
    /// Newcomers that begin with a proven release because another workload of the unit does.
    pub(super) joins_along: BTreeSet<String>,
    /// Newcomers that wait because another workload of the unit is still being removed there.
    pub(super) waits_along: BTreeSet<String>,
    /// The target release cannot be rendered, so the clusters keep their copies.
    is_lost: bool,
    /// Before this step nothing moved, and every cluster had the proven release.
    rested: bool,
    closed: Option<Closed>,
    /// Another workload must go first.
    is_blocked: bool,
}

/// Prepares the step of a workload. `places` are those of the current and of the desired state.
pub(super) fn look<'a>(
    workload: &'a Workload,
    given: ReleaseInputs<'a>,
    places: [&'a OwnedPlaces<'a>; 2],
    reversal: Reversal,
    contents: &mut dyn Contents,
) -> Result<WorkloadStep<'a>, ContentError> {
    let key = &workload.key;
    let desired = &places[1].state.decisions;
    let stored = contents.put(inputs::write(workload).as_bytes())?;
    let mut workload_rollout =
        workload_rollout::workload_rollout(workload, given, desired.get(key), stored, reversal);
    let mut cluster_rollouts = cluster_rollouts(&workload_rollout.releases, given, places);
    let mut served = cluster_rollouts.values().filter(|one| one.serves).peekable();
    let was_waiting = |decision: &Decision| decision.picks.iter().any(|pick| pick.pending);
    let is_first = !given.current.releases.contains_key(key)
        && !given.current.decisions.get(key).is_some_and(was_waiting);
    if is_first && served.peek().is_some() && served.all(|one| one.picked && one.have == one.want) {
        // Copies that every cluster had before the first release count as proven.
        workload_rollout.releases.good = Some(workload_rollout.releases.current.number);
    }
    let mut is_lost = false;
    if let Some(target) = workload_rollout.target.filter(|_| !workload_rollout.goes_to_files()) {
        let picks = picks_of(desired, key, |_| true);
        match again(&mut workload_rollout, target, given, &picks, contents) {
            Ok(folders) => want(&mut cluster_rollouts, &folders),
            Err(fault) => {
                is_lost = true;
                workload_rollout.diagnostics.push(lost(workload, target, &fault));
            }
        }
    }
    pin(&mut cluster_rollouts, &mut workload_rollout, workload, (given, contents), desired);
    // From here on, `want` holds each cluster's final copies.
    let rested = rests(&workload_rollout.releases, given, &cluster_rollouts);
    if rested {
        keep_reports(&mut cluster_rollouts);
    }
    assume(&mut cluster_rollouts, &workload_rollout.releases);
    let closed = workload_rollout.orders.closed(given.now);
    Ok(WorkloadStep {
        workload,
        workload_rollout,
        cluster_rollouts,
        answer: StrategyAnswer::default(),
        joins_along: BTreeSet::new(),
        waits_along: BTreeSet::new(),
        is_lost,
        rested,
        closed,
        is_blocked: false,
    })
}

impl WorkloadStep<'_> {
    /// Reports whether any member reported on the copies that its cluster has.
    pub(super) fn is_reported(&self) -> bool {
        self.cluster_rollouts.values().any(ClusterRollout::is_reported)
    }

    /// Asks the strategy. `blocked` is the reason why another workload must go first. `unhealthy` are the
    /// clusters where other workloads of the unit are unhealthy.
    pub(super) fn ask(
        &mut self,
        given: ReleaseInputs<'_>,
        desired: &Map<Key, Decision>,
        blocked: Option<String>,
        unhealthy: &Unhealthy,
    ) {
        self.is_blocked = blocked.is_some();
        for cluster in self.begin_proven() {
            self.cluster_rollouts.entry(cluster).and_modify(|cluster_rollout| cluster_rollout.begins = true);
        }
        let workload_rollout = &mut self.workload_rollout;
        let frozen = self.closed.as_ref().map(|closed| closed.reason.clone());
        let taken_back = workload_rollout.releases.taken_back;
        let reason = frozen.clone().or(blocked).filter(|_| !taken_back);
        let followed =
            strategies::followed(given.fleet, desired, &self.workload.key, &workload_rollout.strategy);
        let circumstances =
            Circumstances { unhealthy, followed: &followed, closed: reason.as_deref(), now: given.now };
        self.answer = strategy_answer::ask(workload_rollout, &self.cluster_rollouts, circumstances);
        if let Some(reason) = frozen.filter(|_| taken_back) {
            // A release that is taken back still returns to the good one; only the removals wait.
            let stays = std::mem::take(&mut self.answer.remove);
            let reason: Arc<str> = reason.into();
            self.answer.waits.extend(stays.into_iter().map(|cluster| (cluster, reason.clone())));
        }
    }

    /// Returns the moment from which the workload counts as proven, if nothing changes until then. `None`
    /// while a report or a stage is missing.
    pub(super) fn settles(&self) -> Option<Timestamp> {
        record::settles(self)
    }

    /// Reports whether some cluster must prove the release: a picked cluster without a pin.
    pub(super) fn needs_proof(&self) -> bool {
        self.cluster_rollouts.values().any(|cluster_rollout| {
            cluster_rollout.picked && !cluster_rollout.is_pinned && !cluster_rollout.keeps
        })
    }

    /// Returns the reports to write into the facts, by cluster.
    fn reports(&self, given: ReleaseInputs<'_>) -> BTreeMap<String, CopyReport> {
        let is_settled = self.rested && rests(&self.workload_rollout.releases, given, &self.cluster_rollouts);
        let name = WorkloadName::of(&self.workload.key);
        // While nothing moves and all recorded reports are successes, the facts keep them and ignore newer
        // ones: no strategy would use these. Beside a failure, the length of each success counts, and other
        // orders may use the failure.
        let mut facts = given.current.facts.cursor();
        let mut is_fine = |cluster: &String, cluster_rollout: &ClusterRollout<'_>| {
            let known = facts.get(cluster).and_then(|fact| fact.copies.get(&name));
            match (known, &cluster_rollout.report) {
                (Some(known), Some(read)) if !cluster_rollout.is_assumed => {
                    known.digest != read.digest || known.health == Health::Succeeded
                }
                _ => true,
            }
        };
        let stays = is_settled && self.cluster_rollouts.iter().all(|(cluster, one)| is_fine(cluster, one));
        let mut facts = given.current.facts.cursor();
        let mut report = |cluster: &String, cluster_rollout: &ClusterRollout<'_>| {
            // A proof reads reports from the facts only. A retracted report counts for no copies any more,
            // but still shows that the member reports on the workload.
            let is_retracted = cluster_rollout.retracted.is_some() && !is_settled;
            let earlier = facts.get(cluster).and_then(|fact| fact.copies.get(&name));
            let counts = !cluster_rollout.is_assumed && !is_retracted && !stays;
            let read = cluster_rollout.report.clone().filter(|_| counts);
            let digest = |earlier: &CopyReport| if is_retracted { Digest([0; 16]) } else { earlier.digest };
            let carried = || earlier.map(|one| CopyReport { digest: digest(one), ..one.clone() });
            read.or_else(carried)
        };
        let all = self.cluster_rollouts.iter();
        all.filter_map(|(cluster, one)| Some((cluster.clone(), report(cluster, one)?))).collect()
    }

    /// Gives these copies to their clusters.
    fn give(&mut self, folders: &Folders) {
        for (cluster, folder) in folders {
            let Some(cluster_rollout) = self.cluster_rollouts.get_mut(cluster) else { continue };
            let copies: CopySet = folder.iter().map(|(path, id)| (path.clone(), *id)).collect();
            cluster_rollout.outcome = Some(Outcome::Gets(copies));
        }
    }

    /// Turns the answer into the outcome of each cluster, and records the releases. `settles` is the moment
    /// from which the whole unit is proven.
    pub(super) fn finish(
        mut self,
        given: ReleaseInputs<'_>,
        desired: &Map<Key, Decision>,
        settles: Option<Timestamp>,
        contents: &mut dyn Contents,
    ) -> Advance {
        let key = self.workload.key.clone();
        let needs_proof = self.needs_proof();
        let good = self.good_for_newcomers();
        let joins = self.joins();
        self.settle_outcomes(&joins);
        if let Some(good) = good.filter(|_| !joins.is_empty()) {
            let picks = picks_of(desired, &key, |cluster| joins.contains(cluster));
            match again(&mut self.workload_rollout, good, given, &picks, contents) {
                Ok(folders) => self.give(&folders),
                Err(fault) => self.workload_rollout.diagnostics.push(lost(self.workload, good, &fault)),
            }
        }
        record::record(&mut self, &joins, settles, given.now);
        if let Some(halt) = &self.workload_rollout.releases.halted {
            let number = self.workload_rollout.releases.current.number;
            let message = format!("{key}: release {number} is halted: {}", halt.reason);
            self.workload_rollout
                .diagnostics
                .push(Diagnostic::warning(self.workload.origin.clone(), message));
        }
        self.workload_rollout.diagnostics.extend(self.progress_note());
        let waits = !self.answer.waits.is_empty();
        let orders =
            self.workload_rollout.orders.next_change(given.now).filter(|_| waits || self.closed.is_some());
        let moments = self.answer.next.into_iter().chain(settles).chain(orders);
        let next_change = moments.filter(|at| *at > given.now).min();
        let reports = self.reports(given);
        let outcomes = self.cluster_rollouts.into_iter();
        let outcomes = outcomes
            .filter_map(|(cluster, cluster_rollout)| Some((cluster, cluster_rollout.outcome?)))
            .collect();
        let StrategyAnswer { waits, notes, standing, .. } = self.answer;
        let trace = Trace { waits, notes, standing, next: next_change };
        let WorkloadRollout { releases, earlier_objects, diagnostics, .. } = self.workload_rollout;
        let is_recorded = releases.good.is_some()
            || !releases.assigned.is_empty()
            || self.workload_rollout.target.is_some();
        let releases = is_recorded.then_some(releases);
        Advance {
            key,
            releases,
            needs_proof,
            outcomes,
            earlier_objects,
            reports,
            trace,
            next_change,
            diagnostics,
        }
    }

    /// Returns a note on the progress of the rollout, if clusters wait.
    fn progress_note(&self) -> Option<Diagnostic> {
        let (key, releases) = (&self.workload.key, &self.workload_rollout.releases);
        let (cluster, reason) = self.answer.waits.first_key_value()?;
        let waits = self.answer.waits.len();
        if self.workload_rollout.target.is_none() && *self.workload_rollout.strategy == Strategy::Runs {
            let message = format!(
                "{key} rolls out only by staged update runs, and none can proceed: {} wait",
                counted(waits, "cluster")
            );
            let hint =
                "add a ClusterStagedUpdateRun with `state: Run`, or use `strategy.type: RollingUpdate`";
            return Some(Diagnostic::warning(self.workload.origin.clone(), message).hint(hint));
        }
        let outcomes = self.cluster_rollouts.iter().filter_map(|(name, rollout)| {
            let outcome = rollout.outcome.as_ref()?;
            Some((self.answer.waits.contains_key(name), matches!(outcome, Outcome::Leaves)))
        });
        let (leaving, picked): (Vec<_>, Vec<_>) = outcomes.partition(|(_, leaves)| *leaves);
        let [leaving, waiting] =
            [&leaving, &picked].map(|all| all.iter().filter(|(waits, _)| *waits).count());
        let removals = if leaving == 0 { String::new() } else { format!(", {leaving} for removal") };
        let message = format!(
            "{key}: release {}: {waiting} of {} wait{removals}; {cluster}: {reason}",
            releases.current.number,
            counted(picked.len(), "cluster"),
        );
        Some(Diagnostic { at: Some(self.workload.origin.clone()), ..Diagnostic::note(message) })
    }

    /// Returns the clusters without copies that begin with the proven release. They begin with no other one,
    /// whatever the strategy answers about newcomers.
    pub(super) fn joins(&self) -> BTreeSet<String> {
        if self.good_for_newcomers().is_none() {
            return BTreeSet::new();
        }
        self.newcomers()
    }

    /// Returns the picked clusters without copies, except those where a removal is not finished.
    pub(super) fn newcomers(&self) -> BTreeSet<String> {
        let joins = self.cluster_rollouts.iter().filter(|(_, cluster_rollout)| {
            cluster_rollout.picked && cluster_rollout.version() == Version::Nothing
        });
        joins
            .filter(|(_, cluster_rollout)| !cluster_rollout.is_pinned && cluster_rollout.removing.is_none())
            .map(|(cluster, _)| cluster.clone())
            .filter(|cluster| !self.waits_along.contains(cluster))
            .collect()
    }

    /// Returns the proven release if other clusters go to another one.
    fn good_for_newcomers(&self) -> Option<u64> {
        self.workload_rollout.releases.good.filter(|good| Some(*good) != self.workload_rollout.target)
    }

    /// Returns the newcomers that get a proven release at once, whatever their strategy answers: during a
    /// freeze or pause, while all clusters return to it, and where another workload of the unit begins.
    fn begin_proven(&self) -> BTreeSet<String> {
        let is_proven = self.workload_rollout.target.is_some()
            && self.workload_rollout.target == self.workload_rollout.releases.good;
        if !is_proven || self.is_lost {
            return BTreeSet::new();
        }
        let is_frozen_alone = self.closed.is_some() && !self.is_blocked;
        let all_begin = is_frozen_alone || self.workload_rollout.releases.taken_back;
        let mut begin = self.newcomers();
        begin.retain(|cluster| all_begin || self.joins_along.contains(cluster));
        begin
    }

    /// Turns the answer into the outcome of each cluster.
    fn settle_outcomes(&mut self, joins: &BTreeSet<String>) {
        let (is_of_files, begins) = (self.workload_rollout.goes_to_files(), self.begin_proven());
        let WorkloadStep { workload_rollout, cluster_rollouts, answer, waits_along, is_lost, .. } = self;
        for (cluster, cluster_rollout) in cluster_rollouts {
            let wanted = || match is_of_files && !cluster_rollout.is_pinned {
                true => Outcome::Desired,
                false => Outcome::Gets(cluster_rollout.want.clone()),
            };
            cluster_rollout.outcome = Some(match (cluster_rollout.picked, cluster_rollout.version()) {
                (true, _) if cluster_rollout.is_pinned => wanted(),
                (true, _) if cluster_rollout.removing.is_some() => Outcome::Waits,
                (true, Version::Nothing) if waits_along.contains(cluster) => Outcome::Waits,
                (true, Version::New) => wanted(),
                (true, Version::Nothing) if joins.contains(cluster) => Outcome::Waits,
                (true, Version::Old) if *is_lost => Outcome::Stays,
                (true, _) if workload_rollout.releases.taken_back || answer.give.contains(cluster) => {
                    wanted()
                }
                (true, Version::Old) => Outcome::Stays,
                // A freeze does not keep the proven release from newcomers: no cluster gets new content by
                // it.
                (true, Version::Nothing) if begins.contains(cluster) => wanted(),
                (true, Version::Nothing) => Outcome::Waits,
                (false, Version::Nothing) => continue,
                (false, _) if answer.remove.contains(cluster) => continue,
                (false, _) => Outcome::Leaves,
            });
        }
    }
}

/// Returns the step of a workload that does not change: its clusters keep their copies, and its record is
/// equal.
pub(super) fn stands(key: &Key, releases: &Releases, given: ReleaseInputs<'_>, desired: &State) -> Advance {
    let mut outcomes: BTreeMap<String, Outcome> = BTreeMap::new();
    let waits = desired.decisions.get(key).into_iter().flat_map(Decision::picked);
    outcomes.extend(waits.map(|pick| (pick.cluster.to_string(), Outcome::Waits)));
    let served = given.current.decisions.get(key).into_iter().flat_map(|before| before.picks.iter());
    for pick in served.filter(|pick| !pick.pending) {
        if let Some(outcome) = outcomes.get_mut(&*pick.cluster) {
            *outcome = Outcome::Stays;
        } else if given.fleet.clusters.contains_key(&*pick.cluster) {
            outcomes.insert(pick.cluster.to_string(), Outcome::Leaves);
        }
    }
    let name = WorkloadName::of(key);
    let report = |cluster: &String| Some((cluster.clone(), carried(&name, cluster, given)?));
    let reports = outcomes.keys().filter_map(report).collect();
    let (key, releases) = (key.clone(), Some(releases.clone()));
    let (trace, diagnostics) = (Trace::default(), Diagnostics::new());
    Advance {
        key,
        releases,
        needs_proof: true,
        outcomes,
        earlier_objects: BTreeSet::new(),
        reports,
        trace,
        next_change: None,
        diagnostics,
    }
}

/// Returns the report in the current facts on a workload's copies in a cluster.
fn carried(name: &WorkloadName, cluster: &str, given: ReleaseInputs<'_>) -> Option<CopyReport> {
    given.current.facts.get(cluster)?.copies.get(name).cloned()
}
