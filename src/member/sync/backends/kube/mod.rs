//! A Kubernetes cluster as the backend: server-side apply, with an ApplySet of berth's objects.
//!
//! - `session` holds all knowledge of a cluster, and of one object's state in the present sync.
//! - Requests: [`kubeconfig`](crate::live::kubeconfig) connects, `connection` holds the settings, the client and the served
//!   kinds, `api_client` sends, `failure` explains errors, `kinds` knows the server's kinds.
//! - Ownership: `identity` names berth in the cluster; `managed_fields`, `handover`, `field_paths` and
//!   `unmanaged_fields` read and change the owners of fields; `stored_shape` is a server's form of an object.
//! - Reading: `watching` follows the owned objects; `survey` reads them, `compare` judges them, and `dry_run` tries
//!   those that may differ from their wanted form; `drift` decides about changes made by others.
//! - Writing: `apply_one` applies one object, `make_one` creates a missing one, `batches` handles a stage
//!   and shows writes beforehand, `removal` removes; `applyset_parent` keeps the record, a [`ClusterLease`] allows
//!   only one syncer to write, `deadlines` limits the time of objects and schedules failed ones, `events` reports to
//!   people.
//! - [`neighbour`] is a separate backend: a cluster whose folder another program applies.
//!
//! Berth changes and removes only its own objects. A removal names the UID of the object that was seen. One object's
//! failure stops no other.

mod api_client;
mod apply_one;
mod applyset_parent;
mod batches;
mod compare;
mod connection;
mod deadlines;
pub mod drift;
mod dry_run;
mod events;
mod failure;
mod field_paths;
mod handover;
mod identity;
mod kinds;
mod make_one;
mod managed_fields;
pub mod neighbour;
mod override_objects;
mod pod_reasons;
mod removal;
#[cfg(test)]
mod scripted_server;
mod session;
mod stored_shape;
mod survey;
mod unmanaged_fields;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::{
    Apply, Backend, BackendError, BackendOverrides, NotAdmitted, ObjectHealth, Preview, Record, RequestSync,
};
use crate::cluster_lease::ClusterLease;
use crate::live::LiveError;
use crate::live::session::ApiSession;
use crate::sync::desired::Desired;
use crate::sync::plan::{Live, Prune};
use crate::sync::status::SyncEvent;
use crate::sync::strategy::Finding;
use api_client::ApiClient;
pub use applyset_parent::suspend;
use berth_base::model::status::{Problem, Suspension};
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_base::progress::Progress;
use berth_lease::{Lease, LeaseKeeper, NotHeld};
pub use connection::Settings;
pub use connection::Tenant;
use identity::Identity;
use session::ClusterSession;

/// Returns the name of the parent object. An installed syncer uses it for its own objects too.
pub fn record_name(fleet: &str) -> String {
    identity::object_name(fleet)
}

/// A Kubernetes cluster as the backend.
pub struct KubeBackend {
    /// Releases the lease when the backend is dropped.
    keeper: Option<LeaseKeeper>,
    runtime: Runtime,
    session: ClusterSession,
}

impl fmt::Debug for KubeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeBackend")
            .field("server", &self.session.connection.api.server.address)
            .finish_non_exhaustive()
    }
}

impl KubeBackend {
    /// Reads the credentials. The first request shows whether the server answers.
    pub fn connect(settings: &Settings) -> Result<KubeBackend, LiveError> {
        // Watches run between syncs, on a worker thread.
        let ApiSession { runtime, server } = ApiSession::open_with_worker(&settings.access)?;
        let identity = Identity::new(&settings.fleet, &settings.namespace);
        let keep = |lease: Lease| {
            let (namespace, name) = (&identity.namespace, &identity.parent);
            let store = ClusterLease::connect(&settings.access, namespace, name, lease.patience())?;
            LeaseKeeper::start(Box::new(store), lease, || {})
                .map_err(|error| LiveError::Start(error.to_string()))
        };
        let keeper = settings.lease.map(keep).transpose()?;
        let mut api = ApiClient::new(server, identity);
        if let (Some(keeper), Some(lease)) = (&keeper, settings.lease) {
            api = api.fenced(keeper.fence.clone(), lease.patience());
        }
        let session = ClusterSession::new(settings, api);
        Ok(KubeBackend { keeper, runtime, session })
    }

