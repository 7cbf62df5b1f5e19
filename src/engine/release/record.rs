//! A workload's step → its releases: who was told what, what is proven, and why it does not go on.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::Timestamp;
use berth_base::model::release::{Halt, Health, Releases, Stays, Told};
use berth_base::model::rollout::Strategy;
use berth_base::model::rollout_policy::OnFailure;

use super::advance::{Asked, Fate};
use super::changes::seconds_after;
use super::course::Course;
use super::next_release::forget_old;
use super::sight::Sight;
use super::turn::Has;

/// Writes down who was told what. `settles` is the moment from which the release is proven.
pub(super) fn record(
    asked: &mut Asked<'_>,
    joins: &BTreeSet<String>,
    settles: Option<Timestamp>,
    now: Timestamp,
) {
    let halted = halt(asked, now);
    let removing = removing(asked, now);
    let target = asked.course.target;
    let mut awaited = awaited(asked, now);
    let releases = &mut asked.course.releases;
    let had = of_clusters(&asked.sights, releases);
    for (cluster, sight, fate) in with_fates(&asked.sights) {
        let release = match fate {
            Fate::Desired | Fate::Gets(_) if sight.keeps => None,
            Fate::Desired | Fate::Gets(_) if joins.contains(cluster) => releases.good,
            Fate::Desired | Fate::Gets(_) if sight.is_pinned => None,
            Fate::Desired | Fate::Gets(_) => target,
            Fate::Stays | Fate::Leaves | Fate::Waits => continue,
        };
        let is_new = sight.has() != Has::New;
        let is_pinned = sight.is_pinned || sight.keeps;
        if let Some(release) = release.filter(|_| is_new) {
            releases.told.insert(cluster.clone(), Told { release, at: now });
        } else if is_pinned {
            releases.told.remove(cluster);
        } else if let (Some(release), Some(at)) = (release, awaited.get(cluster)) {
            // It has these copies already, and nobody reported on them.
            releases.told.entry(cluster.clone()).or_insert(Told { release, at: *at });
        }
    }
    let has_fate = |cluster: &String| asked.sights.get(cluster).is_some_and(|sight| sight.fate.is_some());
    releases.told.retain(|cluster, _| has_fate(cluster));
    releases.removing = removing;
    if let Some(staged) = asked.course.staged.take() {
        releases.run = Some(staged.progress);
    }
    // Newcomers begin with the release that was proven before this step.
    let first = releases.good;
    if settles.is_some_and(|at| at <= now) {
        releases.good = target;
        releases.told.clear();
    }
    releases.halted = halted;
    awaited.retain(|cluster, _| !releases.told.contains_key(cluster));
    releases.awaited = awaited;
    asked.course.releases.stays = stays(asked, joins, (&had, first));
    let releases = &mut asked.course.releases;
    let mut needed: BTreeSet<u64> = releases.told.values().map(|told| told.release).collect();
    needed.extend(releases.run.as_ref().filter(|run| run.finished.is_none()).map(|run| run.release));
    let policies = asked.course.orders.policies().iter();
    needed.extend(policies.flat_map(|policy| &policy.pins).filter_map(|pin| pin.release));
    forget_old(releases, |number| needed.contains(&number));
}

/// Returns the clusters that keep or get copies, or wait for them.
fn with_fates<'s, 'a>(
    sights: &'s BTreeMap<String, Sight<'a>>,
) -> impl Iterator<Item = (&'s String, &'s Sight<'a>, &'s Fate)> {
    sights.iter().filter_map(|(cluster, sight)| Some((cluster, sight, sight.fate.as_ref()?)))
}

/// Returns the number of the release that each cluster has.
fn of_clusters<'s>(
    sights: &'s BTreeMap<String, Sight<'_>>,
    releases: &Releases,
) -> BTreeMap<&'s String, u64> {
    with_fates(sights).filter_map(|(cluster, ..)| Some((cluster, releases.of_cluster(cluster)?))).collect()
}

/// Finds the clusters whose copies are being removed: those whose removal goes on, and those that lose them now.
fn removing(asked: &Asked<'_>, now: Timestamp) -> BTreeMap<String, Timestamp> {
    let is_lost = |sight: &Sight<'_>| match &sight.fate {
        None | Some(Fate::Waits) => asked.course.remembers_removals(),
        Some(Fate::Desired | Fate::Stays | Fate::Gets(_) | Fate::Leaves) => false,
    };
    let begins = |sight: &Sight<'_>| (sight.serves && sight.is_removed_slowly()).then_some(now);
    let since = |sight: &Sight<'_>| sight.removing.or_else(|| begins(sight));
    let lost = asked.sights.iter().filter(|(_, sight)| is_lost(sight));
    lost.filter_map(|(cluster, sight)| Some((cluster.clone(), since(sight)?))).collect()
}

/// Finds the clusters with copies on which nobody reported since they got them.
fn awaited(asked: &Asked<'_>, now: Timestamp) -> BTreeMap<String, Timestamp> {
    let releases = &asked.course.releases;
    let since = |(cluster, sight, fate): (&String, &Sight<'_>, &Fate)| {
        let is_other = || sight.has() == Has::Old && sight.pinned_to != releases.of_cluster(cluster);
        let since = match fate {
            Fate::Waits => None,
            Fate::Desired | Fate::Gets(_) if !sight.serves || is_other() => Some(now),
            _ => releases.reports_from(cluster).filter(|_| !sight.is_reported()),
        };
        Some((cluster.clone(), since?))
    };
    with_fates(&asked.sights).filter_map(since).collect()
}

