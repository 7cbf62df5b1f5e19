//! A branch of one cluster, for programs that read branches alone: a commit whose tree is the cluster's folder.
//!
//! The commit follows from the cluster's name and the folder: it has no date, parent or signature. So equal folders
//! have one revision, and whoever knows a folder knows which revision it has there.

use crate::{CommitId, GitError, Identity, TreeId, Writer};

/// Writes the commit for a cluster's folder, and returns its id.
pub fn write_cluster_branch(
    writer: &mut Writer<'_>,
    cluster: &str,
    tree: TreeId,
) -> Result<CommitId, GitError> {
    let message = format!("berth: objects of {}\n", super::trailers::one_line(cluster));
    writer.commit_later(tree, &[], &message, &Identity::default(), 0)
}
