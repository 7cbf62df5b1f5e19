//! A session with one cluster: the connection, and all knowledge of its objects, from the last survey and
//! later writes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};

use super::super::{Apply, BackendError, ObjectHealth, Record};
use super::api_client::ApiClient;
use super::apply_one::ApplyJob;
use super::applyset_parent::ParentRecord;
use super::connection::{Connection, Settings};
use super::deadlines::{Deadlines, Retries, Setback};
use super::drift::{Drift, REPORT_PAUSE};
use super::events::{SentEvents, remove_status};
use super::identity::{LAST_APPLIED, group_kind, group_kind_of};
use super::override_objects::OverrideReader;
use super::pod_reasons::{self, PodReasons};
use super::removal::Protected;
use super::watching::cached_object::{CachedObject, WantedObject};
use super::watching::{Watching, lock};
use crate::sync::desired::Desired;
use crate::sync::health::Health;
use crate::sync::health::custom::HealthRules;
use crate::sync::status::SyncEvent;
use crate::sync::strategy::{Effect, Finding, Strategy};
use berth_base::backoff::pace::paced;
use berth_base::model::annotation::{APPLIED, SEALED};
use berth_base::model::status::Problem;
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};

/// The interval at which overrides kept in the cluster are read.
const OVERRIDES_INTERVAL: Duration = Duration::from_secs(10);

/// The interval at which objects outside of watches are read: foreign, only compared, and unseen ones.
const LOOKS_INTERVAL: Duration = Duration::from_secs(60);

/// The interval at which objects are tried again that the cluster's admission changes: the policy may have been
/// removed.
pub(crate) const ALTERED_INTERVAL: Duration = Duration::from_secs(300);

/// Everything in a backend except the runtime. `survey`, `dry_run` and `batches` contain its longer steps.
pub(crate) struct ClusterSession {
    pub connection: Connection,
    pub parent: ParentRecord,
    pub watching: Watching,
    pub sync: CurrentSync,
    pub rules: Arc<HealthRules>,
    pub protected: Protected,
    pub overrides: OverrideReader,
    pub deadlines: Deadlines,
    pub drift: Drift,
    pub retries: Retries,
    pub pod_reasons: PodReasons,
    pub events: SentEvents,
    pub mask: SecretMask,
    /// Wanted objects that exist and are not berth's, as found by writes. They need a dry run before a write.
    pub existing: BTreeSet<ObjectId>,
    /// Objects removed for recreation, each with its UID, for as long as they exist.
    pub recreated: BTreeMap<ObjectId, Box<str>>,
    /// Objects that the cluster's admission changes when berth applies them, with the moment of the last try.
    pub altered: BTreeMap<ObjectId, Instant>,
    /// True if a write found such an object since the survey.
    pub met_existing: bool,
    /// Tries every object that may differ from its wanted form.
    pub only_tries: bool,
}

impl ClusterSession {
    pub fn new(settings: &Settings, api: ApiClient) -> ClusterSession {
        let watching = Watching::new(settings.silence);
        ClusterSession {
            drift: Drift::new(settings.drift, &api.identity.manager, watching.shared.clone()),
            connection: Connection::new(api, settings.at_once.max(1), settings.tenant.clone()),
            parent: ParentRecord::default(),
            watching,
            sync: CurrentSync::default(),
            rules: settings.rules.clone(),
            protected: Protected::new(&settings.protected, &settings.namespace),
            overrides: OverrideReader::new(settings.overrides_from.clone()),
            deadlines: Deadlines::new(settings.deadline),
            retries: Retries::default(),
            pod_reasons: PodReasons::default(),
            events: SentEvents::new(settings.events),
            mask: SecretMask::default(),
            existing: BTreeSet::new(),
            recreated: BTreeMap::new(),
            altered: BTreeMap::new(),
            met_existing: false,
            only_tries: settings.only_tries,
        }
    }

    /// Reads the record of the last sync.
    pub(crate) async fn read_record(&mut self) -> Result<Option<Record>, BackendError> {
        let watched = lock(&self.watching.shared.record).clone();
        self.parent.read(&mut self.connection, watched).await
    }

