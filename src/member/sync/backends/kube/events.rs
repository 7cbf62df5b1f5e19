//! Writes Kubernetes Events and the status as a ConfigMap, for people who use `kubectl`.
//!
//! One Event per object and reason. It is written again when its message changes or before the server forgets it; the
//! number per sync is limited. If Events cannot be written, one note reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Preconditions};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::api_client::{Action, ApiClient};
use super::connection::Connection;
use super::failure::Failure;
use super::identity::{Identity, SET_ID};
use crate::live::concurrency::each;
use crate::sync::status::SyncEvent;
use berth_base::model::status::Problem;
use berth_base::model::{ClusterStatus, ObjectId, Timestamp};
use berth_base::text::{cut, hex};

/// The number of Events written in one sync.
const MOST: usize = 25;
/// The interval of repetition: servers delete Events after an hour.
const AGAIN: Duration = Duration::from_secs(30 * 60);
/// The longest message that servers take is 1 KiB.
const LONGEST: usize = 900;

/// The object and reason of an Event. The object is `None` for Events about the fleet.
type EventKey = (Option<ObjectId>, &'static str);

fn key_of(said: &SyncEvent) -> EventKey {
    (said.about.clone(), said.reason)
}

/// The Events and the status written so far.
#[derive(Debug, Default)]
pub(crate) struct SentEvents {
    wanted: bool,
    events: BTreeMap<EventKey, Last>,
    /// The moment before which no Event is written, after a failure.
    not_before: Option<Instant>,
    complained: bool,
    status: Option<String>,
    status_is_taken: bool,
    /// The same moment for the status.
    status_not_before: Option<Instant>,
}

impl SentEvents {
    pub fn new(wanted: bool) -> SentEvents {
        SentEvents { wanted, ..SentEvents::default() }
    }
}

#[derive(Debug)]
struct Last {
    message: String,
    at: Instant,
    first: Timestamp,
    count: u32,
}

/// Returns the UID of an object that an Event is about, or of the parent object.
pub(crate) type UidOf<'a> = &'a (dyn Fn(Option<&ObjectId>) -> Option<String> + Sync);

impl SentEvents {
    /// Writes new and due Events. Returns a note once if Events cannot be written.
    pub async fn tell(
        &mut self,
        cluster: &Connection,
        uid_of: UidOf<'_>,
        said: &[SyncEvent],
        now: Timestamp,
    ) -> Option<Problem> {
        if !self.wanted || self.not_before.is_some_and(|at| Instant::now() < at) {
            return None;
        }
        let mut said: Vec<&SyncEvent> = said.iter().collect();
        let mut current = BTreeSet::new();
        // An object has one Event per reason, so only the first message counts.
        said.retain(|said| current.insert(key_of(said)));
        let is_news = |said: &&SyncEvent| {
            let last = self.events.get(&key_of(said));
            last.is_none_or(|last| last.message != said.message || last.at.elapsed() >= AGAIN)
        };
        let news: Vec<SyncEvent> = said.into_iter().filter(is_news).cloned().collect();
        // A message that disappears and returns is news again.
        self.events.retain(|key, last| current.contains(key) || last.at.elapsed() < AGAIN);
        let mut some: Vec<SyncEvent> = news.iter().take(MOST).cloned().collect();
        if news.len() > MOST {
            let message = format!("{} more are in the report", news.len() - MOST);
            some.push(SyncEvent { about: None, is_warning: true, reason: "AndMore", message });
        }
        let told = some.iter().map(|said| self.tell_one(cluster, said, uid_of(said.about.as_ref()), now));
        let mut failed = None;
        for result in each(cluster.at_once, told).await {
            match result {
                Ok((key, last)) => drop(self.events.insert(key, last)),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        let failure = failed?;
        self.not_before = Some(Instant::now() + AGAIN / 3);
        self.complaint(&cluster.api.identity, "Events", &failure)
    }

    async fn tell_one(
        &self,
        cluster: &Connection,
        said: &SyncEvent,
        uid: Option<String>,
        now: Timestamp,
    ) -> Result<(EventKey, Last), Failure> {
        let key = key_of(said);
        let (first, count) =
            self.events.get(&key).map_or((now, 1), |last| (last.first, last.count.saturating_add(1)));
        let last = Last { message: said.message.clone(), at: Instant::now(), first, count };
        let (path, name, object) = event(cluster, said, uid, &last, now);
        match cluster.api.apply_own(&path, &name, &object).await.0 {
            // In a missing namespace the object does not exist either.
            Err(failure) if failure.is_not_found() => {}
            result => drop(result?),
        }
        Ok((key, last))
    }

    /// Writes the status to the cluster if it changed. Returns a note once if that fails.
    pub async fn show(&mut self, api: &ApiClient, status: &ClusterStatus) -> Option<Problem> {
        let timeless = ClusterStatus { reported: None, next_due: None, ..status.clone() };
        let text = berth_base::status::write_status(&timeless);
        if self.status.as_ref() == Some(&text)
            || self.status_is_taken
            || self.status_not_before.is_some_and(|at| Instant::now() < at)
        {
            return None;
        }
        let (path, name) = status_place(&api.identity);
        if self.status.is_none()
            && let Ok(Some(there)) = api.get(&path, &name).await
        {
            // Another fleet's parent object may have the name of this fleet's status.
            let labels = there.get("metadata").and_then(|it| it.get("labels"));
            self.status_is_taken = labels.is_some_and(|labels| labels.get(SET_ID).is_some());
            if self.status_is_taken
                || there.pointer("/data/status.yaml").and_then(Json::as_str) == Some(&text)
            {
                self.status = Some(text);
                return None;
            }
        }
        let applied = status.applied.clone().unwrap_or_default();
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": api.identity.namespace },
            "data": {
                "cluster": status.cluster,
                "sequence": applied.sequence.to_string(),
                "objects": applied.objects.to_string(),
                "problems": (applied.problems.len() + applied.left_out).to_string(),
                "suspended": applied.suspended.map(|it| it.to_string()).unwrap_or_default(),
                "changed": status.reported.map(|it| it.to_string()).unwrap_or_default(),
                "status.yaml": text,
            },
        });
        match api.apply_own(&path, &name, &object).await.0 {
            Ok(_) => {
                self.status = Some(text);
                None
            }
            Err(failure) => {
                self.status_not_before = Some(Instant::now() + AGAIN / 6);
                self.complaint(&api.identity, "the status", &failure)
            }
        }
    }

    fn complaint(&mut self, identity: &Identity, what: &str, failure: &Failure) -> Option<Problem> {
        if std::mem::replace(&mut self.complained, true) {
            return None;
        }
        let message = format!("{what} cannot be written in the cluster: {}", failure.words(false));
        Some(Problem::failed(identity.parent_id(), message))
    }
}

/// Removes the status if it belongs to this fleet. Ignores failures.
pub(crate) async fn remove_status(api: &ApiClient) {
    let (path, name) = status_place(&api.identity);
    let Ok(Some(there)) = api.get(&path, &name).await else { return };
    if there.pointer("/data/status.yaml").is_some() {
        let uid = there.pointer("/metadata/uid").and_then(Json::as_str).map(str::to_owned);
        let preconditions = Preconditions { uid, resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        drop(api.send(&path, &name, Action::Delete(&params)).await);
    }
}

/// Returns the collection and the name of the ConfigMap with the status.
fn status_place(identity: &Identity) -> (String, String) {
    (identity.parent_path(), format!("{}-status", identity.parent))
}

/// Returns the collection, the name and the content of an Event.
fn event(
    cluster: &Connection,
    said: &SyncEvent,
    uid: Option<String>,
    last: &Last,
    now: Timestamp,
) -> (String, String, Json) {
    let own = &cluster.api.identity;
    let id = said.about.clone().unwrap_or_else(|| own.parent_id());
    let mut about = json!({ "kind": &*id.kind, "name": &*id.name });
    if let Some(served) = cluster.kinds.preferred(&id.group, &id.kind) {
        let group = if id.group.is_empty() { String::new() } else { format!("{}/", id.group) };
        about["apiVersion"] = json!(format!("{group}{}", served.version));
    }
    if !id.namespace.is_empty() {
        about["namespace"] = json!(&*id.namespace);
    }
    if let Some(uid) = uid {
        about["uid"] = json!(uid);
    }
    let namespace = if id.namespace.is_empty() { "default" } else { &id.namespace };
    let digest = Sha256::digest(format!("{id}\0{}", said.reason));
    let name = format!("{}.{}", own.parent, hex(&digest[..8]));
    let whole = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at).to_string();
    let object = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": about,
        "type": if said.is_warning { "Warning" } else { "Normal" },
        "reason": said.reason,
        "message": cut(&said.message, LONGEST),
        "source": { "component": "berth" },
        "reportingComponent": "berth.dev/sync",
        "reportingInstance": own.manager,
        "firstTimestamp": whole(last.first), "lastTimestamp": whole(now), "count": last.count,
    });
    (format!("/api/v1/namespaces/{namespace}/events"), name, object)
}
