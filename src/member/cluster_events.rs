//! Writes Events (`events.k8s.io/v1`) about the fleet to one cluster, for people who use `kubectl`.
//!
//! A separate thread writes them, so that no caller waits for an API server. An Event's name is derived from its
//! cause: two processes that report the same cause write one Event.

use std::io;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use sha2::{Digest as _, Sha256};
use tracing::{info, warn};

use crate::live::Access;
use crate::live::client::RightQuestion;
use crate::live::error::{one_line, reason};
use crate::live::session::{ApiServer, ApiSession};
use berth_base::backoff::{self, Backoff};
use berth_base::meta::names;
use berth_base::model::{Key, Timestamp};
use berth_base::text::{cut, hex};

/// The number of Events that may wait for the API server.
const MOST_WAITING: usize = 256;
/// The number of attempts at one Event, and the pauses between them: a few minutes in all.
const ATTEMPTS: u32 = 8;
const PAUSES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// The time limit of an attempt.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time that an ending process leaves for unwritten Events.
const LAST_CHANCE: Duration = Duration::from_secs(5);
/// The longest note that servers take is 1 KiB.
const LONGEST: usize = 900;

/// The object that the Events are about. They are written to its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlace {
    kind: &'static PlaceKind,
    namespace: String,
    name: String,
}

#[derive(Debug, PartialEq, Eq)]
struct PlaceKind {
    word: &'static str,
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
}

/// All kinds are of version `v1`.
const KINDS: [PlaceKind; 4] = [
    PlaceKind { word: "deployment", group: "apps", kind: "Deployment", plural: "deployments" },
    PlaceKind { word: "statefulset", group: "apps", kind: "StatefulSet", plural: "statefulsets" },
    PlaceKind { word: "pod", group: "", kind: "Pod", plural: "pods" },
    PlaceKind { word: "configmap", group: "", kind: "ConfigMap", plural: "configmaps" },
];

impl FromStr for EventPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<EventPlace, String> {
        let wrong = || {
            let words = KINDS.map(|kind| format!("`{}`", kind.word)).join(", ");
            format!("write it as `deployment/NAMESPACE/NAME`; kinds are {words}")
        };
        let parts: Vec<&str> = text.split('/').collect();
        let [word, namespace, name] = parts[..] else { return Err(wrong()) };
        let kind = KINDS.iter().find(|kind| kind.word == word).ok_or_else(wrong)?;
        let fits = names::is_dns_subdomain(namespace) && names::is_dns_subdomain(name);
        fits.then(|| EventPlace { kind, namespace: namespace.to_owned(), name: name.to_owned() })
            .ok_or_else(wrong)
    }
}

impl EventPlace {
    /// Returns the rights needed to write Events.
    pub fn rights(&self) -> [RightQuestion; 2] {
        let events = RightQuestion {
            verb: "create",
            group: "events.k8s.io".to_owned(),
            resource: "events".to_owned(),
            namespace: Some(self.namespace.clone()),
            name: None,
        };
        let object = RightQuestion {
            verb: "get",
            group: self.kind.group.to_owned(),
            resource: self.kind.plural.to_owned(),
            name: Some(self.name.clone()),
            ..events.clone()
        };
        [events, object]
    }
}

/// One Event to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterEvent {
    /// The cause. An Event with the same cause is a repetition.
    pub cause: String,
    pub at: Timestamp,
    /// The workload that the Event relates to.
    pub workload: Key,
    pub is_warning: bool,
    pub reason: &'static str,
    pub action: &'static str,
    pub note: String,
}

/// Writes Events until it is dropped.
#[derive(Debug)]
pub struct EventWriter {
    queue: Option<SyncSender<ClusterEvent>>,
    ended: Receiver<()>,
}

impl EventWriter {
    /// Starts the thread. The log reports later if Events cannot be written.
    pub fn start(access: Access, place: EventPlace) -> io::Result<EventWriter> {
        let access = Access { patience: PATIENCE, ..access };
        let (queue, waiting) = sync_channel(MOST_WAITING);
        let (ends, ended) = channel::<()>();
        let mut worker = Worker { access, place, complained: false };
        thread::Builder::new().name("events".to_owned()).spawn(move || {
            let _ends = ends;
            worker.look();
            waiting.iter().for_each(|event| worker.deliver(&event));
        })?;
        Ok(EventWriter { queue: Some(queue), ended })
    }

    /// Queues Events. Drops those that do not fit into the queue.
    pub fn tell(&self, events: impl IntoIterator<Item = ClusterEvent>) {
        let Some(queue) = &self.queue else { return };
        let dropped = events.into_iter().filter_map(|event| queue.try_send(event).err()).count();
        if dropped > 0 {
            warn!(dropped, "too many Events wait for the API server");
        }
    }
}

impl Drop for EventWriter {
    /// Waits a short time for unwritten Events.
    fn drop(&mut self) {
        self.queue = None;
        if self.ended.recv_timeout(LAST_CHANCE) == Err(RecvTimeoutError::Timeout) {
            warn!("the process ends: dropped the Events that the API server did not take in time");
        }
    }
}

