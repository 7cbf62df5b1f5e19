//! The statuses sent by POST: one commit with a file per cluster. Its history is never read.
//!
//! Files are spread over folders by a digest of their names, so that a few new statuses change a few small trees.

use sha2::{Digest as _, Sha256};

use crate::{CommitId, EntryKind, GitError, Repo};
use berth_base::model::{ContentId, Map, path};
use berth_base::text::hex;

/// Returns the path of a cluster's status.
pub fn path_of(cluster: &str) -> String {
    let digest = Sha256::digest(cluster.as_bytes());
    format!("{}/{}.yaml", hex(&digest[..1]), path::encode(cluster))
}

/// Lists the status files of the commit by path. Skips other files.
pub fn list(repo: &Repo, commit: CommitId) -> Result<Map<String, ContentId>, GitError> {
    let mut files = Map::new();
    for folder in repo.tree(repo.commit(commit)?.tree)? {
        let (EntryKind::Folder(tree), Ok(folder)) = (folder.kind, String::from_utf8(folder.name)) else {
            continue;
        };
        for file in repo.tree(tree)? {
            if let (EntryKind::File(id), Ok(name)) = (file.kind, String::from_utf8(file.name)) {
                files.insert(format!("{folder}/{name}"), id);
            }
        }
    }
    Ok(files)
}
