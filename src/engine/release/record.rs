//! A workload's step → its releases: the assigned clusters, the proven release, and the reason why the
//! rollout stops.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::Timestamp;
use berth_base::model::release::{Assignment, Halt, Health, Releases, Stays};
use berth_base::model::rollout::Strategy;
use berth_base::model::rollout_policy::OnFailure;

use super::advance::{Outcome, WorkloadStep};
use super::cluster_rollout::ClusterRollout;
use super::next_release::forget_old;
use super::strategies::{Version, seconds_after};
use super::workload_rollout::WorkloadRollout;

/// Records the assignments. `settles` is the moment from which the release is proven.
pub(super) fn record(
    step: &mut WorkloadStep<'_>,
    joins: &BTreeSet<String>,
    settles: Option<Timestamp>,
    now: Timestamp,
) {
    let halted = halt(step, now);
    let removing = removing(step, now);
    let target = step.workload_rollout.target;
    let mut awaited = awaited(step, now);
    let releases = &mut step.workload_rollout.releases;
    let had = of_clusters(&step.cluster_rollouts, releases);
    for (cluster, cluster_rollout, outcome) in with_outcomes(&step.cluster_rollouts) {
        let release = match outcome {
            Outcome::Desired | Outcome::Gets(_) if cluster_rollout.keeps => None,
            Outcome::Desired | Outcome::Gets(_) if joins.contains(cluster) => releases.good,
            Outcome::Desired | Outcome::Gets(_) if cluster_rollout.is_pinned => None,
            Outcome::Desired | Outcome::Gets(_) => target,
            Outcome::Stays | Outcome::Leaves | Outcome::Waits => continue,
        };
        let is_new = cluster_rollout.version() != Version::New;
        let is_pinned = cluster_rollout.is_pinned || cluster_rollout.keeps;
        if let Some(release) = release.filter(|_| is_new) {
            releases.assigned.insert(cluster.clone(), Assignment { release, at: now });
        } else if is_pinned {
            releases.assigned.remove(cluster);
        } else if let (Some(release), Some(at)) = (release, awaited.get(cluster)) {
            // The cluster has these copies already, without a report on them.
            releases.assigned.entry(cluster.clone()).or_insert(Assignment { release, at: *at });
        }
    }
    let has_outcome = |cluster: &String| {
        step.cluster_rollouts.get(cluster).is_some_and(|cluster_rollout| cluster_rollout.outcome.is_some())
    };
    releases.assigned.retain(|cluster, _| has_outcome(cluster));
    releases.removing = removing;
    if let Some(staged) = step.workload_rollout.staged.take() {
        releases.run = Some(staged.progress);
    }
    // Newcomers begin with the release that was proven before this step.
    let first = releases.good;
    if settles.is_some_and(|at| at <= now) {
        releases.good = target;
        releases.assigned.clear();
    }
    releases.halted = halted;
    awaited.retain(|cluster, _| !releases.assigned.contains_key(cluster));
    releases.awaited = awaited;
    step.workload_rollout.releases.stays = stays(step, joins, (&had, first));
    let releases = &mut step.workload_rollout.releases;
    let mut needed: BTreeSet<u64> = releases.assigned.values().map(|told| told.release).collect();
    needed.extend(releases.run.as_ref().filter(|run| run.finished.is_none()).map(|run| run.release));
    let policies = step.workload_rollout.orders.policies().iter();
    needed.extend(policies.flat_map(|policy| &policy.pins).filter_map(|pin| pin.release));
    forget_old(releases, |number| needed.contains(&number));
}

/// Returns the clusters that keep or get copies, or wait for them.
fn with_outcomes<'s, 'a>(
    cluster_rollouts: &'s BTreeMap<String, ClusterRollout<'a>>,
) -> impl Iterator<Item = (&'s String, &'s ClusterRollout<'a>, &'s Outcome)> {
    cluster_rollouts.iter().filter_map(|(cluster, cluster_rollout)| {
        Some((cluster, cluster_rollout, cluster_rollout.outcome.as_ref()?))
    })
}

