//! The log of a running `berth sync`: each event once, and one line for a fault that many objects share.

use std::collections::{BTreeMap, BTreeSet};

use tracing::{error, info, warn};

use berth_base::model::ObjectId;
use berth_base::model::status::{Problem, Suspension};
use berth_base::text::some_of;
use berth_member::sync::SyncError;
use berth_member::sync::sync_loop::Sync;

/// The most lines that one round prints for its problems.
const MOST: usize = 20;

/// The most objects that the line of a round names.
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
    /// Logs what is new of a round.
    pub fn hear(&mut self, round: &Sync) {
        let outcome = match &round.result {
            Ok(outcome) => outcome,
            // The lease's own thread says so, once.
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

/// Problems by what is said of them, in the order of their first objects.
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
