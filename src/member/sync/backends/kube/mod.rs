//! A Kubernetes cluster as the target: server-side apply, with an ApplySet of what berth owns.
//!
//! - [`access`](crate::live::access) connects; `wire` asks, `failure` says what went wrong, `kinds` knows
//!   what is served. `identity` says who berth is; `managed`, `handover` and `fields` read and rearrange owners,
//!   `shape` knows what a server makes of an object.
//! - `watching` knows what is owned, by one list and one watch for each kind; `survey` looks, `compare` judges,
//!   `trial` tries whatever is not as wanted for certain. `one` brings one object about, `write` all of a stage, `parent` keeps the record.
//! - `lease` sees to it that one of several syncers writes.
//! - `events` tells people; `later` knows what failed and when it is tried again.
//!
//! Nothing that berth does not own is changed or removed, a removal is of the very object that was seen,
//! and one object's failure stops no other.

mod along;
mod changes;
mod compare;
mod drifted;
mod events;
mod failure;
mod fields;
mod fights;
mod going;
mod handover;
mod identity;
mod kinds;
mod later;
pub mod lease;
mod left;
mod managed;
pub mod modes;
mod one;
mod own_overrides;
mod parent;
mod pause;
mod pods;
mod protected;
mod rights;
mod shape;
mod survey;
mod tenant;
mod trial;
mod watching;
mod wire;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::runtime::Runtime;

use super::{Apply, Call, NotAdmitted, Preview, Record, Standing, Target, TargetError};
use crate::live::{Access, LiveError};
use crate::sync::desired::Desired;
use crate::sync::health::Health;
use crate::sync::health::custom::HealthRules;
use crate::sync::override_source::{FromTarget, LastGood, Source};
use crate::sync::plan::{Live, Prune};
use crate::sync::strategy::{Effect, Finding};
use crate::sync::suspend;
use crate::sync::tell::Said;
use berth_base::model::status::{Problem, Suspension};
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_base::progress::Progress;
use events::Told;
use failure::Failure;
use fights::Fights;
use identity::Identity;
use kinds::Kinds;
use later::Later;
use lease::{Keeper, Lease};
use modes::Mode;
use parent::Parent;
pub use pause::pause;
use protected::Protected;
pub use tenant::Tenant;
use tenant::Tenants;
use watching::Watching;
use wire::Wire;

/// How a cluster is reached and worked on.
#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Access,
    pub fleet: String,
    /// Where the parent object is.
    pub namespace: String,
    /// How many requests are under way at once.
    pub at_once: usize,
    /// How long an object may take to be healthy.
    pub deadline: Duration,
    /// When objects are healthy of whose kinds people say so.
    pub rules: Arc<HealthRules>,
    /// How long a watch may be silent before it counts as lost.
    pub silence: Duration,
    /// Without one, nothing keeps two syncers apart.
    pub lease: Option<Lease>,
    /// Whose rights count for the objects of a namespace; berth's own where there is none.
    pub tenant: Option<Tenant>,
    /// Namespaces that are never removed; one that ends with `*` means all that begin so.
    pub protected: Vec<String>,
    /// Where in that namespace local overrides are.
    pub overrides_from: Vec<Source>,
    /// Whether how rounds went is told as Events.
    pub events: bool,
    /// What is done about drift where an object does not say.
    pub drift: Mode,
}

/// What the parent object is called, and what whoever runs the syncer calls its own.
pub fn record_name(fleet: &str) -> String {
    identity::object_name(fleet)
}

/// One cluster.
pub struct KubeTarget {
    /// Let go of when nothing more is written.
    keeper: Option<Keeper>,
    runtime: Runtime,
    core: Core,
}

impl fmt::Debug for KubeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeTarget").field("server", &self.core.wire.server).finish_non_exhaustive()
    }
}