/// Returns the number of the release that each cluster has.
fn of_clusters<'s>(
    cluster_rollouts: &'s BTreeMap<String, ClusterRollout<'_>>,
    releases: &Releases,
) -> BTreeMap<&'s String, u64> {
    with_outcomes(cluster_rollouts)
        .filter_map(|(cluster, ..)| Some((cluster, releases.of_cluster(cluster)?)))
        .collect()
}

/// Returns the clusters whose copies are being removed, each with the moment at which the removal began.
fn removing(step: &WorkloadStep<'_>, now: Timestamp) -> BTreeMap<String, Timestamp> {
    let is_lost = |cluster_rollout: &ClusterRollout<'_>| match &cluster_rollout.outcome {
        None | Some(Outcome::Waits) => step.workload_rollout.remembers_removals(),
        Some(Outcome::Desired | Outcome::Stays | Outcome::Gets(_) | Outcome::Leaves) => false,
    };
    let begins = |cluster_rollout: &ClusterRollout<'_>| {
        (cluster_rollout.serves && cluster_rollout.is_removed_slowly()).then_some(now)
    };
    let since =
        |cluster_rollout: &ClusterRollout<'_>| cluster_rollout.removing.or_else(|| begins(cluster_rollout));
    let lost = step.cluster_rollouts.iter().filter(|(_, cluster_rollout)| is_lost(cluster_rollout));
    lost.filter_map(|(cluster, cluster_rollout)| Some((cluster.clone(), since(cluster_rollout)?))).collect()
}

/// Returns the clusters whose member has not reported on its copies yet.
fn awaited(step: &WorkloadStep<'_>, now: Timestamp) -> BTreeMap<String, Timestamp> {
    let releases = &step.workload_rollout.releases;
    let since = |(cluster, cluster_rollout, outcome): (&String, &ClusterRollout<'_>, &Outcome)| {
        let is_other = || {
            cluster_rollout.version() == Version::Old
                && cluster_rollout.pinned_to != releases.of_cluster(cluster)
        };
        let since = match outcome {
            Outcome::Waits => None,
            Outcome::Desired | Outcome::Gets(_) if !cluster_rollout.serves || is_other() => Some(now),
            _ => releases.reports_from(cluster).filter(|_| !cluster_rollout.is_reported()),
        };
        Some((cluster.clone(), since?))
    };
    with_outcomes(&step.cluster_rollouts).filter_map(since).collect()
}

/// Returns the clusters that have a release without an assignment. `had` are their releases before this step,
/// and `first` is the one that newcomers begin with.
fn stays(
    step: &WorkloadStep<'_>,
    joins: &BTreeSet<String>,
    (had, first): (&BTreeMap<&String, u64>, Option<u64>),
) -> BTreeMap<String, Stays> {
    let WorkloadRollout { releases, target, .. } = &step.workload_rollout;
    let of_cluster = |(cluster, cluster_rollout, outcome): (&String, &ClusterRollout<'_>, &Outcome)| {
        let had = had.get(cluster).copied();
        let pinned = cluster_rollout.is_pinned || cluster_rollout.keeps;
        let release = match outcome {
            Outcome::Desired | Outcome::Gets(_) if cluster_rollout.keeps && joins.contains(cluster) => first,
            Outcome::Desired | Outcome::Gets(_) if cluster_rollout.keeps => *target,
            Outcome::Stays | Outcome::Leaves => had,
            Outcome::Desired | Outcome::Gets(_) if pinned => cluster_rollout.pinned_to.or(had),
            Outcome::Desired | Outcome::Gets(_) if cluster_rollout.version() == Version::New => *target,
            // The cluster is assigned in this step, or has no copy.
            Outcome::Desired | Outcome::Gets(_) | Outcome::Waits => None,
        };
        let release = release.filter(|release| pinned || Some(*release) != releases.assigned_to(cluster))?;
        Some((cluster.clone(), Stays { release, pinned }))
    };
    let begins = |cluster: &String, cluster_rollout: &ClusterRollout<'_>| {
        joins.contains(cluster) && !cluster_rollout.keeps
    };
    let others = with_outcomes(&step.cluster_rollouts)
        .filter(|(cluster, cluster_rollout, _)| !begins(cluster, cluster_rollout));
    others.filter_map(of_cluster).collect()
}

