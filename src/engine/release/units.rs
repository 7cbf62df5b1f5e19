//! Workloads that roll out → units in the order in which they are asked: a unit goes as a whole, after those that must
//! be proven first.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::release::{Halt, Releases};
use berth_base::model::rollout_policy::OnFailure;
use berth_base::model::{ContentError, Contents, Key, Timestamp, Workload};

use super::Given;
use super::advance::{Advance, Asked, look};
use super::answer::Ailing;
use super::course::Way;
use super::places::Places;
use super::policy::Orders;

/// Makes the steps of all workloads. Those that are `unasked` begin with a report on the copies that a cluster has.
pub(super) fn advance<'a>(
    workloads: &BTreeMap<&'a Key, &'a Workload>,
    unasked: &BTreeSet<&Key>,
    given: Given<'a>,
    places: [&'a Places<'a>; 2],
    contents: &mut dyn Contents,
) -> Result<Vec<Advance>, ContentError> {
    let mut done: Vec<Advance> = Vec::new();
    // Whether others may go on after a workload.
    let mut lets_go_on: BTreeMap<&Key, bool> = BTreeMap::new();
    for unit in in_order(workloads, given) {
        if let [workload] = unit.as_slice()
            && unasked.contains(&workload.key)
            && !look(workload, given, places, Way::Recorded, contents)?.is_reported()
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

/// Returns the units. One that waits for others comes after them; the loader has reported circles.
fn in_order<'a>(workloads: &BTreeMap<&'a Key, &'a Workload>, given: Given<'a>) -> Vec<Vec<&'a Workload>> {
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
    given: Given<'a>,
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

/// Makes the steps of one unit. Where a release that fails is to be rolled back, it is in the same step.
fn step<'a>(
    unit: &[&'a Workload],
    given: Given<'a>,
    places: [&'a Places<'a>; 2],
    lets_go_on: &BTreeMap<&Key, bool>,
    contents: &mut dyn Contents,
) -> Result<Vec<Advance>, ContentError> {
    let mut way = Way::Recorded;
    // The failure for which all of the unit goes back.
    let mut failure: Option<Halt> = None;
    loop {
        let mut asked: Vec<Asked<'a>> = Vec::new();
        for workload in unit {
            asked.push(look(workload, given, places, way, contents)?);
        }
        let desired = &places[1].state.decisions;
        let mut ailing = Ailing::default();
        let chooses_as_one = asked.len() > 1;
        if chooses_as_one {
            asked.iter().for_each(|one| ailing.add(&one.course, &one.sights));
            join_together(&mut asked);
        }
        for one in &mut asked {
            one.ask(given, desired, blocked(one.workload, given, lets_go_on), &ailing);
        }
        if way == Way::Recorded && unit.len() > 1 {
            (way, failure) = as_one(&asked, given);
            if way != Way::Recorded {
                continue;
            }
        }
        for one in asked.iter_mut().filter(|one| way == Way::Back && one.course.releases.taken_back) {
            one.course.releases.halted.clone_from(&failure);
        }
        keep_together(&mut asked);
        if chooses_as_one {
            leave_together(&mut asked);
        }
        let settles = settles(&asked);
        let rolls_back = asked.iter().any(|one| one.course.orders.on_failure() == OnFailure::RollBack);
        let has_way_back = |one: &Asked<'_>| {
            let releases = &one.course.releases;
            !releases.taken_back && releases.good.is_some() && !releases.is_proven()
        };
        let may_go_back = way != Way::Back && rolls_back && asked.iter().any(has_way_back);
        let mut steps: Vec<Advance> = Vec::new();
        for one in asked {
            // A release that no cluster could prove is not proven by the others.
            let settles = settles.filter(|_| one.needs_proof());
            steps.push(one.finish(given, desired, settles, contents));
        }
        let halt = steps.iter().filter_map(|step| step.releases.as_ref()?.halted.clone()).next();
        failure = halt.filter(|_| may_go_back);
        if failure.is_none() {
            return Ok(steps);
        }
        way = Way::Back;
    }
}

/// Returns the way of several workloads that are one release, with the reason. While one of them is taken back, all
/// are. A newer release of one is a newer one of all, unless people took another one of them back.
fn as_one(asked: &[Asked<'_>], given: Given<'_>) -> (Way, Option<Halt>) {
    let is_back = |one: &&Asked<'_>| one.course.releases.taken_back;
    let is_aborted = |one: &&Asked<'_>| {
        let current = one.course.releases.current.number;
        one.course.orders.aborted(current).is_some()
    };
    let is_newer = |one: &Asked<'_>| {
        let before = given.current.releases.get(&one.workload.key);
        before.is_none_or(|before| before.current != one.course.releases.current)
    };
    let mut back = asked.iter().filter(is_back);
    let reason = |one: &Asked<'_>| one.course.releases.halted.clone();
    match (back.clone().find(is_aborted), back.next()) {
        (Some(aborted), _) => (Way::Back, reason(aborted)),
        (None, None) => (Way::Recorded, None),
        (None, Some(_)) if asked.iter().any(is_newer) => (Way::Anew, None),
        (None, Some(first)) => (Way::Back, reason(first)),
    }
}