    /// Returns the address of the API server.
    pub fn server(&self) -> &str {
        &self.session.connection.api.server.address
    }
}

impl Backend for KubeBackend {
    fn admit(&mut self) -> Result<(), NotAdmitted> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        keeper.admit().map_err(|why| match why {
            NotHeld::Others(holder) => NotAdmitted::Standby(format!("`{holder}` holds the lease")),
            NotHeld::Trouble(why) => NotAdmitted::Trouble(why),
        })
    }

    fn show_progress(&mut self, progress: &Progress) {
        self.session.connection.api.progress = progress.clone();
    }

    fn record(&mut self) -> Result<Option<Record>, BackendError> {
        self.runtime.block_on(self.session.read_record())
    }

    fn local_overrides(&mut self) -> BackendOverrides {
        self.runtime.block_on(self.session.overrides.read(&self.session.connection.api))
    }

    fn suspended(&mut self, now: Timestamp) -> Option<Suspension> {
        let (reason, until) = &self.session.parent.current.as_ref()?.suspend;
        crate::sync::suspension::read(reason.as_deref(), until.as_deref(), now)
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError> {
        self.session.connection.api.progress.begin("reading the live objects");
        self.runtime.block_on(self.session.survey(desired))
    }

    fn begin(
        &mut self,
        record: &Record,
        writes: &[Apply<'_>],
        prunes: &[&Prune],
    ) -> Result<(), BackendError> {
        self.session.connection.api.progress.begin_of("applying objects", writes.len() + prunes.len());
        self.runtime.block_on(self.session.write_parent(record, writes))
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>> {
        self.runtime.block_on(self.session.apply(batch))
    }

    fn has_met_existing(&mut self) -> bool {
        self.session.met_existing
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>> {
        self.runtime.block_on(self.session.delete(batch))
    }

    fn remove_record(&mut self) -> Result<(), BackendError> {
        self.runtime.block_on(self.session.remove_parent())
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        self.session.connection.api.progress.begin("waiting for objects to become healthy");
        self.runtime.block_on(self.session.narrow_parent())
    }

    fn object_health(&mut self, id: &ObjectId) -> ObjectHealth {
        self.session.object_health(id)
    }

    fn most_time(&self) -> Option<Duration> {
        Some(self.session.deadlines.limit())
    }

    fn reasons(&mut self, ids: &[&ObjectId]) -> BTreeMap<ObjectId, String> {
        self.runtime.block_on(self.session.pod_reasons(ids))
    }

    fn given_up(&mut self, ids: &BTreeSet<ObjectId>) -> Option<BTreeSet<ObjectId>> {
        Some(self.session.deadlines.given_up(ids, &self.session.watching.shared.cache().wanted()))
    }

    fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        self.runtime.block_on(self.session.preview(batch))
    }

    fn collateral(&mut self, ids: &[ObjectId]) -> Vec<Problem> {
        self.runtime.block_on(self.session.connection.collateral(ids))
    }

    fn findings(&mut self) -> BTreeMap<ObjectId, Finding> {
        self.session.findings()
    }

    fn tell_events(&mut self, said: &[SyncEvent], now: Timestamp) {
        self.runtime.block_on(self.session.tell(said, now));
    }

    fn show_status(&mut self, status: &ClusterStatus) {
        self.runtime.block_on(self.session.show(status));
    }

    fn notes(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.session.sync.notes)
    }

    fn watch_changes(&mut self, call: RequestSync) -> bool {
        self.session.watching.start(call);
        true
    }

    fn next_sync_due(&mut self) -> Option<Instant> {
        self.session.due()
    }
}