/// The receiving end of the queue, on its own thread.
struct Worker {
    access: Access,
    place: EventPlace,
    /// The last failure was logged.
    complained: bool,
}

impl Worker {
    /// Looks the object up at once, so that a wrong name or a missing right is logged before the first Event.
    fn look(&mut self) {
        if let Err(why) = self.attempt(async |server| self.uid(server).await) {
            self.complain(&why);
        }
    }

    fn deliver(&mut self, event: &ClusterEvent) {
        for attempt in 1..=ATTEMPTS {
            match self.attempt(async |server| self.create(server, event).await) {
                Ok(()) if std::mem::take(&mut self.complained) => {
                    return info!("Events can be written again");
                }
                Ok(()) => return,
                Err(why) => self.complain(&why),
            }
            if attempt < ATTEMPTS {
                thread::sleep(PAUSES.jittered(attempt, backoff::chance()));
            }
        }
    }

    fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.complained, true) {
            warn!(error = why, "Events cannot be written");
        }
    }

    /// Connects for each attempt: Events are rare, and credentials change.
    fn attempt<T>(&self, work: impl AsyncFnOnce(&ApiServer) -> Result<T, String>) -> Result<T, String> {
        let session = ApiSession::open(&self.access).map_err(|error| error.to_string())?;
        session.wait("Events", work(&session.server)).map_err(|error| error.to_string())?
    }

    /// Returns the object's UID, by which `kubectl describe` finds its Events.
    async fn uid(&self, server: &ApiServer) -> Result<Option<String>, String> {
        let EventPlace { kind, namespace, name } = &self.place;
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: "v1".to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        let objects: Api<DynamicObject> = Api::namespaced_with(server.client.clone(), namespace, &resource);
        objects.get_metadata(name).await.map(|found| found.metadata.uid).map_err(|error| words(&error))
    }

    async fn create(&self, server: &ApiServer, event: &ClusterEvent) -> Result<(), String> {
        // If the object is missing or unreadable, the Event is written without its UID.
        let uid = self.uid(server).await.unwrap_or_default();
        let events: Api<Event> = Api::namespaced(server.client.clone(), &self.place.namespace);
        match events.create(&PostParams::default(), &self.place.event(event, uid)).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            created => created.map(drop).map_err(|error| words(&error)),
        }
    }
}

fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => one_line(&status.message),
        error => reason(error),
    }
}

impl PlaceKind {
    fn api_version(&self) -> String {
        if self.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", self.group) }
    }
}

impl EventPlace {
    fn event(&self, event: &ClusterEvent, uid: Option<String>) -> Event {
        let ClusterEvent { cause, at, workload, is_warning, reason, action, note } = event;
        let regarding = ObjectReference {
            api_version: Some(self.kind.api_version()),
            kind: Some(self.kind.kind.to_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            uid,
            ..ObjectReference::default()
        };
        // The workload's API version is unknown here.
        let related = ObjectReference {
            kind: Some(workload.kind.to_string()),
            namespace: Some(workload.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
            name: Some(workload.name.to_string()),
            ..ObjectReference::default()
        };
        let digest = Sha256::digest(format!("{}\0{workload}\0{cause}\0{reason}", workload.group));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("berth-run.{}", hex(&digest[..8]))),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(*at)),
            type_: Some(if *is_warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some((*reason).to_owned()),
            action: Some((*action).to_owned()),
            note: Some(cut(note, LONGEST)),
            regarding: Some(regarding),
            related: Some(related),
            reporting_controller: Some("berth.dev/run".to_owned()),
            reporting_instance: Some(cut(&self.name, 100)),
            ..Event::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_kind_a_namespace_and_a_name() {
        let place: EventPlace = "deployment/berth-system/berth".parse().expect("a place");
        assert_eq!(
            (place.kind.kind, &*place.namespace, &*place.name),
            ("Deployment", "berth-system", "berth")
        );
        for bad in
            ["", "berth", "berth-system/berth", "Deployment/a/b", "job/a/b", "pod/a/", "pod/A/b", "pod/a/b/c"]
        {
            let said = bad.parse::<EventPlace>().expect_err(bad);
            assert!(said.contains("`deployment/NAMESPACE/NAME`"), "{said}");
        }
    }

    #[test]
    fn the_same_cause_gives_the_same_event() {
        let place: EventPlace = "configmap/berth-system/berth".parse().expect("a place");
        let told = ClusterEvent {
            cause: "publication 1".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            workload: Key::new("types.kubefed.io", "FederatedConfigMap", "shop", "web"),
            is_warning: true,
            reason: "RolloutHalted",
            action: "RollOut",
            note: "ä".repeat(1000),
        };
        let event = place.event(&told, None);
        assert_eq!(event, place.event(&told, None));
        assert!(event.note.as_ref().is_some_and(|note| note.len() <= 1024 && note.ends_with('…')));
        let other = ClusterEvent { cause: "publication 2".to_owned(), ..told };
        assert_ne!(event.metadata.name, place.event(&other, None).metadata.name);
    }
}
