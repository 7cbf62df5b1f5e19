//! The stored cache of a rendering: cache keys of its copies, small enough to outlive the process beside the
//! repository, so that the next process makes only changed objects.
//!
//! Valid only together with the state that the rendering became. Losing it costs time only.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cache::{ProcessCache, Results};
use super::cache_key::{self, CacheKeys};
use super::claims::Groups;
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::fleet::Doubt;
use berth_base::model::{Fleet, Folder, Folders, differences};

/// Cache keys of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCache {
    keys: CacheKeys,
}

impl ProcessCache {
    /// Returns the cache keys of the published copies that may be reused. `None` for an uncertain fleet.
    pub fn to_stored(&self, published: &Folders) -> Option<StoredCache> {
        let ProcessCache { inputs, results, .. } = self;
        if inputs.fleet.doubt != Doubt::default() {
            return None;
        }
        let (mut other, nothing) = (BTreeSet::new(), Folder::new());
        for one in results.folders.changes(published) {
            let [made, there] = [one.before, one.after].map(|folder| folder.unwrap_or(&nothing));
            other.extend(differences(made, there).map(|one| one.path.to_lowercase()));
        }
        let mut keys = CacheKeys::new();
        for path in self.settled().filter(|path| !other.contains(*path)) {
            let known = results.keys.get(path).copied();
            let made = || Some(cache_key::of(&inputs.fleet, &self.claim(path)?));
            keys.extend(known.or_else(made).map(|key| (path.clone(), key)));
        }
        Some(StoredCache { keys })
    }
}

impl StoredCache {
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.list(self.keys.iter(), |encoder, (path, key)| {
            encoder.text(path);
            encoder.raw(key);
        });
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<StoredCache> {
        let keys = decoder.list(|decoder| Some((decoder.text()?.to_string(), decoder.raw()?)))?;
        Some(StoredCache { keys })
    }

    /// Begins with the folders that the rendering became, without changed copies. Groups of unchanged ones leave.
    pub(super) fn reuse(
        &self,
        folders: &Folders,
        fleet: &Fleet,
        groups: &mut Groups<'_>,
        results: &mut Results,
    ) {
        let mut stays: BTreeSet<Arc<str>> = BTreeSet::new();
        groups.retain(|path, group| {
            if let [claim] = group.as_slice()
                && !claim.workload.frozen
                && let Some(key) = self.keys.get(path)
                && *key == cache_key::of(fleet, claim)
            {
                results.keys.insert(path.clone(), *key);
                stays.insert(claim.path.clone());
                return false;
            }
            true
        });
        results.folders = folders.clone();
        results.folders.update(|_, folder| {
            folder.keys().any(|path| !stays.contains(path)).then(|| {
                let kept = folder.iter().filter(|(path, _)| stays.contains(*path));
                kept.map(|(path, id)| (path.clone(), *id)).collect()
            })
        });
        results.folders.retain(|name, folder| !folder.is_empty() || fleet.clusters.contains_key(name));
        for name in fleet.clusters.keys() {
            results.folders.or_default(name);
        }
    }
}
