//! One workload's clusters: the copies that each has and should have, and what its member reports on them.

use std::collections::BTreeMap;

use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health, Releases};
use berth_base::model::{Decision, Digest, Group, Pick, Timestamp};

use super::advance::Fate;
use super::places::{CopySet, Places};
use super::turn::Has;
use super::{Given, copies};

/// One cluster as the step sees it.
#[derive(Default)]
pub(super) struct Sight<'a> {
    pub(super) picked: bool,
    pub(super) serves: bool,
    pub(super) have: CopySet,
    pub(super) want: CopySet,
    pub(super) report: Option<CopyReport>,
    /// Nobody reported on the copies; they were proven earlier.
    pub(super) is_assumed: bool,
    /// People ordered that the cluster keeps a release.
    pub(super) is_pinned: bool,
    /// People ordered that it keeps what it has, which is nothing yet: what it gets first.
    pub(super) keeps: bool,
    /// It begins with a proven release, whatever its strategy says.
    pub(super) begins: bool,
    /// The release of the pin, where the order names one that can be rendered.
    pub(super) pinned_to: Option<u64>,
    pub(super) group: Option<&'a Group>,
    /// Since when its copies are being removed, where nobody reported yet that they are gone.
    pub(super) removing: Option<Timestamp>,
    /// Its member reports on the workload, so that it will report the end of a removal.
    pub(super) answers: bool,
    /// The report on the copies that the facts have, where its member says nothing of them any more.
    pub(super) retracted: Option<&'a CopyReport>,
    /// The copies that it gets now. `None` before the strategy was asked, and for a cluster that gets none and loses
    /// what it has.
    pub(super) fate: Option<Fate>,
}

/// Looks at every cluster that is picked or has a copy.
pub(super) fn sights<'a>(
    releases: &Releases,
    given: Given<'a>,
    places: [&Places<'a>; 2],
) -> BTreeMap<String, Sight<'a>> {
    let key = &releases.key;
    let [current, desired] = places;
    let (mut had, mut wanted) = (current.of_workload(key), desired.of_workload(key));
    let mut clusters = given.fleet.clusters.cursor();
    let served = current.state.decisions.get(key).into_iter().flat_map(|before| before.picks.iter());
    let served = served.filter(|pick| !pick.pending);
    // A decision in doubt keeps a cluster that has left the inventory. Any other one has lost it.
    let mut is_there = |pick: &Pick| clusters.get(&*pick.cluster).is_some();
    let mut serves =
        |pick: &Pick| Sight { serves: true, have: had.copies(&pick.cluster), ..Sight::default() };
    // Both ascend by cluster.
    let mut served = served.peekable();
    let mut sights: Vec<(String, Sight<'a>)> = Vec::new();
    for pick in desired.state.decisions.get(key).into_iter().flat_map(Decision::picked) {
        while let Some(gone) = served.next_if(|served| served.cluster < pick.cluster) {
            if is_there(gone) {
                sights.push((gone.cluster.to_string(), serves(gone)));
            }
        }
        let sight =
            served.next_if(|served| served.cluster == pick.cluster).map(&mut serves).unwrap_or_default();
        let want = wanted.copies(&pick.cluster);
        sights.push((
            pick.cluster.to_string(),
            Sight { picked: true, want, group: pick.group.as_ref(), ..sight },
        ));
    }
    let rest = served.filter(|gone| is_there(gone));
    sights.extend(rest.map(|gone| (gone.cluster.to_string(), serves(gone))));
    let mut sights: BTreeMap<String, Sight<'a>> = sights.into_iter().collect();
    for (cluster, since) in &releases.removing {
        if given.fleet.clusters.contains_key(cluster) && !is_silent(cluster, desired) {
            let sight: &mut Sight<'_> = sights.entry(cluster.clone()).or_default();
            sight.removing = Some(*since).filter(|_| !sight.serves);
        }
    }
    let name = WorkloadName::of(key);
    let mut known: BTreeMap<CopySet, Digest> = BTreeMap::new();
    let (mut facts, mut statuses) = (given.current.facts.cursor(), given.statuses.cursor());
    for (cluster, sight) in &mut sights {
        let earlier = facts.get(cluster).and_then(|fact| fact.copies.get(&name));
        let is_silent = is_silent(cluster, desired);
        sight.answers = !is_silent && earlier.is_some();
        let status = statuses.get(cluster);
        let reported = status.and_then(|status| Some((status.copies.get(&name)?, status.reported)));
        if reported.is_none() && earlier.is_none() {
            continue;
        }
        if !known.contains_key(&sight.have) {
            let digest = copies::digest(sight.have.iter().map(|(path, id)| (&**path, *id)));
            known.insert(sight.have.clone(), digest);
        }
        // A report from before the cluster got its copies is about the same copies at an earlier time.
        let from = sight.removing.or(releases.reports_from(cluster));
        let is_stale = |since: Timestamp| from.is_some_and(|from| since < from);
        let have = known.get(&sight.have);
        let counts = |report: &CopyReport, since| !is_stale(since) && have == Some(&report.digest);
        let dated =
            reported.map(|(report, at)| (report, report.since.or(at).unwrap_or(given.now).min(given.now)));
        let Some((report, since)) = dated.filter(|(report, since)| counts(report, *since)) else {
            sight.retracted = earlier.filter(|one| one.since.is_some_and(|since| counts(one, since)));
            continue;
        };
        let same = earlier.filter(|one| one.digest == report.digest && one.health == report.health);
        let same = same.filter(|same| same.since.is_some_and(|since| !is_stale(since)));
        let message = if report.health == Health::Failed { report.message.clone() } else { String::new() };
        let fresh = CopyReport { since: Some(since), message, ..report.clone() };
        if report.health == Health::Succeeded {
            sight.removing = None;
        }
        sight.report = Some(same.cloned().unwrap_or(fresh));
        sight.answers = !is_silent;
    }
    sights
}

