//! Workloads that roll out → units in the order of their steps: a unit rolls out as a whole, after the
//! workloads that must be proven first.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::release::{Halt, Releases};
use berth_base::model::rollout_policy::OnFailure;
use berth_base::model::{ContentError, Contents, Key, Timestamp, Workload};

use super::ReleaseInputs;
use super::advance::{Advance, WorkloadStep, look};
use super::copies::OwnedPlaces;
use super::policy::Orders;
use super::strategy_answer::Unhealthy;
use super::workload_rollout::Reversal;

/// Makes the steps of all workloads. `unasked` workloads begin with a report on the copies that a cluster
/// has.
pub(super) fn advance<'a>(
    workloads: &BTreeMap<&'a Key, &'a Workload>,
    unasked: &BTreeSet<&Key>,
    given: ReleaseInputs<'a>,
    places: [&'a OwnedPlaces<'a>; 2],
    contents: &mut dyn Contents,
) -> Result<Vec<Advance>, ContentError> {
    let mut done: Vec<Advance> = Vec::new();
    // True if others may follow after the workload.
    let mut lets_go_on: BTreeMap<&Key, bool> = BTreeMap::new();
    for unit in in_order(workloads, given) {
        if let [workload] = unit.as_slice()
            && unasked.contains(&workload.key)
            && !look(workload, given, places, Reversal::Recorded, contents)?.is_reported()
        {
            continue;
        }
        let steps = step(&unit, given, places, &lets_go_on, contents)?;
        for (workload, step) in unit.iter().zip(&steps) {
            let is_done = step.releases.as_ref().is_some_and(is_done);
            lets_go_on.insert(&workload.key, is_done || !step.needs_proof);
        }
        done.extend(steps);
    }
    Ok(done)
}

/// Returns the units. A unit comes after those that it waits for; the loader has reported circles.
fn in_order<'a>(
    workloads: &BTreeMap<&'a Key, &'a Workload>,
    given: ReleaseInputs<'a>,
) -> Vec<Vec<&'a Workload>> {
    let mut units: Vec<Vec<&Workload>> = Vec::new();
    let mut met: BTreeSet<&Key> = BTreeSet::new();
    for key in workloads.keys() {
        visit(key, workloads, given, &mut met, &mut units);
    }
    units
}

fn visit<'a>(
    key: &'a Key,
    workloads: &BTreeMap<&'a Key, &'a Workload>,
    given: ReleaseInputs<'a>,
    met: &mut BTreeSet<&'a Key>,
    units: &mut Vec<Vec<&'a Workload>>,
) {
    if !workloads.contains_key(key) || met.contains(key) {
        return;
    }
    let group = Orders::of(given.fleet, key).together().unwrap_or_else(|| BTreeSet::from([key]));
    met.extend(group.iter().copied());
    for member in &group {
        for earlier in Orders::of(given.fleet, member).after() {
            visit(earlier, workloads, given, met, units);
        }
    }
    units.push(group.iter().filter_map(|member| workloads.get(*member).copied()).collect());
}

/// Reports whether a failure of the unit takes its releases back: an order says so, and there is a good release.
fn may_roll_back(unit_steps: &[WorkloadStep<'_>]) -> bool {
    let rolls_back =
        unit_steps.iter().any(|one| one.workload_rollout.orders.on_failure() == OnFailure::RollBack);
    let has_way_back = |one: &WorkloadStep<'_>| {
        let releases = &one.workload_rollout.releases;
        !releases.taken_back && releases.good.is_some() && !releases.is_proven()
    };
    rolls_back && unit_steps.iter().any(has_way_back)
}