/// Reports whether all clusters have a release that is proven.
fn is_done(releases: &Releases) -> bool {
    releases.is_proven() && releases.told.is_empty()
}

/// Returns the reason why a workload must wait for another one.
fn blocked(workload: &Workload, given: Given<'_>, lets_go_on: &BTreeMap<&Key, bool>) -> Option<String> {
    let orders = Orders::of(given.fleet, &workload.key);
    let is_frozen = |key: &&Key| given.fleet.workloads.get(*key).is_some_and(|workload| workload.frozen);
    if let Some(frozen) = orders.together().and_then(|all| all.into_iter().find(is_frozen)) {
        return Some(format!("{frozen} goes together with it, and stays as it is"));
    }
    // One that stays as it is was not asked, and is as far as its record says.
    let recorded = |key: &Key| given.current.releases.get(key).is_none_or(|releases| is_done(releases));
    let waits_for = |key: &&Key| !lets_go_on.get(*key).copied().unwrap_or_else(|| recorded(key));
    let first = orders.after().into_iter().find(waits_for)?;
    Some(format!("{first} goes first, and is not proven everywhere yet"))
}

/// Lets newcomers begin with the proven releases of all workloads of a unit, once none of them is being removed there.
fn join_together(asked: &mut [Asked<'_>]) {
    let returning = |one: &Asked<'_>| {
        let sights = one.sights.iter().filter(|(_, sight)| sight.picked && sight.removing.is_some());
        sights.map(|(cluster, _)| cluster.clone()).collect::<BTreeSet<_>>()
    };
    let waits: BTreeSet<String> = asked.iter().flat_map(returning).collect();
    asked.iter_mut().for_each(|one| one.waits_along.clone_from(&waits));
    let begins = |one: &Asked<'_>| match one.course.releases.taken_back {
        true => one.newcomers(),
        false => one.joins(),
    };
    let joins: BTreeSet<String> = asked.iter().flat_map(begins).collect();
    asked.iter_mut().for_each(|one| one.joins_along.clone_from(&joins));
}

/// Keeps the copies of a unit in a cluster that is no longer picked, until all of them may go.
fn leave_together(asked: &mut [Asked<'_>]) {
    let staying = |one: &Asked<'_>| {
        let left = one.sights.iter().filter(|(_, sight)| sight.serves && !sight.picked);
        let staying = left.filter(|(cluster, _)| !one.answer.remove.contains(*cluster));
        staying.map(|(cluster, _)| cluster.clone()).collect::<BTreeSet<_>>()
    };
    let stay: BTreeSet<String> = asked.iter().flat_map(staying).collect();
    for one in asked {
        let (waits, goes) =
            std::mem::take(&mut one.answer.remove).into_iter().partition(|it| stay.contains(it));
        let waits: BTreeSet<String> = waits;
        one.answer.remove = goes;
        let reason = || "what goes together with it cannot be removed yet".into();
        one.answer.waits.extend(waits.into_iter().map(|cluster| (cluster, reason())));
    }
}

/// Takes back what one workload of a unit would give to a cluster where another one must wait.
fn keep_together(asked: &mut [Asked<'_>]) {
    if asked.len() < 2 {
        return;
    }
    loop {
        let waits: BTreeSet<String> = asked
            .iter()
            .flat_map(|one| {
                one.sights.iter().filter(|(cluster, sight)| {
                    sight.picked
                        && !one.answer.give.contains(*cluster)
                        && sight.has() != super::turn::Has::New
                })
            })
            .map(|(cluster, _)| cluster.clone())
            .collect();
        let mut changed = false;
        for one in asked.iter_mut() {
            let before = one.answer.give.len();
            one.answer.give.retain(|cluster| !waits.contains(cluster));
            changed |= one.answer.give.len() != before;
        }
        if !changed {
            return;
        }
    }
}

/// Returns the moment from which all workloads of a unit are proven, beside those that no cluster could prove.
fn settles(asked: &[Asked<'_>]) -> Option<Timestamp> {
    let mut latest = None;
    for one in asked.iter().filter(|one| !is_done(&one.course.releases) && one.needs_proof()) {
        latest = latest.max(Some(one.settles()?));
    }
    latest
}
