//! Reads a cluster's folder from its ref in a local repository.
//!
//! The ref is a commit whose tree is the folder and whose message names the sequence and the cluster. A missing ref,
//! or one of another cluster, is an error and never an empty folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use berth_base::diag::did_you_mean;
use berth_base::model::ContentId;
use berth_base::source::TreeSize;
use berth_base::source::budget::{MOST_BYTES, MOST_OF_A_CLUSTER};
use berth_base::yaml::Limits;
use berth_git::shared_refs::cluster_ref::Replaced;
use berth_git::shared_refs::{Refs, read_cluster_ref};
use berth_git::{CommitId, EntryKind, GitError, Repo, TreeId};

/// The greatest allowed depth of folders; berth writes none so deep.
const DEEPEST: usize = 8;

/// A cluster's folder as published.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterFolder {
    pub cluster: String,
    /// The `Berth-Seq` at which the folder last changed.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
    /// Every file by its path in the folder; empty if only the objects are kept.
    pub objects: BTreeMap<String, Arc<[u8]>>,
    /// Paths that are not files, each with the reason. The objects in their places stay unchanged.
    pub strange: BTreeMap<String, String>,
    /// Paths of namespaces, CRDs and volume claims whose removal is approved.
    pub allow_prune: BTreeSet<String>,
    /// The program that applies the folder, if it is not berth.
    pub applier: Option<String>,
    /// Forged folders that this one replaces.
    pub replaces: BTreeSet<Replaced>,
}

// The contents may be Secrets.
impl fmt::Debug for ClusterFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterFolder")
            .field("cluster", &self.cluster)
            .field("sequence", &self.sequence)
            .field("tree", &self.tree)
            .field("objects", &self.objects.len())
            .finish_non_exhaustive()
    }
}

/// The head of a cluster's ref: everything but the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderHead {
    pub cluster: String,
    pub sequence: u64,
    pub tree: TreeId,
    pub allow_prune: BTreeSet<String>,
    pub applier: Option<String>,
    pub replaces: BTreeSet<Replaced>,
}

/// The reason why there is no folder to apply.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("there is no `{name}` in the repository, so cluster `{cluster}` has no folder")]
    NoFolder { name: String, cluster: String, hint: Option<String> },
    #[error("`{name}` was not published by berth: {message}")]
    NotOurs { name: String, message: String },
    /// Applying a part of the folder would remove the rest.
    #[error("the folder of the cluster exceeds the limit at `{path}`, so the member applies nothing")]
    TooLarge { path: String },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl FolderError {
    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        match self {
            FolderError::NoFolder { hint, .. } => Some(hint.clone().unwrap_or_else(|| {
                "publish with `berth run --once`, or fetch `refs/berth/clusters/*` from where it is published".to_owned()
            })),
            FolderError::NotOurs { .. } => None,
            FolderError::TooLarge { .. } => Some(format!(
                "a folder may have {MOST_OF_A_CLUSTER} entries and {MOST_BYTES} bytes; if this is more than \
                 the fleet places there, another program wrote the ref: `berth run` repairs it"
            )),
            FolderError::Git(error) => error.hint(),
        }
    }
}

/// Returns the commit that a cluster's ref points to.
pub fn newest(repo: &Repo, refs: &Refs, cluster: &str) -> Result<CommitId, FolderError> {
    let name = refs.cluster(cluster);
    repo.read_ref(&name)?.map_or_else(
        || {
            let known = repo.list_refs(&refs.clusters)?;
            let near =
                did_you_mean(cluster, known.keys().filter_map(|name| name.strip_prefix(&refs.clusters)));
            Err(FolderError::NoFolder { name, cluster: cluster.to_owned(), hint: near })
        },
        Ok,
    )
}

/// Reads the head of a cluster's ref.
pub fn head(repo: &Repo, refs: &Refs, cluster: &str) -> Result<FolderHead, FolderError> {
    head_at(repo, refs, cluster, newest(repo, refs, cluster)?)
}