/// Returns the moment from which the target release counts as proven, if nothing changes until then.
pub(super) fn settles(step: &WorkloadStep<'_>) -> Option<Timestamp> {
    let releases = &step.workload_rollout.releases;
    let target = step.workload_rollout.target?;
    if releases.good == Some(target) && releases.assigned.is_empty() {
        return None;
    }
    if step.workload_rollout.staged.as_ref().is_some_and(|staged| staged.progress.finished.is_none()) {
        return None;
    }
    let begun = releases.get(target)?.begun;
    let joins = step.joins();
    let gets = |cluster: &String| joins.contains(cluster) || step.answer.give.contains(cluster);
    let counts = |(cluster, cluster_rollout): &(&String, &ClusterRollout<'_>)| {
        cluster_rollout.picked
            && !cluster_rollout.is_pinned
            && !(cluster_rollout.keeps && (cluster_rollout.begins || gets(cluster)))
    };
    let mut picked =
        step.cluster_rollouts.iter().filter(counts).map(|(_, cluster_rollout)| cluster_rollout).peekable();
    picked.peek()?;
    let quiet = quiet_seconds(&step.workload_rollout.strategy);
    let mut latest = begun;
    for cluster_rollout in picked {
        let succeeded =
            cluster_rollout.version() == Version::New && cluster_rollout.health() == Health::Succeeded;
        let since = cluster_rollout.since().filter(|_| succeeded)?;
        latest = latest.max(seconds_after(since, quiet).unwrap_or(Timestamp::MAX));
    }
    Some(latest)
}

/// Returns the reason why the rollout stops although clusters wait.
fn halt(step: &WorkloadStep<'_>, now: Timestamp) -> Option<Halt> {
    let releases: &Releases = &step.workload_rollout.releases;
    if releases.taken_back {
        // The reason for taking the release back stays.
        return releases.halted.clone();
    }
    let is_behind = |(_, cluster_rollout, outcome): (&String, &ClusterRollout<'_>, &Outcome)| match outcome {
        Outcome::Stays | Outcome::Waits => true,
        Outcome::Gets(copies) => cluster_rollout.want != *copies && !cluster_rollout.keeps,
        Outcome::Desired | Outcome::Leaves => false,
    };
    let failed = step.cluster_rollouts.iter().filter(|(cluster, cluster_rollout)| {
        cluster_rollout.version() == Version::New
            && !cluster_rollout.is_pinned
            && (cluster_rollout.health() == Health::Failed || step.answer.timed_out.contains(*cluster))
    });
    let failed: Vec<(&String, &ClusterRollout<'_>)> = failed.collect();
    let (first, cluster_rollout) = failed.first()?;
    // A release to roll back halts even if every cluster has it already.
    let rolls_back =
        step.workload_rollout.orders.on_failure() == OnFailure::RollBack && !releases.is_proven();
    if step.answer.halted.is_none() && !rolls_back && !with_outcomes(&step.cluster_rollouts).any(is_behind) {
        return None;
    }
    let said = cluster_rollout.report.as_ref().map(|report| report.message.as_str()).unwrap_or_default();
    let said = match said {
        "" if cluster_rollout.health() == Health::Failed => String::new(),
        "" => ": its deadline passed".to_owned(),
        said => format!(": {said}"),
    };
    let others = match failed.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    let since = releases.halted.as_ref().map_or(now, |halt| halt.since);
    Some(Halt { since, reason: format!("{first} failed{said}{others}") })
}

/// Returns the time that a success must last before the release counts as proven.
fn quiet_seconds(strategy: &Strategy) -> i64 {
    match strategy {
        Strategy::Progressive(rollouts) => {
            rollouts.iter().map(|rollout| rollout.soak_seconds).max().unwrap_or_default()
        }
        _ => 0,
    }
}
