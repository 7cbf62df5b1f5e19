//! The state that syncs and watches share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use super::super::failure::Failure;
use super::kind_scope::KindScope;
use super::object_cache::ObjectCache;
use crate::sync::backends::RequestSync;

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
