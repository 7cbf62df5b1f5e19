//! Members that have another folder than the published one: where the two differ.

use std::collections::BTreeSet;

use berth_base::cache::Cache;
use berth_base::model::member::Differing;
use berth_base::model::{ClusterStatus, Map, Published, Shared};
use berth_git::{GitError, Repo, TreeId};

/// So many paths count as all: members name trees that nobody has to believe.
const MOST_PATHS: usize = 10_000;

/// The paths at which an applied tree differs from a published one, unless they are too many.
pub type DifferingCache = Cache<(TreeId, TreeId), Option<Differing>>;

/// Returns for each member with another folder than the published one the paths at which they differ. A member whose
/// folder cannot be read is left out.
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
        // A fault is not remembered: reading may go well another time, when the tree has arrived.
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
