//! A cluster whose folder another program applies: berth reads its state and writes nothing.
//!
//! One exception: the program leaves objects that only berth may remove. Once the program has applied the folder
//! without them and the removal is approved, berth removes them.

mod argocd;
mod flux;
mod live_objects;
mod standing;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;
use tokio::runtime::Runtime;

use super::api_client::{Action, ApiClient};
use super::connection::{Connection, Settings};
use super::deadlines::Deadlines;
use super::failure::Failure;
use super::identity::Identity;
use super::removal::{Protected, delete_params};
use crate::live::session::{ApiServer, ApiSession};
use crate::live::{Access, LiveError};
use crate::sync::backends::{Apply, Backend, BackendError, ObjectHealth, Record};
use crate::sync::cluster_folder::ClusterFolder;
use crate::sync::desired::Desired;
use crate::sync::health::Health;
use crate::sync::health::custom::HealthRules;
use crate::sync::plan::{Form, Live, Prune, Version};
use berth_base::backoff::pace::paced;
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;
use berth_base::progress::Progress;
use live_objects::{Found, LOOKS_INTERVAL};
pub use standing::RecordPlace;
use standing::judge;

pub use argocd::ArgoCd;
pub use flux::Flux;
pub use standing::{Neighbour, Standing};

/// Returns the revisions of a folder at the program, one for each way of publishing it.
pub type Revisions = Box<dyn FnMut(&ClusterFolder) -> Result<Vec<String>, String>>;

/// The backend of a cluster whose folder another program applies.
pub struct NeighbourBackend {
    runtime: Runtime,
    session: Session,
}

/// Everything in the backend except the runtime.
struct Session {
    connection: Connection,
    /// The connection to the cluster with the program's record, if that is another cluster.
    records: Option<Connection>,
    neighbour: Box<dyn Neighbour>,
    revisions: Revisions,
    rules: Arc<HealthRules>,
    protected: Protected,
    deadlines: Deadlines,
    /// The record of the last sync of this process.
    record: Option<Record>,
    tree: Arc<str>,
    wanted_revisions: Vec<String>,
    found: Found,
}

impl fmt::Debug for NeighbourBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NeighbourBackend").field("neighbour", &self.session.neighbour).finish_non_exhaustive()
    }
}

impl NeighbourBackend {
    /// Reads the credentials. The first request shows whether the servers answer. `records` is the cluster with the
    /// program's record, if that is another cluster.
    pub fn connect(
        settings: &Settings,
        neighbour: Box<dyn Neighbour>,
        records: Option<Access>,
        revisions: Revisions,
    ) -> Result<NeighbourBackend, LiveError> {
        let ApiSession { runtime, server } = ApiSession::open(&settings.access)?;
        let records = records.map(|access| runtime.block_on(ApiServer::connect(&access))).transpose()?;
        let connection = |server: ApiServer| {
            let identity = Identity::new(&settings.fleet, &settings.namespace);
            Connection::new(ApiClient::new(server, identity), settings.at_once.max(1), None)
        };
        // Never removes the namespace of the program that applies the folder.
        let mut protected = settings.protected.clone();
        protected.push(neighbour.record().namespace);
        let session = Session {
            connection: connection(server),
            records: records.map(connection),
            neighbour,
            revisions,
            rules: settings.rules.clone(),
            protected: Protected::new(&protected, &settings.namespace),
            deadlines: Deadlines::new(settings.deadline),
            record: None,
            tree: Arc::default(),
            wanted_revisions: Vec::new(),
            found: Found::default(),
        };
        Ok(NeighbourBackend { runtime, session })
    }
}

