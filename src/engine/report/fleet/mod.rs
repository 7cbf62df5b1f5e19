//! The fleet's summary: members' reports compared with decisions and publications. Passes keep it, and an
//! update makes only the lines again whose inputs changed.
//!
//! [`lines`] has single lines, from their inputs; the lines that depend on a cluster or an object's path; and
//! the workloads of one cluster.

mod lines;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::dialects::{DIALECTS, Detail, Placed, Reported};
use berth_base::model::member::{Differing, Lacks, is_silent};
use berth_base::model::release::Releases;
use berth_base::model::shared::{ByAllocation, shared_by_several};
use berth_base::model::status::Problem;
use berth_base::model::{
    ClusterStatus, Decision, Key, Map, Member, MemberCursor, MemberView, ObjectId, Observed, Pick, Published,
    Shared, Timestamp, path,
};
use berth_base::parallel;
use lines::Readers;

pub use lines::{ClusterLine, CopyLine, CopyState, PlacedLine, WorkloadLine};

/// Maximal number of workloads whose lines are made at once, to limit the members in memory.
const AT_ONCE: usize = 512;

/// The inputs of a summary.
#[derive(Clone, Debug, Default)]
pub struct SummaryInputs {
    pub statuses: Map<String, Shared<ClusterStatus>>,
    pub published: Map<String, Published>,
    /// The folders that members applied and that differ from the published ones, see [`Observed`].
    pub differing: Map<String, Differing>,
    pub decisions: Map<Key, Decision>,
    pub releases: Map<Key, Shared<Releases>>,
    pub now: Timestamp,
}

/// The fleet in summary: a line for each cluster and for each workload with objects, and the number of
/// clusters in each state.
#[derive(Debug, Default)]
pub struct FleetSummary {
    detail: Detail,
    /// The inputs of the last update.
    inputs: SummaryInputs,
    /// The index of the inputs' decisions. Made when an update first needs it.
    readers: Option<Readers>,
    /// The clusters that report problems with an object.
    troubled: BTreeMap<ObjectId, BTreeSet<String>>,
    totals: BTreeMap<&'static str, usize>,
    clusters: Map<String, ClusterLine>,
    workloads: Map<Key, Shared<WorkloadLine>>,
}

impl SummaryInputs {
    fn members(&self) -> MemberCursor<'_> {
        let SummaryInputs { statuses, published, differing, now, .. } = self;
        Observed { statuses, published, differing, now: *now }.cursor()
    }

    fn member(&self, cluster: &str) -> Option<Member<'_>> {
        self.members().member(cluster)
    }

    fn view(&self, cluster: &str) -> Option<MemberView<'_>> {
        self.member(cluster).map(|member| member.view())
    }

    /// Returns the clusters that may have changed.
    fn changed_clusters<'a>(&'a self, before: &'a SummaryInputs) -> BTreeSet<&'a String> {
        let reported = before.statuses.changes(&self.statuses).map(|one| one.key);
        let published = before.published.changes(&self.published).map(|one| one.key);
        let differing = before.differing.changes(&self.differing).map(|one| one.key);
        let turns = |status: &ClusterStatus| is_silent(status, before.now) != is_silent(status, self.now);
        let turned = self.statuses.iter().filter(|(_, status)| turns(status)).map(|(name, _)| name);
        reported.chain(published).chain(differing).chain(turned).collect()
    }
}

impl FleetSummary {
    /// Returns the summary of an empty fleet.
    pub fn new(detail: Detail) -> FleetSummary {
        FleetSummary { detail, ..FleetSummary::default() }
    }

    /// Sums up a fleet.
    pub fn of(inputs: SummaryInputs, detail: Detail) -> FleetSummary {
        let mut summary = FleetSummary::new(detail);
        summary.update(inputs);
        summary
    }

