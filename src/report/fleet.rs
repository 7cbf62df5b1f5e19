//! The fleet at a glance: what members reported against what was decided and published.
//!
//! A member is silent once three times its own reporting interval has gone by without a report; `now`
//! is an argument. Clusters and workloads come out in their names' order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::propagation;
use crate::model::decision::rows_among;
use crate::model::status::Problem;
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
    let members: Vec<Member<'_>> = names
        .into_iter()
        .map(|name| {
            let (status, published) = (statuses.get(name), published.get(name));
            Member { name, status, published, state: state(status, published, now) }
        })
        .collect();
    let clusters: Vec<Json> = members.iter().map(cluster).collect();
    let with_objects = decisions.iter().filter(|(_, decision)| !decision.objects.is_empty());
    let workloads: Vec<Json> =
        with_objects.map(|(key, decision)| workload(key, decision, &members)).collect();
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for member in &members {
        *totals.entry(member.state.word()).or_default() += 1;
    }
    json!({ "clusters": clusters, "workloads": workloads, "totals": totals })
}

/// One cluster: what it should have, and what it says of itself.
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
}

/// A decision's clusters, each with its member where it has one; both go by name.
pub(super) fn placed<'m, 's>(
    decision: &'m Decision,
    members: &'m [Member<'s>],
) -> impl Iterator<Item = (&'m str, Option<&'m Member<'s>>)> {
    let rows = rows_among(&decision.picks, members.len(), |row| members[row].name);
    decision.picks.iter().zip(rows).map(|(pick, row)| (pick.cluster.as_str(), row.map(|row| &members[row])))
}

/// Where a cluster stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
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

fn cluster(member: &Member<'_>) -> Json {
    let mut form = json!({ "name": member.name, "state": member.state.word(), "problems": 0 });
    if let Some(published) = member.published {
        form["published"] = json!(published.sequence);
    }
    if let Some(applied) = member.status.and_then(|status| status.applied.as_ref()) {
        form["applied"] = json!(applied.sequence);
        form["objects"] = json!(applied.objects);
        form["problems"] = json!(applied.problems.len());
    }
    if let Some(reported) = member.status.and_then(|status| status.reported) {
        form["reported"] = json!(reported.to_string());
    }
    form
}

fn workload(key: &Key, decision: &Decision, members: &[Member<'_>]) -> Json {
    // A member may hold all of its folder, and yet not this workload: its copy could not be made.
    let unmade: BTreeSet<&str> = decision.failures.iter().map(|failure| failure.cluster.as_str()).collect();
    let (mut in_sync, mut with_problems) = (0, Vec::new());
    for (name, member) in placed(decision, members) {
        let Some(member) = member else { continue };
        if member.problems().iter().any(|problem| decision.objects.contains(&problem.object)) {
            with_problems.push(name);
        } else if member.state == State::InSync && !unmade.contains(name) {
            in_sync += 1;
        }
    }
    let mut form = json!({
        "kind": &*key.kind,
        "namespace": &*key.namespace,
        "name": &*key.name,
        "inSync": in_sync,
        "placed": decision.picks.len(),
        "withProblems": with_problems,
    });
    if propagation::is_federated(key) {
        form["status"] = propagation::status(decision, members);
    }
    form
}
