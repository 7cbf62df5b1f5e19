//! The progress of a workload's rollout, from the record of its releases and the step that a pass would make now.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::output::results::NameForm;
use berth_base::model::release::{CopyReport, Releases};
use berth_base::model::rollout::Strategy;
use berth_base::model::staged::{StageCluster, StageProgress};
use berth_base::model::{Decision, Key, Pick, Timestamp};
use berth_engine::dialects::RolloutView;
use berth_engine::pipeline::Built;
use berth_engine::release::copies::{self, ObjectPaths};
use berth_engine::release::policy::Orders;
use berth_engine::release::workload_rollout::RolloutState;
use berth_engine::state::State;

/// One workload's rollout.
#[derive(Debug)]
pub(super) struct WorkloadLine {
    pub key: Key,
    pub strategy: &'static str,
    /// `None` before a staged run begins the first one.
    pub release: Option<u64>,
    pub begun: Option<Timestamp>,
    pub good: Option<u64>,
    pub state: RolloutState,
    /// Empty if nothing needs an explanation.
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
    /// The moment at which the cluster was assigned the release, while its success is not reported.
    pub assigned: Option<Timestamp>,
    /// The placement no longer picks the cluster.
    pub leaving: bool,
    pub waits: Option<String>,
}

impl WorkloadLine {
    /// Returns the rollout of a workload, if it goes in steps.
    pub fn of(key: &Key, current: &State, built: &Built, now: Timestamp) -> Option<WorkloadLine> {
        let releases = current.releases.get(key).map(|releases| &**releases);
        let decision = current.decisions.get(key);
        let is_pending = |decision: &Decision| decision.picks.iter().any(|pick| pick.pending);
        if releases.is_none() && !decision.is_some_and(is_pending) {
            return None;
        }
        let trace = built.rollouts.get(key);
        let orders = Orders::of(&built.fleet, key);
        // The newest verdict is that of the step, which has read the members' statuses.
        let views = releases.map(|releases| {
            [&built.state.facts, &current.facts].map(|facts| RolloutView { releases, facts })
        });
        let paths = decision.map(|decision| ObjectPaths::of(&decision.objects));
        let is_on_copies = |name: &str, report: &CopyReport| {
            let folder = current.folders.get(name);
            let copies = paths.as_ref().map(|paths| paths.copies(|path| folder?.get(path).copied()));
            let copies = copies.iter().flatten().map(|copy| (copy.path, copy.content));
            report.digest == copies::digest(copies)
        };
        let cluster = |pick: &Pick| {
            let name = &*pick.cluster;
            let has = releases.filter(|_| !pick.pending);
            let assigned = has.and_then(|has| has.assigned.get(name)).map(|one| one.at);
            let report = views.iter().flatten().find_map(|view| view.report(name));
            // The pass that reads a status may assign the cluster other copies in the same second.
            let report = report.filter(|report| report.since != assigned || is_on_copies(name, report));
            ClusterLine {
                cluster: name.to_owned(),
                release: has.map(|has| has.of_cluster(name).unwrap_or(has.current.number)),
                report: report.filter(|_| !pick.pending).cloned(),
                assigned,
                leaving: pick.leaving,
                waits: trace.and_then(|trace| trace.waits.get(name)).map(ToString::to_string),
            }
        };
        let picks = decision.into_iter().flat_map(|decision| decision.picks.iter());
        let standing = trace.and_then(|trace| trace.standing.as_ref());
        let (state, reason) = match releases {
            Some(releases) => RolloutState::of(releases, || orders.clone(), standing, now),
            None => (RolloutState::Waiting, "for a staged run".to_owned()),
        };
        let stages = |releases: &Releases| releases.run.as_ref().map(|run| run.stages.clone());
        Some(WorkloadLine {
            key: key.clone(),
            strategy: strategy(&orders.strategy()),
            release: releases.map(|releases| releases.current.number),
            begun: releases.map(|releases| releases.current.begun),
            good: releases.and_then(|releases| releases.good),
            state,
            reason,
            next: trace.and_then(|trace| trace.next).filter(|next| *next > now),
            notes: trace.map(|trace| trace.notes.clone()).unwrap_or_default(),
            stages: releases.and_then(stages).unwrap_or_default(),
            clusters: picks.map(cluster).collect(),
        })
    }

    /// Returns the number of clusters with the current release, and of all picked ones.
    fn reached(&self) -> (usize, usize) {
        let picked = self.clusters.iter().filter(|cluster| !cluster.leaving);
        let reached =
            picked.clone().filter(|cluster| cluster.release.is_some() && cluster.release == self.release);
        (reached.count(), picked.count())
    }

