//! The progress of workloads' rollouts, from the record of their releases and the step that a pass would make now.
//!
//! `berth rollout` prints these lines, and the page of the fleet shows them.

use std::collections::BTreeSet;

use crate::dialects::RolloutView;
use crate::pipeline::Built;
use crate::release::Trace;
use crate::release::copies::{self, ObjectPaths};
use crate::release::policy::Orders;
use crate::release::workload_rollout::RolloutState;
use crate::state::State;
use berth_base::model::release::{CopyReport, Releases};
use berth_base::model::rollout::Strategy;
use berth_base::model::staged::StageProgress;
use berth_base::model::{Decision, Fleet, Key, Pick, Timestamp};

/// The rollout of one workload.
#[derive(Clone, Debug)]
pub struct RolloutProgress {
    pub key: Key,
    /// `None` if the source is not known.
    pub strategy: Option<&'static str>,
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
    pub clusters: Vec<RolloutClusterProgress>,
}

/// One cluster of a workload's rollout.
#[derive(Clone, Debug)]
pub struct RolloutClusterProgress {
    pub cluster: String,
    /// `None` for a cluster that has no copy yet.
    pub release: Option<u64>,
    pub report: Option<CopyReport>,
    /// The moment at which the cluster was assigned the release, while its success is not reported.
    pub assigned_at: Option<Timestamp>,
    /// The placement no longer picks the cluster.
    pub leaving: bool,
    pub waits: Option<String>,
}

/// The inputs of rollouts: the published state, and the step that a pass would make now. The step is `None` if the source
/// is not known: then rollouts come from the record alone, without strategies, orders, stages' standing and reasons to wait.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'s> {
    pub current: &'s State,
    pub built: Option<&'s Built>,
    pub now: Timestamp,
}

impl RolloutProgress {
    /// Returns the rollouts of all workloads that go in steps, by key.
    pub fn all(sources: Sources<'_>) -> Vec<RolloutProgress> {
        let State { releases, decisions, .. } = sources.current;
        let keys: BTreeSet<&Key> = releases.keys().chain(decisions.keys()).collect();
        keys.into_iter().filter_map(|key| RolloutProgress::of(key, sources)).collect()
    }

    /// Returns the rollout of a workload, if it goes in steps.
    pub fn of(key: &Key, sources: Sources<'_>) -> Option<RolloutProgress> {
        let Sources { current, built, now } = sources;
        let releases = current.releases.get(key).map(|releases| &**releases);
        let decision = current.decisions.get(key);
        let is_pending = |decision: &Decision| decision.picks.iter().any(|pick| pick.pending);
        if releases.is_none() && !decision.is_some_and(is_pending) {
            return None;
        }
        let trace = built.and_then(|built| built.rollouts.get(key));
        let unknown = Fleet::default();
        let orders = Orders::of(built.map_or(&unknown, |built| &built.fleet), key);
        let standing = trace.and_then(|trace| trace.standing.as_ref());
        let (state, reason) = match releases {
            Some(releases) => RolloutState::of(releases, || orders.clone(), standing, now),
            None => (RolloutState::Waiting, "for a staged run".to_owned()),
        };
        let reason = match (built, state) {
            (None, RolloutState::Rolling) => "without the source, pauses and stages are unknown".to_owned(),
            _ => reason,
        };
        let stages = |releases: &Releases| releases.run.as_ref().map(|run| run.stages.clone());
        Some(RolloutProgress {
            key: key.clone(),
            strategy: built.map(|_| strategy(&orders.strategy())),
            release: releases.map(|releases| releases.current.number),
            begun: releases.map(|releases| releases.current.begun),
            good: releases.and_then(|releases| releases.good),
            state,
            reason,
            next: trace.and_then(|trace| trace.next).filter(|next| *next > now),
            notes: trace.map(|trace| trace.notes.clone()).unwrap_or_default(),
            stages: releases.and_then(stages).unwrap_or_default(),
            clusters: clusters(decision, releases, trace, sources),
        })
    }

    /// Returns the number of clusters with the current release, and of all picked ones.
    pub fn reached(&self) -> (usize, usize) {
        let picked = self.clusters.iter().filter(|cluster| !cluster.leaving);
        let reached =
            picked.clone().filter(|cluster| cluster.release.is_some() && cluster.release == self.release);
        (reached.count(), picked.count())
    }
}

/// Returns a line for each picked cluster.
fn clusters(
    decision: Option<&Decision>,
    releases: Option<&Releases>,
    trace: Option<&Trace>,
    sources: Sources<'_>,
) -> Vec<RolloutClusterProgress> {
    let Sources { current, built, .. } = sources;
    // The newest verdict is that of the step, which has read the members' statuses.
    let facts = built.map(|built| &built.state.facts).into_iter().chain([&current.facts]);
    let view = |releases| facts.map(|facts| RolloutView { releases, facts }).collect::<Vec<_>>();
    let views = releases.map(view).unwrap_or_default();
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
        let assigned_at = has.and_then(|has| has.assigned.get(name)).map(|assigned_at| assigned_at.at);
        let report = views.iter().find_map(|view| view.report(name));
        // The pass that reads a status may assign the cluster other copies in the same second.
        let report = report.filter(|report| report.since != assigned_at || is_on_copies(name, report));
        RolloutClusterProgress {
            cluster: name.to_owned(),
            release: has.map(|has| has.of_cluster(name).unwrap_or(has.current.number)),
            report: report.filter(|_| !pick.pending).cloned(),
            assigned_at,
            leaving: pick.leaving,
            waits: trace.and_then(|trace| trace.waits.get(name)).map(ToString::to_string),
        }
    };
    decision.into_iter().flat_map(|decision| decision.picks.iter()).map(cluster).collect()
}

impl RolloutClusterProgress {
    /// Returns the health of the cluster's copies in a word.
    pub fn health(&self) -> &'static str {
        match (&self.report, self.release) {
            (Some(report), _) => report.health.word(),
            (None, Some(_)) => "applying",
            (None, None) => "-",
        }
    }

    /// Returns the moment since which the health is unchanged.
    pub fn since(&self) -> Option<Timestamp> {
        self.report.as_ref().map_or(self.assigned_at, |report| report.since)
    }

    /// Returns the reason why the cluster waits, or its member's message.
    pub fn words(&self) -> String {
        let message = self.report.as_ref().map(|report| report.message.as_str());
        let message = message.filter(|message| !message.is_empty());
        let leaving = self.leaving.then_some("no longer picked");
        let all = [message, self.waits.as_deref(), leaving];
        all.into_iter().flatten().collect::<Vec<_>>().join("; ")
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
