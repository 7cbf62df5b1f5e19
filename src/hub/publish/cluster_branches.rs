//! One branch for each cluster whose folder another program applies. Such programs do not read berth's own refs.
//!
//! A cache like the cluster refs: each commit can be derived from the folder on the rendered branch.

use std::collections::BTreeMap;

use super::cluster_refs::folder_tree;
use super::error::PublishError;
use super::rendered_state::CurrentState;
use berth_git::protocol::{Refs, write_cluster_branch};
use berth_git::{CommitId, RefMove, Repo, Writer};

/// Updates the branches of these clusters to the rendered commit. Removes the branches of other clusters.
pub fn repair<'c>(
    repo: &Repo,
    refs: &Refs,
    clusters: impl Iterator<Item = &'c String>,
    rendered: &CurrentState,
) -> Result<(), PublishError> {
    let mut writer = Writer::new(repo)?;
    let mut existing: BTreeMap<String, CommitId> =
        repo.list_refs(&refs.cluster_branches)?.iter().map(|(name, id)| (name.clone(), *id)).collect();
    let mut moves = Vec::new();
    for name in clusters {
        let tree = folder_tree(&mut writer, rendered, name)?;
        let target = refs.cluster_branch(name);
        let old = existing.remove(&target);
        // A commit with this tree may have another message or a parent, and so another revision.
        let new = write_cluster_branch(&mut writer, name, tree)?;
        if old != Some(new) {
            if old.is_none() {
                repo.discard_broken_ref(&target)?;
            }
            moves.push(RefMove { name: target, old, new });
        }
    }
    for (name, commit) in existing {
        repo.delete_ref(&name, commit)?;
    }
    Ok(repo.move_refs(&moves)?)
}
