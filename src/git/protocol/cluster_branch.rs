//! The branch of one cluster, for programs that read only branches: a commit whose tree is the cluster's folder.
//!
//! The commit depends only on the cluster's name and the folder: it has no date, parent or signature. So equal
//! folders have the same revision, and it can be computed from the folder.

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
