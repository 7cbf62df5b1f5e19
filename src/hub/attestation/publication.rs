//! A commit of the rendered branch, and the clusters' folders that it changed.

use std::collections::BTreeMap;

use crate::publish::{self, PublishError, Trailers};
use berth_base::model::path;
use berth_engine::state::layout;
use berth_git::{CommitId, CommitInfo, EntryKind, Repo, TreeId};

/// A commit of the rendered branch that berth made.
#[derive(Clone, Debug)]
pub struct Publication {
    pub commit: CommitInfo,
    pub trailers: Trailers,
    /// The trees of berth's folders in the commit, by name.
    pub trees: BTreeMap<String, TreeId>,
    /// The clusters' folders that the commit changed, by path, such as `clusters/oslo`. A removed folder has the
    /// empty tree.
    pub folders: BTreeMap<String, TreeId>,
}

impl Publication {
    /// Reads a commit. `None` if berth did not make it.
    pub fn read(repo: &Repo, commit: CommitId) -> Result<Option<Publication>, PublishError> {
        let commit = repo.commit(commit)?;
        let Some(trailers) = publish::claimed(repo, &commit)? else { return Ok(None) };
        let trees = repo.folders_named(commit.tree, layout::OWNED)?;
        let before = match commit.parents.first() {
            Some(parent) => clusters(repo, repo.commit(*parent)?.tree)?,
            None => BTreeMap::new(),
        };
        let mut folders = clusters(repo, commit.tree)?;
        for path in before.keys() {
            folders.entry(path.clone()).or_insert(TreeId::EMPTY);
        }
        folders.retain(|path, tree| before.get(path) != Some(tree));
        Ok(Some(Publication { commit, trailers, trees, folders }))
    }
}

/// Returns the path of a cluster's folder on the branch.
pub fn folder_of(cluster: &str) -> String {
    format!("{}/{}", layout::CLUSTERS, path::encode(cluster))
}

fn clusters(repo: &Repo, root: TreeId) -> Result<BTreeMap<String, TreeId>, PublishError> {
    let Some(clusters) = repo.folders_named(root, [layout::CLUSTERS])?.remove(layout::CLUSTERS) else {
        return Ok(BTreeMap::new());
    };
    let entries = repo.tree(clusters)?.into_iter();
    let folder = |entry: berth_git::Entry| match entry.kind {
        EntryKind::Folder(tree) => {
            Some((format!("{}/{}", layout::CLUSTERS, String::from_utf8_lossy(&entry.name)), tree))
        }
        EntryKind::File(_) | EntryKind::Other { .. } => None,
    };
    Ok(entries.filter_map(folder).collect())
}
