//! A Kubernetes cluster as the backend: server-side apply, with an ApplySet of berth's objects.
//!
//! - Requests: [`access`](crate::live::access) connects, `api_client` sends, `failure` explains errors,
//!   `served_kinds` and `list_rights` know the server's kinds.
//! - Ownership: `identity` names berth in the cluster; `managed_fields`, `handover`, `field_paths` and
//!   `unmanaged_fields` read and change the owners of fields; `stored_shape` is a server's form of an object.
//! - Reading: `watching` follows the owned objects; `survey` reads them, `compare` judges them, `dry_run` tries
//!   those that are not as wanted for certain; `drift` decides about changes made by others.
//! - Writing: `apply_one` applies one object, `batches` all of a stage; `applyset_parent` keeps the record,
//!   `lease` lets only one syncer write, `retries` schedules what failed, `events` tells people.
//!
//! Berth changes and removes only its own objects, a removal names the very object that was seen, and one
//! object's failure stops no other.

mod api_client;
mod apply_one;
mod applyset_parent;
mod batches;
mod collateral;
mod compare;
pub mod drift;
mod dry_run;
mod events;
mod failure;
mod field_paths;
mod handover;
mod identity;
pub mod lease;
mod list_rights;
mod managed_fields;
mod override_objects;
mod pod_reasons;
mod protected;
mod removal;
mod retries;
mod served_kinds;
mod stored_shape;
mod survey;
mod suspension;
mod tenant;
mod unmanaged_fields;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::runtime::Runtime;

use super::{Apply, Backend, BackendError, NotAdmitted, ObjectHealth, Preview, Record, RequestSync};
use crate::live::{Access, LiveError};
use crate::sync::desired::Desired;
use crate::sync::health::Health;
use crate::sync::health::custom::HealthRules;
use crate::sync::override_objects::{BackendOverrides, LastGoodOverrides, OverrideObjects};
use crate::sync::plan::{Live, Prune};
use crate::sync::strategy::{Effect, Finding};
use crate::sync::sync_events::SyncEvent;
use api_client::ApiClient;
use applyset_parent::ApplySetParent;
use berth_base::model::status::{Problem, Suspension};
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_base::progress::Progress;
use drift::fights::DriftFights;
use drift::mode::DriftMode;
use events::SentEvents;
use failure::Failure;
use identity::Identity;
use lease::{Lease, LeaseKeeper};
use protected::Protected;
use retries::Retry;
use served_kinds::ServedKinds;
pub use suspension::suspend;
pub use tenant::Tenant;
use tenant::Tenants;
use watching::Watching;

/// The settings of a Kubernetes backend.
#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Access,
    pub fleet: String,
    /// The namespace of the parent object.
    pub namespace: String,
    /// The number of concurrent requests.
    pub at_once: usize,
    /// The time an object may take to become healthy.
    pub deadline: Duration,
    /// People's rules for the health of their own kinds.
    pub rules: Arc<HealthRules>,
    /// The silence after which a watch counts as lost.
    pub silence: Duration,
    /// `None`: nothing keeps two syncers apart.
    pub lease: Option<Lease>,
    /// The account that writes the objects of a namespace; berth's own if unset.
    pub tenant: Option<Tenant>,
    /// Namespaces that are never removed; a name that ends with `*` is a prefix.
    pub protected: Vec<String>,
    /// The objects of that namespace that hold local overrides.
    pub overrides_from: Vec<OverrideObjects>,
    /// True if syncs are told as Events.
    pub events: bool,
    /// The treatment of drift where an object's annotation does not set it.
    pub drift: DriftMode,
}

/// Returns the name of the parent object, which an installed syncer uses for its own objects, too.
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
        f.debug_struct("KubeBackend").field("server", &self.session.api.server).finish_non_exhaustive()
    }
}

