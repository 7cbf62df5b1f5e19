//! Follows one kind's objects: a watch from the end of the list, restarted when it ends, and a new list when
//! the server no longer has the changes in between. A kind is also listed again after the server was
//! unreachable: a restored server accepts a watch from a version that it does not have yet, and sends no
//! event for the changes that it lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use serde_json::Value as Json;
use tokio::time::{Instant, sleep, timeout};

use super::super::api_client::ApiClient;
use super::super::compare::uid_of;
use super::super::failure::Failure;
use super::cached_object::{CachedObject, VersionNumber, version_of};
use super::{Shared, lock};
use berth_base::backoff::{Backoff, chance};
use berth_base::model::ObjectId;

/// The list and the watch of one kind.
#[derive(Clone)]
pub(crate) struct KindWatch {
    pub api: ApiClient,
    pub shared: Arc<Shared>,
    pub scope: KindScope,
    /// The time without any event, even a bookmark, after which a watch counts as lost.
    pub silence: Duration,
}

/// The longest time a server keeps a watch open, and the random part added to it.
const OPEN_SECONDS: (u64, u64) = (240, 50);

/// Pauses before a failed watch is restarted.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));

/// The time after which a watch counts as successful.
const LASTING: Duration = Duration::from_secs(5);

/// The interval at which an unwatchable kind is listed.
const RELIST_INTERVAL: Duration = Duration::from_secs(30);

/// The number of short watches in a row after which the kind is also listed.
const MOST_BROKEN: u32 = 6;

/// The number of attempts at a list whose continuation the server has forgotten.
const ATTEMPTS: usize = 3;

/// The reason why a watch ended.
#[derive(Debug)]
enum WatchEnd {
    /// The usual end; the next watch continues from there.
    Closed,
    /// The server no longer has the changes since, or the watch was silent for too long.
    Lost,
    /// The account or server does not allow a watch.
    Refused,
    /// The server did not answer, or failed: it may be returning from a restore.
    Away,
    Broken,
}