/// Finds the clusters that have a release without being told of it. `had` are the releases that they had, and
/// `first` the one that newcomers begin with.
fn stays(
    asked: &Asked<'_>,
    joins: &BTreeSet<String>,
    (had, first): (&BTreeMap<&String, u64>, Option<u64>),
) -> BTreeMap<String, Stays> {
    let Course { releases, target, .. } = &asked.course;
    let of_cluster = |(cluster, sight, fate): (&String, &Sight<'_>, &Fate)| {
        let had = had.get(cluster).copied();
        let pinned = sight.is_pinned || sight.keeps;
        let release = match fate {
            Fate::Desired | Fate::Gets(_) if sight.keeps && joins.contains(cluster) => first,
            Fate::Desired | Fate::Gets(_) if sight.keeps => *target,
            Fate::Stays | Fate::Leaves => had,
            Fate::Desired | Fate::Gets(_) if pinned => sight.pinned_to.or(had),
            Fate::Desired | Fate::Gets(_) if sight.has() == Has::New => *target,
            // Told just now, or without a copy.
            Fate::Desired | Fate::Gets(_) | Fate::Waits => None,
        };
        let release = release.filter(|release| pinned || Some(*release) != releases.told_to(cluster))?;
        Some((cluster.clone(), Stays { release, pinned }))
    };
    let begins = |cluster: &String, sight: &Sight<'_>| joins.contains(cluster) && !sight.keeps;
    let others = with_fates(&asked.sights).filter(|(cluster, sight, _)| !begins(cluster, sight));
    others.filter_map(of_cluster).collect()
}

/// Returns the moment from which the release that clusters go to counts as proven, if nothing changes until then.
pub(super) fn settles(asked: &Asked<'_>) -> Option<Timestamp> {
    let releases = &asked.course.releases;
    let target = asked.course.target?;
    if releases.good == Some(target) && releases.told.is_empty() {
        return None;
    }
    if asked.course.staged.as_ref().is_some_and(|staged| staged.progress.finished.is_none()) {
        return None;
    }
    let begun = releases.get(target)?.begun;
    let joins = asked.joins();
    let gets = |cluster: &String| joins.contains(cluster) || asked.answer.give.contains(cluster);
    let counts = |(cluster, sight): &(&String, &Sight<'_>)| {
        sight.picked && !sight.is_pinned && !(sight.keeps && (sight.begins || gets(cluster)))
    };
    let mut picked = asked.sights.iter().filter(counts).map(|(_, sight)| sight).peekable();
    picked.peek()?;
    let quiet = quiet_seconds(&asked.course.strategy);
    let mut latest = begun;
    for sight in picked {
        let succeeded = sight.has() == Has::New && sight.health() == Health::Succeeded;
        let since = sight.since().filter(|_| succeeded)?;
        latest = latest.max(seconds_after(since, quiet).unwrap_or(Timestamp::MAX));
    }
    Some(latest)
}

/// Returns the reason why the rollout does not go on although clusters wait.
fn halt(asked: &Asked<'_>, now: Timestamp) -> Option<Halt> {
    let releases: &Releases = &asked.course.releases;
    if releases.taken_back {
        // The reason for which it was taken back stays.
        return releases.halted.clone();
    }
    let is_behind = |(_, sight, fate): (&String, &Sight<'_>, &Fate)| match fate {
        Fate::Stays | Fate::Waits => true,
        Fate::Gets(copies) => sight.want != *copies && !sight.keeps,
        Fate::Desired | Fate::Leaves => false,
    };
    let failed = asked.sights.iter().filter(|(cluster, sight)| {
        sight.has() == Has::New
            && !sight.is_pinned
            && (sight.health() == Health::Failed || asked.answer.timed_out.contains(*cluster))
    });
    let failed: Vec<(&String, &Sight<'_>)> = failed.collect();
    let (first, sight) = failed.first()?;
    // A release that is to be rolled back halts also where everybody has it already.
    let rolls_back = asked.course.orders.on_failure() == OnFailure::RollBack && !releases.is_proven();
    if asked.answer.halted.is_none() && !rolls_back && !with_fates(&asked.sights).any(is_behind) {
        return None;
    }
    let said = sight.report.as_ref().map(|report| report.message.as_str()).unwrap_or_default();
    let said = match said {
        "" if sight.health() == Health::Failed => String::new(),
        "" => ": it took too long".to_owned(),
        said => format!(": {said}"),
    };
    let others = match failed.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    let since = releases.halted.as_ref().map_or(now, |halt| halt.since);
    Some(Halt { since, reason: format!("{first} failed{said}{others}") })
}

/// How long a success must last before the release counts as proven.
fn quiet_seconds(strategy: &Strategy) -> i64 {
    match strategy {
        Strategy::Progressive(rollouts) => {
            rollouts.iter().map(|rollout| rollout.soak_seconds).max().unwrap_or_default()
        }
        _ => 0,
    }
}