    /// Returns the number of clusters in each state.
    pub fn totals(&self) -> &BTreeMap<&'static str, usize> {
        &self.totals
    }

    pub fn clusters(&self) -> &Map<String, ClusterLine> {
        &self.clusters
    }

    pub fn workloads(&self) -> &Map<Key, Shared<WorkloadLine>> {
        &self.workloads
    }

    /// Updates the summary to new inputs; the result equals a summary made from these alone.
    pub fn update(&mut self, inputs: SummaryInputs) {
        let before = std::mem::replace(&mut self.inputs, inputs);
        let mut stale: BTreeSet<Arc<Key>> = BTreeSet::new();
        for cluster in self.inputs.changed_clusters(&before) {
            let line = self.inputs.member(cluster).map(|member| ClusterLine::of(&member));
            replace_line(&mut self.clusters, &mut self.totals, cluster, line);
            let (old, new) = (before.view(cluster), self.inputs.view(cluster));
            if old == new {
                continue;
            }
            match changed_paths(old, new) {
                Some(paths) => {
                    let readers = self.readers.get_or_insert_with(|| Readers::of(&before.decisions));
                    stale.extend(readers.of_paths(&paths));
                }
                None => {
                    let readers = self.readers.get_or_insert_with(|| Readers::of(&before.decisions));
                    stale.extend(readers.of_cluster(cluster).cloned());
                }
            }
            let [old, new] = [old, new].map(|view| view.map(|view| view.problems).unwrap_or_default());
            if old != new {
                replace_problems(&mut self.troubled, cluster, old, new);
                // A workload that has left the cluster may have left an object there.
                let paths = old.iter().chain(new).map(|problem| path::of_object(&problem.object));
                let readers = self.readers.get_or_insert_with(|| Readers::of(&before.decisions));
                stale.extend(readers.of_paths(&paths.collect()));
            }
        }
        // An index that starts empty would grow with everything new, although nothing may need it again.
        self.readers.take_if(|_| before.decisions.is_empty());
        if let Some(readers) = &mut self.readers {
            readers.update(&before.decisions, &self.inputs.decisions);
        }
        let decided = before.decisions.changes(&self.inputs.decisions);
        stale.extend(decided.map(|one| Arc::new(one.key.clone())));
        let released = before.releases.changes(&self.inputs.releases);
        stale.extend(released.map(|one| Arc::new(one.key.clone())));
        let stale: Vec<Arc<Key>> = stale.into_iter().collect();
        for part in stale.chunks(AT_ONCE) {
            let lines = self.lines(part);
            for (key, line) in part.iter().zip(lines) {
                match line {
                    Some(line) => drop(self.workloads.insert((**key).clone(), line.into())),
                    None => drop(self.workloads.remove(&**key)),
                }
            }
        }
    }

    /// Makes the lines of these workloads; `None` for a workload without objects.
    fn lines(&self, keys: &[Arc<Key>]) -> Vec<Option<WorkloadLine>> {
        let decision = |key: &Key| with_objects(self.inputs.decisions.get(key));
        let lists = keys.iter().filter_map(|key| Some(&decision(key)?.picks));
        let shared = shared_by_several(lists);
        let members = parallel::map_large(&shared, |picks| self.members(picks));
        let members: BTreeMap<_, _> = shared.into_iter().map(ByAllocation).zip(members).collect();
        parallel::map_large(keys, |key| {
            let decision = decision(key)?;
            let own = OnceCell::new();
            let members = members.get(&ByAllocation(&decision.picks));
            let members = members.unwrap_or_else(|| own.get_or_init(|| self.members(&decision.picks)));
            Some(WorkloadLine::of(&self.reported(decision, members), DIALECTS))
        })
    }

    /// Returns the member of each picked cluster.
    fn members(&self, picks: &[Pick]) -> Vec<Option<MemberView<'_>>> {
        let mut members = self.inputs.members();
        picks.iter().map(|pick| members.member(&pick.cluster).map(|member| member.view())).collect()
    }

    /// Collects the inputs of a workload's line. Each pick has its member.
    fn reported<'a>(&'a self, decision: &'a Decision, members: &'a [Option<MemberView<'a>>]) -> Reported<'a> {
        let releases = self.inputs.releases.get(&decision.key).map(|releases| &**releases);
        let placed = decision.picks.iter().zip(members).map(|(pick, member)| Placed {
            cluster: &pick.cluster,
            member: member.as_ref(),
            waits: Releases::has_waiting(releases, pick),
        });
        let troubled = decision.objects.iter().filter_map(|object| self.troubled.get(object)).flatten();
        let elsewhere: BTreeSet<&String> = troubled.filter(|cluster| !decision.has(cluster)).collect();
        Reported {
            decision,
            placed: placed.collect(),
            elsewhere: elsewhere.into_iter().filter_map(|cluster| self.inputs.view(cluster)).collect(),
            detail: self.detail,
        }
    }
}

/// Returns the decision if it has objects.
fn with_objects(decision: Option<&Decision>) -> Option<&Decision> {
    decision.filter(|decision| !decision.objects.is_empty())
}

/// Returns the paths of the objects for which two views of a member may differ in more than problems. `None`
/// means all objects.
fn changed_paths(old: Option<MemberView<'_>>, new: Option<MemberView<'_>>) -> Option<BTreeSet<String>> {
    let (old, new) = (old?, new?);
    let of_all = |view: MemberView<'_>| {
        let awaits_all = view.progressing && view.waiting.is_empty();
        (view.is_heard, view.lacks == Lacks::Unknown, awaits_all)
    };
    if of_all(old) != of_all(new) {
        return None;
    }
    let nothing = BTreeSet::new();
    let [had, has] = [old, new].map(|view| match view.lacks {
        Lacks::Paths(paths) => paths,
        Lacks::Nothing | Lacks::Unknown => &nothing,
    });
    let mut paths: BTreeSet<String> = had.symmetric_difference(has).cloned().collect();
    if (old.progressing, old.waiting) != (new.progressing, new.waiting) {
        paths.extend(old.waiting.iter().chain(new.waiting).map(path::of_object));
    }
    Some(paths)
}

fn replace_line(
    lines: &mut Map<String, ClusterLine>,
    totals: &mut BTreeMap<&'static str, usize>,
    cluster: &String,
    line: Option<ClusterLine>,
) {
    let new = line.as_ref().map(|line| line.state);
    let old = match line {
        Some(line) => lines.insert(cluster.clone(), line),
        None => lines.remove(cluster),
    };
    if let Some(state) = new {
        *totals.entry(state).or_default() += 1;
    }
    if let Some(count) = old.and_then(|old| totals.get_mut(old.state)) {
        *count -= 1;
    }
    totals.retain(|_, count| *count > 0);
}

fn replace_problems(
    troubled: &mut BTreeMap<ObjectId, BTreeSet<String>>,
    cluster: &str,
    old: &[Problem],
    new: &[Problem],
) {
    for Problem { object, .. } in old {
        if let Some(clusters) = troubled.get_mut(object) {
            clusters.remove(cluster);
            if clusters.is_empty() {
                troubled.remove(object);
            }
        }
    }
    for Problem { object, .. } in new {
        troubled.entry(object.clone()).or_default().insert(cluster.to_owned());
    }
}
