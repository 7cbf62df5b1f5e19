//! The lines of the fleet report, one for each cluster and each workload; a cluster's workloads, and the
//! problems of its objects; and an index of the lines that depend on a cluster, or on an object's path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{FleetSummary, with_objects};
use crate::dialects::{Dialects, Placed, Reported};
use crate::state::ObjectIndex;
use berth_base::model::release::Releases;
use berth_base::model::status::Problem;
use berth_base::model::{Decision, Key, Map, Member, MemberState, MemberView, Pick, Timestamp};
use berth_base::packed::Packed;

/// A cluster in the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<usize>,
    pub problems: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub reported: Option<Timestamp>,
    /// Set when a report is shown, never in a stored one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_seconds_ago: Option<i64>,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<String>,
    /// The moment since which decisions treat the cluster as silent. Set when a report is shown.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub unreachable_since: Option<Timestamp>,
    /// The moment since which nothing more moves away from the silent cluster. Set when a report is shown.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub frozen_since: Option<Timestamp>,
}

/// A workload in the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadLine {
    pub in_sync: usize,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub placed: usize,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    pub(super) status: Option<Packed>,
    pub(super) with_problems: Vec<String>,
}

fn as_text<S: Serializer>(moment: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    moment.map(|moment| moment.to_string()).serialize(serializer)
}

fn as_json<S: Serializer>(status: &Option<Packed>, serializer: S) -> Result<S::Ok, S::Error> {
    status.as_ref().map(Packed::to_json).serialize(serializer)
}

impl ClusterLine {
    pub(super) fn of(member: &Member<'_>) -> ClusterLine {
        let applied = member.status.and_then(|status| status.applied.as_ref());
        ClusterLine {
            applied: applied.map(|applied| applied.sequence),
            failing: applied.and_then(|applied| applied.failing.as_ref()).map(ToString::to_string),
            name: member.name.to_owned(),
            objects: applied.map(|applied| applied.objects),
            problems: member.problems().len(),
            published: member.published.map(|published| published.sequence),
            reported: member.status.and_then(|status| status.reported),
            reported_seconds_ago: None,
            state: member.state.word(),
            suspended: applied.and_then(|applied| applied.suspended.as_ref()).map(ToString::to_string),
            unreachable_since: None,
            frozen_since: None,
        }
    }
}

impl WorkloadLine {
    pub(super) fn of(reported: &Reported<'_>, dialects: Dialects) -> WorkloadLine {
        let Reported { decision, placed, .. } = reported;
        let unmade: BTreeSet<&str> =
            decision.failures.iter().map(|failure| failure.cluster.as_str()).collect();
        let (mut in_sync, mut with_problems) = (0, Vec::new());
        for one in placed {
            match CopyState::of(decision, one, unmade.contains(one.cluster)) {
                CopyState::WithProblems => with_problems.push(one.cluster.to_owned()),
                CopyState::InSync => in_sync += 1,
                _ => {}
            }
        }
        let key = &decision.key;
        WorkloadLine {
            in_sync,
            kind: key.kind.to_string(),
            name: key.name.to_string(),
            namespace: key.namespace.to_string(),
            placed: decision.picks.len(),
            status: dialects
                .iter()
                .find_map(|dialect| (dialect.shown.report)(reported))
                .map(|status| Packed::of(&status)),
            with_problems,
        }
    }
}

/// A workload's copies in one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedLine {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub objects: usize,
    pub state: &'static str,
}

/// The state of a workload's copies in one cluster, with its inputs.
#[derive(Clone, Debug)]
pub struct CopyLine<'s> {
    pub pick: &'s Pick,
    pub state: CopyState,
    /// `None` for a cluster without a folder and a report.
    pub member: Option<MemberView<'s>>,
}

/// The state of a workload's copies in one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    InSync,
    /// Some copies may still become correct by themselves.
    Progressing,
    /// An object differs from its wanted form.
    WithProblems,
    /// The member has applied another folder than the published one, or is silent.
    NotApplied,
    /// Its turn in the rollout has not come.
    Waiting,
    /// The cluster's copy could not be made.
    Unmade,
}

impl CopyState {
    /// Returns the state of the copies in a cluster; `is_unmade`: the decision has a failure for it.
    pub(super) fn of(decision: &Decision, placed: &Placed<'_>, is_unmade: bool) -> CopyState {
        let Placed { member, waits, .. } = placed;
        let Some(member) = member else { return CopyState::NotApplied };
        // A member may have applied its whole folder without this workload, if the copy could not be made.
        if member.problem_of(&decision.objects).is_some() {
            CopyState::WithProblems
        } else if *waits {
            CopyState::Waiting
        } else if is_unmade {
            CopyState::Unmade
        } else if !member.has(&decision.objects) {
            CopyState::NotApplied
        } else if member.awaits(&decision.objects) {
            CopyState::Progressing
        } else {
            CopyState::InSync
        }
    }

