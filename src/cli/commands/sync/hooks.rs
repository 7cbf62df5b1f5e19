//! The environment of a running `berth sync`: its files, remote, metrics and log. The log contains each event once,
//! and one line for a fault that many objects share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use tracing::{error, info, warn};

use super::link::{Following, PacedLink};
use super::reporting::{FactsSource, read_own_file};
use crate::flags::telemetry::Telemetry;
use berth_base::model::status::{Problem, Suspension};
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_base::text::some_of;
use berth_git::{CommitId, GitError, Repo};
use berth_member::sync::SyncError;
use berth_member::sync::backends::NotAdmitted;
use berth_member::sync::local_overrides::{self, LocalOverrides};
use berth_member::sync::sync_loop::{Freshness, Sync, SyncHooks};
use berth_member::sync::sync_metrics::SyncMeter;

/// The process's clock, files and remote, for the loop.
pub(super) struct MemberHooks {
    pub overrides: Option<PathBuf>,
    pub facts: FactsSource,
    pub link: Option<PacedLink>,
    pub following: Following,
    pub reports: bool,
    pub meter: Option<SyncMeter>,
    pub telemetry: Option<Telemetry>,
    /// The start of the round.
    pub begun: Option<Instant>,
    pub log: RoundLog,
}

impl SyncHooks for MemberHooks {
    fn now(&mut self) -> Timestamp {
        Timestamp::now()
    }

    fn reports(&self) -> bool {
        self.reports
    }

    fn refresh(&mut self) -> Freshness {
        self.begun = Some(Instant::now());
        if let Some(meter) = &self.meter {
            meter.beat();
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.begin("fetching");
        }
        self.link.as_mut().map_or(Freshness::Newest, PacedLink::refresh)
    }

    fn choose(&mut self, repo: &Repo, newest: CommitId) -> Result<(CommitId, Option<String>), String> {
        if let Some(telemetry) = &self.telemetry {
            telemetry.begin("reading the folder");
        }
        self.following.choose(repo, newest)
    }

    fn overrides(&mut self) -> Result<LocalOverrides, String> {
        let Some(path) = &self.overrides else { return Ok(LocalOverrides::default()) };
        read_own_file(path, local_overrides::read)
    }

    fn facts(&mut self) -> Result<ClusterStatus, String> {
        self.facts.read()
    }

    fn after(&mut self, round: &Sync) {
        let took = self.begun.take().map(|begun| begun.elapsed());
        if let Some(meter) = &mut self.meter {
            meter.count(round, took, Timestamp::now());
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.synced(round, took.unwrap_or_default());
        }
        self.log.hear(round);
        // The holder of the lease reports.
        if matches!(round.result, Err(SyncError::NotAdmitted(NotAdmitted::Standby(_)))) {
            return;
        }
        if let Some(link) = &mut self.link {
            link.mend_after(round);
        }
        self.between(&round.reported);
    }

    fn between(&mut self, reported: &Result<bool, GitError>) {
        if let Err(problem) = reported {
            warn!(error = %problem, "the status could not be reported");
        }
        if let Some(link) = &mut self.link {
            link.mend(reported.is_err());
            if self.reports {
                link.push();
            }
        }
    }
}

/// The number of lines that one round logs for its problems.
const MOST: usize = 20;

/// The number of objects that a line names.
const NAMED: usize = 5;

/// The lines logged for the previous round.
#[derive(Debug, Default)]
pub(crate) struct RoundLog {
    suspended: Option<Suspension>,
    differences: BTreeSet<Problem>,
    problems: BTreeSet<Problem>,
    /// The failure of the last round.
    failure: Option<String>,
}

impl RoundLog {
    /// Logs the changes since the last round.
    pub fn hear(&mut self, round: &Sync) {
        let outcome = match &round.result {
            Ok(outcome) => outcome,
            // The lease's own thread logs this once.
            Err(SyncError::NotAdmitted(_)) => return,
            Err(problem) => {
                let why = problem.to_string();
                if self.failure.as_ref() != Some(&why) {
                    error!(error = why, "round failed");
                }
                self.failure = Some(why);
                return;
            }
        };
        if self.failure.take().is_some() {
            info!("rounds work again");
        }
        if self.suspended != outcome.applied.suspended {
            match &outcome.applied.suspended {
                Some(suspension) => info!("{suspension}"),
                None => info!("going on"),
            }
            self.suspended.clone_from(&outcome.applied.suspended);
        }
        if outcome.written + outcome.pruned > 0 {
            let (writes, prunes) = (&outcome.plan.writes, outcome.plan.removed());
            let objects = writes.iter().map(|write| &write.id).chain(prunes.map(|prune| &prune.id));
            let objects = some_of(objects, NAMED);
            info!(written = outcome.written, pruned = outcome.pruned, objects, "applied");
        }
        for note in &outcome.notes {
            info!(object = %note.object, "{}", note.message);
        }
        let differences: BTreeSet<Problem> = outcome.applied.differences.iter().cloned().collect();
        for difference in differences.difference(&self.differences) {
            info!(object = %difference.object, "{}", difference.message);
        }
        self.differences = differences;
        let problems: BTreeSet<Problem> = outcome.applied.problems.iter().cloned().collect();
        let lines = grouped(problems.difference(&self.problems));
        for (message, objects) in lines.iter().take(MOST) {
            match objects.as_slice() {
                [object] => warn!(%object, "{message}"),
                [first, ..] => warn!(objects = objects.len(), %first, "{message}"),
                [] => {}
            }
        }
        if lines.len() > MOST {
            let objects: usize = lines.iter().skip(MOST).map(|(_, objects)| objects.len()).sum();
            warn!(objects, "more problems are in the report");
        }
        self.problems = problems;
    }
}

/// Groups problems by message, in the order of their first objects.
fn grouped<'a>(problems: impl Iterator<Item = &'a Problem>) -> Vec<(&'a str, Vec<&'a ObjectId>)> {
    let mut lines: Vec<(&str, Vec<&ObjectId>)> = Vec::new();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for problem in problems {
        let message = problem.message.as_str();
        let at = *place.entry(message).or_insert_with(|| {
            lines.push((message, Vec::new()));
            lines.len() - 1
        });
        lines[at].1.push(&problem.object);
    }
    lines
}