/// All but what runs it.
struct Core {
    wire: Wire,
    identity: Arc<Identity>,
    at_once: usize,
    deadline: Duration,
    rules: Arc<HealthRules>,
    kinds: Kinds,
    parent: Option<Parent>,
    watching: Watching,
    /// Kinds that may be owned and could not be looked at.
    unseen: BTreeSet<String>,
    /// When the last look began.
    surveyed: Option<Instant>,
    /// What the last look and the writes since have shown.
    seen: BTreeMap<ObjectId, Seen>,
    /// Since when an object is not healthy, in the form named by its hash.
    unhealthy: BTreeMap<ObjectId, (Arc<str>, Instant)>,
    /// Since when an object that a removal waits for is refused, in the form named by its hash.
    refused: BTreeMap<ObjectId, (Arc<str>, Instant)>,
    /// The form in which each object was last in place, as far as this process knows.
    settled: BTreeMap<ObjectId, Arc<str>>,
    drift: Mode,
    /// Until when drift of some objects is neither corrected nor said.
    ignored: BTreeMap<ObjectId, Instant>,
    fights: Fights,
    /// Objects that failed, and when they are tried again.
    later: BTreeMap<ObjectId, Later>,
    /// What pods said of an object, and when they were asked.
    reasons: BTreeMap<ObjectId, (Instant, Option<String>)>,
    notes: Vec<Problem>,
    access: Access,
    tenants: Option<Tenants>,
    protected: Protected,
    overrides_from: Vec<Source>,
    good_overrides: LastGood,
    told: Told,
    /// Hides the data of Secrets in what is shown.
    key: RandomState,
}

/// What is known of one object.
#[derive(Debug, Default)]
struct Seen {
    owned: bool,
    /// As it is, where it is to be changed.
    live: Option<Arc<Json>>,
    /// Whether the server has accepted the wanted form on trial.
    checked: bool,
    /// Whether it went away from what was applied, which is what is wanted.
    drifted: bool,
    /// What there is to say of it, though nothing is done about it.
    remark: Option<String>,
    /// Its UID, where it is berth's and nothing else of it needs to be known to change it.
    older: Option<String>,
    hash: Arc<str>,
    health: Health,
    /// Selects its pods, where it has some.
    pods: Option<String>,
    /// What its strategy makes of how it was found.
    finding: Option<Finding>,
}

impl KubeTarget {
    /// Reads the credentials. Whether the server answers shows with the first question.
    pub fn connect(settings: &Settings) -> Result<KubeTarget, LiveError> {
        // Watches go on between rounds, beside the thread that makes them.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| LiveError::Start(error.to_string()))?;
        let (client, server) = runtime.block_on(crate::live::access::connect_member(&settings.access))?;
        let identity = Identity::new(&settings.fleet, &settings.namespace);
        let mut wire = Wire::new(client, &server, settings.access.patience);
        let keep = |lease| Keeper::start(&settings.access, &identity.namespace, &identity.parent, lease);
        let keeper = settings.lease.map(keep).transpose()?;
        if let (Some(keeper), Some(lease)) = (&keeper, settings.lease) {
            wire = wire.fenced(keeper.fence.clone(), lease.patience());
        }
        let core = Core {
            wire,
            identity: Arc::new(identity),
            at_once: settings.at_once.max(1),
            deadline: settings.deadline,
            rules: settings.rules.clone(),
            kinds: Kinds::default(),
            parent: None,
            watching: Watching::new(settings.silence),
            unseen: BTreeSet::new(),
            surveyed: None,
            seen: BTreeMap::new(),
            unhealthy: BTreeMap::new(),
            refused: BTreeMap::new(),
            settled: BTreeMap::new(),
            drift: settings.drift,
            ignored: BTreeMap::new(),
            fights: Fights::default(),
            later: BTreeMap::new(),
            reasons: BTreeMap::new(),
            notes: Vec::new(),
            access: settings.access.clone(),
            tenants: settings.tenant.clone().map(Tenants::new),
            protected: Protected::new(&settings.protected, &settings.namespace),
            overrides_from: settings.overrides_from.clone(),
            good_overrides: LastGood::default(),
            told: Told::new(settings.events),
            key: RandomState::new(),
        };
        Ok(KubeTarget { keeper, runtime, core })
    }

    /// Where its API server is.
    pub fn server(&self) -> &str {
        &self.core.wire.server
    }
}

impl Target for KubeTarget {
    fn admit(&mut self) -> Result<(), NotAdmitted> {
        self.keeper.as_ref().map_or(Ok(()), Keeper::admit)
    }

    fn watched(&mut self, progress: &Progress) {
        self.core.wire.progress = progress.clone();
    }

