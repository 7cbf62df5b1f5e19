//! The approvals in earlier rendered commits: the used ones, and the removals they allow members.
//!
//! The approvals are read from the trailers of berth's own commits, newest first; nothing is stored beside the
//! branch.

use berth_git::protocol::trailers::{ALLOW_PRUNE, USED_APPROVAL};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::PublishError;
use super::owned;
use super::rendered_state::{LONGEST_WALK, claimed};
use super::trailers::Trailers;
use berth_base::cache::Cache;
use berth_base::model::{Digest, path};
use berth_engine::state::layout;
use berth_git::{CommitId, CommitInfo, EntryKind, Repo, TreeId};

/// The number of commits for which a used approval is remembered.
const LONGEST_MEMORY: u64 = 5_000;

/// The number of commits searched for a removal's approval. A member that was away longer asks again.
const LONGEST_SLEEP: usize = 500;

/// The line of a rendered commit that lets members of these clusters remove an object.
pub(crate) fn allow_prune_line(path: &str, clusters: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = clusters.iter().copied().collect();
    format!("{path} {}", names.join(" "))
}

/// The approvals that were used up to this rendered commit, and the sequence number of their use.
pub(crate) fn used_approvals(repo: &Repo, rendered: CommitId) -> Result<BTreeMap<Digest, u64>, PublishError> {
    let mut used = BTreeMap::new();
    let mut newest = None;
    // Commits of others do not count, or many of them would hide berth's own.
    for own in walk(repo, rendered) {
        let values = own.trailers.others.iter().filter(|(name, _)| name == USED_APPROVAL);
        let values: Vec<_> = values.collect();
        let is_old = newest.is_some_and(|newest| own.trailers.seq.saturating_add(LONGEST_MEMORY) < newest);
        if (!values.is_empty() || is_old || newest.is_none()) && own.is_genuine(repo)? {
            if is_old {
                break;
            }
            newest.get_or_insert(own.trailers.seq);
            used.extend(
                values.into_iter().filter_map(|(_, value)| Some((value.parse().ok()?, own.trailers.seq))),
            );
        }
    }
    Ok(used)
}

/// The parent of a commit, and what it says if it is berth's own. A commit never changes, so each is read once.
pub(super) type LedgerCache = Cache<CommitId, (Option<CommitId>, Option<Arc<Own>>)>;

/// The objects, as paths, that each cluster's member may remove for good: what an approval let go, and
/// what has not come back since.
pub(super) fn prunable<'c>(
    repo: &Repo,
    rendered: CommitId,
    clusters: &BTreeSet<&'c str>,
    cache: &mut LedgerCache,
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
                // Only the newest line counts: an older one was for an object that has come back since.
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

/// A commit with berth's trailers, whose digest is compared only where that matters.
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
        Ok(self.trailers.fit(owned::state_tree(&repo.tree(self.root)?)?))
    }
}

/// The nearest commit of berth's own along first parents, itself included.
pub(crate) fn own_at(repo: &Repo, from: CommitId) -> Result<Option<(CommitId, Own)>, PublishError> {
    for commit in repo.first_parents(from).take(LONGEST_WALK) {
        if let Some(trailers) = claimed(repo, &commit)? {
            return Ok(Some((commit.id, Own { root: commit.tree, trailers })));
        }
    }
    Ok(None)
}

/// The commits with berth's trailers along first parents, newest first.
fn walk(repo: &Repo, from: CommitId) -> impl Iterator<Item = Own> {
    repo.first_parents(from).take(LONGEST_WALK).filter_map(Own::of)
}

/// The newest of what [`walk`] finds.
fn newest(repo: &Repo, from: CommitId, cache: &mut LedgerCache) -> Vec<Arc<Own>> {
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
