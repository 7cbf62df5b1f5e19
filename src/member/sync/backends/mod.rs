//! Where a cluster's objects go: one trait, and a folder as its first kind.
//!
//! A target answers for ownership. What it is about to own or to let go it records durably before it
//! touches anything ([`Backend::begin`]), so that a crash at any moment loses no ownership; the last word
//! of each round is recorded after it ([`Backend::finish`]).

pub mod folder;
pub mod kube;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::Value as Json;

use super::desired::Desired;
use super::health::Health;
use super::override_objects::BackendOverrides;
use super::plan::{Live, Prune, Version};
use super::strategy::Finding;
use super::sync_events::SyncEvent;
use berth_base::model::status::{Problem, Suspension};
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_base::progress::Progress;

pub use self::kube::KubeBackend;
pub use folder::FolderBackend;
#[cfg(test)]
pub use folder::files::hash_of;

/// What a target was last brought to, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub fleet: String,
    pub cluster: String,
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
}

/// What went wrong with a target, or with one object in it. Holds nothing of an object's content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// How a target begins to say that an object was told to go and is still there.
pub const BEING_REMOVED: &str = "it is being removed";

/// Why this process may not change anything in a target now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    #[error("another syncer is at work on this cluster: {0}")]
    Standby(String),
    #[error("the lease can not be had: {0}")]
    Trouble(String),
}

/// One object to bring about, and what was there when that was planned.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    pub desired: &'a Desired,
    pub seen: Option<&'a Version>,
}

/// How an object that is there does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectHealth {
    pub health: Health,
    /// Whether it had all the time it may take.
    pub overdue: bool,
    /// What is not as wanted, though nothing is done about it.
    pub remark: Option<String>,
}

/// What a write would change: the object before, if it is there, and after. The data of Secrets is hashed.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    pub before: Option<Json>,
    pub after: Json,
}

/// Asks for a round, from wherever a change is heard of.
pub type RequestSync = Box<dyn Fn() + Send>;

/// A place that holds objects. Writes and removals come in batches, which a target may work on at once;
/// each gets one answer per item, in order, and one that fails does not stop the others.
pub trait Backend {
    /// Whether this process may change anything here now; otherwise who may, or what is wrong.
    fn admit(&mut self) -> Result<(), NotAdmitted> {
        Ok(())
    }

    /// Says from now on there how far work is.
    fn show_progress(&mut self, _progress: &Progress) {}

    /// What was last recorded. `None` where berth was never at work.
    fn record(&mut self) -> Result<Option<Record>, BackendError>;

    /// The member's own overrides that are kept where its objects are, as they are now.
    fn local_overrides(&mut self) -> BackendOverrides {
        BackendOverrides::default()
    }

    /// Whether people asked for a pause here, as of the last record that was read.
    fn suspended(&mut self, _now: Timestamp) -> Option<Suspension> {
        None
    }

    /// All that berth owns here, and what else stands where an object is wanted. Changes nothing.
    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError>;

    /// Records what is about to be written and removed. Called once before any other change.
    fn begin(&mut self, record: &Record, writes: &[Apply<'_>], prunes: &[&Prune])
    -> Result<(), BackendError>;

    /// Writes objects, unless they are no longer as they were seen.
    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>>;

    /// Removes objects, unless they are no longer as they were seen. Orphans are left as they are and only
    /// cease to be owned.
    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>>;

    /// Takes the record away, once nothing is owned any more.
    fn remove_record(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Records how it went.
    fn finish(&mut self) -> Result<(), BackendError>;

    /// How an object does that was surveyed or written. A file is well when it is there.
    fn object_health(&mut self, _id: &ObjectId) -> ObjectHealth {
        ObjectHealth::default()
    }

    /// Takes in which objects are not as wanted. Returns those that had all the time they may take; `None`
    /// where a target sets no time.
    fn given_up(&mut self, _ids: &BTreeSet<ObjectId>) -> Option<BTreeSet<ObjectId>> {
        None
    }

    /// What writing these would change, where the target can tell beforehand. Changes nothing.
    fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        batch.iter().map(|_| None).collect()
    }

    /// Says what objects would take along that is not berth's, if they went. Changes nothing.
    fn collateral(&mut self, _ids: &[ObjectId]) -> Vec<Problem> {
        Vec::new()
    }

    /// What the strategies of objects make of how the last survey found them, where that is more than whether
    /// they are as wanted.
    fn findings(&mut self) -> BTreeMap<ObjectId, Finding> {
        BTreeMap::new()
    }

    /// Tells people how a round went, where they look. That this may fail is no problem of the round.
    fn tell_events(&mut self, _said: &[SyncEvent], _now: Timestamp) {}

    /// Keeps the status where people look, if it says something new.
    fn show_status(&mut self, _status: &ClusterStatus) {}

    /// Calls from now on when something may need a round. False where a target can not tell: then it is
    /// looked at again and again.
    fn watch_changes(&mut self, _call: RequestSync) -> bool {
        false
    }

    /// When a round is due though nothing changes.
    fn next_sync_due(&mut self) -> Option<Instant> {
        None
    }

    /// What is worth knowing of the last round and is no problem: take-overs.
    fn notes(&mut self) -> Vec<Problem> {
        Vec::new()
    }
}
