//! The fleet at a glance: what members reported against what was decided and published.
//!
//! A member is silent once three times its own reporting interval has gone by without a report; `now`
//! is an argument. Clusters and workloads come out in their names' order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::propagation::{self, Member};
use crate::model::{ClusterStatus, Decision, Key, Timestamp};

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
    let workloads: Vec<Json> = decisions
        .iter()
        .filter(|(_, decision)| !decision.objects.is_empty())
        .map(|(key, decision)| workload(key, decision, &states, statuses))
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

fn workload(
    key: &Key,
    decision: &Decision,
    states: &BTreeMap<&str, State>,
    statuses: &BTreeMap<String, ClusterStatus>,
) -> Json {
    let failing = |cluster: &str| {
        let applied = statuses.get(cluster).and_then(|status| status.applied.as_ref());
        applied.is_some_and(|applied| {
            applied.problems.iter().any(|problem| decision.objects.contains(&problem.object))
        })
    };
    let in_sync = decision
        .picks
        .iter()
        .filter(|pick| states.get(pick.cluster.as_str()) == Some(&State::InSync) && !failing(&pick.cluster));
    let with_problems: Vec<&str> =
        decision.picks.iter().map(|pick| pick.cluster.as_str()).filter(|name| failing(name)).collect();
    let mut form = json!({
        "kind": &*key.kind,
        "namespace": &*key.namespace,
        "name": &*key.name,
        "inSync": in_sync.count(),
        "placed": decision.picks.len(),
        "withProblems": with_problems,
    });
    if propagation::is_federated(key) {
        form["status"] = propagation::status(decision, statuses, |cluster| match states.get(cluster) {
            Some(State::InSync) => Member::InSync,
            Some(State::Behind) => Member::Behind,
            Some(State::Silent | State::NeverReported) | None => Member::Unheard,
        });
    }
    form
}