/// All but what runs it.
struct ClusterSession {
    api: ApiClient,
    identity: Arc<Identity>,
    at_once: usize,
    deadline: Duration,
    rules: Arc<HealthRules>,
    kinds: ServedKinds,
    parent: Option<ApplySetParent>,
    watching: Watching,
    /// Kinds that berth may own and could not list.
    unseen: BTreeSet<String>,
    /// The start of the last survey.
    surveyed: Option<Instant>,
    /// Cache: each object as the last survey and later writes left it.
    tracked: BTreeMap<ObjectId, TrackedObject>,
    /// The start of an object's unhealthy time, and the hash of its form.
    unhealthy: BTreeMap<ObjectId, (Arc<str>, Instant)>,
    /// The start of the time for which an object that a removal waits for is refused, and the hash of its form.
    refused: BTreeMap<ObjectId, (Arc<str>, Instant)>,
    /// The form in which each object was last in place, as far as this process knows.
    in_place: BTreeMap<ObjectId, Arc<str>>,
    drift: DriftMode,
    /// The end of the time for which an object's drift is ignored.
    ignored: BTreeMap<ObjectId, Instant>,
    fights: DriftFights,
    /// Failed objects, and the moments of their next tries.
    retries: BTreeMap<ObjectId, Retry>,
    /// Cache: the reason that an object's pods give, and when they were asked.
    reasons: BTreeMap<ObjectId, (Instant, Option<String>)>,
    notes: Vec<Problem>,
    access: Access,
    tenants: Option<Tenants>,
    protected: Protected,
    overrides_from: Vec<OverrideObjects>,
    good_overrides: LastGoodOverrides,
    sent_events: SentEvents,
    /// Keys the hashes that stand for the data of Secrets.
    key: RandomState,
}

/// The present knowledge of one object.
#[derive(Debug, Default)]
struct TrackedObject {
    owned: bool,
    /// The live object, if a change needs it.
    live: Option<Arc<Json>>,
    /// True if a dry run accepted the wanted form.
    checked: bool,
    /// True if somebody changed the object while the wanted form stayed the same.
    drifted: bool,
    /// A remark for the report; no action follows.
    remark: Option<String>,
    /// The UID of an owned object that gets a new form whatever its content.
    older: Option<String>,
    hash: Arc<str>,
    health: Health,
    /// The label selector of its pods, if it has some.
    pods: Option<String>,
    /// The verdict of its strategy.
    finding: Option<Finding>,
}

impl KubeBackend {
    /// Reads the credentials. Whether the server answers shows with the first question.
    pub fn connect(settings: &Settings) -> Result<KubeBackend, LiveError> {
        // Watches run between syncs, beside the thread of the syncs.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| LiveError::Start(error.to_string()))?;
        let (client, server) = runtime.block_on(crate::live::access::connect_member(&settings.access))?;
        let identity = Identity::new(&settings.fleet, &settings.namespace);
        let mut api = ApiClient::new(client, &server, settings.access.patience);
        let keep = |lease| LeaseKeeper::start(&settings.access, &identity.namespace, &identity.parent, lease);
        let keeper = settings.lease.map(keep).transpose()?;
        if let (Some(keeper), Some(lease)) = (&keeper, settings.lease) {
            api = api.fenced(keeper.fence.clone(), lease.patience());
        }
        let session = ClusterSession {
            api,
            identity: Arc::new(identity),
            at_once: settings.at_once.max(1),
            deadline: settings.deadline,
            rules: settings.rules.clone(),
            kinds: ServedKinds::default(),
            parent: None,
            watching: Watching::new(settings.silence),
            unseen: BTreeSet::new(),
            surveyed: None,
            tracked: BTreeMap::new(),
            unhealthy: BTreeMap::new(),
            refused: BTreeMap::new(),
            in_place: BTreeMap::new(),
            drift: settings.drift,
            ignored: BTreeMap::new(),
            fights: DriftFights::default(),
            retries: BTreeMap::new(),
            reasons: BTreeMap::new(),
            notes: Vec::new(),
            access: settings.access.clone(),
            tenants: settings.tenant.clone().map(Tenants::new),
            protected: Protected::new(&settings.protected, &settings.namespace),
            overrides_from: settings.overrides_from.clone(),
            good_overrides: LastGoodOverrides::default(),
            sent_events: SentEvents::new(settings.events),
            key: RandomState::new(),
        };
        Ok(KubeBackend { keeper, runtime, session })
    }

    /// Returns the address of the API server.
    pub fn server(&self) -> &str {
        &self.session.api.server
    }
}

impl Backend for KubeBackend {
    fn admit(&mut self) -> Result<(), NotAdmitted> {
        self.keeper.as_ref().map_or(Ok(()), LeaseKeeper::admit)
    }

    fn show_progress(&mut self, progress: &Progress) {
        self.session.api.progress = progress.clone();
    }

    fn record(&mut self) -> Result<Option<Record>, BackendError> {
        self.runtime.block_on(self.session.read_parent())
    }

    fn local_overrides(&mut self) -> BackendOverrides {
        self.runtime.block_on(self.session.local_overrides())
    }