    pub fn row(&self) -> Vec<String> {
        let (reached, all) = self.reached();
        vec![
            self.key.to_string(),
            self.strategy.to_owned(),
            or_dash(self.release.map(|release| release.to_string())),
            format!("{reached} of {all}"),
            self.state.word().to_owned(),
            self.reason.clone(),
        ]
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

    /// Returns the moment since which the health is unchanged.
    fn since(&self) -> Option<Timestamp> {
        self.report.as_ref().map_or(self.assigned, |report| report.since)
    }

    /// Returns the reason why the cluster waits, or its member's message.
    fn words(&self) -> String {
        let said = self.report.as_ref().map(|report| report.message.as_str()).filter(|said| !said.is_empty());
        let leaving = self.leaving.then_some("no longer picked");
        let all = [said, self.waits.as_deref(), leaving];
        all.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    pub fn row(&self) -> Vec<String> {
        vec![
            self.cluster.clone(),
            or_dash(self.release.map(|release| release.to_string())),
            self.health().to_owned(),
            or_dash(self.since().map(|since| since.to_string())),
            self.words(),
        ]
    }
}

/// A workload's rollout, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkloadRolloutForm<'a> {
    group: &'a str,
    #[serde(flatten)]
    name: NameForm,
    strategy: &'static str,
    release: Option<u64>,
    begun: Option<Timestamp>,
    last_good: Option<u64>,
    state: &'static str,
    reason: &'a str,
    reached: usize,
    picked: usize,
    next: Option<Timestamp>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<DetailsForm<'a>>,
}

/// The parts of a rollout, for programs.
#[derive(Debug, Serialize)]
struct DetailsForm<'a> {
    notes: &'a BTreeSet<String>,
    stages: Vec<StageForm<'a>>,
    clusters: Vec<ClusterForm<'a>>,
}

#[derive(Debug, Serialize)]
struct StageForm<'a> {
    name: &'a str,
    started: Option<Timestamp>,
    updated: Option<Timestamp>,
    finished: Option<Timestamp>,
    clusters: Vec<StageClusterForm<'a>>,
}

#[derive(Debug, Serialize)]
struct StageClusterForm<'a> {
    cluster: &'a str,
    started: Option<Timestamp>,
    succeeded: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct ClusterForm<'a> {
    cluster: &'a str,
    release: Option<u64>,
    health: &'static str,
    since: Option<Timestamp>,
    message: &'a str,
    leaving: bool,
    waits: Option<&'a str>,
}

impl<'a> WorkloadRolloutForm<'a> {
    pub fn of(line: &'a WorkloadLine) -> WorkloadRolloutForm<'a> {
        let (reached, picked) = line.reached();
        WorkloadRolloutForm {
            group: &line.key.group,
            name: NameForm::of(&line.key),
            strategy: line.strategy,
            release: line.release,
            begun: line.begun,
            last_good: line.good,
            state: line.state.word(),
            reason: &line.reason,
            reached,
            picked,
            next: line.next,
            details: None,
        }
    }

    /// Returns the form with the rollout's stages and clusters.
    pub fn with_details(line: &'a WorkloadLine) -> WorkloadRolloutForm<'a> {
        let stage = |stage: &'a StageProgress| StageForm {
            name: &stage.name,
            started: stage.started,
            updated: stage.updated,
            finished: stage.finished,
            clusters: stage.clusters.iter().map(StageClusterForm::of).collect(),
        };
        let details = DetailsForm {
            notes: &line.notes,
            stages: line.stages.iter().map(stage).collect(),
            clusters: line.clusters.iter().map(ClusterForm::of).collect(),
        };
        WorkloadRolloutForm { details: Some(details), ..WorkloadRolloutForm::of(line) }
    }
}

impl<'a> StageClusterForm<'a> {
    fn of(cluster: &'a StageCluster) -> StageClusterForm<'a> {
        let StageCluster { name, started, succeeded, .. } = cluster;
        StageClusterForm { cluster: name, started: *started, succeeded: *succeeded }
    }
}

impl<'a> ClusterForm<'a> {
    fn of(line: &'a ClusterLine) -> ClusterForm<'a> {
        ClusterForm {
            cluster: &line.cluster,
            release: line.release,
            health: line.health(),
            since: line.since(),
            message: line.report.as_ref().map(|report| report.message.as_str()).unwrap_or_default(),
            leaving: line.leaving,
            waits: line.waits.as_deref(),
        }
    }
}

pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
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
