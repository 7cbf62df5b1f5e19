//! The seam for what is attached to a folder's manifest: signatures, attestations.

use crate::client::{Descriptor, Repository};
use crate::error::RegistryError;
use berth_git::protocol::ClusterRef;
use berth_git::{CommitId, Repo};

/// A folder whose manifest is in the registry, under its digest alone: no tag names it yet.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    pub repository: &'a Repository,
    /// The manifest, as a `subject` names it.
    pub manifest: &'a Descriptor,
    /// The cluster, its sequence, its tree and what may be removed.
    pub cluster: &'a ClusterRef,
    /// The commit of the cluster's ref.
    pub commit: CommitId,
    /// The daemon's repository.
    pub repo: &'a Repo,
}

/// Something that is attached to each folder before a tag names it.
pub trait Attach: std::fmt::Debug + Send + Sync {
    /// Attaches it, unless it is there. An error keeps the tags where they are.
    fn attach(&self, publication: &Publication<'_>) -> Result<(), RegistryError>;
}