    /// Writes the parent before any other write.
    pub(crate) async fn write_parent(
        &mut self,
        record: &Record,
        writes: &[Apply<'_>],
    ) -> Result<(), BackendError> {
        let mut kinds = self.owned_kinds();
        kinds.extend(writes.iter().map(|item| group_kind_of(&item.desired.id)));
        self.parent.write(&mut self.connection, record, kinds).await
    }

    /// Returns the kinds of the objects that berth owns.
    fn owned_kinds(&self) -> BTreeSet<String> {
        let cache = self.watching.shared.cache();
        let cached = cache.entries().filter(|(_, entry)| entry.owned).map(|(id, _)| id);
        let cached = cached.filter(|id| !self.sync.other_names.contains(*id));
        let tracked = self.sync.tracked.iter().filter(|(_, seen)| seen.owned).map(|(id, _)| id);
        let kinds: BTreeSet<(&str, &str)> = cached.chain(tracked).map(|id| (&*id.group, &*id.kind)).collect();
        kinds.into_iter().map(|(group, kind)| group_kind(group, kind)).collect()
    }

    /// Removes kinds without objects from the parent, after all other writes.
    pub(crate) async fn narrow_parent(&mut self) -> Result<(), BackendError> {
        // A failed write may still have succeeded on the server.
        let failed = self.retries.ids().map(group_kind_of);
        let unsure = failed.chain(self.sync.unseen.iter().cloned()).collect();
        let kinds = self.owned_kinds();
        self.parent.narrow(&mut self.connection, kinds, &unsure).await
    }

    pub(crate) async fn remove_parent(&mut self) -> Result<(), BackendError> {
        if self.parent.current.is_some() {
            remove_status(&self.connection.api).await;
        }
        self.parent.remove(&self.connection.api).await
    }

    /// Returns the hash of an object's wanted form.
    pub fn hash_of(&self, object: &Desired) -> Arc<str> {
        let wanted = self.watching.shared.cache().wanted();
        let known = wanted.get(&object.id).filter(|it| it.desired.bytes == object.bytes);
        let hash = || self.connection.api.identity.hash(&object.bytes).into();
        known.map_or_else(hash, |known| known.hash.clone())
    }

    /// Builds the job for an object from the present knowledge of it.
    pub fn job(&self, object: &Desired, path: String) -> ApplyJob {
        let seen = self.sync.tracked.get(&object.id);
        let (live, older) = seen.map(|seen| (seen.live.clone(), seen.older.clone())).unwrap_or_default();
        let identity = &self.connection.api.identity;
        ApplyJob::new(object, path, identity, self.hash_of(object), live).older(older)
    }

    /// Records a failure and schedules the next try.
    pub(crate) fn put_off(&mut self, id: &ObjectId, setback: Setback) {
        let at = self.retries.put_off(id, setback);
        self.watching.shared.cache().mute(id, at);
    }

    pub(crate) fn object_health(&mut self, id: &ObjectId) -> ObjectHealth {
        let Some(seen) = self.sync.tracked.get(id) else {
            let is_there = self.watching.shared.cache().get(id).is_some_and(|entry| entry.owned);
            if is_there {
                self.deadlines.healthy(id);
                return ObjectHealth::default();
            }
            return ObjectHealth {
                health: Health::Progressing("it does not exist".to_owned()),
                ..ObjectHealth::default()
            };
        };
        let remark = seen.remark.clone();
        if seen.health == Health::Healthy {
            self.deadlines.healthy(id);
            return ObjectHealth { remark, ..ObjectHealth::default() };
        }
        let overdue = self.deadlines.is_overdue(id, &seen.hash);
        ObjectHealth { health: seen.health.clone(), overdue, remark }
    }

    /// Returns the reasons from the pods of these objects, if they have pods.
    pub(crate) async fn pod_reasons(&mut self, ids: &[&ObjectId]) -> BTreeMap<ObjectId, String> {
        let tracked = &self.sync.tracked;
        let with_pods = ids.iter().filter_map(|id| Some((*id, tracked.get(*id)?.pods.as_deref()?)));
        self.pod_reasons.of(&self.connection, &with_pods.collect::<Vec<_>>()).await
    }

    /// Returns the verdicts of the objects' strategies on the last survey.
    pub fn findings(&self) -> BTreeMap<ObjectId, Finding> {
        let tracked = self.sync.tracked.iter();
        let findings: BTreeMap<ObjectId, Finding> =
            tracked.filter_map(|(id, seen)| Some((id.clone(), seen.finding.clone()?))).collect();
        // Further changes by the same author start no sync for a while.
        let mut cache = self.watching.shared.cache();
        for (id, _) in findings.iter().filter(|(_, finding)| finding.effect == Effect::Refused) {
            cache.mute(id, Instant::now() + paced(REPORT_PAUSE));
        }
        findings
    }

    /// Writes Events about a sync.
    pub async fn tell(&mut self, said: &[SyncEvent], now: Timestamp) {
        let (tracked, parent) = (&self.sync.tracked, &self.parent.current);
        let uid_of = |about: Option<&ObjectId>| match about {
            Some(id) => tracked.get(id)?.live.as_ref()?.pointer("/metadata/uid")?.as_str().map(str::to_owned),
            None => parent.as_ref().map(|parent| parent.uid.clone()),
        };
        let note = self.events.tell(&self.connection, &uid_of, said, now).await;
        self.sync.notes.extend(note);
    }

    /// Writes the status to the cluster if it changed.
    pub async fn show(&mut self, status: &ClusterStatus) {
        if self.parent.current.is_some() {
            let note = self.events.show(&self.connection.api, status).await;
            self.sync.notes.extend(note);
        }
    }

    /// Returns the next moment at which a sync is due without any change. The last sync covered earlier moments.
    pub fn due(&self) -> Option<Instant> {
        // No watch covers overrides in the cluster, unseen kinds, and objects that berth only reads.
        let looks = |object: &Desired| {
            let strategy = Strategy::of(object);
            strategy.compares() || strategy.only_looks()
        };
        let pause = if !self.overrides.sources.is_empty() {
            Some(paced(OVERRIDES_INTERVAL))
        } else {
            let wanted = self.watching.shared.cache().wanted();
            let is_blind = !self.sync.unseen.is_empty() || wanted.values().any(|it| looks(&it.desired));
            is_blind.then_some(paced(LOOKS_INTERVAL))
        };
        let surveyed = self.sync.surveyed;
        let look = surveyed.zip(pause).map(|(at, pause)| at + pause);
        let tries = self.altered.values().map(|at| *at + paced(ALTERED_INTERVAL));
        let all = self.retries.moments().chain(self.deadlines.ends()).chain(self.drift.ends());
        let all = all.chain(tries).chain(look);
        all.filter(|at| surveyed.is_none_or(|surveyed| *at > surveyed)).min()
    }
}

/// Shows objects, with hashes in place of the data of Secrets.
#[derive(Debug, Default)]
pub(crate) struct SecretMask(RandomState);

impl SecretMask {
    /// Returns an object for display: without the server's fields and the data of Secrets.
    pub fn masked(&self, object: &Json, is_secret: bool) -> Json {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.remove("status");
            if is_secret {
                for key in ["data", "stringData"] {
                    if let Some(data) = map.get_mut(key) {
                        self.hide(data);
                    }
                }
            }
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
            for key in ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"] {
                metadata.remove(key);
            }
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut) {
                annotations.remove(LAST_APPLIED);
                annotations.remove(APPLIED);
                annotations.remove(SEALED);
            }
        }
        object
    }

    fn hide(&self, data: &mut Json) {
        let hidden = |value: &Json| {
            // The key is random for each process, so that a short value cannot be guessed from its hash.
            json!(format!("hash {:016x}", self.0.hash_one(value.to_string())))
        };
        match data {
            Json::Object(map) => {
                let all: Map<String, Json> =
                    map.iter().map(|(key, value)| (key.clone(), hidden(value))).collect();
                *map = all;
            }
            other => *other = hidden(other),
        }
    }
}