/// Lets the reports count that facts keep while a workload rests: a proof reads those.
pub(super) fn keep_reports(sights: &mut BTreeMap<String, Sight<'_>>) {
    for sight in sights.values_mut().filter(|sight| sight.retracted.is_some()) {
        sight.report = sight.retracted.cloned();
    }
}

/// Reports whether nothing moved since the last step, and everybody has what is proven.
pub(super) fn rests(releases: &Releases, given: Given<'_>, sights: &BTreeMap<String, Sight<'_>>) -> bool {
    let is_same = |sight: &Sight<'_>| match sight.removing {
        Some(_) => !sight.picked,
        None => sight.picked && sight.serves && sight.have == sight.want,
    };
    given.current.releases.get(&releases.key).is_some_and(|one| **one == *releases)
        && releases.is_proven()
        && releases.told.is_empty()
        && sights.values().all(is_same)
}

/// Reports whether a member is silent, and so removes nothing that anybody could wait for.
fn is_silent(cluster: &str, desired: &Places<'_>) -> bool {
    desired.state.facts.get(cluster).is_some_and(|fact| fact.silence().is_some())
}

/// Takes copies of the proven release as a success where no report says otherwise: they were one.
pub(super) fn assume(sights: &mut BTreeMap<String, Sight<'_>>, releases: &Releases) {
    let Some(good) = releases.good() else { return };
    for (cluster, sight) in sights {
        if sight.serves && sight.report.is_none() && releases.reports_from(cluster).is_none() {
            let health = Health::Succeeded;
            let (digest, since) = (Digest([0; 16]), Some(good.begun));
            sight.report = Some(CopyReport { digest, health, since, message: String::new() });
            sight.is_assumed = true;
        }
    }
}

impl Sight<'_> {
    /// Reports whether the strategy is to know of it.
    pub(super) fn counts(&self) -> bool {
        self.picked || self.serves || self.removing.is_some()
    }

    /// Reports whether its member reported on its copies since it got them.
    pub(super) fn is_reported(&self) -> bool {
        self.report.is_some() && !self.is_assumed
    }

    /// Reports whether a removal of its copies takes until its member reports the end.
    pub(super) fn is_removed_slowly(&self) -> bool {
        self.answers && !self.have.is_empty()
    }

    pub(super) fn has(&self) -> Has {
        match (self.serves, self.have == self.want) {
            (false, _) => Has::Nothing,
            (true, true) if self.picked => Has::New,
            (true, _) => Has::Old,
        }
    }

    pub(super) fn health(&self) -> Health {
        self.report_on_copies().map(|report| report.health).unwrap_or_default()
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        self.report_on_copies()?.since
    }

    /// A report that the cluster has no copies says nothing of those that it is about to get.
    fn report_on_copies(&self) -> Option<&CopyReport> {
        self.report.as_ref().filter(|_| self.serves)
    }
}
