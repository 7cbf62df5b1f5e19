//! Publishes cluster refs as artifacts in a registry.
//!
//! - This file: many clusters, several at a time, and the interface for signatures and attestations. [`one_cluster`]:
//!   publishes one cluster's folder in steps. [`garbage`]: removes old tags, and manifests that only they reach.
//!
//! Every step can be repeated: existing parts are found by their digests. The pointer to the commit moves last, so
//! that it only names complete folders.

pub mod garbage;
mod one_cluster;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::client::{Descriptor, Digest, Registry, Repository};
use crate::error::RegistryError;
use berth_base::progress::Progress;
use berth_git::shared_refs::{ClusterRef, Refs};
use berth_git::signature::AllowedSigners;
use berth_git::{CommitId, GitError, Repo};

pub use garbage::Keep;
pub use one_cluster::Published;

/// Publishes the clusters' folders to a registry. One daemon does so at a time.
#[derive(Debug)]
pub struct Publisher {
    registry: Registry,
    /// The keys whose pointers are trusted. `None` trusts every pointer.
    keys: Option<AllowedSigners>,
    attached: Vec<Arc<dyn Attach>>,
    keep: Option<Keep>,
    /// Allows tags to move back.
    may_go_back: bool,
    /// True while this daemon, one of several, publishes.
    leads: Arc<AtomicBool>,
    /// A repository with each layer, from which other repositories mount it.
    mounts: Mutex<BTreeMap<Digest, String>>,
    /// True if the registry supports no deletion.
    deletes_nothing: AtomicBool,
    /// The oldest sequence within the time to keep.
    oldest: AtomicU64,
}

impl Publisher {
    /// Makes a publisher without signatures that keeps everything.
    pub fn new(registry: Registry) -> Publisher {
        Publisher {
            registry,
            keys: None,
            attached: Vec::new(),
            keep: None,
            may_go_back: false,
            leads: Arc::new(AtomicBool::new(true)),
            mounts: Mutex::default(),
            deletes_nothing: AtomicBool::default(),
            oldest: AtomicU64::default(),
        }
    }

    /// Trusts only pointers signed by one of these keys.
    #[must_use]
    pub fn believing(self, keys: Option<AllowedSigners>) -> Publisher {
        Publisher { keys, ..self }
    }

    /// Attaches this to each folder's manifest before a tag names it.
    #[must_use]
    pub fn attaching(mut self, attach: Arc<dyn Attach>) -> Publisher {
        self.attached.push(attach);
        self
    }

    /// Replaces the trusted keys and the attachments, from the next publication on.
    pub fn renew(&mut self, keys: Option<AllowedSigners>, attach: Option<Arc<dyn Attach>>) {
        self.keys = keys;
        self.attached = attach.into_iter().collect();
    }

    /// Removes old tags, except those that `keep` selects.
    #[must_use]
    pub fn keeping(self, keep: Option<Keep>) -> Publisher {
        Publisher { keep, ..self }
    }

    /// Allows tags to move back to a lower sequence.
    #[must_use]
    pub fn going_back(self, may_go_back: bool) -> Publisher {
        Publisher { may_go_back, ..self }
    }

    /// Returns the flag that stops tags from moving while another daemon publishes.
    pub fn leads(&self) -> Arc<AtomicBool> {
        self.leads.clone()
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Reports whether the registry supports no deletion, although old tags should be removed.
    pub fn deletes_nothing(&self) -> bool {
        self.deletes_nothing.load(Ordering::Relaxed)
    }
}

/// Returns the clusters' refs to publish.
pub fn wanted(repository: &Path, refs: &Refs) -> Result<BTreeMap<String, CommitId>, GitError> {
    let refs = Repo::open(repository)?.list_refs(&refs.clusters)?;
    Ok(refs.iter().map(|(name, commit)| (name.clone(), *commit)).collect())
}

/// A folder whose manifest is in the registry under its digest, before any tag names it.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    pub repository: &'a Repository,
    /// The manifest, in the form of a `subject`.
    pub manifest: &'a Descriptor,
    /// The content of the cluster's ref.
    pub cluster: &'a ClusterRef,
    /// The commit of the cluster's ref.
    pub commit: CommitId,
    /// The daemon's repository.
    pub repo: &'a Repo,
}

/// An attachment that each folder gets before a tag names it.
pub trait Attach: std::fmt::Debug + Send + Sync {
    /// Attaches it, unless it exists. After an error no tag moves.
    fn attach(&self, publication: &Publication<'_>) -> Result<(), RegistryError>;
}

/// The number of clusters published at a time.
const AT_ONCE: usize = 8;

/// The results of a round.
#[derive(Debug, Default)]
pub struct Round {
    /// The clusters that the registry has now, by ref.
    pub published: BTreeMap<String, (CommitId, Published)>,
    /// The clusters that failed, by ref, with the reason. Clusters that were not tried are in neither map.
    pub failures: BTreeMap<String, RegistryError>,
}

impl Round {
    /// Counts the clusters whose publication is new in the registry.
    pub fn changed(&self) -> usize {
        let is_new =
            |result: &&(CommitId, Published)| matches!(result.1, Published::Folder(_) | Published::Renamed);
        self.published.values().filter(is_new).count()
    }
}

impl Publisher {
    /// Publishes these refs of a repository. Ends early if the registry is unreachable.
    pub fn round(
        &self,
        repository: &Path,
        wanted: &BTreeMap<String, CommitId>,
        progress: &Progress,
    ) -> Round {
        let items: Vec<(&String, &CommitId)> = wanted.iter().collect();
        let (next, is_away) = (AtomicUsize::new(0), AtomicBool::new(false));
        let round = Mutex::new(Round::default());
        if let Ok(repo) = Repo::open(repository) {
            self.look_back(&repo);
        }
        progress.begin_of("publishing to the registry", items.len());
        let work = || {
            let repo = Repo::open(repository);
            while !is_away.load(Ordering::SeqCst) && self.leads.load(Ordering::SeqCst) {
                let Some((name, commit)) = items.get(next.fetch_add(1, Ordering::SeqCst)) else { break };
                let result = match &repo {
                    Ok(repo) => self.publish_one(repo, **commit),
                    Err(_) => Repo::open(repository)
                        .map(drop)
                        .map_err(RegistryError::from)
                        .map(|()| Published::NotOurs),
                };
                progress.add(1);
                let mut round = round.lock().unwrap_or_else(PoisonError::into_inner);
                match result {
                    Ok(Published::NotOurs) => {}
                    Ok(published) => {
                        round.published.insert((*name).clone(), (**commit, published));
                    }
                    Err(error) => {
                        if error.is_passing() {
                            is_away.store(true, Ordering::SeqCst);
                        }
                        round.failures.insert((*name).clone(), error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..AT_ONCE.min(items.len()) {
                scope.spawn(work);
            }
            work();
        });
        round.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
