//! The cache of cluster refs: the contents of their commits, and the last repair, on which the next one builds.

use std::collections::{BTreeMap, BTreeSet};

use super::error::PublishError;
use super::prune_permits::PermitCache;
use super::rendered_state::CurrentState;
use berth_base::model::applier::BERTH;
use berth_base::model::{Cluster, Map, Shared, Timestamp};
use berth_engine::report;
use berth_git::shared_refs::{ClusterRef, read_cluster_ref};
use berth_git::signature::PublicKey;
use berth_git::{CommitId, Repo, TreeId};

/// The contents of cluster refs' commits. Commits never change, so each is read once.
#[derive(Debug, Default)]
pub struct ClusterRefCache {
    commits: BTreeMap<CommitId, Option<ClusterRef>>,
    /// The refs as last listed, and the folders that they publish.
    pub(super) listed: Map<String, CommitId>,
    pub(super) folders: Map<String, report::Published>,
    pub(super) sound: Sound,
    pub(super) settled: Option<Settled>,
    pub(super) permits: PermitCache,
}

/// Commits whose text and signature are exactly as berth writes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sound {
    pub(super) commits: BTreeSet<CommitId>,
    /// The sequence up to which the folders of all these commits stayed unchanged.
    pub(super) until: u64,
}

impl Sound {
    /// Returns the sequence up to which a sound commit's folder stayed unchanged.
    pub(super) fn until(&self, commit: CommitId) -> Option<u64> {
        self.commits.contains(&commit).then_some(self.until)
    }
}

/// A repair that left nothing to do: the refs, and all inputs of the repair.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) rendered: CommitId,
    pub(super) trees: Map<String, TreeId>,
    /// Nobody else had changed the branch, so `trees` contains the trees of all clusters.
    pub(super) is_own: bool,
    pub(super) clusters: Map<String, Shared<Cluster>>,
    /// The clusters whose folders another program applies.
    pub(super) applied_by_others: BTreeSet<String>,
    pub(super) refs: Map<String, CommitId>,
    pub(super) key: Option<PublicKey>,
    pub(super) fleet: Option<String>,
    pub(super) alive: Option<Timestamp>,
}

impl Settled {
    /// Updates `applied_by_others` to these clusters, from the set of an earlier repair.
    pub(super) fn take_clusters(&mut self, earlier: Option<&Settled>) {
        let nothing = (Map::new(), BTreeSet::new());
        let (before, known) =
            earlier.map_or((&nothing.0, &nothing.1), |one| (&one.clusters, &one.applied_by_others));
        self.applied_by_others.clone_from(known);
        for change in before.changes_by(&self.clusters, is_applied_alike) {
            match change.after.is_some_and(|cluster| cluster.applier.is_some_and(|one| *one != BERTH)) {
                true => drop(self.applied_by_others.insert(change.key.clone())),
                false => drop(self.applied_by_others.remove(change.key)),
            }
        }
    }

    /// Returns the clusters to repair, if everything else is unchanged: the rendered commit is the same or the next
    /// one, and nobody else moved a ref.
    pub(super) fn changed(
        &self,
        repo: &Repo,
        now: &Settled,
        rendered: &CurrentState,
    ) -> Option<BTreeSet<String>> {
        let is_as_before = self.refs == now.refs
            && (&self.key, &self.fleet, self.alive) == (&now.key, &now.fleet, now.alive)
            && rendered.foreign.is_empty();
        let follows = || repo.commit(now.rendered).is_ok_and(|commit| commit.parents == [self.rendered]);
        let is_near = is_as_before && (self.rendered == now.rendered || follows());
        let moved = self.trees.changes(&now.trees).map(|one| one.key);
        let told = self.clusters.changes_by(&now.clusters, is_applied_alike);
        is_near.then(|| moved.chain(told.map(|one| one.key)).cloned().collect())
    }
}

fn is_applied_alike(one: &Shared<Cluster>, other: &Shared<Cluster>) -> bool {
    Shared::is_same(one, other) || one.applier == other.applier
}

impl ClusterRefCache {
    /// Returns the clusters whose folders another program applies, as of the last repair.
    pub fn applied_by_others(&self) -> impl Iterator<Item = &String> {
        self.settled.iter().flat_map(|settled| &settled.applied_by_others)
    }

    /// Returns the cluster refs after the last repair.
    pub fn refs(&self) -> Map<String, CommitId> {
        self.settled.as_ref().map(|settled| settled.refs.clone()).unwrap_or_default()
    }

    /// Returns every cluster's folder as its ref has it, in the report's form. Forgets commits that no ref points to.
    pub fn folders(
        &mut self,
        repo: &Repo,
        listed: &Map<String, CommitId>,
    ) -> Result<&Map<String, report::Published>, PublishError> {
        let mut before = std::mem::take(&mut self.listed);
        // Several refs may name the same cluster, or none may.
        if self.folders.len() != before.len() {
            (before, self.folders) = (Map::new(), Map::new());
        }
        for commit in before.changes(listed).filter_map(|one| one.before) {
            // Another process may have written the ref.
            if let Some(said) = self.read(repo, *commit) {
                self.folders.remove(&said.cluster);
            }
            self.commits.remove(commit);
            self.sound.commits.remove(commit);
        }
        for commit in before.changes(listed).filter_map(|one| one.after) {
            if let Some(found) = self.read(repo, *commit) {
                let published = report::Published { sequence: found.seq, tree: found.tree.to_string() };
                self.folders.insert(found.cluster, published);
            }
        }
        if self.commits.len() > listed.len().saturating_mul(2) {
            let now: BTreeSet<&CommitId> = listed.values().collect();
            self.commits.retain(|commit, _| now.contains(commit));
            self.sound.commits.retain(|commit| now.contains(commit));
        }
        self.listed = listed.clone();
        Ok(&self.folders)
    }

    /// Returns the content of a commit; `None` if it is not a cluster ref's.
    pub(super) fn read(&mut self, repo: &Repo, commit: CommitId) -> Option<ClusterRef> {
        self.commits.entry(commit).or_insert_with(|| read_cluster_ref(repo, commit)).clone()
    }

    /// Stores the content of a newly written commit.
    pub(super) fn insert(&mut self, commit: CommitId, said: ClusterRef) {
        self.commits.insert(commit, Some(said));
    }
}