impl Session {
    /// Reads the state of the cluster, unless it is unchanged.
    async fn look(&mut self, desired: &BTreeMap<ObjectId, Desired>) -> Result<(), BackendError> {
        let whole = |api: &ApiClient, failure: Failure| api.whole(&failure);
        if self.connection.kinds.is_empty() {
            self.connection.ask_kinds().await.map_err(|failure| whole(&self.connection.api, failure))?;
        }
        let place = self.neighbour.record();
        let Some(record) = self.read(&place).await? else {
            return Err(BackendError::Failed(format!(
                "the cluster has no {place}: apply what `berth join --applier` wrote for it"
            )));
        };
        let source = match self.neighbour.source(&record) {
            // The source only explains more, and berth may lack the right to read it.
            Some(place) => self.read(&place).await.unwrap_or_default(),
            None => None,
        };
        let version =
            |object: &Json| object.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        let versions = (version(&record), source.as_ref().map(version).unwrap_or_default());
        let is_seen = self.found.seen.as_ref().is_some_and(|(record, source, at)| {
            (record, source) == (&versions.0, &versions.1) && at.elapsed() < paced(LOOKS_INTERVAL)
        });
        if is_seen && self.found.is_healthy {
            return Ok(());
        }
        let standing = self.neighbour.standing(&record, source.as_ref(), &self.wanted_revisions);
        let standing = standing::without_secrets(standing, self.neighbour.as_ref(), desired.keys());
        let mut found = Found { seen: Some((versions.0, versions.1, Instant::now())), ..Found::default() };
        self.read_objects(desired, &standing, &mut found).await?;
        found.names_any = match &standing {
            Standing::Unhealthy(message) | Standing::Failed(message) => {
                desired.keys().any(|id| self.neighbour.names(message, id))
            }
            _ => false,
        };
        let healthy = |id: &ObjectId| found.wanted.get(id).is_some_and(|it| it.health == Health::Healthy);
        found.is_healthy = standing == Standing::Applied
            && found.left.is_empty()
            && desired.keys().all(healthy)
            && found.unseen.is_empty();
        found.standing = Some(standing);
        self.found = found;
        Ok(())
    }

    /// Reads one of the program's objects. `None` if it does not exist.
    async fn read(&mut self, place: &RecordPlace) -> Result<Option<Json>, BackendError> {
        let connection = self.records.as_mut().unwrap_or(&mut self.connection);
        read(connection, self.neighbour.name(), place).await
    }

    /// Reports whether the program still has the folder that berth knows. A newer folder may contain objects again
    /// whose removal was approved.
    async fn is_still_applied(&mut self) -> bool {
        let place = self.neighbour.record();
        let Ok(Some(record)) = self.read(&place).await else { return false };
        self.neighbour.standing(&record, None, &self.wanted_revisions) == Standing::Applied
    }

    async fn remove(&self, prune: &Prune) -> Result<(), Failure> {
        let Some(Version(uid)) = prune.seen.clone().filter(|_| !prune.orphan) else { return Ok(()) };
        let id = &prune.id;
        let Some(served) = self.connection.kinds.preferred(&id.group, &id.kind) else { return Ok(()) };
        let params = delete_params(prune.options.as_deref(), uid)?;
        let path = served.place_of(id)?;
        match self.connection.api.send(&path, &id.name, Action::Delete(&params)).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is_not_found() => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}

impl Backend for NeighbourBackend {
    fn show_progress(&mut self, progress: &Progress) {
        self.session.connection.api.progress = progress.clone();
    }

    fn begin_sync(&mut self, folder: &ClusterFolder) -> Result<(), BackendError> {
        let session = &mut self.session;
        if *session.tree != *folder.tree {
            session.wanted_revisions = (session.revisions)(folder).map_err(BackendError::Failed)?;
            session.tree = folder.tree.as_str().into();
            session.found = Found::default();
        }
        Ok(())
    }