/// Makes the steps of one unit. A rollback of a failing release is in the same step.
fn step<'a>(
    unit: &[&'a Workload],
    given: ReleaseInputs<'a>,
    places: [&'a OwnedPlaces<'a>; 2],
    lets_go_on: &BTreeMap<&Key, bool>,
    contents: &mut dyn Contents,
) -> Result<Vec<Advance>, ContentError> {
    let mut reversal = Reversal::Recorded;
    // The failure that takes back all releases of the unit.
    let mut failure: Option<Halt> = None;
    loop {
        let mut unit_steps: Vec<WorkloadStep<'a>> = Vec::new();
        for workload in unit {
            unit_steps.push(look(workload, given, places, reversal, contents)?);
        }
        let desired = &places[1].state.decisions;
        let mut unhealthy = Unhealthy::default();
        let chooses_as_one = unit_steps.len() > 1;
        if chooses_as_one {
            unit_steps.iter().for_each(|one| unhealthy.add(&one.workload_rollout, &one.cluster_rollouts));
            join_together(&mut unit_steps);
        }
        for one in &mut unit_steps {
            one.ask(given, desired, blocked(one.workload, given, lets_go_on), &unhealthy);
        }
        if reversal == Reversal::Recorded && unit.len() > 1 {
            (reversal, failure) = as_one(&unit_steps, given);
            if reversal != Reversal::Recorded {
                continue;
            }
        }
        for one in unit_steps
            .iter_mut()
            .filter(|one| reversal == Reversal::Back && one.workload_rollout.releases.taken_back)
        {
            one.workload_rollout.releases.halted.clone_from(&failure);
        }
        keep_together(&mut unit_steps);
        if chooses_as_one {
            leave_together(&mut unit_steps);
        }
        let settles = settles(&unit_steps);
        let may_go_back = reversal != Reversal::Back && may_roll_back(&unit_steps);
        let mut steps: Vec<Advance> = Vec::new();
        for one in unit_steps {
            // A workload that no cluster could prove is not proven by the others.
            let settles = settles.filter(|_| one.needs_proof());
            steps.push(one.finish(given, desired, settles, contents));
        }
        let halt = steps.iter().filter_map(|step| step.releases.as_ref()?.halted.clone()).next();
        failure = halt.filter(|_| may_go_back);
        if failure.is_none() {
            return Ok(steps);
        }
        reversal = Reversal::Back;
    }
}

/// Returns the reversal of the workloads of a unit, with the reason. While one release is taken back, all
/// are. A newer release of one workload is a newer one of all, unless people aborted another one.
fn as_one(unit_steps: &[WorkloadStep<'_>], given: ReleaseInputs<'_>) -> (Reversal, Option<Halt>) {
    let is_back = |one: &&WorkloadStep<'_>| one.workload_rollout.releases.taken_back;
    let is_aborted = |one: &&WorkloadStep<'_>| {
        let current = one.workload_rollout.releases.current.number;
        one.workload_rollout.orders.aborted(current).is_some()
    };
    let is_newer = |one: &WorkloadStep<'_>| {
        let before = given.current.releases.get(&one.workload.key);
        before.is_none_or(|before| before.current != one.workload_rollout.releases.current)
    };
    let mut back = unit_steps.iter().filter(is_back);
    let reason = |one: &WorkloadStep<'_>| one.workload_rollout.releases.halted.clone();
    match (back.clone().find(is_aborted), back.next()) {
        (Some(aborted), _) => (Reversal::Back, reason(aborted)),
        (None, None) => (Reversal::Recorded, None),
        (None, Some(_)) if unit_steps.iter().any(is_newer) => (Reversal::Anew, None),
        (None, Some(first)) => (Reversal::Back, reason(first)),
    }
}

/// Reports whether all clusters have a release that is proven.
fn is_done(releases: &Releases) -> bool {
    releases.is_proven() && releases.assigned.is_empty()
}

/// Returns the reason why a workload must wait for another one.
fn blocked(
    workload: &Workload,
    given: ReleaseInputs<'_>,
    lets_go_on: &BTreeMap<&Key, bool>,
) -> Option<String> {
    let orders = Orders::of(given.fleet, &workload.key);
    let is_frozen = |key: &&Key| given.fleet.workloads.get(*key).is_some_and(|workload| workload.frozen);
    if let Some(frozen) = orders.together().and_then(|all| all.into_iter().find(is_frozen)) {
        return Some(format!("it rolls out together with {frozen}, which is frozen"));
    }
    // A workload that does not change has no step here; its record counts.
    let recorded = |key: &Key| given.current.releases.get(key).is_none_or(|releases| is_done(releases));
    let waits_for = |key: &&Key| !lets_go_on.get(*key).copied().unwrap_or_else(|| recorded(key));
    let first = orders.after().into_iter().find(waits_for)?;
    Some(format!("waits for {first}, which is not proven in every cluster yet"))
}