    fn suspended(&mut self, now: Timestamp) -> Option<Suspension> {
        let (reason, until) = &self.session.parent.as_ref()?.suspend;
        crate::sync::suspension::read(reason.as_deref(), until.as_deref(), now)
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError> {
        self.session.api.progress.begin("reading the live objects");
        self.runtime.block_on(self.session.survey(desired))
    }

    fn begin(
        &mut self,
        record: &Record,
        writes: &[Apply<'_>],
        prunes: &[&Prune],
    ) -> Result<(), BackendError> {
        self.session.api.progress.begin_of("applying objects", writes.len() + prunes.len());
        self.runtime.block_on(self.session.write_parent(record, writes))
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>> {
        self.runtime.block_on(self.session.apply(batch))
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>> {
        self.runtime.block_on(self.session.delete(batch))
    }

    fn remove_record(&mut self) -> Result<(), BackendError> {
        self.runtime.block_on(self.session.remove_parent())
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        self.session.api.progress.begin("waiting for objects to become healthy");
        self.runtime.block_on(self.session.narrow_parent())
    }

    fn object_health(&mut self, id: &ObjectId) -> ObjectHealth {
        self.runtime.block_on(self.session.object_health(id))
    }

    fn given_up(&mut self, ids: &BTreeSet<ObjectId>) -> Option<BTreeSet<ObjectId>> {
        Some(self.session.given_up(ids))
    }

    fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        self.runtime.block_on(self.session.preview(batch))
    }

    fn collateral(&mut self, ids: &[ObjectId]) -> Vec<Problem> {
        self.runtime.block_on(self.session.collateral(ids))
    }

    fn findings(&mut self) -> BTreeMap<ObjectId, Finding> {
        let of = |(id, seen): (&ObjectId, &TrackedObject)| Some((id.clone(), seen.finding.clone()?));
        let findings: BTreeMap<ObjectId, Finding> = self.session.tracked.iter().filter_map(of).collect();
        // Further changes by the same author do not ask for a sync each.
        let mut cache = self.session.watching.shared.cache();
        for (id, _) in findings.iter().filter(|(_, finding)| finding.effect == Effect::Refused) {
            cache.mute(id, Instant::now() + drift::REPORT_PAUSE);
        }
        drop(cache);
        findings
    }

    fn tell_events(&mut self, said: &[SyncEvent], now: Timestamp) {
        self.runtime.block_on(self.session.tell(said, now));
    }

    fn show_status(&mut self, status: &ClusterStatus) {
        self.runtime.block_on(self.session.show(status));
    }

    fn notes(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.session.notes)
    }

    fn watch_changes(&mut self, call: RequestSync) -> bool {
        self.session.watching.start(call);
        true
    }

    fn next_sync_due(&mut self) -> Option<Instant> {
        self.session.due()
    }
}

impl ClusterSession {
    /// Reads the credentials anew: those of a pod change while it runs.
    async fn reconnect(&mut self) -> Result<(), LiveError> {
        let (client, _) = crate::live::access::connect_member(&self.access).await?;
        self.api = self.api.with(client);
        self.watching.begin_anew();
        Ok(())
    }

    async fn object_health(&mut self, id: &ObjectId) -> ObjectHealth {
        let Some(seen) = self.tracked.get(id) else {
            return ObjectHealth {
                health: Health::Progressing("it does not exist".to_owned()),
                ..ObjectHealth::default()
            };
        };
        if seen.health == Health::Healthy {
            self.unhealthy.remove(id);
            return ObjectHealth { remark: seen.remark.clone(), ..ObjectHealth::default() };
        }
        let now = Instant::now();
        let entry = self.unhealthy.entry(id.clone()).or_insert_with(|| (seen.hash.clone(), now));
        if entry.0 != seen.hash {
            *entry = (seen.hash.clone(), now);
        }
        let overdue = now.duration_since(entry.1) >= self.deadline;
        let (health, remark) = (seen.health.clone(), seen.remark.clone());
        let known = overdue || matches!(health, Health::Failed(_));
        let reason = if known { self.reason(id).await } else { None };
        let with = |why: String| match &reason {
            Some(reason) => format!("{why}; {reason}"),
            None => why,
        };
        let health = match health {
            Health::Progressing(why) => Health::Progressing(with(why)),
            Health::Failed(why) => Health::Failed(with(why)),
            Health::Healthy => Health::Healthy,
        };
        ObjectHealth { health, overdue, remark }
    }

    fn hash_of(&self, object: &Desired) -> Arc<str> {
        let wanted = self.watching.shared.cache().wanted();
        let known = wanted.get(&object.id).filter(|it| it.desired.bytes == object.bytes);
        known.map_or_else(|| self.identity.hash(&object.bytes).into(), |known| known.hash.clone())
    }
}
