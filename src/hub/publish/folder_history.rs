//! The clusters' folders on the rendered branch: their history, and the paths at which an outdated member's
//! folder differs from the published one.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_ref_cache::Settled;
use super::error::PublishError;
use super::rendered_state::CurrentState;
use super::trailers::claimed;
use berth_base::cache::Cache;
use berth_base::model::member::Differing;
use berth_base::model::{ClusterStatus, Map, Published, Shared, path};
use berth_engine::state::layout;
use berth_git::{CommitId, CommitInfo, GitError, Repo, TreeId};

/// The number of commits searched for the last change of a tree. Beyond it, the oldest one seen is used.
const LONGEST_WALK: usize = 1_000;

/// Returns the clusters whose folder changed after this sequence. A member that applied the other folder refuses an
/// older sequence.
pub(super) fn changed_since<'c>(
    repo: &Repo,
    rendered: &CurrentState,
    mut open: BTreeMap<&'c str, (TreeId, u64)>,
    known: &KnownTrees<'_>,
) -> Result<BTreeSet<&'c str>, PublishError> {
    let newest = rendered.trailers.seq;
    let mut changed = BTreeSet::new();
    open.retain(|_, (_, seq)| seq.saturating_add(1) < newest);
    for commit in repo.first_parents(rendered.commit).take(LONGEST_WALK) {
        if open.is_empty() {
            break;
        }
        let Some(trailers) = claimed(repo, &commit)?.filter(|trailers| trailers.seq < newest) else {
            continue;
        };
        open.retain(|_, (_, seq)| *seq < trailers.seq);
        let trees = known.of_clusters(repo, &commit, open.keys())?;
        open.retain(|cluster, (tree, _)| {
            let stayed = tree_in(&trees, cluster) == *tree;
            if !stayed {
                changed.insert(*cluster);
            }
            stayed
        });
    }
    Ok(changed)
}

/// Returns the sequence and date of the last change of each folder, with one walk back for all of them.
pub(super) fn last_changes<'c>(
    repo: &Repo,
    rendered: &CurrentState,
    mut open: BTreeMap<&'c str, TreeId>,
    known: &KnownTrees<'_>,
) -> Result<BTreeMap<&'c str, (u64, i64)>, PublishError> {
    let mut since = BTreeMap::new();
    for commit in repo.first_parents(rendered.commit).take(LONGEST_WALK) {
        if open.is_empty() {
            break;
        }
        let Some(trailers) = claimed(repo, &commit)? else { continue };
        let trees = known.of_clusters(repo, &commit, open.keys())?;
        open.retain(|cluster, tree| tree_in(&trees, cluster) == *tree);
        // A proof checks the moment but not the date, which somebody may have set back.
        let moment = trailers.now.map_or(commit.seconds, |now| now.as_second());
        let seconds = commit.seconds.max(moment);
        since.extend(open.keys().map(|cluster| (*cluster, (trailers.seq, seconds))));
    }
    Ok(since)
}

fn tree_in(trees: &BTreeMap<String, TreeId>, cluster: &str) -> TreeId {
    trees.get(&path::encode(cluster)).copied().unwrap_or(TreeId::EMPTY)
}

/// Commits whose trees of all clusters are already known.
pub(super) struct KnownTrees<'a>(Vec<(CommitId, &'a Map<String, TreeId>)>);

impl<'a> KnownTrees<'a> {
    /// Takes the trees of the current state and of the last repair, unless somebody else changed them.
    pub(super) fn of(rendered: &'a CurrentState, settled: Option<&'a Settled>) -> KnownTrees<'a> {
        let now = rendered.foreign.is_empty().then_some((rendered.commit, &rendered.trees));
        let before =
            settled.filter(|settled| settled.is_own).map(|settled| (settled.rendered, &settled.trees));
        KnownTrees(now.into_iter().chain(before).collect())
    }

    /// Returns the folders of these clusters in a commit, by their names on the branch.
    fn of_clusters<'c>(
        &self,
        repo: &Repo,
        commit: &CommitInfo,
        clusters: impl Iterator<Item = &'c &'c str>,
    ) -> Result<BTreeMap<String, TreeId>, PublishError> {
        if let Some((_, trees)) = self.0.iter().find(|(known, _)| *known == commit.id) {
            let tree = |cluster: &&str| Some((path::encode(cluster), *trees.get(*cluster)?));
            return Ok(clusters.filter_map(tree).collect());
        }
        let all = repo.folders_named(commit.tree, [layout::CLUSTERS])?;
        let names: Vec<String> = clusters.map(|cluster| path::encode(cluster)).collect();
        let clusters = all.get(layout::CLUSTERS).copied().unwrap_or(TreeId::EMPTY);
        Ok(repo.folders_named(clusters, names.iter().map(String::as_str))?)
    }
}

/// The limit of listed paths; beyond it, all count as different. Members name the trees, and need not be truthful.
const MOST_PATHS: usize = 10_000;

/// The paths at which an applied tree differs from a published one; `None` if there are too many.
pub type DifferingCache = Cache<(TreeId, TreeId), Option<Differing>>;

/// Returns the differing paths of each member whose folder is not the published one. Omits members whose folder
/// cannot be read.
pub fn differing(
    repo: &Repo,
    statuses: &Map<String, Shared<ClusterStatus>>,
    published: &Map<String, Published>,
    cache: &mut DifferingCache,
) -> Map<String, Differing> {
    let mut found = Map::new();
    for (cluster, published) in published {
        let applied = statuses.get(cluster).and_then(|status| status.applied.as_ref());
        let Some(applied) = applied.filter(|applied| applied.tree != published.tree) else { continue };
        let (Ok(from), Ok(to)) = (applied.tree.parse(), published.tree.parse()) else { continue };
        // A failure is not cached: the tree may arrive later.
        let known = cache.get(&(from, to)).or_else(|| {
            let paths = between(repo, from, to).ok()?;
            cache.insert((from, to), paths.clone());
            Some(paths)
        });
        if let Some(paths) = known.flatten() {
            found.insert(cluster.clone(), paths);
        }
    }
    cache.forget_unused();
    found
}

fn between(repo: &Repo, from: TreeId, to: TreeId) -> Result<Option<Differing>, GitError> {
    let paths: BTreeSet<String> = repo.changed_paths(from, to, &[])?.into_iter().collect();
    Ok(Some(paths).filter(|paths| paths.len() <= MOST_PATHS).map(Shared::from))
}
