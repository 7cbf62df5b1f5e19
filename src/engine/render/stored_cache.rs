//! The stored cache of a rendering: fingerprints of its inputs, small enough to outlive the process beside
//! the repository, so that the next process makes only changed objects.
//!
//! Valid only together with the state that the rendering became. Losing it costs time only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Write};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::cache::{self, ProcessCache, Reused};
use super::claims::{self, Claim};
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::fleet::Doubt;
use berth_base::model::{Fleet, Folder, Folders, Shared, differences};

type Fingerprint = [u8; 16];

/// Fingerprints of workloads, overrides and picks, by the object's path in lower case.
pub(super) type Fingerprints = Shared<BTreeMap<Arc<str>, Fingerprint>>;

/// Fingerprints of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCache {
    /// The fingerprint of all clusters, and of the kinds that end in `List`.
    clusters: Fingerprint,
    paths: Fingerprints,
}

impl ProcessCache {
    /// Returns the fingerprints of the published copies that may be reused. `None` for an uncertain fleet.
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
        let made = |path: &String| match self.fingerprints.get_key_value(path.as_str()) {
            Some((path, known)) => Some((path.clone(), *known)),
            None => Some((path.as_str().into(), of_claim(groups.get(path)?.first()?))),
        };
        Some(StoredCache {
            clusters: of_clusters(&self.fleet),
            paths: clean.iter().filter_map(made).collect(),
        })
    }
}

impl StoredCache {
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(&self.clusters);
        encoder.list(self.paths.iter(), |encoder, (path, fingerprint)| {
            encoder.text(path);
            encoder.raw(fingerprint);
        });
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<StoredCache> {
        let clusters = decoder.raw()?;
        let paths: BTreeMap<_, _> = decoder.list(|decoder| Some((decoder.text()?, decoder.raw()?)))?;
        Some(StoredCache { clusters, paths: paths.into() })
    }

    /// Starts with the folders that the rendering became, without changed copies.
    pub(super) fn reuse(
        &self,
        folders: &Folders,
        fleet: &Fleet,
        groups: &BTreeMap<String, Vec<Claim<'_>>>,
    ) -> Reused {
        if self.clusters != of_clusters(fleet) {
            return cache::nothing(fleet);
        }
        let mut unchanged = BTreeSet::new();
        let mut stays: BTreeSet<Arc<str>> = BTreeSet::new();
        for (path, group) in groups {
            if let [claim] = group.as_slice()
                && !claim.workload.frozen
                && self.paths.get(path.as_str()).is_some_and(|known| *known == of_claim(claim))
            {
                unchanged.insert(path.clone());
                stays.insert(claim.path.clone());
            }
        }
        let unchanged_of = |(path, known): (&Arc<str>, &Fingerprint)| {
            unchanged.contains(&**path).then(|| (path.clone(), *known))
        };
        let fingerprints = self.paths.iter().filter_map(unchanged_of).collect();
        let mut reused = Reused { folders: folders.clone(), unchanged, fingerprints };
        for folder in reused.folders.values_mut() {
            if folder.keys().any(|path| !stays.contains(path)) {
                folder.retain(|path, _| stays.contains(path));
            }
        }
        reused.folders.retain(|name, folder| !folder.is_empty() || fleet.clusters.contains_key(name));
        for name in fleet.clusters.keys().filter(|name| !folders.contains_key(*name)) {
            reused.folders.insert(name.clone(), Folder::new());
        }
        reused
    }
}

fn of_claim(claim: &Claim<'_>) -> Fingerprint {
    let mut hash = Hashing::default();
    hash.add(&claim.path);
    hash.add(&claim.workload.key);
    hash.add(&claim.workload.overrides);
    hash.add(&claim.workload.replicas);
    hash.add(claim.template);
    claim.numbers().for_each(|number| hash.add(&number));
    hash.finish()
}

fn of_clusters(fleet: &Fleet) -> Fingerprint {
    let mut hash = Hashing::default();
    hash.add(&fleet.clusters);
    hash.add(&fleet.list_kinds);
    hash.finish()
}

/// Values are hashed as they print for debugging: all that is in them, in one order. Another build of berth
/// may print them otherwise, so fingerprints are those of one build.
#[derive(Default)]
struct Hashing(Sha256);

impl Hashing {
    fn add(&mut self, value: &(impl Debug + ?Sized)) {
        // Writing into a hash never fails.
        let _ = writeln!(self, "{value:?}");
    }

    fn finish(self) -> Fingerprint {
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&self.0.finalize()[..16]);
        fingerprint
    }
}

impl Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}
