//! Backends: the trait for a place that holds a cluster's objects. A folder and a Kubernetes cluster implement it.
//!
//! A backend stores which objects berth owns. Before any change, it durably records the objects that it is about to
//! own or release ([`Backend::begin`]), so that a crash never loses ownership. [`Backend::finish`] records the result
//! of a sync.

pub mod folder;
pub mod kube;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::cluster_folder::ClusterFolder;
use super::desired::Desired;
use super::health::Health;
use super::local_overrides::BackendOverrides;
use super::plan::{Live, Prune, Version};
use super::status::SyncEvent;
use super::strategy::Finding;
use berth_base::model::status::{Problem, Suspension};
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_base::progress::Progress;

pub use self::kube::KubeBackend;
pub use folder::FolderBackend;
#[cfg(test)]
pub use folder::files::hash_of;

/// The folder that a backend last applied, and its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub fleet: String,
    pub cluster: String,
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
}

/// A failure of a backend or of one object in it. Contains nothing of an object's content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    #[error("{0}")]
    Failed(String),
    /// The object is being removed.
    #[error("{0}")]
    Leaving(String),
}

/// The message about an object that is being removed.
pub(crate) const BEING_REMOVED: &str = "it is being removed";

/// The reason why this process may not change a backend now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    #[error("another syncer uses this cluster: {0}")]
    Standby(String),
    #[error("cannot take the lease: {0}")]
    Trouble(String),
}

/// An object to write, and the version that the plan was based on.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    pub desired: &'a Desired,
    pub seen: Option<&'a Version>,
}

/// The health of an existing object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectHealth {
    pub health: Health,
    /// True if the object's time is up.
    pub overdue: bool,
    /// A difference from the wanted form that berth leaves alone.
    pub remark: Option<String>,
}

/// The effect of a write: the object before, if it exists, and after. The data of Secrets is hashed.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    pub before: Option<Json>,
    pub after: Json,
}

/// A callback that requests a sync after a change.
pub(crate) type RequestSync = Box<dyn Fn() + Send>;

/// A place that holds objects. Writes and removals come in batches, whose items may run at once. Each batch gets one
/// result per item, in order; a failed item does not stop the others.
pub trait Backend {
    /// Checks that this process may change the backend now; otherwise returns the reason.
    fn admit(&mut self) -> Result<(), NotAdmitted> {
        Ok(())
    }

    /// Reports progress to `progress` from now on.
    fn show_progress(&mut self, _progress: &Progress) {}

    /// Begins a sync of this folder.
    fn begin_sync(&mut self, _folder: &ClusterFolder) -> Result<(), BackendError> {
        Ok(())
    }

    /// Returns the last record. `None` if berth has never applied anything here.
    fn record(&mut self) -> Result<Option<Record>, BackendError>;

    /// Returns the member's local overrides stored in the backend.
    fn local_overrides(&mut self) -> BackendOverrides {
        BackendOverrides::default()
    }

    /// Returns the suspension of the whole backend, as of the last record read.
    fn suspended(&mut self, _now: Timestamp) -> Option<Suspension> {
        None
    }

    /// Returns all objects that berth owns here, and foreign objects in the places of wanted ones. Changes nothing.
    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError>;

    /// Records the planned writes and removals. Called once before any other change.
    fn begin(&mut self, record: &Record, writes: &[Apply<'_>], prunes: &[&Prune])
    -> Result<(), BackendError>;

    /// Writes objects, unless they changed since they were seen.
    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>>;

    /// Reports whether writes met existing objects that the survey had not shown. They were left unchanged, and the
    /// next survey shows them.
    fn has_met_existing(&mut self) -> bool {
        false
    }

    /// Removes objects, unless they changed since they were seen. Orphans stay unchanged, and berth no longer owns
    /// them.
    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>>;

    /// Removes the record, once berth owns no object.
    fn remove_record(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Records the result of the sync.
    fn finish(&mut self) -> Result<(), BackendError>;

    /// Returns the health of a surveyed or written object. A file is healthy if it exists.
    fn object_health(&mut self, _id: &ObjectId) -> ObjectHealth {
        ObjectHealth::default()
    }

    /// Returns the time that an object may take to become healthy, if it is limited.
    fn most_time(&self) -> Option<Duration> {
        None
    }

    /// Returns the reasons why these objects are unhealthy, if the backend knows more than their health tells.
    fn reasons(&mut self, _ids: &[&ObjectId]) -> BTreeMap<ObjectId, String> {
        BTreeMap::new()
    }

    /// Records which objects differ from their wanted form. Returns those whose time is up; `None` if the backend
    /// sets no time.
    fn given_up(&mut self, _ids: &BTreeSet<ObjectId>) -> Option<BTreeSet<ObjectId>> {
        None
    }

    /// Returns the effect of these writes, if the backend can determine it beforehand. Changes nothing.
    fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        batch.iter().map(|_| None).collect()
    }

    /// Describes the foreign objects that removals would delete. Changes nothing.
    fn collateral(&mut self, _ids: &[ObjectId]) -> Vec<Problem> {
        Vec::new()
    }

    /// Returns the verdicts of the objects' strategies on the last survey, other than equal or different.
    fn findings(&mut self) -> BTreeMap<ObjectId, Finding> {
        BTreeMap::new()
    }

    /// Writes Events about a sync. A failure is no problem of the sync.
    fn tell_events(&mut self, _said: &[SyncEvent], _now: Timestamp) {}

    /// Publishes the status in the backend if it changed.
    fn show_status(&mut self, _status: &ClusterStatus) {}

    /// Calls `call` from now on when something may need a sync. Returns false if the backend cannot: the caller then
    /// syncs at intervals.
    fn watch_changes(&mut self, _call: RequestSync) -> bool {
        false
    }

    /// Returns the moment at which a sync is due without any change.
    fn next_sync_due(&mut self) -> Option<Instant> {
        None
    }

    /// Returns notes on the last sync that are not problems, such as take-overs.
    fn notes(&mut self) -> Vec<Problem> {
        Vec::new()
    }
}
