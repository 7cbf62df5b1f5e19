//! The promises that must hold after each pass.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::release::{Health, Releases};
use berth_base::model::rollout::{Pace, Strategy};
use berth_base::model::{Key, Timestamp};

use super::super::world::{key, other_key};
use super::orders::Relation;
use super::{BAD, Habit, Simulation};
use crate::release::copies;

/// A workload before a pass.
pub(super) struct Before {
    versions: BTreeMap<String, Option<String>>,
    /// The version of the proven release.
    good: Option<String>,
    available: BTreeSet<String>,
    good_number: Option<u64>,
    removing: BTreeMap<String, Timestamp>,
}

/// A workload after a pass.
struct After<'s> {
    key: &'s Key,
    before: &'s Before,
    releases: &'s Releases,
    /// The clusters that were assigned the current release.
    given: BTreeSet<&'s String>,
    /// The clusters in which all workloads of the unit were available.
    in_order: BTreeSet<&'s String>,
}

/// Returns the most unfinished clusters that a strategy allows.
fn most_in_flight(strategy: &Strategy, clusters: usize) -> usize {
    match strategy {
        Strategy::Progressive(rollouts) => {
            rollouts[0].at_a_time().map_or(clusters, |most| most.of(clusters).max(1))
        }
        Strategy::Rolling(rolling) => rolling.max_unavailable.of(clusters),
        _ => clusters,
    }
}

impl Simulation {
    pub(super) fn before(&self, key: &Key) -> Before {
        let releases = self.world.releases_of(key);
        let versions = self.members.keys().map(|name| (name.clone(), self.world.version_of(name, key)));
        Before {
            versions: versions.collect(),
            good: releases.and_then(|releases| self.world.version_of_release(releases, releases.good?)),
            available: self.available(key),
            good_number: releases.and_then(|releases| releases.good),
            removing: releases.map(|releases| releases.removing.clone()).unwrap_or_default(),
        }
    }

    /// Returns the clusters whose reports say that their present copies are healthy, or that keep a proven
    /// release.
    fn available(&self, key: &Key) -> BTreeSet<String> {
        let releases = self.world.releases_of(key);
        let is_available = |name: &&String| {
            let report = self.world.report_of(name, key);
            let now = self.world.digest_of(name, key);
            let from = releases.and_then(|all| all.reports_from(name));
            let holds_good = releases.is_some_and(|all| all.good.is_some() && from.is_none());
            let is_fresh = |at: Timestamp| from.is_none_or(|from| at >= from);
            match report.filter(|(at, report)| is_fresh(*at) && report.digest == now) {
                Some((_, report)) => report.health == Health::Succeeded,
                None => holds_good,
            }
        };
        let with_copies = self.members.keys().filter(|name| self.world.version_of(name, key).is_some());
        with_copies.filter(is_available).cloned().collect()
    }

    pub(super) fn check(&self, all_before: &[Before]) {
        let mut all: Vec<After<'_>> = Vec::new();
        for (key, before) in self.keys.iter().zip(all_before) {
            let Some(releases) = self.world.releases_of(key) else { continue };
            let mut after = After {
                key,
                before,
                releases,
                given: BTreeSet::new(),
                in_order: self.in_order(before, all_before),
            };
            for (name, earlier) in &before.versions {
                self.check_cluster(&mut after, name, earlier.as_deref());
            }
            self.check_strategy(&after);
            self.check_proof(&after);
            self.check_removals(&after);
            all.push(after);
        }
        self.check_relation(&all);
    }

