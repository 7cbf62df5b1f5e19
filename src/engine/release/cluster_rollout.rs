//! One workload's clusters: each cluster's copies, its desired copies, and its member's report on them.

use std::collections::BTreeMap;

use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health, Releases};
use berth_base::model::{Decision, Digest, Group, Pick, Timestamp};

use super::advance::Outcome;
use super::copies::{CopySet, OwnedPlaces};
use super::strategies::Version;
use super::{ReleaseInputs, copies};

/// One cluster during a workload's step.
#[derive(Default)]
pub(super) struct ClusterRollout<'a> {
    pub(super) picked: bool,
    pub(super) serves: bool,
    pub(super) have: CopySet,
    pub(super) want: CopySet,
    pub(super) report: Option<CopyReport>,
    /// No report exists on the copies, but they were proven earlier.
    pub(super) is_assumed: bool,
    /// An order pins the cluster to a release.
    pub(super) is_pinned: bool,
    /// An order pins the cluster to its release, but it has none yet: it keeps the first release that it
    /// gets.
    pub(super) keeps: bool,
    /// The cluster begins with a proven release, whatever its strategy answers.
    pub(super) begins: bool,
    /// The release of the pin, if the pin names a release that can be rendered.
    pub(super) pinned_to: Option<u64>,
    pub(super) group: Option<&'a Group>,
    /// The moment at which the removal of its copies began, until a report confirms the end.
    pub(super) removing: Option<Timestamp>,
    /// The cluster's member reports on the workload, so it will report the end of a removal.
    pub(super) answers: bool,
    /// The recorded report on the copies, if the member no longer reports on them.
    pub(super) retracted: Option<&'a CopyReport>,
    /// The copies that the cluster gets now. `None` until the strategy has answered, and for a cluster that
    /// loses all copies.
    pub(super) outcome: Option<Outcome>,
}

/// Collects every cluster that is picked or has a copy.
pub(super) fn cluster_rollouts<'a>(
    releases: &Releases,
    given: ReleaseInputs<'a>,
    places: [&OwnedPlaces<'a>; 2],
) -> BTreeMap<String, ClusterRollout<'a>> {
    let key = &releases.key;
    let [current, desired] = places;
    let (mut had, mut wanted) = (current.of_workload(key), desired.of_workload(key));
    let mut clusters = given.fleet.clusters.cursor();
    let served = current.state.decisions.get(key).into_iter().flat_map(|before| before.picks.iter());
    let served = served.filter(|pick| !pick.pending);
    // An uncertain decision keeps a cluster that has left the inventory. Other decisions have lost it.
    let mut is_there = |pick: &Pick| clusters.get(&*pick.cluster).is_some();
    let mut serves = |pick: &Pick| ClusterRollout {
        serves: true,
        have: had.copies(&pick.cluster),
        ..ClusterRollout::default()
    };
    // Both lists ascend by cluster.
    let mut served = served.peekable();
    let mut cluster_rollouts: Vec<(String, ClusterRollout<'a>)> = Vec::new();
    for pick in desired.state.decisions.get(key).into_iter().flat_map(Decision::picked) {
        while let Some(gone) = served.next_if(|served| served.cluster < pick.cluster) {
            if is_there(gone) {
                cluster_rollouts.push((gone.cluster.to_string(), serves(gone)));
            }
        }
        let cluster_rollout =
            served.next_if(|served| served.cluster == pick.cluster).map(&mut serves).unwrap_or_default();
        let want = wanted.copies(&pick.cluster);
        cluster_rollouts.push((
            pick.cluster.to_string(),
            ClusterRollout { picked: true, want, group: pick.group.as_ref(), ..cluster_rollout },
        ));
    }
    let rest = served.filter(|gone| is_there(gone));
    cluster_rollouts.extend(rest.map(|gone| (gone.cluster.to_string(), serves(gone))));
    let mut cluster_rollouts: BTreeMap<String, ClusterRollout<'a>> = cluster_rollouts.into_iter().collect();
    for (cluster, since) in &releases.removing {
        if given.fleet.clusters.contains_key(cluster) && !is_silent(cluster, desired) {
            let cluster_rollout: &mut ClusterRollout<'_> =
                cluster_rollouts.entry(cluster.clone()).or_default();
            cluster_rollout.removing = Some(*since).filter(|_| !cluster_rollout.serves);
        }
    }
    read_reports(&mut cluster_rollouts, releases, given, desired);
    cluster_rollouts
}

