//! The fleet's summary: members' reports against decisions and publications. Clusters and workloads are
//! sorted by name.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::inputs::ReportInputs;
use crate::dialects::{Described, Detail};
use berth_base::model::member::placed;
use berth_base::model::{Decision, Key, Map, Member, Pick, Timestamp};

/// The fleet summed up: clusters with their state and problems, workloads with how many of their clusters
/// are in sync, and how many clusters are in each state.
#[derive(Debug, Serialize)]
pub struct FleetReport<'s> {
    pub clusters: Vec<ClusterLine<'s>>,
    totals: BTreeMap<&'static str, usize>,
    pub workloads: Vec<WorkloadLine<'s>>,
}

/// A cluster in the report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterLine<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    pub name: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<usize>,
    pub problems: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub reported: Option<Timestamp>,
    /// Set where a report is shown, which a stored one never is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_seconds_ago: Option<i64>,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<String>,
    /// Since when decisions take the cluster for silent. Set where a report is shown.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub unreachable_since: Option<Timestamp>,
    /// Since when nothing more is moved away for it. Set where a report is shown.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub frozen_since: Option<Timestamp>,
}

/// A workload in the report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadLine<'s> {
    pub in_sync: usize,
    pub kind: &'s str,
    pub name: &'s str,
    pub namespace: &'s str,
    pub placed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Json>,
    with_problems: Vec<&'s str>,
}

fn as_text<S: Serializer>(moment: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    moment.map(|moment| moment.to_string()).serialize(serializer)
}

/// Sums up the fleet.
pub fn summarize<'s>(
    decisions: &'s Map<Key, Decision>,
    known: ReportInputs<'s>,
    detail: Detail,
) -> FleetReport<'s> {
    let members = known.members();
    let with_objects = decisions.values().filter(|decision| !decision.objects.is_empty());
    let troubled: Vec<&Member<'s>> = members.iter().filter(|member| !member.problems().is_empty()).collect();
    let workload = |decision| workload(decision, known, &members, &troubled, detail);
    let workloads = with_objects.map(workload).collect();
    let mut totals: BTreeMap<&'static str, usize> = BTreeMap::new();
    for member in &members {
        *totals.entry(member.state.word()).or_default() += 1;
    }
    FleetReport { clusters: members.iter().map(cluster).collect(), totals, workloads }
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
        reported: member.status.and_then(|status| status.reported),
        reported_seconds_ago: None,
        state: member.state.word(),
        suspended: applied.and_then(|applied| applied.suspended.as_ref()).map(ToString::to_string),
        unreachable_since: None,
        frozen_since: None,
    }
}

fn workload<'s>(
    decision: &'s Decision,
    known: ReportInputs<'s>,
    members: &[Member<'s>],
    troubled: &[&Member<'s>],
    detail: Detail,
) -> WorkloadLine<'s> {
    // A member may hold all of its folder, and yet not this workload: its copy could not be made.
    let unmade: BTreeSet<&str> = decision.failures.iter().map(|failure| failure.cluster.as_str()).collect();
    let rollout = known.rollout(&decision.key);
    let waits = |pick: &Pick| rollout.is_some_and(|rollout| rollout.waits(pick));
    let waiting: Vec<bool> = decision.picks.iter().map(waits).collect();
    let (mut in_sync, mut with_problems) = (0, Vec::new());
    let placed: Vec<_> = placed(decision, members).collect();
    let known_members =
        placed.iter().zip(&waiting).filter_map(|((_, member), waits)| Some(((*member)?, waits)));
    for (member, waits) in known_members {
        if member.problems().iter().any(|problem| decision.objects.contains(&problem.object)) {
            with_problems.push(member.name);
        } else if member.has_folder
            && !waits
            && !member.awaits(&decision.objects)
            && !unmade.contains(member.name)
        {
            in_sync += 1;
        }
    }
    let (fleet, decisions) = (known.fleet, known.decisions());
    let described =
        Described { decision, fleet, decisions, with_problems: troubled, placed, waiting, rollout, detail };
    let key = &decision.key;
    WorkloadLine {
        in_sync,
        kind: &key.kind,
        name: &key.name,
        namespace: &key.namespace,
        placed: decision.picks.len(),
        status: known.dialects.iter().find_map(|dialect| (dialect.report)(&described)),
        with_problems,
    }
}
