//! Cluster refs → artifacts in a registry.
//!
//! - [`one`]: one cluster's folder, each step after what it needs. [`round`]: many clusters, several at a time.
//! - [`attach`]: the seam for signatures and attestations. [`garbage`]: old tags, and what only they lead to.
//!
//! Everything can be repeated at any point: what is there is found by its digest. The pointer that names the commit moves
//! last, so that it says what is whole.

pub mod attach;
pub mod garbage;
mod one;
mod round;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::client::{Digest, Registry};
use berth_git::protocol::Refs;
use berth_git::signature::AllowedSigners;
use berth_git::{CommitId, GitError, Repo};

pub use attach::{Attach, Publication};
pub use garbage::Keep;
pub use one::Published;
pub use round::Round;

/// Publishes the clusters' folders to a registry. One daemon does so at a time.
#[derive(Debug)]
pub struct Publisher {
    registry: Registry,
    /// The keys whose pointers count. Without them, every pointer does.
    keys: Option<AllowedSigners>,
    attached: Vec<Arc<dyn Attach>>,
    keep: Option<Keep>,
    /// Lets tags move back.
    may_go_back: bool,
    /// Whether this daemon publishes, as one of several.
    leads: Arc<AtomicBool>,
    /// The repositories that have a layer, so that others mount it.
    mounts: Mutex<BTreeMap<Digest, String>>,
    /// The registry turned out to delete nothing.
    deletes_nothing: AtomicBool,
    /// The oldest sequence of the time that is kept.
    oldest: AtomicU64,
}

impl Publisher {
    /// Publishes to a registry, without signatures, and keeps everything.
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

    /// Believes only pointers that one of these keys signed.
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

    /// Believes other keys from now on, and attaches other things to what is published next.
    pub fn renew(&mut self, keys: Option<AllowedSigners>, attach: Option<Arc<dyn Attach>>) {
        self.keys = keys;
        self.attached = attach.into_iter().collect();
    }

    /// Removes old tags.
    #[must_use]
    pub fn keeping(self, keep: Option<Keep>) -> Publisher {
        Publisher { keep, ..self }
    }

    /// Lets tags move back to a lower sequence.
    #[must_use]
    pub fn going_back(self, may_go_back: bool) -> Publisher {
        Publisher { may_go_back, ..self }
    }

    /// Returns the switch that stops tags from moving while another daemon publishes.
    pub fn leads(&self) -> Arc<AtomicBool> {
        self.leads.clone()
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Reports whether the registry turned out to delete nothing, although old tags should go.
    pub fn deletes_nothing(&self) -> bool {
        self.deletes_nothing.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Returns the clusters' refs, which are what should be published.
pub fn wanted(repository: &Path, refs: &Refs) -> Result<BTreeMap<String, CommitId>, GitError> {
    let refs = Repo::open(repository)?.list_refs(&refs.clusters)?;
    Ok(refs.iter().map(|(name, commit)| (name.clone(), *commit)).collect())
}
