//! The fleet's summary: members' reports against decisions and publications.
//!
//! A member is silent once three times its own reporting interval has passed without a report; `now` is an
//! argument. Clusters and workloads are sorted by name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::propagation::{self, Propagation};
use berth_base::model::decision::rows_among;
use berth_base::model::status::Problem;
use berth_base::model::{ClusterStatus, Decision, Key, ObjectId, Timestamp};

/// The folder a cluster should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The `Berth-Seq` at which the folder's tree last changed.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
}

/// The fleet summed up: clusters with their state and problems, workloads with how many of their clusters
/// are in sync, and how many clusters are in each state.
#[derive(Debug, Serialize)]
pub struct FleetReport<'s> {
    clusters: Vec<ClusterLine<'s>>,
    totals: BTreeMap<&'static str, usize>,
    workloads: Vec<WorkloadLine<'s>>,
}

#[derive(Debug, Serialize)]
struct ClusterLine<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<String>,
    name: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<usize>,
    problems: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadLine<'s> {
    in_sync: usize,
    kind: &'s str,
    name: &'s str,
    namespace: &'s str,
    placed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Propagation<'s>>,
    with_problems: Vec<&'s str>,
}

/// The detail in which single clusters are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Some clusters with problems: a text written at every pass must not grow with the copies.
    Brief,
    /// Every cluster.
    Full,
}

/// Sums up the fleet.
pub fn summarize<'s>(
    statuses: &'s BTreeMap<String, ClusterStatus>,
    decisions: &'s BTreeMap<Key, Decision>,
    published: &'s BTreeMap<String, Published>,
    now: Timestamp,
    detail: Detail,
) -> FleetReport<'s> {
    let members = members(statuses, published, now);
    let with_objects = decisions.iter().filter(|(_, decision)| !decision.objects.is_empty());
    let workloads = with_objects.map(|(key, decision)| workload(key, decision, &members, detail)).collect();
    let mut totals: BTreeMap<&'static str, usize> = BTreeMap::new();
    for member in &members {
        *totals.entry(member.state.word()).or_default() += 1;
    }
    FleetReport { clusters: members.iter().map(cluster).collect(), totals, workloads }
}

/// Returns all clusters with a folder or a report, by name.
pub(super) fn members<'s>(
    statuses: &'s BTreeMap<String, ClusterStatus>,
    published: &'s BTreeMap<String, Published>,
    now: Timestamp,
) -> Vec<Member<'s>> {
    let names: BTreeSet<&String> = published.keys().chain(statuses.keys()).collect();
    let member = |name: &'s String| {
        let (status, published) = (statuses.get(name), published.get(name));
        Member { name, status, published, state: state(status, published, now) }
    };
    names.into_iter().map(member).collect()
}

/// A cluster's published folder and its report.
#[derive(Debug)]
pub(super) struct Member<'s> {
    pub(super) name: &'s str,
    status: Option<&'s ClusterStatus>,
    published: Option<&'s Published>,
    pub(super) state: State,
}

impl<'s> Member<'s> {
    pub(super) fn problems(&self) -> &'s [Problem] {
        let applied = self.status.and_then(|status| status.applied.as_ref());
        applied.map(|applied| applied.problems.as_slice()).unwrap_or_default()
    }

    /// Reports whether the member reports, and has the published folder.
    pub(super) fn has_folder(&self) -> bool {
        let tree = self.status.and_then(|status| status.applied.as_ref()).map(|applied| &applied.tree);
        self.state.is_heard() && (self.published.is_none() || tree == self.published.map(|it| &it.tree))
    }

    /// Reports whether some of these objects may still have to become as wanted.
    fn awaits(&self, objects: &[ObjectId]) -> bool {
        let Some(applied) = self.status.and_then(|status| status.applied.as_ref()) else { return false };
        let is_unknown = applied.waiting.is_empty();
        applied.progressing && (is_unknown || applied.waiting.iter().any(|id| objects.contains(id)))
    }

    pub(super) fn differences(&self) -> &'s [Problem] {
        let applied = self.status.and_then(|status| status.applied.as_ref());
        applied.map(|applied| applied.differences.as_slice()).unwrap_or_default()
    }
}

