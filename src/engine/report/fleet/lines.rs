//! The lines of the fleet report, one for each cluster and each workload.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::on_cluster::CopyState;
use crate::dialects::{Dialects, Reported};
use berth_base::model::{Member, Timestamp};
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
