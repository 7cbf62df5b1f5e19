//! The approved removals that members may carry out, from earlier rendered commits.
//!
//! They are read from the trailers of berth's commits, newest first. Nothing else stores them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::PublishError;
use super::trailers::{LONGEST_WALK, Trailers, claimed};
use super::tree;
use berth_base::cache::Cache;
use berth_base::model::path;
use berth_engine::state::layout;
use berth_git::shared_refs::trailers::ALLOW_PRUNE;
use berth_git::{CommitId, CommitInfo, EntryKind, Repo, TreeId};

/// The number of commits searched for a removal's approval. A member that was away for longer needs a new one.
const LONGEST_SLEEP: usize = 500;

/// Returns the trailer's value that permits members of these clusters to prune an object.
pub(crate) fn line(path: &str, clusters: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = clusters.iter().copied().collect();
    format!("{path} {}", names.join(" "))
}

/// The parent of each commit, and its content if it is berth's. Commits never change, so each is read once.
pub(super) type PermitCache = Cache<CommitId, (Option<CommitId>, Option<Arc<Own>>)>;

/// Returns the paths of objects that each cluster's member may prune: approved for removal, and not added again
/// since.
pub(super) fn prunable<'c>(
    repo: &Repo,
    rendered: CommitId,
    clusters: &BTreeSet<&'c str>,
    cache: &mut PermitCache,
) -> Result<BTreeMap<&'c str, BTreeSet<String>>, PublishError> {
    let mut prunable: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    if clusters.is_empty() {
        return Ok(prunable);
    }
    let history = newest(repo, rendered, cache);
    let mut seen = BTreeSet::new();
    for (index, own) in history.iter().enumerate() {
        for (_, value) in own.trailers.others.iter().filter(|(name, _)| name == ALLOW_PRUNE) {
            let mut words = value.split(' ');
            let path = words.next().unwrap_or_default();
            for cluster in words.filter_map(|word| clusters.get(word).copied()) {
                // Only the newest line counts: after an older one, the object was added again.
                if !seen.insert((cluster, path)) || !own.is_genuine(repo)? {
                    continue;
                }
                let place = format!("{}/{}/{path}", layout::CLUSTERS, path::encode(cluster));
                if stays_away(repo, &history[..=index], &place)? {
                    prunable.entry(cluster).or_default().insert(path.to_owned());
                }
            }
        }
    }
    Ok(prunable)
}

/// A commit with berth's trailers. Its digest is only checked if needed.
#[derive(Clone, Debug)]
pub struct Own {
    pub root: TreeId,
    pub trailers: Trailers,
}

impl Own {
    fn of(commit: CommitInfo) -> Option<Own> {
        let trailers = Trailers::read(&commit.message)?;
        Some(Own { root: commit.tree, trailers })
    }

    fn is_genuine(&self, repo: &Repo) -> Result<bool, PublishError> {
        Ok(self.trailers.fit(tree::state_tree(&repo.tree(self.root)?)?))
    }
}

/// Returns the nearest of berth's commits along first parents, including `from`.
pub(crate) fn own_at(repo: &Repo, from: CommitId) -> Result<Option<(CommitId, Own)>, PublishError> {
    for commit in repo.first_parents(from).take(LONGEST_WALK) {
        if let Some(trailers) = claimed(repo, &commit)? {
            return Ok(Some((commit.id, Own { root: commit.tree, trailers })));
        }
    }
    Ok(None)
}

/// Returns the newest commits with berth's trailers along first parents.
fn newest(repo: &Repo, from: CommitId, cache: &mut PermitCache) -> Vec<Arc<Own>> {
    let (mut history, mut next) = (Vec::new(), Some(from));
    for _ in 0..LONGEST_WALK {
        let Some(id) = next.filter(|_| history.len() < LONGEST_SLEEP) else { break };
        let known = cache.get(&id).or_else(|| {
            let commit = repo.commit(id).ok()?;
            let parent = commit.parents.first().copied();
            let read = (parent, Own::of(commit).map(Arc::new));
            cache.insert(id, read.clone());
            Some(read)
        });
        let Some((parent, own)) = known else { break };
        next = parent;
        history.extend(own);
    }
    cache.forget_unused();
    history
}

fn stays_away(repo: &Repo, history: &[Arc<Own>], place: &str) -> Result<bool, PublishError> {
    for own in history {
        if holds(repo, own.root, place)? && own.is_genuine(repo)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holds(repo: &Repo, root: TreeId, place: &str) -> Result<bool, PublishError> {
    let mut folder = root;
    for part in place.split('/') {
        let entry = repo.tree(folder)?.into_iter().find(|entry| entry.name == part.as_bytes());
        match entry.map(|entry| entry.kind) {
            Some(EntryKind::Folder(id)) => folder = id,
            Some(_) => return Ok(true),
            None => return Ok(false),
        }
    }
    Ok(true)
}
