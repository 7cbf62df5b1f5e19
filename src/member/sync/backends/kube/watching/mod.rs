//! The owned objects of a cluster, read once by a list for each kind and then followed by a watch.
//!
//! - `cached_object`: the entry of one object. `object_cache`: all entries, and the changes that start a sync.
//!   `kind_watch`: one kind's list and watch. This file has the state that syncs and watches share.
//!
//! If every kind is watched, a sync needs no request to know the live objects. Their contents are dropped after
//! reading: memory grows only with names and hashes.

pub(crate) mod cached_object;
pub(crate) mod kind_watch;
mod object_cache;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use serde_json::Value as Json;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::api_client::ApiClient;
use super::failure::Failure;
use crate::live::concurrency::each;
use crate::sync::backends::RequestSync;
use berth_base::model::annotation::{SUSPEND, SUSPEND_UNTIL};
use kind_watch::{KindScope, KindWatch};
use object_cache::ObjectCache;

/// The followed kinds.
#[derive(Debug)]
pub(crate) struct Watching {
    pub shared: Arc<Shared>,
    following: BTreeMap<KindScope, AbortHandle>,
    /// The kinds that this process has listed, by group and name.
    listed: BTreeSet<(Arc<str>, Arc<str>)>,
    /// True if kinds are watched instead of listed at each sync.
    on: bool,
    notice: Option<AbortHandle>,
    silence: Duration,
}

impl Watching {
    pub fn new(silence: Duration) -> Watching {
        Watching {
            shared: Arc::default(),
            following: BTreeMap::new(),
            listed: BTreeSet::new(),
            on: false,
            notice: None,
            silence,
        }
    }

