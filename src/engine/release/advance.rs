//! One workload's step: what each cluster has and reports → who goes on now, and the releases that result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health, Releases};
use berth_base::model::rollout::Strategy;
use berth_base::model::{ContentError, Contents, Decision, Digest, Key, Map, ObjectId, Timestamp, Workload};

use super::answer::{self, Ailing, Answer};
use super::course::{self, Course, Way};
use super::earlier::{again, lost, picks_of, pin, want};
use super::places::{CopySet, Places};
use super::policy::Closed;
use super::sight::{Sight, assume, keep_reports, rests, sights};
use super::turn::Has;
use super::{Given, Trace, inputs, record, strategies};
use crate::state::State;

/// A workload's step, to be applied to the desired state.
#[derive(Debug)]
pub(super) struct Advance {
    pub(super) key: Key,
    /// `None` where there is no release yet.
    pub(super) releases: Option<Releases>,
    /// Some cluster must prove the release before other workloads may go on after this one.
    pub(super) needs_proof: bool,
    /// By cluster. One that is absent gets nothing and loses what it has.
    pub(super) fates: BTreeMap<String, Fate>,
    /// The objects of earlier releases that some cluster gets.
    pub(super) earlier_objects: BTreeSet<ObjectId>,
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

impl Advance {
    /// Reports whether the decision names the objects of all releases that clusters have.
    pub(super) fn keeps_objects(&self) -> bool {
        let is_removing = self.releases.as_ref().is_some_and(|releases| !releases.removing.is_empty());
        is_removing || self.fates.values().any(|fate| *fate != Fate::Desired)
    }
}

/// A workload whose step is under way: looked at and asked, and not recorded yet.
pub(super) struct Asked<'a> {
    pub(super) workload: &'a Workload,
    pub(super) course: Course<'a>,
    pub(super) sights: BTreeMap<String, Sight<'a>>,
    pub(super) answer: Answer,
    /// Newcomers that begin with a proven release of another workload, with which this one goes together.
    pub(super) joins_along: BTreeSet<String>,
    /// Newcomers that wait, because such a workload is still being removed there.
    pub(super) waits_along: BTreeSet<String>,
    /// The clusters keep what they have: the release that they should go to cannot be rendered.
    is_lost: bool,
    /// Nothing had moved, and everybody had what is proven, as the step began.
    rested: bool,
    closed: Option<Closed>,
    /// Another workload must go first.
    is_blocked: bool,
}

/// Looks at a workload. `places` are those of the current and of the desired state.
pub(super) fn look<'a>(
    workload: &'a Workload,
    given: Given<'a>,
    places: [&'a Places<'a>; 2],
    way: Way,
    contents: &mut dyn Contents,
) -> Result<Asked<'a>, ContentError> {
    let key = &workload.key;
    let desired = &places[1].state.decisions;
    let stored = contents.put(inputs::write(workload).as_bytes())?;
    let mut course = course::course(workload, given, desired.get(key), stored, way);
    let mut sights = sights(&course.releases, given, places);
    let mut served = sights.values().filter(|one| one.serves).peekable();
    let was_waiting = |decision: &Decision| decision.picks.iter().any(|pick| pick.pending);
    let is_first = !given.current.releases.contains_key(key)
        && !given.current.decisions.get(key).is_some_and(was_waiting);
    if is_first && served.peek().is_some() && served.all(|one| one.picked && one.have == one.want) {
        // What was everywhere before anybody looked is taken as proven.
        course.releases.good = Some(course.releases.current.number);
    }
    let mut is_lost = false;
    if let Some(target) = course.target.filter(|_| !course.goes_to_files()) {
        let picks = picks_of(desired, key, |_| true);
        match again(&mut course, target, given, &picks, contents) {
            Ok(folders) => want(&mut sights, &folders),
            Err(fault) => {
                is_lost = true;
                course.diagnostics.push(lost(workload, target, &fault));
            }
        }
    }
    pin(&mut sights, &mut course, workload, (given, contents), desired);
    // Now that every cluster should have what it should have in the end.
    let rested = rests(&course.releases, given, &sights);
    if rested {
        keep_reports(&mut sights);
    }
    assume(&mut sights, &course.releases);
    let closed = course.orders.closed(given.now);
    Ok(Asked {
        workload,
        course,
        sights,
        answer: Answer::default(),
        joins_along: BTreeSet::new(),
        waits_along: BTreeSet::new(),
        is_lost,
        rested,
        closed,
        is_blocked: false,
    })
}