/// The knowledge and notes of the present sync.
#[derive(Debug, Default)]
pub(crate) struct CurrentSync {
    /// The start of the survey.
    pub surveyed: Option<Instant>,
    /// Cache: the objects after the survey and later writes. Objects at rest are only in the cache of the watches.
    pub tracked: BTreeMap<ObjectId, TrackedObject>,
    /// Duplicates of wanted objects, served under another group.
    pub other_names: BTreeSet<ObjectId>,
    /// Kinds that may contain berth's objects, and that could not be listed.
    pub unseen: BTreeSet<String>,
    pub notes: Vec<Problem>,
}

impl CurrentSync {
    /// Forgets the objects of the last sync.
    pub fn begin(&mut self) {
        self.tracked.clear();
        self.other_names.clear();
        self.surveyed = Some(Instant::now());
    }

    /// Reports whether an object's kind could not be listed.
    pub(crate) fn is_unseen(&self, id: &ObjectId) -> bool {
        !self.unseen.is_empty() && self.unseen.contains(&group_kind_of(id))
    }

    /// Records an object whose drift berth leaves, with a remark for the report.
    pub(crate) fn leave_drifted(&mut self, id: &ObjectId, remark: Option<String>) {
        let seen = self.tracked.entry(id.clone()).or_insert_with(|| TrackedObject {
            owned: true,
            health: Health::Healthy,
            ..TrackedObject::default()
        });
        seen.remark = remark;
    }
}

/// The present knowledge of one object.
#[derive(Debug, Default)]
pub struct TrackedObject {
    pub owned: bool,
    /// The live object, if a change needs it.
    pub live: Option<Arc<Json>>,
    /// True if somebody changed the object while the wanted form stayed the same.
    pub drifted: bool,
    /// A remark for the report, without any action.
    pub remark: Option<String>,
    /// The UID of an owned object whose form is outdated, whatever its content.
    pub older: Option<String>,
    pub hash: Arc<str>,
    pub health: Health,
    /// The label selector of its pods, if it has some.
    pub pods: Option<String>,
    /// The verdict of its strategy.
    pub finding: Option<Finding>,
}

impl TrackedObject {
    /// Builds the knowledge of an object from its cache entry.
    pub(crate) fn from_entry(entry: &CachedObject, wanted: Option<&WantedObject>) -> TrackedObject {
        let is_older = wanted.is_some_and(|wanted| entry.is_plainly_older(wanted));
        TrackedObject {
            owned: entry.owned,
            drifted: wanted.is_some_and(|wanted| entry.has_drifted(wanted)),
            live: entry.live.clone(),
            older: (is_older && entry.live.is_none()).then(|| entry.uid.to_string()),
            health: entry.health.clone(),
            pods: entry.pods.as_deref().map(str::to_owned),
            finding: entry.finding.clone(),
            ..TrackedObject::default()
        }
    }

    /// Reads the health of a live object, and the selector of its pods.
    pub fn of(object: &Json, rules: &HealthRules) -> TrackedObject {
        TrackedObject {
            health: rules.judge(object),
            pods: pod_reasons::selector_of(object),
            ..TrackedObject::default()
        }
    }
}