    fn record(&mut self) -> Result<Option<Record>, BackendError> {
        Ok(self.session.record.clone())
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError> {
        self.session.connection.api.progress.begin("reading the live objects");
        let NeighbourBackend { runtime, session } = self;
        runtime.block_on(async {
            let looked = session.look(desired).await;
            if looked.is_err() {
                // The credentials of a pod change while it runs. If reconnecting fails, the next survey reports it.
                let _ = session.connection.reconnect().await;
                if let Some(records) = &mut session.records {
                    let _ = records.reconnect().await;
                }
            }
            looked
        })?;
        if let Some(standing) = session.found.standing.as_ref().filter(|it| **it != Standing::Applied)
            && desired.is_empty()
        {
            // With no objects, the failure has no other place to be reported.
            let why = standing.words().unwrap_or_default();
            return Err(BackendError::Failed(format!(
                "{} has not applied the empty folder: {why}",
                session.neighbour.name()
            )));
        }
        session.deadlines.retain(|id| desired.contains_key(id));
        // Berth writes no wanted object: each counts as unchanged, and its health shows its real state.
        let there = |wanted: &Desired| Live {
            owned: true,
            form: Form::There { version: Version(String::new()), same: true },
            annotations: wanted.annotations().clone(),
            stays: None,
        };
        let mut live: BTreeMap<ObjectId, Live> =
            desired.iter().map(|(id, wanted)| (id.clone(), there(wanted))).collect();
        live.extend(session.found.left.clone());
        Ok(live)
    }

    fn begin(
        &mut self,
        record: &Record,
        _writes: &[Apply<'_>],
        _prunes: &[&Prune],
    ) -> Result<(), BackendError> {
        self.session.record = Some(record.clone());
        Ok(())
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>> {
        let refusal = || {
            BackendError::Failed(format!("{} applies this cluster's folder", self.session.neighbour.name()))
        };
        batch.iter().map(|_| Err(refusal())).collect()
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>> {
        let NeighbourBackend { runtime, session } = self;
        let removed = runtime.block_on(async {
            let mut removed = Vec::new();
            for prune in batch {
                if !session.is_still_applied().await {
                    let name = session.neighbour.name();
                    removed.push(Err(BackendError::Failed(format!("{name} is no longer at this folder"))));
                    continue;
                }
                let done = session.remove(prune).await;
                removed.push(done.map_err(|failure| failure.into_error(prune.id.is_secret())));
            }
            removed
        });
        // The next survey shows which objects are left.
        (session.found.seen, session.found.left) = (None, BTreeMap::new());
        removed
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn object_health(&mut self, id: &ObjectId) -> ObjectHealth {
        let Session { neighbour, deadlines, tree, found, .. } = &mut self.session;
        let unknown = Standing::Pending("nothing was read yet".to_owned());
        let standing = found.standing.as_ref().unwrap_or(&unknown);
        let health = match found.unseen.get(id) {
            Some(unseen) if *standing == Standing::Applied => unseen.clone(),
            _ => judge(neighbour.as_ref(), standing, found.names_any, id, found.wanted.get(id)),
        };
        if health == Health::Healthy {
            deadlines.healthy(id);
            return ObjectHealth::default();
        }
        let overdue = deadlines.is_overdue(id, tree);
        ObjectHealth { health, overdue, remark: None }
    }

    fn notes(&mut self) -> Vec<Problem> {
        let standing = self.session.found.standing.as_ref();
        let standing = standing.filter(|standing| !matches!(standing, Standing::Pending(_)));
        let Some(message) = standing.and_then(Standing::words) else { return Vec::new() };
        let place = self.session.neighbour.record();
        let object = ObjectId::new(place.group, &place.kind, &place.namespace, &place.name);
        vec![Problem::failed(object, message)]
    }
}

/// Reads one object of this program. `None` if it does not exist.
async fn read(
    connection: &mut Connection,
    program: &str,
    place: &RecordPlace,
) -> Result<Option<Json>, BackendError> {
    let RecordPlace { group, kind, namespace, name } = place;
    if connection.kinds.preferred(group, kind).is_none() {
        // The kind may have been installed since.
        connection.ask_kinds().await.map_err(|failure| connection.api.whole(&failure))?;
    }
    let Some(served) = connection.kinds.preferred(group, kind) else {
        return Err(BackendError::Failed(format!(
            "the cluster serves no {kind}.{group}: install {program} there"
        )));
    };
    let api = &connection.api;
    let found = api.get(&served.path(group, namespace), name).await;
    found.map_err(|failure| api.whole(&failure))
}
