//! The stored cache of a rendering: cache keys of its copies, small enough to outlive the process beside the
//! repository, so that the next process makes only changed objects.
//!
//! Valid only together with the state that the rendering became. Losing it costs time only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cache::{ProcessCache, Reused};
use super::cache_key::{self, CacheKey, CacheKeys};
use super::claims::{self, Claim};
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
        if self.fleet.doubt != Doubt::default() {
            return None;
        }
        let (mut clean, nothing) = (self.clean.clone(), Folder::new());
        let clusters: BTreeSet<&String> = published.keys().chain(self.folders.keys()).collect();
        for cluster in clusters {
            let [made, there] = [&self.folders, published].map(|all| all.get(cluster).unwrap_or(&nothing));
            for one in differences(made, there) {
                clean.remove(&one.path.to_lowercase());
            }
        }
        let groups = claims::group(&self.fleet, &self.frozen, &self.picks);
        let made = |path: &String| match self.keys.get_key_value(path.as_str()) {
            Some((path, key)) => Some((path.clone(), *key)),
            None => Some((path.as_str().into(), cache_key::of(&self.fleet, groups.get(path)?.first()?))),
        };
        Some(StoredCache { keys: clean.iter().filter_map(made).collect() })
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
        let keys: BTreeMap<_, _> = decoder.list(|decoder| Some((decoder.text()?, decoder.raw()?)))?;
        Some(StoredCache { keys: keys.into() })
    }

    /// Starts with the folders that the rendering became, without changed copies.
    pub(super) fn reuse(
        &self,
        folders: &Folders,
        fleet: &Fleet,
        groups: &BTreeMap<String, Vec<Claim<'_>>>,
    ) -> Reused {
        let mut unchanged = BTreeSet::new();
        let mut stays: BTreeSet<Arc<str>> = BTreeSet::new();
        for (path, group) in groups {
            if let [claim] = group.as_slice()
                && !claim.workload.frozen
                && self.keys.get(path.as_str()).is_some_and(|key| *key == cache_key::of(fleet, claim))
            {
                unchanged.insert(path.clone());
                stays.insert(claim.path.clone());
            }
        }
        let unchanged_of =
            |(path, key): (&Arc<str>, &CacheKey)| unchanged.contains(&**path).then(|| (path.clone(), *key));
        let keys = self.keys.iter().filter_map(unchanged_of).collect();
        let mut reused = Reused { folders: folders.clone(), unchanged, keys };
        reused.folders.update(|_, folder| {
            folder.keys().any(|path| !stays.contains(path)).then(|| {
                let kept = folder.iter().filter(|(path, _)| stays.contains(*path));
                kept.map(|(path, id)| (path.clone(), *id)).collect()
            })
        });
        reused.folders.retain(|name, folder| !folder.is_empty() || fleet.clusters.contains_key(name));
        for name in fleet.clusters.keys().filter(|name| !folders.contains_key(*name)) {
            reused.folders.insert(name.clone(), Folder::new());
        }
        reused
    }
}
