//! The record of a workload's releases, and the step that a pass would make now → how far its rollout is.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::CopyReport;
use berth_base::model::rollout::Strategy;
use berth_base::model::staged::StageProgress;
use berth_base::model::{Key, Pick, Timestamp};
use berth_engine::pipeline::Built;
use berth_engine::release::policy::Orders;
use berth_engine::release::rollout_state::RolloutState;
use berth_engine::state::State;

/// One workload's rollout.
#[derive(Debug)]
pub(super) struct WorkloadLine {
    pub key: Key,
    pub strategy: &'static str,
    pub release: u64,
    pub begun: Timestamp,
    pub good: Option<u64>,
    pub state: RolloutState,
    /// Empty where there is nothing to explain.
    pub reason: String,
    pub next: Option<Timestamp>,
    pub notes: BTreeSet<String>,
    pub stages: Vec<StageProgress>,
    pub clusters: Vec<ClusterLine>,
}

/// One cluster of a workload.
#[derive(Debug)]
pub(super) struct ClusterLine {
    pub cluster: String,
    /// `None` for a cluster that has no copy yet.
    pub release: Option<u64>,
    pub report: Option<CopyReport>,
    /// Not picked any more.
    pub leaving: bool,
    pub waits: Option<String>,
}

impl WorkloadLine {
    pub fn of(key: &Key, current: &State, built: &Built, now: Timestamp) -> Option<WorkloadLine> {
        let releases = current.releases.get(key)?;
        let trace = built.rollouts.get(key);
        let orders = Orders::of(&built.fleet, key);
        let name = WorkloadName::of(key);
        let cluster = |pick: &Pick| {
            let has = releases.of_cluster(&pick.cluster).unwrap_or(releases.current.number);
            // The newest verdict is that of the step, which has read the members' reports.
            let facts = [&built.state.facts, &current.facts];
            let report = facts.iter().find_map(|facts| facts.get(&*pick.cluster)?.copies.get(&name));
            ClusterLine {
                cluster: pick.cluster.to_string(),
                release: (!pick.pending).then_some(has),
                report: report.filter(|_| !pick.pending).cloned(),
                leaving: pick.leaving,
                waits: trace.and_then(|trace| trace.waits.get(&*pick.cluster)).map(ToString::to_string),
            }
        };
        let picks = current.decisions.get(key).into_iter().flat_map(|decision| decision.picks.iter());
        let clusters: Vec<ClusterLine> = picks.map(cluster).collect();
        let standing = trace.and_then(|trace| trace.standing.as_ref());
        let (state, reason) = RolloutState::of(releases, || orders.clone(), standing, now);
        Some(WorkloadLine {
            key: key.clone(),
            strategy: strategy(&orders.strategy()),
            release: releases.current.number,
            begun: releases.current.begun,
            good: releases.good,
            state,
            reason,
            next: trace.and_then(|trace| trace.next).filter(|next| *next > now),
            notes: trace.map(|trace| trace.notes.clone()).unwrap_or_default(),
            stages: releases.run.as_ref().map(|run| run.stages.clone()).unwrap_or_default(),
            clusters,
        })
    }

    /// The number of clusters that have the current release, and of all that are picked.
    fn reached(&self) -> (usize, usize) {
        let picked = self.clusters.iter().filter(|cluster| !cluster.leaving);
        let reached = picked.clone().filter(|cluster| cluster.release == Some(self.release));
        (reached.count(), picked.count())
    }

    pub fn row(&self) -> Vec<String> {
        let (reached, all) = self.reached();
        vec![
            self.key.to_string(),
            self.strategy.to_owned(),
            self.release.to_string(),
            format!("{reached} of {all}"),
            self.state.word().to_owned(),
            self.reason.clone(),
        ]
    }

    pub fn json(&self) -> Json {
        let (reached, all) = self.reached();
        let Key { group, kind, namespace, name } = &self.key;
        json!({
            "group": group, "kind": kind, "namespace": namespace, "name": name,
            "strategy": self.strategy, "release": self.release, "begun": self.begun.to_string(),
            "lastGood": self.good, "state": self.state.word(), "reason": self.reason,
            "reached": reached, "picked": all, "next": self.next.map(|next| next.to_string()),
        })
    }

    pub fn json_in_full(&self) -> Json {
        let moment = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let stage = |stage: &StageProgress| {
            let clusters = stage.clusters.iter().map(|cluster| {
                json!({
                    "cluster": cluster.name, "started": moment(cluster.started),
                    "succeeded": moment(cluster.succeeded),
                })
            });
            json!({
                "name": stage.name, "started": moment(stage.started), "updated": moment(stage.updated),
                "finished": moment(stage.finished), "clusters": clusters.collect::<Vec<_>>(),
            })
        };
        let mut all = self.json();
        all["notes"] = json!(self.notes);
        all["stages"] = self.stages.iter().map(stage).collect();
        all["clusters"] = self.clusters.iter().map(ClusterLine::json).collect();
        all
    }
}

impl ClusterLine {
    fn health(&self) -> &'static str {
        match (&self.report, self.release) {
            (Some(report), _) => report.health.word(),
            (None, Some(_)) => "applying",
            (None, None) => "-",
        }
    }

    /// The reason why the cluster waits, or its member's own words.
    fn words(&self) -> String {
        let said = self.report.as_ref().map(|report| report.message.as_str()).filter(|said| !said.is_empty());
        let leaving = self.leaving.then_some("not picked any more");
        let all = [said, self.waits.as_deref(), leaving];
        all.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    pub fn row(&self) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            self.cluster.clone(),
            or_dash(self.release.map(|release| release.to_string())),
            self.health().to_owned(),
            or_dash(self.report.as_ref().and_then(|report| report.since).map(|since| since.to_string())),
            self.words(),
        ]
    }

    fn json(&self) -> Json {
        let report = self.report.as_ref();
        json!({
            "cluster": self.cluster, "release": self.release, "health": self.health(),
            "since": report.and_then(|report| report.since).map(|since| since.to_string()),
            "message": report.map(|report| report.message.as_str()).unwrap_or_default(),
            "leaving": self.leaving, "waits": self.waits,
        })
    }
}

fn strategy(strategy: &Strategy) -> &'static str {
    match strategy {
        Strategy::AtOnce => "at once",
        Strategy::Progressive(_) => "progressive",
        Strategy::Rolling(_) => "rolling",
        Strategy::Stages(_) => "stages",
        Strategy::Runs => "staged runs",
    }
}