impl Asked<'_> {
    /// Reports whether a member reported on the copies that its cluster has.
    pub(super) fn is_reported(&self) -> bool {
        self.sights.values().any(Sight::is_reported)
    }

    /// Asks its strategy. `blocked` is the reason why another workload must go first, and `ailing` are the clusters
    /// in which workloads that go together with it are not in order.
    pub(super) fn ask(
        &mut self,
        given: Given<'_>,
        desired: &Map<Key, Decision>,
        blocked: Option<String>,
        ailing: &Ailing,
    ) {
        self.is_blocked = blocked.is_some();
        for cluster in self.begin_proven() {
            self.sights.entry(cluster).and_modify(|sight| sight.begins = true);
        }
        let course = &mut self.course;
        let frozen = self.closed.as_ref().map(|closed| closed.reason.clone());
        let taken_back = course.releases.taken_back;
        let reason = frozen.clone().or(blocked).filter(|_| !taken_back);
        let followed = strategies::followed(given.fleet, desired, &self.workload.key, &course.strategy);
        self.answer = answer::ask(course, &self.sights, ailing, &followed, reason.as_deref(), given.now);
        if let Some(reason) = frozen.filter(|_| taken_back) {
            // A release that is taken back goes back all the same. Nothing else happens.
            let stays = std::mem::take(&mut self.answer.remove);
            let reason: Arc<str> = reason.into();
            self.answer.waits.extend(stays.into_iter().map(|cluster| (cluster, reason.clone())));
        }
    }

    /// Returns the moment from which the workload counts as proven, if nothing changes until then; `None` while
    /// something is missing.
    pub(super) fn settles(&self) -> Option<Timestamp> {
        record::settles(self)
    }

    /// Reports whether some cluster must prove the release: one that is picked, and that keeps no release by an order.
    pub(super) fn needs_proof(&self) -> bool {
        self.sights.values().any(|sight| sight.picked && !sight.is_pinned && !sight.keeps)
    }

    /// Turns the answer into the fate of each cluster, and writes down the releases. `settles` is the moment from
    /// which all that goes together is proven.
    pub(super) fn finish(
        mut self,
        given: Given<'_>,
        desired: &Map<Key, Decision>,
        settles: Option<Timestamp>,
        contents: &mut dyn Contents,
    ) -> Advance {
        let key = self.workload.key.clone();
        let needs_proof = self.needs_proof();
        let good = self.good_for_newcomers();
        let joins = self.joins();
        self.settle_fates(&joins);
        if let Some(good) = good.filter(|_| !joins.is_empty()) {
            let picks = picks_of(desired, &key, |cluster| joins.contains(cluster));
            match again(&mut self.course, good, given, &picks, contents) {
                Ok(folders) => {
                    for (cluster, folder) in &folders {
                        let copies: CopySet = folder.iter().map(|(path, id)| (path.clone(), *id)).collect();
                        let sight = self.sights.get_mut(cluster);
                        sight.into_iter().for_each(|sight| sight.fate = Some(Fate::Gets(copies.clone())));
                    }
                }
                Err(fault) => self.course.diagnostics.push(lost(self.workload, good, &fault)),
            }
        }
        record::record(&mut self, &joins, settles, given.now);
        if let Some(halt) = &self.course.releases.halted {
            let number = self.course.releases.current.number;
            let message = format!("{key}: release {number} is halted: {}", halt.reason);
            self.course.diagnostics.push(Diagnostic::warning(self.workload.origin.clone(), message));
        }
        self.course.diagnostics.extend(self.progress_note());
        let waits = !self.answer.waits.is_empty();
        let orders = self.course.orders.next_change(given.now).filter(|_| waits || self.closed.is_some());
        let moments = self.answer.next.into_iter().chain(settles).chain(orders);
        let next_change = moments.filter(|at| *at > given.now).min();
        let is_settled = self.rested && rests(&self.course.releases, given, &self.sights);
        let name = WorkloadName::of(&key);
        // While nothing moves and all known reports are successes, these stay, whatever came since: no strategy makes
        // anything of it. Beside a failure it counts how long each success lasts, and other orders may make something of
        // the failure.
        let mut facts = given.current.facts.cursor();
        let mut known = |cluster: &String| facts.get(cluster).and_then(|fact| fact.copies.get(&name));
        let is_fine = |(cluster, sight): (&String, &Sight<'_>)| match (known(cluster), &sight.report) {
            (Some(known), Some(read)) if !sight.is_assumed => {
                known.digest != read.digest || known.health == Health::Succeeded
            }
            _ => true,
        };
        let stays = is_settled && self.sights.iter().all(is_fine);
        let mut facts = given.current.facts.cursor();
        let (mut fates, mut reports) = (Vec::new(), Vec::new());
        for (cluster, sight) in self.sights {
            // A proof takes the facts for reports. One that its member retracted counts for no copies any more, and
            // still says that the member reports on the workload.
            let is_retracted = sight.retracted.is_some() && !is_settled;
            let earlier = facts.get(&cluster).and_then(|fact| fact.copies.get(&name));
            let read = sight.report.filter(|_| !sight.is_assumed && !is_retracted && !stays);
            let digest = |earlier: &CopyReport| if is_retracted { Digest([0; 16]) } else { earlier.digest };
            let carried = || earlier.map(|one| CopyReport { digest: digest(one), ..one.clone() });
            let report = read.or_else(carried);
            reports.extend(report.map(|report| (cluster.clone(), report)));
            fates.extend(sight.fate.map(|fate| (cluster, fate)));
        }
        let Answer { waits, notes, standing, .. } = self.answer;
        let trace = Trace { waits, notes, standing, next: next_change };
        let Course { releases, earlier_objects, diagnostics, .. } = self.course;
        let is_recorded =
            releases.good.is_some() || !releases.told.is_empty() || self.course.target.is_some();
        let releases = is_recorded.then_some(releases);
        let (fates, reports) = (fates.into_iter().collect(), reports.into_iter().collect());
        Advance {
            key,
            releases,
            needs_proof,
            fates,
            earlier_objects,
            reports,
            trace,
            next_change,
            diagnostics,
        }
    }

    /// Says how far the rollout is, where clusters wait.
    fn progress_note(&self) -> Option<Diagnostic> {
        let (key, releases) = (&self.workload.key, &self.course.releases);
        let (cluster, reason) = self.answer.waits.first_key_value()?;
        let waits = self.answer.waits.len();
        if self.course.target.is_none() && *self.course.strategy == Strategy::Runs {
            let message = format!(
                "{key} rolls out by staged update runs, and none goes on: every cluster keeps its copy ({waits} wait)"
            );
            let hint =
                "add a ClusterStagedUpdateRun with `state: Run`, or use `strategy.type: RollingUpdate`";
            return Some(Diagnostic::warning(self.workload.origin.clone(), message).hint(hint));
        }
        let fates = self.sights.values().filter_map(|sight| sight.fate.as_ref());
        let picked = fates.filter(|fate| !matches!(fate, Fate::Leaves)).count();
        let message = format!(
            "{key}: release {}: {waits} of {picked} clusters wait; {cluster}: {reason}",
            releases.current.number
        );
        Some(Diagnostic { at: Some(self.workload.origin.clone()), ..Diagnostic::note(message) })
    }

    /// The clusters that have nothing yet, and begin with the proven release: nobody begins with another one,
    /// whatever the strategy says of newcomers.
    pub(super) fn joins(&self) -> BTreeSet<String> {
        if self.good_for_newcomers().is_none() {
            return BTreeSet::new();
        }
        self.newcomers()
    }

    /// The picked clusters that have nothing yet, and do not wait for the end of a removal.
    pub(super) fn newcomers(&self) -> BTreeSet<String> {
        let joins = self.sights.iter().filter(|(_, sight)| sight.picked && sight.has() == Has::Nothing);
        joins
            .filter(|(_, sight)| !sight.is_pinned && sight.removing.is_none())
            .map(|(cluster, _)| cluster.clone())
            .filter(|cluster| !self.waits_along.contains(cluster))
            .collect()
    }

    /// The proven release, where others go to another one.
    fn good_for_newcomers(&self) -> Option<u64> {
        self.course.releases.good.filter(|good| Some(*good) != self.course.target)
    }

    /// The newcomers that go straight to a proven release whatever their strategy says: in a freeze or pause, where
    /// all go back to it, and where another workload with which this one goes together begins.
    fn begin_proven(&self) -> BTreeSet<String> {
        let is_proven = self.course.target.is_some() && self.course.target == self.course.releases.good;
        if !is_proven || self.is_lost {
            return BTreeSet::new();
        }
        let is_frozen_alone = self.closed.is_some() && !self.is_blocked;
        let all_begin = is_frozen_alone || self.course.releases.taken_back;
        let mut begin = self.newcomers();
        begin.retain(|cluster| all_begin || self.joins_along.contains(cluster));
        begin
    }

    /// Turns the answer into the fate of each cluster.
    fn settle_fates(&mut self, joins: &BTreeSet<String>) {
        let (is_of_files, begins) = (self.course.goes_to_files(), self.begin_proven());
        let Asked { course, sights, answer, waits_along, is_lost, .. } = self;
        for (cluster, sight) in sights {
            let wanted = || match is_of_files && !sight.is_pinned {
                true => Fate::Desired,
                false => Fate::Gets(sight.want.clone()),
            };
            sight.fate = Some(match (sight.picked, sight.has()) {
                (true, _) if sight.is_pinned => wanted(),
                (true, _) if sight.removing.is_some() => Fate::Waits,
                (true, Has::Nothing) if waits_along.contains(cluster) => Fate::Waits,
                (true, Has::New) => wanted(),
                (true, Has::Nothing) if joins.contains(cluster) => Fate::Waits,
                (true, Has::Old) if *is_lost => Fate::Stays,
                (true, _) if course.releases.taken_back || answer.give.contains(cluster) => wanted(),
                (true, Has::Old) => Fate::Stays,
                // A proven release reaches newcomers whatever is frozen: to them nothing about it is new.
                (true, Has::Nothing) if begins.contains(cluster) => wanted(),
                (true, Has::Nothing) => Fate::Waits,
                (false, Has::Nothing) => continue,
                (false, _) if answer.remove.contains(cluster) => continue,
                (false, _) => Fate::Leaves,
            });
        }
    }
}