    fn in_order<'b>(&self, before: &'b Before, all: &[Before]) -> BTreeSet<&'b String> {
        let others = |name: &&String| all.iter().all(|other| other.available.contains(*name));
        let is_in_order = |name: &&String| self.people.relation != Relation::Together || others(name);
        before.available.iter().filter(is_in_order).collect()
    }

    fn check_cluster<'s>(&self, after: &mut After<'s>, name: &'s String, earlier: Option<&str>) {
        let (seed, After { key, before, releases, .. }) = (self.seed, &*after);
        let version = self.world.version_of(name, key);
        let says = self.world.version_by_record(name, key).or(version.clone());
        assert!(version.is_none() || says == version, "{seed}: {name} has not what the record says of {key}");
        let is_pinned = self.people.pins.contains_key(name) && self.is_picked(name);
        if is_pinned {
            return self.check_pin(after, name, earlier);
        }
        if version.as_deref() == earlier {
            return;
        }
        let told = releases.assigned.get(name).map(|told| told.release);
        let goes_back = releases.taken_back && told == releases.good;
        if self.people.is_closed(self.world.now) && earlier.is_some() {
            assert!(
                goes_back && version.is_some(),
                "{seed}: {key} changed in {name} from {earlier:?} in a freeze or pause"
            );
        }
        match earlier {
            None if before.good.is_some() && releases.good != Some(releases.current.number) => {
                assert_eq!(version, before.good, "{seed}: {name} joined with an unproven release of {key}");
            }
            _ if told == Some(releases.current.number) => drop(after.given.insert(name)),
            _ => {}
        }
    }

    /// Checks that a pinned cluster has the pin's release, or keeps its own.
    fn check_pin(&self, after: &After<'_>, name: &str, earlier: Option<&str>) {
        let (seed, After { key, releases, .. }) = (self.seed, after);
        let pin = self.people.pins.get(name).copied().flatten();
        let named = pin.and_then(|number| self.world.version_of_release(releases, number));
        let wanted = match (named, pin) {
            // All other clusters get the release of that number, too.
            _ if pin == Some(releases.current.number) && !releases.taken_back => return,
            _ if pin == releases.good && releases.taken_back => return,
            (Some(version), _) => Some(version),
            (None, Some(_)) => earlier.map(str::to_owned),
            // A newcomer has nothing to keep.
            (None, None) if earlier.is_none() => return,
            (None, None) => earlier.map(str::to_owned),
        };
        let version = self.world.version_of(name, key);
        assert_eq!(version, wanted, "{seed}: {name} has another release of {key} than its pin {pin:?} says");
    }

    fn check_strategy(&self, after: &After<'_>) {
        let (seed, After { key, before, releases, given, .. }) = (self.seed, after);
        if releases.is_proven() {
            return;
        }
        let (turns, available) = (self.turns(), &before.available);
        let most = most_in_flight(&self.strategy, turns.len());
        match &self.strategy {
            Strategy::Rolling(_) => {
                // Removals use the same budget, unless all clusters return.
                let is_removed =
                    |name: &&String| !self.is_picked(name) && self.world.version_of(name, key).is_none();
                let removed = before.versions.keys().filter(is_removed);
                let lost: BTreeSet<&String> = given.iter().copied().chain(removed).collect();
                let lost = lost.iter().filter(|name| after.in_order.contains(**name)).count();
                let pinned = |name: &&String| self.people.pins.contains_key(*name) && self.is_picked(name);
                let available = available.iter().filter(|name| !pinned(name)).count();
                assert!(
                    lost == 0 || available - lost + most >= turns.len(),
                    "{seed}: {lost} of {available} available copies of {key} were taken, {most} of {} may be missing",
                    turns.len()
                );
            }
            Strategy::Progressive(rollouts) if rollouts[0].pace == Pace::ByGroup => {
                let group = |name: &String| self.world.groups[name];
                let Some(highest) = given.iter().map(|name| group(name)).max() else { return };
                let newest = releases.current.number;
                let behind = turns.iter().filter(|name| group(name) < highest).find(|name| {
                    let has_it = releases.assigned.get(**name).is_some_and(|told| told.release == newest);
                    // A cluster that begins with the proven release uses no budget.
                    let begins = releases.assigned.get(**name).map(|told| told.release) == releases.good;
                    !(begins || has_it && available.contains(**name))
                });
                let ok =
                    behind.is_none_or(|name| self.world.version_of(name, key) == self.newest_version(key));
                assert!(ok, "{seed}: group {highest} went before {behind:?} with {key}");
            }
            _ if given.is_empty() => {}
            _ => {
                let newest = releases.current.number;
                let in_flight = turns.iter().filter(|name| {
                    releases.assigned.get(**name).is_some_and(|told| told.release == newest)
                        && (given.contains(**name) || !available.contains(**name))
                });
                let in_flight = in_flight.count();
                assert!(in_flight <= most, "{seed}: {in_flight} under way with {key}, {most} may be");
            }
        }
    }

    /// Checks that a failing release is never proven, unless all members lie.
    fn check_proof(&self, after: &After<'_>) {
        let (seed, After { key, before, releases, .. }) = (self.seed, after);
        let proven = releases.good.filter(|good| Some(*good) != before.good_number);
        let version = proven.and_then(|good| self.world.version_of_release(releases, good));
        let Some(version) = version.filter(|version| version.ends_with(BAD)) else { return };
        let had_it = |name: &&String| before.versions.get(*name) == Some(&Some(version.clone()));
        let is_honest = |name: &&String| self.members[*name].habit != Habit::Lies;
        let honest = self.turns().into_iter().filter(had_it).find(is_honest);
        assert_eq!(honest, None, "{seed}: {key} is proven with {version}, which fails");
    }

    /// Checks that a removal ends by a report. Until then the cluster gets nothing, and with budgets no
    /// cluster does.
    fn check_removals(&self, after: &After<'_>) {
        let (seed, After { key, before, releases, given, .. }) = (self.seed, after);
        for name in releases.removing.keys() {
            assert_eq!(
                self.world.version_of(name, key),
                None,
                "{seed}: {name} has {key}, which it is to remove"
            );
        }
        let returning = releases.removing.keys().find(|name| self.is_picked(name));
        if let (Some(name), Strategy::Rolling(_)) = (returning, &self.strategy) {
            let gone_on = given.iter().find(|other| after.in_order.contains(**other));
            assert_eq!(gone_on, None, "{seed}: {key} went on before it was removed from {name}");
        }
        let is_over =
            |name: &&String| self.members.contains_key(*name) && !releases.removing.contains_key(*name);
        for name in before.removing.keys().filter(is_over) {
            let report = self.world.report_of(name, key);
            let is_gone = report.is_some_and(|(at, report)| {
                let has_none = report.digest == copies::digest([]);
                has_none && report.health == Health::Succeeded && at >= before.removing[name]
            });
            let is_pinned = self.people.pins.contains_key(name) && self.is_picked(name);
            assert!(is_gone || is_pinned, "{seed}: nobody said that {key} is gone from {name}");
        }
    }

    fn check_relation(&self, all: &[After<'_>]) {
        let seed = self.seed;
        let [web, api] = all else { return };
        assert!(*web.key == key() && *api.key == other_key());
        match self.people.relation {
            Relation::Alone => {}
            Relation::After => {
                let is_early = !web.given.is_empty() && !self.is_done(api.key);
                assert!(!is_early, "{seed}: {:?} got {} before {} was proven", web.given, web.key, api.key);
            }
            Relation::Together => {
                for (one, other) in [(web, api), (api, web)] {
                    let (back, goal) = (one.releases.taken_back, other.releases.target());
                    let follows = other.releases.taken_back || other.releases.is_proven();
                    assert!(!back || follows, "{seed}: {} goes back without {}", one.key, other.key);
                    let is_proven_now = one.releases.good != one.before.good_number;
                    let is_done = self.is_done(other.key) || !is_proven_now;
                    assert!(is_done, "{seed}: {} is proven without {}", one.key, other.key);
                    // A newcomer begins with the proven release of each.
                    let goes_alone = |name: &&&String| {
                        let is_new = one.before.versions[**name].is_none();
                        let has = other.releases.of_cluster(name);
                        !is_new && has != Some(goal) && self.world.version_of(name, other.key).is_some()
                    };
                    let alone = one.given.iter().find(goes_alone);
                    assert_eq!(alone, None, "{seed}: {} went without {}", one.key, other.key);
                }
                for name in self.turns() {
                    let [web, api] = [web, api].map(|one| self.world.version_of(name, one.key));
                    assert_eq!(web.is_some(), api.is_some(), "{seed}: {name} has one without the other");
                }
            }
        }
    }

    fn newest_version(&self, key: &Key) -> Option<String> {
        let workload = &self.world.fleet.workloads[key];
        let version = workload.templates.first()?.object.content.pointer("/data/version")?;
        Some(version.as_str()?.to_owned())
    }

    /// Checks that no more honest members than allowed at a time hold a release that fails everywhere.
    pub(super) fn bad_release_is_kept_back(&self) {
        for key in &self.keys {
            let newest = self.newest_version(key).filter(|version| version.ends_with(BAD));
            let (Some(newest), Some(releases)) = (newest, self.world.releases_of(key)) else { continue };
            if releases.good == Some(releases.current.number) {
                // Liars proved it, and newcomers begin with the proven release.
                continue;
            }
            // A pinned cluster uses no place in a wave, and may still have the release when its pin ends.
            let once_pinned = &self.people.once_pinned;
            let honest = self
                .members
                .iter()
                .filter(|(name, member)| member.habit != Habit::Lies && !once_pinned.contains(*name))
                .filter(|(name, _)| self.is_picked(name));
            let holds = honest.filter(|(name, _)| self.world.version_of(name, key).as_ref() == Some(&newest));
            let most = match &self.strategy {
                Strategy::Progressive(rollouts)
                    if rollouts[0].pace != Pace::ByGroup && releases.good.is_some() =>
                {
                    most_in_flight(&self.strategy, self.members.len())
                }
                // Groups go as a whole, and unhealthy copies are updated at once.
                _ => continue,
            };
            let holds = holds.count();
            assert!(holds <= most, "{}: {holds} members have a release that fails, {most} may", self.seed);
        }
    }
}