/// Reads the head of a commit that a cluster's ref points to, or did.
pub(crate) fn head_at(
    repo: &Repo,
    refs: &Refs,
    cluster: &str,
    id: CommitId,
) -> Result<FolderHead, FolderError> {
    let name = refs.cluster(cluster);
    let Some(said) = read_cluster_ref(repo, id) else {
        let message = "its commit does not name its cluster and sequence".to_owned();
        return Err(FolderError::NotOurs { name, message });
    };
    if said.cluster != cluster {
        let message = format!("its commit names cluster `{}`", said.cluster);
        return Err(FolderError::NotOurs { name, message });
    }
    Ok(FolderHead {
        cluster: said.cluster,
        sequence: said.seq,
        tree: said.tree,
        allow_prune: said.allow_prune,
        applier: said.applier,
        replaces: said.replaces,
    })
}

/// Reads a cluster's whole folder.
pub fn fetch(repo: &Repo, refs: &Refs, cluster: &str) -> Result<ClusterFolder, FolderError> {
    read(repo, head(repo, refs, cluster)?)
}

/// Reads the folder that a head names.
pub fn read(repo: &Repo, head: FolderHead) -> Result<ClusterFolder, FolderError> {
    let listing = list(repo, head.tree)?;
    let mut objects = BTreeMap::new();
    for (path, blob) in listing.files {
        objects.insert(path, repo.blob(blob)?.into());
    }
    Ok(ClusterFolder { objects, strange: listing.strange, ..head.without_files() })
}

/// Lists the files of a folder.
pub(crate) fn list(repo: &Repo, tree: TreeId) -> Result<FolderListing, FolderError> {
    let mut listing = FolderListing::default();
    listing.walk(repo, tree, "", 0)?;
    Ok(listing)
}

impl ClusterFolder {
    /// Reports whether the applied folder is a forged one that this one replaces.
    pub(crate) fn replaces(&self, sequence: u64, tree: &str) -> bool {
        self.replaces.iter().any(|one| one.seq == sequence && one.tree.to_string() == tree)
    }
}

impl FolderHead {
    /// Returns the folder without its files.
    pub(crate) fn without_files(self) -> ClusterFolder {
        let FolderHead { cluster, sequence, tree, allow_prune, applier, replaces } = self;
        let (tree, objects, strange) = (tree.to_string(), BTreeMap::new(), BTreeMap::new());
        ClusterFolder { cluster, sequence, tree, objects, strange, allow_prune, applier, replaces }
    }
}

/// The files of a folder, listed but not read.
#[derive(Debug, Default)]
pub(crate) struct FolderListing {
    /// Every file by its path in the folder.
    pub files: Vec<(String, ContentId)>,
    /// Paths that are not files, each with the reason.
    pub strange: BTreeMap<String, String>,
    size: TreeSize,
}

impl FolderListing {
    fn walk(&mut self, repo: &Repo, tree: TreeId, folder: &str, depth: usize) -> Result<(), FolderError> {
        for entry in repo.tree(tree)? {
            let path = format!("{folder}{}", String::from_utf8_lossy(&entry.name));
            let (mut bytes, most) = (0, Limits::of_a_part().bytes as u64);
            if let EntryKind::File(id) = entry.kind {
                bytes = repo.blob_size(id)?;
            }
            let is_long = bytes > most;
            self.size = self.size.plus(TreeSize::of_entry(path.len(), if is_long { 0 } else { bytes }));
            if self.size.entries > MOST_OF_A_CLUSTER || self.size.bytes > MOST_BYTES {
                return Err(FolderError::TooLarge { path });
            }
            match entry.kind {
                EntryKind::File(_) if is_long => {
                    self.strange.insert(path, format!("it has {bytes} bytes, more than the limit of {most}"));
                }
                EntryKind::File(id) => self.files.push((path, id)),
                EntryKind::Folder(_) if depth >= DEEPEST => {
                    self.strange.insert(path, "it is a folder, and no folder is expected there".to_owned());
                }
                EntryKind::Folder(id) => self.walk(repo, id, &format!("{path}/"), depth + 1)?,
                EntryKind::Other { .. } => {
                    self.strange.insert(path, "it is not a plain file in the cluster's folder".to_owned());
                }
            }
        }
        Ok(())
    }
}