/// Returns the step of a workload that stays as it is: its clusters keep what they have, and its record says the same.
pub(super) fn stands(key: &Key, releases: &Releases, given: Given<'_>, desired: &State) -> Advance {
    let mut fates: BTreeMap<String, Fate> = BTreeMap::new();
    let waits = desired.decisions.get(key).into_iter().flat_map(Decision::picked);
    fates.extend(waits.map(|pick| (pick.cluster.to_string(), Fate::Waits)));
    let served = given.current.decisions.get(key).into_iter().flat_map(|before| before.picks.iter());
    for pick in served.filter(|pick| !pick.pending) {
        if let Some(fate) = fates.get_mut(&*pick.cluster) {
            *fate = Fate::Stays;
        } else if given.fleet.clusters.contains_key(&*pick.cluster) {
            fates.insert(pick.cluster.to_string(), Fate::Leaves);
        }
    }
    let name = WorkloadName::of(key);
    let report = |cluster: &String| Some((cluster.clone(), carried(&name, cluster, given)?));
    let reports = fates.keys().filter_map(report).collect();
    let (key, releases) = (key.clone(), Some(releases.clone()));
    let (trace, diagnostics) = (Trace::default(), Diagnostics::new());
    Advance {
        key,
        releases,
        needs_proof: true,
        fates,
        earlier_objects: BTreeSet::new(),
        reports,
        trace,
        next_change: None,
        diagnostics,
    }
}

/// Returns the report that the current facts hold on a workload's copies in a cluster.
fn carried(name: &WorkloadName, cluster: &str, given: Given<'_>) -> Option<CopyReport> {
    given.current.facts.get(cluster)?.copies.get(name).cloned()
}