/// A decision's clusters, each with its member where it has one; both go by name.
pub(super) fn placed<'m, 's>(
    decision: &'s Decision,
    members: &'m [Member<'s>],
) -> impl Iterator<Item = (&'s str, Option<&'m Member<'s>>)> {
    let rows = rows_among(&decision.picks, members.len(), |row| members[row].name);
    decision.picks.iter().zip(rows).map(|(pick, row)| (pick.cluster.as_str(), row.map(|row| &members[row])))
}

/// The state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// All of the folder is applied, and every object is as wanted.
    InSync,
    /// All of the folder is applied, and some object may still become as wanted by itself.
    Progressing,
    /// All of the folder is applied, and some object is not as wanted.
    WithProblems,
    /// Its last folder is an older one.
    Behind,
    /// People suspended the cluster.
    Suspended,
    /// The member reports that it cannot work.
    Failing,
    Silent,
    NeverReported,
}

impl State {
    /// Reports whether the report still describes the cluster.
    pub(super) fn is_heard(self) -> bool {
        !matches!(self, State::Failing | State::Silent | State::NeverReported)
    }

    fn word(self) -> &'static str {
        match self {
            State::InSync => "in sync",
            State::Progressing => "progressing",
            State::WithProblems => "problems",
            State::Behind => "behind",
            State::Suspended => "suspended",
            State::Failing => "failing",
            State::Silent => "silent",
            State::NeverReported => "never reported",
        }
    }
}

fn state(status: Option<&ClusterStatus>, published: Option<&Published>, now: Timestamp) -> State {
    let Some(status) = status else { return State::NeverReported };
    if is_silent(status, now) {
        return State::Silent;
    }
    let Some(applied) = &status.applied else { return State::NeverReported };
    if applied.failing.is_some() {
        State::Failing
    } else if applied.suspended.is_some() {
        State::Suspended
    } else if published.is_some_and(|published| published.tree != applied.tree) {
        State::Behind
    } else if !applied.problems.is_empty() {
        State::WithProblems
    } else if applied.progressing {
        State::Progressing
    } else {
        State::InSync
    }
}

/// Reports whether three times the member's own interval has passed since its report.
pub fn is_silent(status: &ClusterStatus, now: Timestamp) -> bool {
    let (Some(reported), Some(due)) = (status.reported, status.next_due) else { return false };
    let interval = due.as_second().saturating_sub(reported.as_second()).max(0);
    now.as_second() > reported.as_second().saturating_add(interval.saturating_mul(3))
}

fn cluster<'s>(member: &Member<'s>) -> ClusterLine<'s> {
    let applied = member.status.and_then(|status| status.applied.as_ref());
    ClusterLine {
        applied: applied.map(|applied| applied.sequence),
        failing: applied.and_then(|applied| applied.failing.as_ref()).map(ToString::to_string),
        name: member.name,
        objects: applied.map(|applied| applied.objects),
        problems: member.problems().len(),
        published: member.published.map(|published| published.sequence),
        reported: member.status.and_then(|status| status.reported).map(|reported| reported.to_string()),
        state: member.state.word(),
        suspended: applied.and_then(|applied| applied.suspended.as_ref()).map(ToString::to_string),
    }
}

fn workload<'s>(
    key: &'s Key,
    decision: &'s Decision,
    members: &[Member<'s>],
    detail: Detail,
) -> WorkloadLine<'s> {
    // A member may hold all of its folder, and yet not this workload: its copy could not be made.
    let unmade: BTreeSet<&str> = decision.failures.iter().map(|failure| failure.cluster.as_str()).collect();
    let placed: Vec<_> = placed(decision, members).collect();
    let (mut in_sync, mut with_problems) = (0, Vec::new());
    for (name, member) in &placed {
        let Some(member) = member else { continue };
        if member.problems().iter().any(|problem| decision.objects.contains(&problem.object)) {
            with_problems.push(*name);
        } else if member.has_folder() && !member.awaits(&decision.objects) && !unmade.contains(name) {
            in_sync += 1;
        }
    }
    let status =
        propagation::is_federated(key).then(|| propagation::status(decision, &placed, members, detail));
    WorkloadLine {
        in_sync,
        kind: &key.kind,
        name: &key.name,
        namespace: &key.namespace,
        placed: decision.picks.len(),
        status,
        with_problems,
    }
}