/// Reads the members' reports on the copies that the clusters have.
fn read_reports<'a>(
    cluster_rollouts: &mut BTreeMap<String, ClusterRollout<'a>>,
    releases: &Releases,
    given: ReleaseInputs<'a>,
    desired: &OwnedPlaces<'_>,
) {
    let name = WorkloadName::of(&releases.key);
    let mut known: BTreeMap<CopySet, Digest> = BTreeMap::new();
    let (mut facts, mut statuses) = (given.current.facts.cursor(), given.statuses.cursor());
    for (cluster, cluster_rollout) in cluster_rollouts {
        let earlier = facts.get(cluster).and_then(|fact| fact.copies.get(&name));
        let is_silent = is_silent(cluster, desired);
        cluster_rollout.answers = !is_silent && earlier.is_some();
        let status = statuses.get(cluster);
        let reported = status.and_then(|status| Some((status.copies.get(&name)?, status.reported)));
        if reported.is_none() && earlier.is_none() {
            continue;
        }
        if !known.contains_key(&cluster_rollout.have) {
            let digest = copies::digest(cluster_rollout.have.iter().map(|(path, id)| (&**path, *id)));
            known.insert(cluster_rollout.have.clone(), digest);
        }
        // A report from before the assignment describes the same copies at an earlier time.
        let from = cluster_rollout.removing.or(releases.reports_from(cluster));
        let is_stale = |since: Timestamp| from.is_some_and(|from| since < from);
        let have = known.get(&cluster_rollout.have);
        let counts = |report: &CopyReport, since| !is_stale(since) && have == Some(&report.digest);
        let dated =
            reported.map(|(report, at)| (report, report.since.or(at).unwrap_or(given.now).min(given.now)));
        let Some((report, since)) = dated.filter(|(report, since)| counts(report, *since)) else {
            cluster_rollout.retracted =
                earlier.filter(|one| one.since.is_some_and(|since| counts(one, since)));
            continue;
        };
        let same = earlier.filter(|one| one.digest == report.digest && one.health == report.health);
        let same = same.filter(|same| same.since.is_some_and(|since| !is_stale(since)));
        let message = if report.health == Health::Failed { report.message.clone() } else { String::new() };
        let fresh = CopyReport { since: Some(since), message, ..report.clone() };
        if report.health == Health::Succeeded {
            cluster_rollout.removing = None;
        }
        cluster_rollout.report = Some(same.cloned().unwrap_or(fresh));
        cluster_rollout.answers = !is_silent;
    }
}

/// Uses the recorded reports while a workload rests, because a proof reads those.
pub(super) fn keep_reports(cluster_rollouts: &mut BTreeMap<String, ClusterRollout<'_>>) {
    for cluster_rollout in
        cluster_rollouts.values_mut().filter(|cluster_rollout| cluster_rollout.retracted.is_some())
    {
        cluster_rollout.report = cluster_rollout.retracted.cloned();
    }
}

/// Reports whether nothing moved since the last step, and every cluster has the proven release.
pub(super) fn rests(
    releases: &Releases,
    given: ReleaseInputs<'_>,
    cluster_rollouts: &BTreeMap<String, ClusterRollout<'_>>,
) -> bool {
    let is_same = |cluster_rollout: &ClusterRollout<'_>| match cluster_rollout.removing {
        Some(_) => !cluster_rollout.picked,
        None => {
            cluster_rollout.picked && cluster_rollout.serves && cluster_rollout.have == cluster_rollout.want
        }
    };
    given.current.releases.get(&releases.key).is_some_and(|one| **one == *releases)
        && releases.is_proven()
        && releases.assigned.is_empty()
        && cluster_rollouts.values().all(is_same)
}

/// Reports whether a member is silent, so that nothing waits for its removals.
fn is_silent(cluster: &str, desired: &OwnedPlaces<'_>) -> bool {
    desired.state.facts.get(cluster).is_some_and(|fact| fact.silence().is_some())
}

/// Counts copies of the proven release as a success unless a report contradicts: they succeeded when they
/// were proven.
pub(super) fn assume(cluster_rollouts: &mut BTreeMap<String, ClusterRollout<'_>>, releases: &Releases) {
    let Some(good) = releases.good() else { return };
    for (cluster, cluster_rollout) in cluster_rollouts {
        if cluster_rollout.serves
            && cluster_rollout.report.is_none()
            && releases.reports_from(cluster).is_none()
        {
            let health = Health::Succeeded;
            let (digest, since) = (Digest([0; 16]), Some(good.begun));
            cluster_rollout.report = Some(CopyReport { digest, health, since, message: String::new() });
            cluster_rollout.is_assumed = true;
        }
    }
}

impl ClusterRollout<'_> {
    /// Reports whether the strategy considers this cluster.
    pub(super) fn counts(&self) -> bool {
        self.picked || self.serves || self.removing.is_some()
    }

    /// Reports whether the member reported on its copies since it got them.
    pub(super) fn is_reported(&self) -> bool {
        self.report.is_some() && !self.is_assumed
    }

    /// Reports whether a removal of the copies takes until the member reports the end.
    pub(super) fn is_removed_slowly(&self) -> bool {
        self.answers && !self.have.is_empty()
    }

    pub(super) fn version(&self) -> Version {
        match (self.serves, self.have == self.want) {
            (false, _) => Version::Nothing,
            (true, true) if self.picked => Version::New,
            (true, _) => Version::Old,
        }
    }

    pub(super) fn health(&self) -> Health {
        self.report_on_copies().map(|report| report.health).unwrap_or_default()
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        self.report_on_copies()?.since
    }

    /// Returns the report on the cluster's copies. A report after their removal does not apply to the next
    /// copies.
    fn report_on_copies(&self) -> Option<&CopyReport> {
        self.report.as_ref().filter(|_| self.serves)
    }
}