impl KindWatch {
    /// Lists all objects. Returns the version from which to watch.
    pub async fn list(&self) -> Result<String, Failure> {
        let mut attempt = 1;
        loop {
            match self.list_once().await {
                // The server keeps a list's continuation for some minutes only.
                Err(failure) if failure.code() == 410 && attempt < ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    async fn list_once(&self) -> Result<String, Failure> {
        let mut objects = Vec::new();
        let api_version = self.scope.api_version();
        let each = |mut object: Json| {
            object["apiVersion"] = Json::from(api_version.as_str());
            object["kind"] = Json::from(&*self.scope.kind);
            if let Some(id) = ObjectId::of(&object) {
                objects.push(self.judged(id, object));
            }
        };
        let version = self.api.list(&self.scope.path, &self.api.identity.selector(), each).await?;
        let listed = self.shared.cache().listed(|id| self.scope.holds(id), objects, version.parse().ok());
        if listed.went_back {
            lock(&self.shared.record).take();
        }
        if listed.asks {
            self.shared.request_sync();
        }
        Ok(version)
    }

    /// Follows the kind for ever, from a version on.
    pub async fn follow(self, mut from: String) {
        let mut failures: u32 = 0;
        loop {
            let begun = Instant::now();
            let end = self.watch(&mut from).await;
            failures = if begun.elapsed() >= LASTING { 0 } else { failures.saturating_add(1) };
            match end {
                WatchEnd::Closed if failures < 2 => continue,
                WatchEnd::Closed | WatchEnd::Broken | WatchEnd::Away => sleep(pause(failures)).await,
                WatchEnd::Refused => sleep(RELIST_INTERVAL).await,
                WatchEnd::Lost => {
                    if failures > 1 {
                        sleep(pause(failures)).await;
                    }
                }
            }
            // A kind whose watches keep breaking is also listed from time to time.
            let keeps_breaking = matches!(end, WatchEnd::Broken) && failures >= MOST_BROKEN;
            if !keeps_breaking && !matches!(end, WatchEnd::Lost | WatchEnd::Refused | WatchEnd::Away) {
                continue;
            }
            loop {
                match self.list().await {
                    // The server went back to an earlier point, so everything seen after it never happened. All
                    // entries are forgotten and listed again.
                    Ok(version) if is_older(&version, &from) => {
                        from = version;
                        self.shared.cache().forget(|id| self.scope.holds(id));
                        lock(&self.shared.record).take();
                        self.shared.request_sync();
                        continue;
                    }
                    Ok(version) => {
                        from = version;
                        self.shared.fault(&self.scope, None);
                        break;
                    }
                    // Without an answer the entries stay, and the next sync reports the failure.
                    Err(Failure::Unreachable(_)) => self.shared.request_sync(),
                    // The kind is no longer served, perhaps for a while. The remaining entries are objects whose
                    // removal nobody saw.
                    Err(failure) if failure.code() == 404 => {
                        self.shared.fault(&self.scope, Some(failure));
                        return;
                    }
                    Err(failure) => self.shared.fault(&self.scope, Some(failure)),
                }
                failures = failures.saturating_add(1);
                sleep(pause(failures)).await;
            }
        }
    }

    /// Runs one watch. Leaves the version to continue from in `from`.
    async fn watch(&self, from: &mut String) -> WatchEnd {
        let params = WatchParams {
            label_selector: Some(self.api.identity.selector()),
            timeout: u32::try_from(OPEN_SECONDS.0 + chance() % OPEN_SECONDS.1).ok(),
            bookmarks: true,
            ..WatchParams::default()
        };
        let Ok(request) = Request::new(&self.scope.path).watch(&params, from) else {
            return WatchEnd::Refused;
        };
        let opened = timeout(self.silence, self.api.server.client.request_events::<Json>(request)).await;
        let stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(kube::Error::Api(status))) => {
                return match status.code {
                    404 | 410 => WatchEnd::Lost,
                    401 | 403 | 405 => WatchEnd::Refused,
                    429 => WatchEnd::Broken,
                    _ => WatchEnd::Away,
                };
            }
            Ok(Err(_)) => return WatchEnd::Away,
            Err(_) => return WatchEnd::Lost,
        };
        let mut stream = std::pin::pin!(stream);
        loop {
            match timeout(self.silence, stream.try_next()).await {
                Err(_) => return WatchEnd::Lost,
                Ok(Ok(None)) => return WatchEnd::Closed,
                Ok(Ok(Some(event))) => match self.hear(event, from) {
                    Ok(()) => {}
                    Err(end) => return end,
                },
                Ok(Err(kube::Error::Api(status))) if status.code == 410 => return WatchEnd::Lost,
                Ok(Err(_)) => return WatchEnd::Broken,
            }
        }
    }

    fn hear(&self, event: WatchEvent<Json>, from: &mut String) -> Result<(), WatchEnd> {
        let object = match event {
            WatchEvent::Bookmark(bookmark) => {
                let version = bookmark.metadata.resource_version;
                // A restored server has gone back to before its last bookmark.
                if is_older(&version, from) {
                    return Err(WatchEnd::Lost);
                }
                *from = version;
                return Ok(());
            }
            WatchEvent::Error(status) if status.code == 410 => return Err(WatchEnd::Lost),
            WatchEvent::Error(_) => return Err(WatchEnd::Broken),
            WatchEvent::Added(object) | WatchEvent::Modified(object) => object,
            WatchEvent::Deleted(object) => {
                note_version(&object, from);
                if let Some(id) = ObjectId::of(&object)
                    && self.shared.cache().gone(&id, uid_of(&object))
                {
                    self.shared.request_sync();
                }
                return Ok(());
            }
        };
        note_version(&object, from);
        if let Some(id) = ObjectId::of(&object)
            && self.take_in(id, object)
        {
            self.shared.request_sync();
        }
        Ok(())
    }

    fn take_in(&self, id: ObjectId, object: Json) -> bool {
        let (id, entry, version) = self.judged(id, object);
        self.shared.cache().put(id, entry, version)
    }

    /// Returns an object's entry and version.
    fn judged(&self, id: ObjectId, object: Json) -> (ObjectId, Option<CachedObject>, VersionNumber) {
        let version = version_of(&object);
        let (wanted, identity) = (self.shared.cache().wanted(), &self.api.identity);
        // The object is judged without the lock. If its wanted form changes meanwhile, the sync of that form judges
        // it again.
        let (id, form) = match wanted.get_key_value(&id) {
            Some((own, form)) => (own.clone(), Some(form)),
            None => (id, None),
        };
        (id, CachedObject::of(object, identity, form), version)
    }
}

fn note_version(object: &Json, from: &mut String) {
    if let Some(version) = object.pointer("/metadata/resourceVersion").and_then(Json::as_str) {
        version.clone_into(from);
    }
}

/// Reports whether a version is older than another.
fn is_older(version: &str, other: &str) -> bool {
    let [version, other] = [version, other].map(|version| version.parse::<u64>().ok());
    version.zip(other).is_some_and(|(version, other)| version < other)
}

/// Returns the pause after failures. A watch that closes without a failure is restarted after the shortest one.
fn pause(failures: u32) -> Duration {
    PAUSES.jittered(failures.saturating_add(1), chance())
}

/// All objects of a kind in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindScope {
    pub group: Arc<str>,
    pub kind: Arc<str>,
    pub version: String,
    pub path: String,
}

impl KindScope {
    pub fn holds(&self, id: &ObjectId) -> bool {
        self.group == id.group && self.kind == id.kind
    }

    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        *self.group == *group && *self.kind == *kind
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}
