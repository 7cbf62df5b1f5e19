//! The fleet at a glance: what members reported against what was decided and published.
//!
//! A member is silent once three times its own reporting interval has gone by without a report; `now`
//! is an argument. Clusters and workloads come out in their names' order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::propagation::{self, Member};
use crate::model::{ClusterStatus, Decision, Key, ObjectId, Timestamp};

/// The folder a cluster should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The `Berth-Seq` at which the folder's tree last changed.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
}

/// Sums up the fleet: `clusters` with their state and problems, `workloads` with how many of their
/// clusters are in sync, and `totals`.
pub fn summarize(
    statuses: &BTreeMap<String, ClusterStatus>,
    decisions: &BTreeMap<Key, Decision>,
    published: &BTreeMap<String, Published>,
    now: Timestamp,
) -> Json {
    let names: BTreeSet<&String> = published.keys().chain(statuses.keys()).collect();
    let states: BTreeMap<&str, State> = names
        .iter()
        .map(|name| (name.as_str(), state(statuses.get(*name), published.get(*name), now)))
        .collect();
    let clusters: Vec<Json> = names
        .iter()
        .map(|name| cluster(name, states[name.as_str()], statuses.get(*name), published.get(*name)))
        .collect();
    let with_problems = statuses.iter().filter_map(|(name, status)| Some((name, status.applied.as_ref()?)));
    let members = Members {
        statuses,
        states: &states,
        in_sync: states.iter().filter(|(_, state)| **state == State::InSync).map(|(name, _)| *name).collect(),
        problems: with_problems
            .filter(|(_, applied)| !applied.problems.is_empty())
            .map(|(name, applied)| (name.as_str(), applied.problems.iter().map(|one| &one.object).collect()))
            .collect(),
    };
    let workloads: Vec<Json> = decisions
        .iter()
        .filter(|(_, decision)| !decision.objects.is_empty())
        .map(|(key, decision)| workload(key, decision, &members))
        .collect();
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for state in states.values() {
        *totals.entry(state.word()).or_default() += 1;
    }
    json!({ "clusters": clusters, "workloads": workloads, "totals": totals })
}

/// Where a cluster stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InSync,
    Behind,
    Silent,
    NeverReported,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::InSync => "in sync",
            State::Behind => "behind",
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
    let wanted = published.map_or("", |published| published.tree.as_str());
    if published.is_none() || applied.tree == wanted { State::InSync } else { State::Behind }
}

/// Whether three times the member's own interval has passed since its report.
pub fn is_silent(status: &ClusterStatus, now: Timestamp) -> bool {
    let (Some(reported), Some(due)) = (status.reported, status.next_due) else { return false };
    let interval = due.as_second().saturating_sub(reported.as_second()).max(0);
    now.as_second() > reported.as_second().saturating_add(interval.saturating_mul(3))
}

fn cluster(name: &str, state: State, status: Option<&ClusterStatus>, published: Option<&Published>) -> Json {
    let mut form = json!({ "name": name, "state": state.word(), "problems": 0 });
    if let Some(published) = published {
        form["published"] = json!(published.sequence);
    }
    if let Some(applied) = status.and_then(|status| status.applied.as_ref()) {
        form["applied"] = json!(applied.sequence);
        form["objects"] = json!(applied.objects);
        form["problems"] = json!(applied.problems.len());
    }
    if let Some(reported) = status.and_then(|status| status.reported) {
        form["reported"] = json!(reported.to_string());
    }
    form
}

/// What members report of themselves, as far as it counts for workloads.
struct Members<'s> {
    statuses: &'s BTreeMap<String, ClusterStatus>,
    states: &'s BTreeMap<&'s str, State>,
    in_sync: BTreeSet<&'s str>,
    /// The objects that the clusters with problems have them with.
    problems: BTreeMap<&'s str, Vec<&'s ObjectId>>,
}

fn workload(key: &Key, decision: &Decision, members: &Members<'_>) -> Json {
    let failing = |objects: &[&ObjectId]| objects.iter().any(|object| decision.objects.contains(object));
    let problems = members.problems.iter().filter(|(_, objects)| failing(objects));
    let with_problems: Vec<&str> =
        problems.map(|(name, _)| *name).filter(|name| decision.has(name)).collect();
    let picked = decision.picks.iter().map(|pick| pick.cluster.as_str());
    // A member may hold all of its folder, and yet not this workload: its copy could not be made.
    let unmade = |name: &str| decision.failures.iter().any(|failure| failure.cluster == name);
    let in_sync = picked.filter(|name| {
        members.in_sync.contains(name) && with_problems.binary_search(name).is_err() && !unmade(name)
    });
    let mut form = json!({
        "kind": &*key.kind,
        "namespace": &*key.namespace,
        "name": &*key.name,
        "inSync": in_sync.count(),
        "placed": decision.picks.len(),
        "withProblems": with_problems,
    });
    if propagation::is_federated(key) {
        let stands = |cluster: &str| match members.states.get(cluster) {
            Some(State::InSync) => Member::InSync,
            Some(State::Behind) => Member::Behind,
            Some(State::Silent | State::NeverReported) | None => Member::Unheard,
        };
        form["status"] = propagation::status(decision, members.statuses, stands);
    }
    form
}