/// Lets newcomers begin with the proven releases of all workloads of a unit, once no removal of the unit is
/// unfinished there.
fn join_together(unit_steps: &mut [WorkloadStep<'_>]) {
    let returning = |one: &WorkloadStep<'_>| {
        let cluster_rollouts = one
            .cluster_rollouts
            .iter()
            .filter(|(_, cluster_rollout)| cluster_rollout.picked && cluster_rollout.removing.is_some());
        cluster_rollouts.map(|(cluster, _)| cluster.clone()).collect::<BTreeSet<_>>()
    };
    let waits: BTreeSet<String> = unit_steps.iter().flat_map(returning).collect();
    unit_steps.iter_mut().for_each(|one| one.waits_along.clone_from(&waits));
    let begins = |one: &WorkloadStep<'_>| match one.workload_rollout.releases.taken_back {
        true => one.newcomers(),
        false => one.joins(),
    };
    let joins: BTreeSet<String> = unit_steps.iter().flat_map(begins).collect();
    unit_steps.iter_mut().for_each(|one| one.joins_along.clone_from(&joins));
}

/// Keeps the unit's copies in a cluster that is no longer picked, until all of them may be removed.
fn leave_together(unit_steps: &mut [WorkloadStep<'_>]) {
    let staying = |one: &WorkloadStep<'_>| {
        let left = one
            .cluster_rollouts
            .iter()
            .filter(|(_, cluster_rollout)| cluster_rollout.serves && !cluster_rollout.picked);
        let staying = left.filter(|(cluster, _)| !one.answer.remove.contains(*cluster));
        staying.map(|(cluster, _)| cluster.clone()).collect::<BTreeSet<_>>()
    };
    let stay: BTreeSet<String> = unit_steps.iter().flat_map(staying).collect();
    for one in unit_steps {
        let (waits, goes) =
            std::mem::take(&mut one.answer.remove).into_iter().partition(|it| stay.contains(it));
        let waits: BTreeSet<String> = waits;
        one.answer.remove = goes;
        let reason = || "another workload of its group cannot be removed yet".into();
        one.answer.waits.extend(waits.into_iter().map(|cluster| (cluster, reason())));
    }
}

/// Withholds a workload's release from a cluster where another workload of the unit must wait.
fn keep_together(unit_steps: &mut [WorkloadStep<'_>]) {
    if unit_steps.len() < 2 {
        return;
    }
    loop {
        let waits: BTreeSet<String> = unit_steps
            .iter()
            .flat_map(|one| {
                one.cluster_rollouts.iter().filter(|(cluster, cluster_rollout)| {
                    cluster_rollout.picked
                        && !one.answer.give.contains(*cluster)
                        && cluster_rollout.version() != super::strategies::Version::New
                })
            })
            .map(|(cluster, _)| cluster.clone())
            .collect();
        let mut changed = false;
        for one in unit_steps.iter_mut() {
            let before = one.answer.give.len();
            one.answer.give.retain(|cluster| !waits.contains(cluster));
            changed |= one.answer.give.len() != before;
        }
        if !changed {
            return;
        }
    }
}

/// Returns the moment from which all workloads of a unit are proven, except those that no cluster could
/// prove.
fn settles(unit_steps: &[WorkloadStep<'_>]) -> Option<Timestamp> {
    let mut latest = None;
    for one in unit_steps.iter().filter(|one| !is_done(&one.workload_rollout.releases) && one.needs_proof()) {
        latest = latest.max(Some(one.settles()?));
    }
    latest
}
