//! Builds the member's status from a sync's outcome, and writes it to its ref.
//!
//! The ref holds one commit without a parent, replaced by compare-and-swap. It is only written if something changed
//! or the heartbeat is due, because thousands of members share one repository. `now` is an argument.
//!
//! The events of a sync, for people who look into the cluster.
//!
//! Messages are those of the report, which contain nothing of a Secret. The backend decides how to publish events,
//! and how often.

use sha2::{Digest, Sha256};

use super::plan::WriteAction;
use super::{SyncError, SyncOutcome};
use berth_base::model::status::{Applied, Failing, MOST_PROBLEMS, Problem};
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_git::shared_refs::{Refs, STATUS_FILE, read_status};
use berth_git::{Entry, EntryKind, GitError, Identity, Repo, Writer};

/// Returns the status of a member that applied a folder.
pub fn of(cluster: &str, applied: Applied, now: Timestamp, heartbeat_seconds: i64) -> ClusterStatus {
    let applied = bounded(applied);
    ClusterStatus {
        cluster: cluster.to_owned(),
        reported: Some(whole_seconds(now)),
        next_due: Some(next_due(cluster, now, heartbeat_seconds)),
        applied: Some(applied),
        ..ClusterStatus::default()
    }
}

/// The number of notes and of unfinished removals in a status, and the length of a message.
const MOST_NOTES: usize = 25;
const MOST_REMOVING: usize = 100;
const LONGEST_MESSAGE: usize = 1_000;

/// Limits a status to a size for a repository that thousands of members share, and counts the omitted parts.
fn bounded(mut applied: Applied) -> Applied {
    for (list, most) in [(&mut applied.problems, MOST_PROBLEMS), (&mut applied.notes, MOST_NOTES)] {
        applied.left_out = applied.left_out.saturating_add(list.len().saturating_sub(most));
        list.truncate(most);
        for problem in list {
            cut(&mut problem.message);
        }
    }
    let unnamed = applied.removing.len().saturating_sub(MOST_REMOVING);
    applied.more_removing = applied.more_removing.saturating_add(unnamed);
    applied.removing.truncate(MOST_REMOVING);
    if let Some(failing) = &mut applied.failing {
        cut(&mut failing.message);
    }
    applied
}

fn cut(message: &mut String) {
    if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
}

/// The number of waiting objects named. With more of them, reporting each step would be too much.
const MOST_WAITING: usize = 20;

/// Adds the objects that may still reach their wanted form.
pub(crate) fn with_waiting(applied: Applied, waiting: &[Problem]) -> Applied {
    let mut ids: Vec<ObjectId> = waiting.iter().map(|problem| problem.object.clone()).collect();
    ids.dedup();
    if ids.len() > MOST_WAITING {
        ids.clear();
    }
    Applied { progressing: !waiting.is_empty(), waiting: ids, ..applied }
}

/// Adds a failure to the status of the last sync, with the time since which syncs fail.
pub(crate) fn with_failure(earlier: Option<Applied>, message: &str, now: Timestamp) -> Applied {
    let mut applied = earlier.unwrap_or_default();
    let since = applied.failing.take().map_or_else(|| whole_seconds(now), |failing| failing.since);
    applied.failing = Some(Failing { since, message: message.to_owned() });
    applied
}

/// Adds notes to those of an earlier status for the same folder.
pub(crate) fn with_notes(earlier: Option<&Applied>, mut applied: Applied, notes: Vec<Problem>) -> Applied {
    let same = earlier.filter(|earlier| earlier.tree == applied.tree);
    applied.notes = same.map(|earlier| earlier.notes.clone()).unwrap_or_default();
    applied.notes.extend(notes);
    applied.notes.sort();
    applied.notes.dedup();
    applied
}

/// Adds a fault of the cluster as a whole.
pub(crate) fn with_fault(applied: Option<Applied>, cluster: &str, message: &str) -> Applied {
    let mut applied = applied.unwrap_or_default();
    let object = ObjectId::new("berth.dev", "Cluster", "", cluster);
    applied.problems.retain(|problem| problem.object != object);
    applied.problems.push(Problem::failed(object, message));
    applied.problems.sort();
    applied
}

/// Returns the moment of the next report: within the heartbeat, and spread over the members.
pub fn next_due(cluster: &str, now: Timestamp, heartbeat_seconds: i64) -> Timestamp {
    let share = i64::from(Sha256::digest(cluster.as_bytes()).first().copied().unwrap_or_default());
    let early = heartbeat_seconds.saturating_mul(share) / (256 * 5);
    let due = now.as_second().saturating_add(heartbeat_seconds.saturating_sub(early).max(1));
    Timestamp::from_second(due).unwrap_or(Timestamp::MAX)
}

fn whole_seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

/// The seconds by which a status may be ahead of the clock.
const MOST_AHEAD: i64 = 60;

/// Writes a status if it changed or the heartbeat is due. Returns true if it was written.
pub fn write(repo: &Repo, refs: &Refs, status: &ClusterStatus, now: Timestamp) -> Result<bool, GitError> {
    let name = refs.status_of(&status.cluster);
    let old = repo.read_ref(&name)?;
    let earlier = read_status(repo, refs, &status.cluster)?;
    if earlier.as_ref().is_some_and(|earlier| !is_due(earlier, now) && earlier.says_the_same(status)) {
        return Ok(false);
    }
    let last = earlier.and_then(|earlier| earlier.reported);
    let status = &ClusterStatus { reported: status.reported.map(|at| after(last, at)), ..status.clone() };
    let mut writer = Writer::new(repo)?;
    let blob = writer.blob(berth_base::status::write_status(status).as_bytes())?;
    let tree = writer.tree(vec![Entry { name: STATUS_FILE.into(), kind: EntryKind::File(blob) }])?;
    let commit = writer.commit(tree, &[], "berth: status\n", &Identity::default(), now.as_second())?;
    if old != Some(commit) {
        repo.move_ref(&name, old, commit)?;
    }
    Ok(true)
}

/// Returns the time of a status after another one. It is later even within one second, so that every receiver knows
/// the newer one. A last status far ahead of the clock is ignored.
fn after(last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let Some(last) = last else { return now };
    let ahead = last.as_second().saturating_sub(now.as_second());
    if !(0..MOST_AHEAD).contains(&ahead) {
        return now;
    }
    Timestamp::from_second(last.as_second().saturating_add(1)).unwrap_or(now)
}

fn is_due(earlier: &ClusterStatus, now: Timestamp) -> bool {
    earlier.next_due.is_none_or(|due| now >= due)
}

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
pub(crate) fn events_of(result: &Result<SyncOutcome, SyncError>) -> Vec<SyncEvent> {
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
pub(crate) fn notes(outcome: &SyncOutcome) -> Vec<Problem> {
    let mut notes = outcome.notes.clone();
    let failed = |id: &ObjectId| outcome.applied.problems.iter().any(|problem| problem.object == *id);
    let noted = |id: &ObjectId| outcome.notes.iter().any(|note| note.object == *id);
    let taken = outcome.plan.writes.iter().filter(|write| write.action == WriteAction::TakeOver);
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