    fn record(&mut self) -> Result<Option<Record>, TargetError> {
        self.runtime.block_on(self.core.read_parent())
    }

    fn local_overrides(&mut self) -> FromTarget {
        self.runtime.block_on(self.core.local_overrides())
    }

    fn suspended(&mut self, now: Timestamp) -> Option<Suspension> {
        let (reason, until) = &self.core.parent.as_ref()?.suspend;
        suspend::read(reason.as_deref(), until.as_deref(), now)
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, TargetError> {
        self.core.wire.progress.begin("looking at the objects that are there");
        self.runtime.block_on(self.core.survey(desired))
    }

    fn begin(&mut self, record: &Record, writes: &[Apply<'_>], prunes: &[&Prune]) -> Result<(), TargetError> {
        self.core.wire.progress.begin_of("applying objects", writes.len() + prunes.len());
        self.runtime.block_on(self.core.write_parent(record, writes))
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), TargetError>> {
        self.runtime.block_on(self.core.apply(batch))
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), TargetError>> {
        self.runtime.block_on(self.core.delete(batch))
    }

    fn forget(&mut self) -> Result<(), TargetError> {
        self.runtime.block_on(self.core.remove_parent())
    }

    fn finish(&mut self) -> Result<(), TargetError> {
        self.core.wire.progress.begin("waiting for objects to become healthy");
        self.runtime.block_on(self.core.narrow_parent())
    }

    fn standing(&mut self, id: &ObjectId) -> Standing {
        self.runtime.block_on(self.core.standing(id))
    }

    fn given_up(&mut self, ids: &BTreeSet<ObjectId>) -> Option<BTreeSet<ObjectId>> {
        Some(self.core.given_up(ids))
    }

    fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        self.runtime.block_on(self.core.preview(batch))
    }

    fn takes_along(&mut self, ids: &[ObjectId]) -> Vec<Problem> {
        self.runtime.block_on(self.core.takes_along(ids))
    }

    fn findings(&mut self) -> BTreeMap<ObjectId, Finding> {
        let of = |(id, seen): (&ObjectId, &Seen)| Some((id.clone(), seen.finding.clone()?));
        let findings: BTreeMap<ObjectId, Finding> = self.core.seen.iter().filter_map(of).collect();
        // Whoever goes on changing what is left to him is not followed at each step.
        let mut store = self.core.watching.shared.store();
        for (id, _) in findings.iter().filter(|(_, finding)| finding.effect == Effect::Refused) {
            store.mute(id, Instant::now() + drifted::SAID);
        }
        drop(store);
        findings
    }

    fn tell(&mut self, said: &[Said], now: Timestamp) {
        self.runtime.block_on(self.core.tell(said, now));
    }

    fn show(&mut self, status: &ClusterStatus) {
        self.runtime.block_on(self.core.show(status));
    }

    fn notes(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.core.notes)
    }

    fn watch(&mut self, call: Call) -> bool {
        self.core.watching.start(call);
        true
    }

    fn due(&mut self) -> Option<Instant> {
        self.core.due()
    }
}

impl Core {
    /// Reads the credentials anew: those of a pod change while it runs.
    async fn reconnect(&mut self) -> Result<(), LiveError> {
        let (client, _) = crate::live::access::connect_member(&self.access).await?;
        self.wire = self.wire.with(client);
        self.watching.begin_anew();
        Ok(())
    }

    async fn standing(&mut self, id: &ObjectId) -> Standing {
        let Some(seen) = self.seen.get(id) else {
            return Standing {
                health: Health::Progressing("it is not there".to_owned()),
                ..Standing::default()
            };
        };
        if seen.health == Health::Healthy {
            self.unhealthy.remove(id);
            return Standing { remark: seen.remark.clone(), ..Standing::default() };
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
        Standing { health, overdue, remark }
    }

    fn hash_of(&self, object: &Desired) -> Arc<str> {
        let wanted = self.watching.shared.store().wanted();
        let known = wanted.get(&object.id).filter(|it| Arc::ptr_eq(&it.desired.bytes, &object.bytes));
        known.map_or_else(|| self.identity.hash(&object.bytes).into(), |known| known.hash.clone())
    }
}
