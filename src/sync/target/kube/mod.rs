//! A Kubernetes cluster as the target: server-side apply, with an ApplySet of what berth owns.
//!
//! - [`access`](crate::live::access) connects; `wire` asks, `failure` says what went wrong, `kinds` knows
//!   what is served. `identity` says who berth is; `managed` and `fields` read and rearrange owners.
//! - `lease` sees to it that one of several syncers writes.
//! - `events` tells people.
//! - `survey` looks, `compare` judges: one list for each kind that is owned, a trial for whatever is not as wanted for
//!   certain. `one` brings one object about, `write` all of a stage, `parent` keeps the record.
//!
//! Nothing that berth does not own is changed or removed, a removal is of the very object that was seen,
//! and one object's failure stops no other.

mod compare;
mod events;
mod failure;
mod fields;
mod identity;
mod kinds;
pub mod lease;
mod managed;
mod one;
mod parent;
mod pause;
mod pods;
mod survey;
mod wire;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::runtime::Runtime;

use super::{Apply, NotAdmitted, Preview, Record, Standing, Target, TargetError};
use crate::live::{Access, LiveError};
use crate::model::status::{Problem, Suspension};
use crate::model::{ClusterStatus, ObjectId, Timestamp};
use crate::sync::desired::Desired;
use crate::sync::health::Health;
use crate::sync::plan::{Live, Prune};
use crate::sync::suspend;
use crate::sync::tell::Said;
use events::Told;
use failure::Failure;
use identity::Identity;
use kinds::Kinds;
use lease::{Keeper, Lease};
use parent::Parent;
pub use pause::pause;
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
    /// Without one, nothing keeps two syncers apart.
    pub lease: Option<Lease>,
    /// Whether how rounds went is told as Events.
    pub events: bool,
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
    kinds: Kinds,
    parent: Option<Parent>,
    /// What the last look and the writes since have shown.
    seen: BTreeMap<ObjectId, Seen>,
    /// Since when an object is not healthy, in the form named by its hash.
    unhealthy: BTreeMap<ObjectId, (String, Instant)>,
    /// Objects that failed, and when they are tried again.
    later: BTreeMap<ObjectId, Later>,
    /// What pods say of an object, asked once a round.
    reasons: BTreeMap<ObjectId, Option<String>>,
    notes: Vec<Problem>,
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
    hash: String,
    health: Health,
    /// Selects its pods, where it has some.
    pods: Option<String>,
}

/// A failed object.
#[derive(Debug)]
struct Later {
    hash: String,
    failures: u32,
    at: Instant,
    message: String,
}

/// The shortest and the longest pause after an object failed.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

impl KubeTarget {
    /// Reads the credentials. Whether the server answers shows with the first question.
    pub fn connect(settings: &Settings) -> Result<KubeTarget, LiveError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
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
            kinds: Kinds::default(),
            parent: None,
            seen: BTreeMap::new(),
            unhealthy: BTreeMap::new(),
            later: BTreeMap::new(),
            reasons: BTreeMap::new(),
            notes: Vec::new(),
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

    fn record(&mut self) -> Result<Option<Record>, TargetError> {
        self.runtime.block_on(self.core.read_parent())
    }

    fn suspended(&mut self, now: Timestamp) -> Option<Suspension> {
        let (reason, until) = &self.core.parent.as_ref()?.suspend;
        suspend::read(reason.as_deref(), until.as_deref(), now)
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, TargetError> {
        self.runtime.block_on(self.core.survey(desired))
    }

    fn begin(&mut self, record: &Record, writes: &[Apply<'_>], _: &[&Prune]) -> Result<(), TargetError> {
        self.runtime.block_on(self.core.write_parent(record, writes))
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), TargetError>> {
        self.runtime.block_on(self.core.apply(batch))
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), TargetError>> {
        self.runtime.block_on(self.core.delete(batch))
    }

    fn finish(&mut self) -> Result<(), TargetError> {
        self.runtime.block_on(self.core.narrow_parent())
    }

    fn standing(&mut self, id: &ObjectId) -> Standing {
        self.runtime.block_on(self.core.standing(id))
    }

    fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        self.runtime.block_on(self.core.preview(batch))
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
}

impl Core {
    async fn standing(&mut self, id: &ObjectId) -> Standing {
        let Some(seen) = self.seen.get(id) else {
            return Standing { health: Health::Progressing("it is not there".to_owned()), overdue: false };
        };
        if seen.health == Health::Healthy {
            self.unhealthy.remove(id);
            return Standing::default();
        }
        let now = Instant::now();
        let entry = self.unhealthy.entry(id.clone()).or_insert_with(|| (seen.hash.clone(), now));
        if entry.0 != seen.hash {
            *entry = (seen.hash.clone(), now);
        }
        let overdue = now.duration_since(entry.1) >= self.deadline;
        let health = seen.health.clone();
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
        Standing { health, overdue }
    }

    /// Notes a failure, so that the object is not tried again at once.
    fn put_off(&mut self, id: &ObjectId, hash: String, message: &str, pause: Option<Duration>) {
        let failures = match self.later.get(id) {
            Some(later) if later.hash == hash => later.failures.saturating_add(1),
            _ => 1,
        };
        let (shortest, longest) = PAUSES;
        let doubled = shortest.saturating_mul(1 << failures.min(9)).min(longest);
        let at = Instant::now() + pause.unwrap_or(doubled);
        self.later.insert(id.clone(), Later { hash, failures, at, message: message.to_owned() });
    }

    /// Why an object is not tried now, if it is to wait.
    fn is_put_off(&self, id: &ObjectId, hash: &str) -> Option<&str> {
        let later = self.later.get(id)?;
        (later.hash == hash && Instant::now() < later.at).then_some(later.message.as_str())
    }
}
