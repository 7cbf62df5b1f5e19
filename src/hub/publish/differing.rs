//! The paths at which an outdated member's folder differs from the published one.

use std::collections::BTreeSet;

use berth_base::cache::Cache;
use berth_base::model::member::Differing;
use berth_base::model::{ClusterStatus, Map, Published, Shared};
use berth_git::{GitError, Repo, TreeId};

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
