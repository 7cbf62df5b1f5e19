//! One workload's step: what each cluster has and reports → who goes on now, and the releases that result.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Releases};
use berth_base::model::{ContentError, Contents, Decision, Folders, Key, Pick, Shared, Timestamp, Workload};

use super::next_release::with_inputs;
use super::places::{CopySet, Places};
use super::record::Rolled;
use super::sight::{Sight, assume, sights};
use super::turn::Has;
use super::{Given, Trace, answer, inputs, strategies};
use crate::render;

/// A workload's step, to be applied to the desired state.
#[derive(Debug)]
pub(super) struct Advance {
    pub(super) key: Key,
    pub(super) releases: Releases,
    /// By cluster. One that is absent gets nothing and loses what it has.
    pub(super) fates: BTreeMap<String, Fate>,
    /// The reports that were read, for the facts.
    pub(super) reports: BTreeMap<String, CopyReport>,
    pub(super) trace: Trace,
    pub(super) next_change: Option<Timestamp>,
    pub(super) diagnostics: Diagnostics,
}

/// The copies of a workload that a cluster gets now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// As desired.
    Desired,
    /// Those that it has.
    Stays,
    /// Those of another release.
    Gets(CopySet),
    /// None: its turn has not come, and there is no proven release yet.
    Waits,
    /// Those that it has, though it is no longer picked.
    Leaves,
}

/// Makes one workload's step. `places` are those of the current and of the desired state.
pub(super) fn advance(
    workload: &Workload,
    given: Given<'_>,
    places: [&Places<'_>; 2],
    contents: &mut dyn Contents,
) -> Result<Advance, ContentError> {
    let key = &workload.key;
    let before = super::releases_of(key, given);
    let stored = contents.put(inputs::write(workload).as_bytes())?;
    let mut releases = with_inputs(key, before, stored, given.now);
    let mut diagnostics = Diagnostics::new();
    let mut sights = sights(&releases, given, places);
    let mut served = sights.values().filter(|one| one.serves).peekable();
    if before.is_none() && served.peek().is_some() && served.all(|one| one.picked && one.have == one.want) {
        // What was everywhere before anybody looked is taken as proven.
        releases.good = Some(releases.current.number);
    }
    let is_same = sights.values().all(|one| one.picked && one.serves && one.have == one.want);
    if is_same && before == Some(&releases) && releases.is_proven() && releases.told.is_empty() {
        let fates = sights.into_keys().map(|cluster| (cluster, Fate::Desired)).collect();
        let reports = carried(key, given);
        let trace = Trace::default();
        let next_change = None;
        return Ok(Advance { key: key.clone(), releases, fates, reports, trace, next_change, diagnostics });
    }
    let target = target(&releases);
    let is_current = target == releases.current.number;
    if !is_current {
        let picks = picks_of(&places[1].state.decisions, key, |_| true);
        let again = again(&releases, target, given, &picks, contents);
        let again = again.unwrap_or_else(|fault| {
            diagnostics.push(lost(workload, target, &fault));
            Folders::new()
        });
        for (cluster, sight) in &mut sights {
            let copies = again.get(cluster).map(|folder| folder.iter());
            sight.want = copies.into_iter().flatten().map(|(path, id)| (path.clone(), *id)).collect();
        }
    }
    assume(&mut sights, &releases);
    let followed = strategies::followed(given.fleet, &places[1].state.decisions, workload);
    let answer = answer::ask(workload, &sights, &releases, &followed, given.now);
    let good = releases.good.filter(|good| *good != target);
    let mut fates: BTreeMap<String, Fate> = BTreeMap::new();
    let mut joins: BTreeSet<String> = BTreeSet::new();
    for (cluster, sight) in &sights {
        let wanted = |sight: &Sight<'_>| match is_current {
            true => Fate::Desired,
            false => Fate::Gets(sight.want.clone()),
        };
        let fate = match (sight.picked, sight.has()) {
            (true, Has::New) => wanted(sight),
            // Nobody begins with a release that is not proven, whatever the strategy says of newcomers.
            (true, Has::Nothing) if good.is_some() => {
                joins.insert(cluster.clone());
                Fate::Waits
            }
            (true, _) if releases.taken_back || answer.give.contains(cluster) => wanted(sight),
            (true, Has::Old) => Fate::Stays,
            (true, Has::Nothing) => Fate::Waits,
            (false, _) if answer.remove.contains(cluster) => continue,
            (false, _) => Fate::Leaves,
        };
        fates.insert(cluster.clone(), fate);
    }
    if let Some(good) = good.filter(|_| !joins.is_empty()) {
        let picks = picks_of(&places[1].state.decisions, key, |cluster| joins.contains(cluster));
        match again(&releases, good, given, &picks, contents) {
            Ok(folders) => fates.extend(folders.into_iter().map(|(cluster, folder)| {
                let copies = folder.iter().map(|(path, id)| (path.clone(), *id));
                (cluster, Fate::Gets(copies.collect()))
            })),
            Err(fault) => diagnostics.push(lost(workload, good, &fault)),
        }
    }
    let rolled = Rolled { workload, sights: &sights, fates: &fates, answer: &answer, target, joins: &joins };
    let settles = rolled.record(&mut releases, given.now);
    if let Some(halt) = &releases.halted {
        let number = releases.current.number;
        let message = format!("{key}: release {number} is halted: {}", halt.reason);
        diagnostics.push(Diagnostic::warning(workload.origin.clone(), message));
    }
    let next_change = answer.next.into_iter().chain(settles).filter(|at| *at > given.now).min();
    let mut reports = carried(key, given);
    reports.retain(|cluster, _| sights.contains_key(cluster));
    let read = sights.into_iter().filter(|(_, sight)| !sight.is_assumed);
    reports.extend(read.filter_map(|(cluster, sight)| Some((cluster, sight.report?))));
    let trace = Trace { waits: answer.waits, notes: answer.notes, next: next_change };
    Ok(Advance { key: key.clone(), releases, fates, reports, trace, next_change, diagnostics })
}

