//! The interface for attachments of a folder's manifest: signatures, attestations.

use crate::client::{Descriptor, Repository};
use crate::error::RegistryError;
use berth_git::protocol::ClusterRef;
use berth_git::{CommitId, Repo};

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