    /// Returns the state in the words for a whole cluster, if there are such words.
    fn word(self) -> &'static str {
        match self {
            CopyState::InSync => MemberState::InSync.word(),
            CopyState::Progressing => MemberState::Progressing.word(),
            CopyState::WithProblems => MemberState::WithProblems.word(),
            CopyState::NotApplied => "not applied",
            CopyState::Waiting => "waits for its turn",
            CopyState::Unmade => "failed to render",
        }
    }
}

impl FleetSummary {
    /// Returns the workloads with objects that are placed on a cluster, by key.
    pub fn placed_on(&self, cluster: &str) -> Vec<PlacedLine> {
        let decisions = self.inputs.decisions.values().filter_map(|decision| with_objects(Some(decision)));
        decisions.filter_map(|decision| self.placed_line(decision, cluster)).collect()
    }

    fn placed_line(&self, decision: &Decision, cluster: &str) -> Option<PlacedLine> {
        let pick = decision.picks.iter().find(|pick| *pick.cluster == *cluster)?;
        let releases = self.inputs.releases.get(&decision.key);
        let view: Option<MemberView<'_>> = self.inputs.view(cluster);
        let waits = Releases::has_waiting(releases.map(|releases| &**releases), pick);
        let is_unmade = decision.failures.iter().any(|failure| failure.cluster == cluster);
        let placed = Placed { cluster, member: view.as_ref(), waits };
        let state = CopyState::of(decision, &placed, is_unmade);
        let key = &decision.key;
        Some(PlacedLine {
            kind: key.kind.to_string(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            objects: decision.objects.len(),
            state: state.word(),
        })
    }

    /// Returns the state of a workload's copies in each of its clusters. Empty for a placement without objects.
    pub fn copies(&self, key: &Key) -> Vec<CopyLine<'_>> {
        let Some(decision) = with_objects(self.inputs.decisions.get(key)) else { return Vec::new() };
        let members = self.members(&decision.picks);
        let reported = self.reported(decision, &members);
        let unmade: BTreeSet<&str> = decision.failures.iter().map(|one| one.cluster.as_str()).collect();
        let state = |placed: &Placed<'_>| CopyState::of(decision, placed, unmade.contains(placed.cluster));
        let states: Vec<CopyState> = reported.placed.iter().map(state).collect();
        let copies = decision.picks.iter().zip(states).zip(members);
        copies.map(|((pick, state), member)| CopyLine { pick, state, member }).collect()
    }

    /// Returns the problems of objects on a cluster.
    pub fn problems_on(&self, cluster: &str) -> &[Problem] {
        self.inputs.view(cluster).map(|view| view.problems).unwrap_or_default()
    }
}

/// The workloads placed in a cluster, and those with an object at a path of clusters' folders, in no order.
#[derive(Debug, Default)]
pub(super) struct Readers {
    of_clusters: BTreeMap<String, Vec<Arc<Key>>>,
    of_objects: ObjectIndex,
}

impl Readers {
    /// Returns the index of decisions.
    pub(super) fn of(decisions: &Map<Key, Decision>) -> Readers {
        let mut readers = Readers::default();
        readers.update(&Map::new(), decisions);
        readers
    }

    /// Updates the index from earlier decisions to later ones.
    pub(super) fn update(&mut self, before: &Map<Key, Decision>, after: &Map<Key, Decision>) {
        self.of_objects.update(after);
        for one in before.changes(after) {
            self.change(one.key, with_objects(one.before), with_objects(one.after));
        }
    }

    fn change(&mut self, key: &Key, before: Option<&Decision>, after: Option<&Decision>) {
        let has_same_picks = |other: Option<&Decision>, one: &Decision| {
            other.is_some_and(|other| other.picks.is_same(&one.picks))
        };
        let key = Arc::new(key.clone());
        for (one, other, is_new) in [(before, after, false), (after, before, true)] {
            let Some(one) = one else { continue };
            if !has_same_picks(other, one) {
                let mut known = other.map(Decision::cursor);
                for pick in one.picks.iter() {
                    if !known.as_mut().is_some_and(|known| known.has(&pick.cluster)) {
                        set(&mut self.of_clusters, &pick.cluster, &key, is_new);
                    }
                }
            }
        }
    }

    pub(super) fn of_cluster(&self, cluster: &str) -> impl Iterator<Item = &Arc<Key>> {
        self.of_clusters.get(cluster).into_iter().flatten()
    }

    pub(super) fn of_paths(&self, paths: &BTreeSet<String>) -> impl Iterator<Item = Arc<Key>> {
        let keys = self.of_objects.at(paths.iter().map(String::as_str)).into_keys();
        keys.map(|key| Arc::new(key.clone()))
    }
}

/// Adds a workload to the workloads of a cluster, or removes it.
fn set(index: &mut BTreeMap<String, Vec<Arc<Key>>>, name: &str, key: &Arc<Key>, is_there: bool) {
    if is_there {
        return match index.get_mut(name) {
            Some(readers) => readers.push(key.clone()),
            None => drop(index.insert(name.to_owned(), vec![key.clone()])),
        };
    }
    let Some(readers) = index.get_mut(name) else { return };
    readers.retain(|reader| reader != key);
    if readers.is_empty() {
        index.remove(name);
    }
}