    pub fn start(&mut self, call: RequestSync) {
        *lock(&self.shared.call) = Some(call);
        self.on = true;
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Ends all watches. The next survey restarts them, with the credentials of that moment.
    pub(crate) fn begin_anew(&mut self) {
        for task in std::mem::take(&mut self.following).into_values().chain(self.notice.take()) {
            task.abort();
        }
        lock(&self.shared.faults).clear();
        lock(&self.shared.record).take();
    }

    /// Reports whether this process has listed a kind.
    pub(crate) fn has_listed(&self, group: &str, kind: &str) -> bool {
        self.listed.iter().any(|(listed_group, listed)| **listed_group == *group && **listed == *kind)
    }

    /// Ends the watches that have failed or that no scope needs.
    fn end_unneeded(&mut self, scopes: &BTreeMap<KindScope, bool>, is_owned: impl Fn(&KindScope) -> bool) {
        self.following.retain(|scope, task| {
            let has_ended =
                || is_owned(scope) && !scopes.keys().any(|other| other.is_of(&scope.group, &scope.kind));
            let stays = !task.is_finished() && (scopes.contains_key(scope) || has_ended());
            if !stays {
                task.abort();
                lock(&self.shared.faults).remove(scope);
                if !is_owned(scope) {
                    self.shared.cache().forget(|id| scope.holds(id));
                }
            }
            stays
        });
    }

    /// Lists each kind that is not yet watched, several at once, and starts the watches. Returns the kinds that could
    /// not be listed, whose entries keep their last state.
    ///
    /// The watch of an owned kind without a scope continues to its end: the events of the removals that preceded the
    /// kind's own may still arrive.
    pub async fn look(
        &mut self,
        scopes: BTreeMap<KindScope, bool>,
        is_owned: impl Fn(&KindScope) -> bool,
        at_once: usize,
        api: &ApiClient,
    ) -> Vec<(KindScope, Failure)> {
        self.shared.called.store(false, Ordering::SeqCst);
        self.end_unneeded(&scopes, is_owned);
        if !self.on {
            self.shared.cache().clear();
        } else if self.notice.is_none() {
            let notice = follow(api.clone(), self.shared.clone(), self.silence);
            self.notice = Some(tokio::spawn(notice).abort_handle());
        }
        let follow = |scope: &KindScope| KindWatch {
            api: api.clone(),
            shared: self.shared.clone(),
            scope: scope.clone(),
            silence: self.silence,
        };
        let new: Vec<(KindScope, bool)> =
            scopes.into_iter().filter(|(scope, _)| !self.following.contains_key(scope)).collect();
        let feeds: Vec<KindWatch> = new.iter().map(|(scope, _)| follow(scope)).collect();
        // A list replaces all earlier entries. They are restored if the list fails.
        let earlier: Vec<_> =
            new.iter().map(|(scope, _)| self.shared.cache().take(|id| scope.holds(id))).collect();
        let results = each(at_once, feeds.iter().map(KindWatch::list)).await;
        let mut failed = Vec::new();
        for ((((scope, is_followed), feed), result), earlier) in
            new.into_iter().zip(feeds).zip(results).zip(earlier)
        {
            match result {
                Ok(from) => {
                    self.listed.insert((scope.group.clone(), scope.kind.clone()));
                    if self.on && is_followed {
                        let task = tokio::spawn(feed.follow(from));
                        self.following.insert(scope, task.abort_handle());
                    }
                }
                Err(failure) => {
                    self.shared.cache().restore(earlier);
                    failed.push((scope, failure));
                }
            }
        }
        // This sync uses the listed objects, so they request no further one.
        self.shared.called.store(false, Ordering::SeqCst);
        let faults = lock(&self.shared.faults);
        failed.extend(faults.iter().map(|(scope, failure)| (scope.clone(), failure.clone())));
        failed
    }
}

/// The pause between two watches.
const PAUSE: Duration = Duration::from_secs(5);

/// The pause if berth has no right to watch the object. Each sync reads it before it writes anyway.
const REFUSED: Duration = Duration::from_secs(300);

/// Follows the record for ever, and requests a sync when its suspension changes.
pub async fn follow(api: ApiClient, shared: Arc<Shared>, silence: Duration) {
    let path = api.identity.parent_path();
    let params = WatchParams {
        // Selected by name, so that the right to watch this one object is enough.
        field_selector: Some(format!("metadata.name={}", api.identity.parent)),
        bookmarks: true,
        ..WatchParams::default()
    };
    let mut known: Option<[Option<String>; 2]> = None;
    loop {
        // From version 0 a watch begins with the existing object.
        let Ok(request) = Request::new(&path).watch(&params, "0") else { return };
        let opened = timeout(silence, api.server.client.request_events::<Json>(request)).await;
        match opened {
            Ok(Ok(stream)) => {
                let mut stream = std::pin::pin!(stream);
                while let Ok(Ok(Some(event))) = timeout(silence, stream.try_next()).await {
                    let object = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => object,
                        // The sync recreates the record.
                        WatchEvent::Deleted(_) => {
                            lock(&shared.record).take();
                            shared.request_sync();
                            continue;
                        }
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    let said = said(&object);
                    lock(&shared.record).replace(object);
                    if known.replace(said.clone()).is_some_and(|before| before != said) {
                        shared.request_sync();
                    }
                }
                lock(&shared.record).take();
                sleep(PAUSE).await;
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => sleep(REFUSED).await,
            Ok(Err(_)) | Err(_) => sleep(PAUSE).await,
        }
    }
}

fn said(object: &Json) -> [Option<String>; 2] {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    [SUSPEND, SUSPEND_UNTIL].map(|name| Some(annotations?.get(name)?.as_str()?.to_owned()))
}

/// The state that syncs and watches share.
#[derive(Default)]
pub struct Shared {
    cache: Mutex<ObjectCache>,
    /// Kinds that cannot be followed.
    pub faults: Mutex<BTreeMap<KindScope, Failure>>,
    /// Berth's record from its watch. `None` while the watch does not have it.
    pub record: Mutex<Option<Json>>,
    pub call: Mutex<Option<RequestSync>>,
    /// True if a sync was requested since the last one began.
    pub called: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn cache(&self) -> MutexGuard<'_, ObjectCache> {
        lock(&self.cache)
    }

    /// Requests a sync. Further requests before it begins have no effect.
    pub(crate) fn request_sync(&self) {
        if self.called.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(call) = &*lock(&self.call) {
            call();
        }
    }

    pub fn fault(&self, scope: &KindScope, failure: Option<Failure>) {
        let mut faults = lock(&self.faults);
        let changed = match failure {
            Some(failure) => faults.insert(scope.clone(), failure.clone()) != Some(failure),
            None => faults.remove(scope).is_some(),
        };
        drop(faults);
        if changed {
            self.request_sync();
        }
    }
}

#[cfg(test)]
mod tests;