/// The release that clusters go to.
fn target(releases: &Releases) -> u64 {
    match releases.good.filter(|_| releases.taken_back) {
        Some(good) => good,
        None => releases.current.number,
    }
}

/// Renders a stored release for these picks; says in one line why not.
fn again(
    releases: &Releases,
    number: u64,
    given: Given<'_>,
    picks: &Shared<Vec<Pick>>,
    contents: &mut dyn Contents,
) -> Result<Folders, String> {
    let release = releases.get(number).ok_or_else(|| "its inputs are no longer kept".to_owned())?;
    let bytes = contents.get(release.inputs).map_err(|error| error.to_string())?;
    let workload = inputs::read(&bytes, &releases.key)?;
    render::copies_of(given.fleet, &workload, picks, contents).map_err(|error| error.to_string())
}

fn lost(workload: &Workload, number: u64, fault: &str) -> Diagnostic {
    let message = format!("{}: release {number} cannot be rendered again: {fault}", workload.key);
    Diagnostic::warning(workload.origin.clone(), message)
}

fn picks_of(
    decisions: &BTreeMap<Key, Decision>,
    key: &Key,
    wanted: impl Fn(&str) -> bool,
) -> Shared<Vec<Pick>> {
    let picked = decisions.get(key).into_iter().flat_map(Decision::picked);
    picked.filter(|pick| wanted(&pick.cluster)).cloned().collect::<Vec<_>>().into()
}

/// The reports that the current facts hold on a workload.
fn carried(key: &Key, given: Given<'_>) -> BTreeMap<String, CopyReport> {
    let name = WorkloadName::of(key);
    let facts = given.current.facts.iter();
    facts.filter_map(|(cluster, fact)| Some((cluster.clone(), fact.copies.get(&name)?.clone()))).collect()
}
