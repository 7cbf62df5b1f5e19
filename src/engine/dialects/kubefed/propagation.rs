//! The status of a Federated object, as KubeFed would show it, from the decision and members' reports.
//!
//! It lists only clusters that are not in sync, each with its word. The condition `Propagation` and the
//! counts by word sum them up. Facts that only a hub that writes to members could know are never claimed.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::kinds::TYPES;
use crate::dialects::{Detail, Placed, Reported};
use berth_base::model::status::{Problem, ProblemKind};
use berth_base::model::{Decision, Failure, Key, MemberView};

/// The maximal number of clusters for each word in the brief form. The counts include all.
const LISTED: usize = 20;

/// KubeFed's word for a cluster that is not in sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum SyncWord {
    AlreadyExists,
    ApplyOverridesFailed,
    ClusterNotReady,
    ComputeResourceFailed,
    UpdateFailed,
    UpdateTimedOut,
    WaitingForRemoval,
}

/// Returns the status of a Federated object.
pub(super) fn describe(reported: &Reported<'_>) -> Option<Json> {
    is_federated(&reported.decision.key).then(|| json!(status(reported)))
}

/// Reports whether a workload belongs to KubeFed. Custom types with other names are not recognized.
fn is_federated(key: &Key) -> bool {
    *key.group == *TYPES || key.kind.starts_with("Federated")
}

/// Conditions, clusters and counts.
#[derive(Debug, Serialize)]
struct Propagation<'s> {
    clusters: Vec<ClusterWord<'s>>,
    conditions: [PropagationCondition<'s>; 1],
    summary: Summary,
}

#[derive(Debug, Serialize)]
struct ClusterWord<'s> {
    name: &'s str,
    status: SyncWord,
}

#[derive(Debug, Serialize)]
struct PropagationCondition<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'s str>,
    status: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    by_status: BTreeMap<SyncWord, usize>,
    clusters: usize,
    in_sync: usize,
}

fn status<'a>(reported: &Reported<'a>) -> Propagation<'a> {
    let Reported { decision, ref placed, ref elsewhere, detail } = *reported;
    let failures: BTreeMap<&str, &Failure> =
        decision.failures.iter().rev().map(|failure| (failure.cluster.as_str(), failure)).collect();
    let mut words: Vec<(&'a str, SyncWord)> = Vec::new();
    for Placed { cluster, member, waits } in placed {
        let word = word(decision, failures.get(cluster), *member);
        // KubeFed has no rollouts; its word for a cluster that has not got the change is a timeout.
        let word = word.or_else(|| waits.then_some(SyncWord::UpdateTimedOut));
        words.extend(word.map(|word| (*cluster, word)));
    }
    let in_sync = placed.len() - words.len();
    let kept = |problem: &Problem| problem.kind == ProblemKind::Kept;
    let leaving = elsewhere.iter().filter(|one| one.problem_of(&decision.objects).is_some_and(kept));
    words.extend(leaving.map(|member| (member.name, SyncWord::WaitingForRemoval)));
    words.sort_unstable();
    let mut by_status: BTreeMap<SyncWord, usize> = BTreeMap::new();
    let mut clusters = Vec::new();
    for &(name, word) in &words {
        let count = by_status.entry(word).or_default();
        *count += 1;
        // A silent cluster is silent for every workload, and the fleet's list of clusters shows it.
        if detail == Detail::Full || *count <= LISTED && word != SyncWord::ClusterNotReady {
            clusters.push(ClusterWord { name, status: word });
        }
    }
    Propagation {
        clusters,
        conditions: [condition(decision, words.is_empty())],
        summary: Summary { by_status, clusters: decision.picks.len(), in_sync },
    }
}

fn condition(decision: &Decision, all_in_sync: bool) -> PropagationCondition<'_> {
    let own = decision.condition.as_ref().filter(|own| own.kind == "Propagation" && !own.status);
    let (status, reason) = match own {
        Some(own) => ("False", Some(own.reason.as_str())),
        None if all_in_sync => ("True", None),
        None => ("False", Some("CheckClusters")),
    };
    PropagationCondition { reason, status, kind: "Propagation" }
}

/// Returns the word for a cluster of the workload; `None` if it is in sync.
fn word(
    decision: &Decision,
    failure: Option<&&Failure>,
    member: Option<&MemberView<'_>>,
) -> Option<SyncWord> {
    if let Some(failure) = failure {
        return Some(unrendered(failure));
    }
    let Some(member) = member.filter(|one| one.is_heard) else {
        return Some(SyncWord::ClusterNotReady);
    };
    match member.problem_of(&decision.objects) {
        Some(problem) => Some(match problem.kind {
            ProblemKind::Foreign | ProblemKind::TakeOverRefused => SyncWord::AlreadyExists,
            _ => SyncWord::UpdateFailed,
        }),
        // The change is published but not applied yet. KubeFed uses this word for changes that are not
        // confirmed in time.
        None => (!member.has(&decision.objects)).then_some(SyncWord::UpdateTimedOut),
    }
}

fn unrendered(failure: &Failure) -> SyncWord {
    if failure.of_override { SyncWord::ApplyOverridesFailed } else { SyncWord::ComputeResourceFailed }
}
