//! The status that KubeFed would show of a Federated object, from the decision and members' reports.
//!
//! Only clusters that are not in sync are listed, each with its word; the condition `Propagation` and the
//! counts by word sum them up. Facts that only a hub that writes to members could know are never claimed.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::kinds::TYPES;
use crate::dialects::{Described, Detail};
use berth_base::model::status::Problem;
use berth_base::model::{Decision, Failure, Key, Member};

/// The maximal number of clusters listed with each word in the brief form. The counts are of all.
const LISTED: usize = 20;

const NOT_READY: &str = "ClusterNotReady";
const WAITING: &str = "WaitingForRemoval";

/// Returns the status of a Federated object.
pub(super) fn describe(described: &Described<'_>) -> Option<Json> {
    is_federated(&described.decision.key).then(|| json!(status(described)))
}

/// Reports whether a workload is one of KubeFed's. Custom types with other names are not recognized.
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
    status: &'static str,
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
    by_status: BTreeMap<&'static str, usize>,
    clusters: usize,
    in_sync: usize,
}

fn status<'a>(described: &Described<'a>) -> Propagation<'a> {
    let Described { decision, with_problems, ref placed, ref waiting, detail, .. } = *described;
    let failures: BTreeMap<&str, &Failure> =
        decision.failures.iter().rev().map(|failure| (failure.cluster.as_str(), failure)).collect();
    let mut words: Vec<(&'a str, &'static str)> = Vec::new();
    for ((name, member), waits) in placed.iter().zip(waiting) {
        let word = word(decision, failures.get(name), *member);
        // KubeFed knows no rollouts; in its words, what has not reached a cluster took too long.
        let word = word.or_else(|| waits.then_some("UpdateTimedOut"));
        words.extend(word.map(|word| (*name, word)));
    }
    let in_sync = placed.len() - words.len();
    let kept = |problem: &Problem| problem.message.contains("no longer wanted");
    let leaving = with_problems.iter().filter(|member| problem_of(decision, member).is_some_and(kept));
    let leaving: Vec<&'a str> = leaving.map(|one| one.name).filter(|name| !decision.has(name)).collect();
    if !leaving.is_empty() {
        words.extend(leaving.into_iter().map(|name| (name, WAITING)));
        words.sort_unstable();
    }
    let mut by_status: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut clusters = Vec::new();
    for (name, word) in &words {
        let count = by_status.entry(word).or_default();
        *count += 1;
        // Who is silent is so for every workload, and stands in the fleet's list of clusters.
        if detail == Detail::Full || *count <= LISTED && *word != NOT_READY {
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

/// The word for a cluster the workload is placed in; none where it is in sync.
fn word(
    decision: &Decision,
    failure: Option<&&Failure>,
    member: Option<&Member<'_>>,
) -> Option<&'static str> {
    if let Some(failure) = failure {
        return Some(unrendered(failure));
    }
    let Some(member) = member.filter(|one| one.state.is_heard()) else {
        return Some(NOT_READY);
    };
    match problem_of(decision, member) {
        Some(problem) if problem.message.contains("not made by berth") => Some("AlreadyExists"),
        Some(_) => Some("UpdateFailed"),
        // Published, and not applied yet: KubeFed says so of what is not confirmed in time.
        None => (!member.has_folder).then_some("UpdateTimedOut"),
    }
}

/// A patch that fails names its operation first.
fn unrendered(failure: &Failure) -> &'static str {
    let of_patch = failure.reason.starts_with('`') || failure.reason.starts_with("the override");
    if of_patch { "ApplyOverridesFailed" } else { "ComputeResourceFailed" }
}

fn problem_of<'a>(decision: &Decision, member: &Member<'a>) -> Option<&'a Problem> {
    member.problems().iter().find(|problem| decision.objects.contains(&problem.object))
}
