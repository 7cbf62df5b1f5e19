//! The events of a sync, for people who look into the cluster.
//!
//! Messages are those of the report, which contain nothing of a Secret. The backend decides how to publish events,
//! and how often.

use super::plan::Action;
use super::{SyncError, SyncOutcome};
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;

/// An event for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncEvent {
    /// The object; `None` for the whole folder.
    pub about: Option<ObjectId>,
    pub is_warning: bool,
    /// A word that identifies repetitions.
    pub reason: &'static str,
    pub message: String,
}

/// Returns the events of a sync, the folder's first.
pub fn of(result: &Result<SyncOutcome, SyncError>) -> Vec<SyncEvent> {
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(SyncError::NotAdmitted(_)) => return Vec::new(),
        Err(error) => return vec![whole(true, "RoundFailed", error.to_string())],
    };
    let sequence = outcome.applied.sequence;
    let mut said = Vec::new();
    if let Some(suspension) = &outcome.applied.suspended {
        said.push(whole(false, "Suspended", suspension.to_string()));
    }
    if outcome.written + outcome.pruned > 0 {
        let (written, pruned) = (outcome.written, outcome.pruned);
        let message = format!("sequence {sequence}: {written} written, {pruned} removed");
        said.push(whole(false, "Applied", message));
    }
    let one = |is_warning: bool, reason: &'static str| {
        move |problem: &Problem| SyncEvent {
            about: Some(problem.object.clone()),
            is_warning,
            reason,
            message: format!("sequence {sequence}: {}", problem.message),
        }
    };
    said.extend(outcome.applied.problems.iter().map(one(true, "NotAsWanted")));
    said.extend(notes(outcome).iter().map(one(false, "TakenOver")));
    said
}

/// Returns the notes for people, which the report also shows.
pub fn notes(outcome: &SyncOutcome) -> Vec<Problem> {
    let mut notes = outcome.notes.clone();
    let failed = |id: &ObjectId| outcome.applied.problems.iter().any(|problem| problem.object == *id);
    let noted = |id: &ObjectId| outcome.notes.iter().any(|note| note.object == *id);
    let taken = outcome.plan.writes.iter().filter(|write| write.action == Action::TakeOver);
    notes.extend(
        taken.filter(|write| !failed(&write.id) && !noted(&write.id)).map(|write| {
            Problem::failed(write.id.clone(), "it was not made by berth, and berth owns it now")
        }),
    );
    notes.sort();
    notes
}

fn whole(is_warning: bool, reason: &'static str, message: String) -> SyncEvent {
    SyncEvent { about: None, is_warning, reason, message }
}
