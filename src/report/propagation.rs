//! What KubeFed's status of a Federated object would say, in its words: from the decision and from what
//! members reported.
//!
//! Only clusters that are not in sync are listed, each with its word; the condition `Propagation` and the
//! counts by word sum them up. What only a hub that writes to members could know is never claimed.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::model::status::Problem;
use crate::model::{ClusterStatus, Decision, Failure, Key};

/// How a member stands, as far as its report tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    InSync,
    Behind,
    /// Silent, or never heard of.
    Unheard,
}

/// Whether a workload is one of KubeFed's. Types under names of one's own are not told apart from others.
pub(super) fn is_federated(key: &Key) -> bool {
    *key.group == *"types.kubefed.io" || key.kind.starts_with("Federated")
}

/// Conditions, clusters and counts. `member` says how a cluster stands.
pub(super) fn status(
    decision: &Decision,
    statuses: &BTreeMap<String, ClusterStatus>,
    member: impl Fn(&str) -> Member,
) -> Json {
    let mut words: BTreeMap<&str, &'static str> = BTreeMap::new();
    for pick in &decision.picks {
        let word = placed(decision, &pick.cluster, statuses.get(&pick.cluster), member(&pick.cluster));
        words.extend(word.map(|word| (pick.cluster.as_str(), word)));
    }
    for (name, status) in statuses.iter().filter(|(name, _)| !decision.has(name)) {
        if problem_of(decision, status).is_some_and(|problem| problem.message.contains("no longer wanted")) {
            words.insert(name, "WaitingForRemoval");
        }
    }
    let in_sync = decision.picks.iter().filter(|pick| !words.contains_key(pick.cluster.as_str())).count();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    words.values().for_each(|word| *counts.entry(word).or_default() += 1);
    let clusters: Vec<Json> =
        words.iter().map(|(name, word)| json!({ "name": name, "status": word })).collect();
    json!({
        "conditions": [condition(decision, words.is_empty())],
        "clusters": clusters,
        "summary": { "clusters": decision.picks.len(), "inSync": in_sync, "byStatus": counts },
    })
}

fn condition(decision: &Decision, all_in_sync: bool) -> Json {
    let own = decision.condition.as_ref().filter(|own| own.kind == "Propagation" && !own.status);
    match own {
        Some(own) => json!({ "type": "Propagation", "status": "False", "reason": own.reason }),
        None if all_in_sync => json!({ "type": "Propagation", "status": "True" }),
        None => json!({ "type": "Propagation", "status": "False", "reason": "CheckClusters" }),
    }
}

/// The word for a cluster the workload is placed in; none where it is in sync.
fn placed(
    decision: &Decision,
    cluster: &str,
    status: Option<&ClusterStatus>,
    member: Member,
) -> Option<&'static str> {
    if let Some(failure) = decision.failures.iter().find(|failure| failure.cluster == cluster) {
        return Some(unrendered(failure));
    }
    if member == Member::Unheard {
        return Some("ClusterNotReady");
    }
    match status.and_then(|status| problem_of(decision, status)) {
        Some(problem) if problem.message.contains("not made by berth") => Some("AlreadyExists"),
        Some(_) => Some("UpdateFailed"),
        // Published, and not applied yet: KubeFed says so of what is not confirmed in time.
        None => (member == Member::Behind).then_some("UpdateTimedOut"),
    }
}

/// A patch that fails names its operation first.
fn unrendered(failure: &Failure) -> &'static str {
    let of_patch = failure.reason.starts_with('`') || failure.reason.starts_with("the override");
    if of_patch { "ApplyOverridesFailed" } else { "ComputeResourceFailed" }
}

fn problem_of<'a>(decision: &Decision, status: &'a ClusterStatus) -> Option<&'a Problem> {
    let applied = status.applied.as_ref()?;
    applied.problems.iter().find(|problem| decision.objects.contains(&problem.object))
}
