//! Publishes cluster refs as artifacts in a registry.
//!
//! - [`one`]: publishes one cluster's folder in steps. [`round`]: many clusters, several at a time. [`attach`]: the
//!   interface for signatures and attestations. [`garbage`]: removes old tags, and manifests that only they reach.
//!
//! Every step can be repeated: existing parts are found by their digests. The pointer to the commit moves last, so
//! that it only names complete folders.

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
        self.deletes_nothing.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Returns the clusters' refs to publish.
pub fn wanted(repository: &Path, refs: &Refs) -> Result<BTreeMap<String, CommitId>, GitError> {
    let refs = Repo::open(repository)?.list_refs(&refs.clusters)?;
    Ok(refs.iter().map(|(name, commit)| (name.clone(), *commit)).collect())
}
