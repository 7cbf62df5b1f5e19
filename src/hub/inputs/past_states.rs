//! The states of earlier rendered commits, as far as the gate wants to know them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::InputError;
use crate::publish::prune_permits::own_at;
use berth_base::model::{Decision, Key, path};
use berth_engine::gate::window::Paths;
use berth_engine::gate::{PastState, Wanted};
use berth_engine::state::{decision, layout};
use berth_git::{CommitId, EntryKind, Repo, TreeId};

/// Reads parts of rendered trees. Clusters share most of their folders.
pub(super) struct PastStates<'r> {
    repo: &'r Repo,
    /// The paths below a cluster's folder.
    paths: BTreeMap<TreeId, Paths>,
}

impl<'r> PastStates<'r> {
    pub(super) fn of(repo: &'r Repo) -> PastStates<'r> {
        PastStates { repo, paths: BTreeMap::new() }
    }

    /// Reads the state of a rendered commit. `None` where the repository lacks it.
    pub(super) fn read(
        &mut self,
        commit: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Option<PastState>, InputError> {
        let Some(commit) = commit.parse().ok().filter(|commit: &CommitId| self.repo.has_commit(*commit))
        else {
            return Ok(None);
        };
        let Some((_, own)) = own_at(self.repo, commit)? else { return Ok(None) };
        let mut decisions = Vec::new();
        for workload in &wanted.workloads {
            decisions.extend(self.decision(own.root, workload)?);
        }
        let folders = self.folders(own.root, wanted.clusters)?;
        Ok(Some(PastState { seq: own.trailers.seq, decisions, folders }))
    }

    fn decision(&self, root: TreeId, key: &Key) -> Result<Option<Decision>, InputError> {
        let mut folder = root;
        for part in format!("{}/{}", layout::DECISIONS, path::of_key(key)).split('/') {
            let found = self.repo.tree(folder)?.into_iter().find(|entry| entry.name == part.as_bytes());
            match found.map(|entry| entry.kind) {
                Some(EntryKind::Folder(id)) => folder = id,
                Some(EntryKind::File(id)) => {
                    return Ok(decision::read_decision(&self.repo.blob(id)?).ok());
                }
                _ => break,
            }
        }
        Ok(None)
    }

    fn folders(
        &mut self,
        root: TreeId,
        clusters: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Paths>, InputError> {
        let top = self.repo.tree(root)?.into_iter().find(|entry| entry.name == layout::CLUSTERS.as_bytes());
        let Some(EntryKind::Folder(top)) = top.map(|entry| entry.kind) else { return Ok(BTreeMap::new()) };
        let parts: BTreeMap<String, &str> =
            clusters.iter().map(|cluster| (path::encode(cluster), *cluster)).collect();
        let mut folders = BTreeMap::new();
        for entry in self.repo.tree(top)? {
            let cluster = parts.get(&*String::from_utf8_lossy(&entry.name));
            if let (EntryKind::Folder(id), Some(cluster)) = (entry.kind, cluster) {
                folders.insert((*cluster).to_owned(), self.below(id)?);
            }
        }
        Ok(folders)
    }

    fn below(&mut self, cluster: TreeId) -> Result<Paths, InputError> {
        if let Some(known) = self.paths.get(&cluster) {
            return Ok(known.clone());
        }
        let mut paths = BTreeSet::new();
        for namespace in self.repo.tree(cluster)? {
            let EntryKind::Folder(id) = namespace.kind else { continue };
            let name = String::from_utf8_lossy(&namespace.name);
            for file in self.repo.tree(id)? {
                paths.insert(format!("{name}/{}", String::from_utf8_lossy(&file.name)).into());
            }
        }
        let paths = Arc::new(paths);
        self.paths.insert(cluster, paths.clone());
        Ok(paths)
    }
}
