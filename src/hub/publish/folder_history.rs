//! The history of clusters' folders on the rendered branch.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_ref_cache::Settled;
use super::error::PublishError;
use super::own_commits::claimed;
use super::rendered_state::CurrentState;
use berth_base::model::{Map, path};
use berth_engine::state::layout;
use berth_git::{CommitId, CommitInfo, Repo, TreeId};

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
