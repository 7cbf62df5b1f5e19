//! Finds an earlier publication of the same state, so that `git revert` needs no approval.
//!
//! Compares decisions and cluster folders. Facts and last good forms are inputs of a state, and are ignored.

use std::collections::BTreeMap;

use super::error::PublishError;
use super::rendered_state::{CurrentState, read_state};
use super::trailers::claimed;
use berth_base::model::{ContentId, Contents as _, Folder, Map, Timestamp, path};
use berth_engine::state::{State, decision, layout, placement_decision};
use berth_git::{CommitId, EntryKind, GitContents, GitError, Repo, TreeId};

/// The number of commits walked, including foreign ones, which do not count.
const LONGEST_WALK: usize = 1_000;

/// Returns the newest earlier rendered commit with exactly this state: among the last `depth`, or replaced after
/// `since`.
pub(crate) fn in_force_before(
    repo: &Repo,
    rendered: &CurrentState,
    next: &State,
    depth: usize,
    since: Option<Timestamp>,
) -> Result<Option<CommitId>, PublishError> {
    let decisions = decision_ids(repo, rendered, next)?;
    let mut left = depth;
    let mut replaced = rendered.trailers.now;
    for commit in repo.first_parents(rendered.commit).skip(1).take(LONGEST_WALK) {
        let is_recent = since.is_some_and(|since| replaced.is_some_and(|replaced| replaced > since));
        if left == 0 && !is_recent {
            break;
        }
        let Some(trailers) = claimed(repo, &commit)? else { continue };
        replaced = trailers.now;
        left = left.saturating_sub(1);
        // Reading folders is slow, so it is done only if all decisions are equal.
        if stored_decisions(repo, commit.tree)? == decisions
            && filled(&read_state(repo, commit.id)?.state) == filled(next)
        {
            return Ok(Some(commit.id));
        }
    }
    Ok(None)
}

fn filled(state: &State) -> BTreeMap<&String, &Folder> {
    state.folders.iter().filter(|(_, folder)| !folder.is_empty()).collect()
}

fn decision_ids(
    repo: &Repo,
    rendered: &CurrentState,
    next: &State,
) -> Result<BTreeMap<String, ContentId>, PublishError> {
    let mut hasher = GitContents::remembering(repo)?;
    // Ignores the known state if others changed the branch.
    let (mut ids, before) = match rendered.foreign.is_empty() {
        true => (stored_decisions(repo, rendered.tree)?, rendered.state.decisions.clone()),
        false => (BTreeMap::new(), Map::new()),
    };
    for one in before.changes(&next.decisions) {
        let path = path::of_key(one.key);
        let Some(decision) = one.after else {
            ids.remove(&path);
            continue;
        };
        let id = hasher.put(decision::write_decision(decision).as_bytes()).map_err(|error| {
            PublishError::Git(GitError::Failed { doing: "hashing".to_owned(), message: error.0 })
        })?;
        ids.insert(path, id);
    }
    Ok(ids)
}

fn stored_decisions(repo: &Repo, root: TreeId) -> Result<BTreeMap<String, ContentId>, PublishError> {
    let mut ids = BTreeMap::new();
    let folders = |tree: TreeId| -> Result<Vec<(String, EntryKind)>, PublishError> {
        let named = |entry: berth_git::Entry| (String::from_utf8_lossy(&entry.name).into_owned(), entry.kind);
        Ok(repo.tree(tree)?.into_iter().map(named).collect())
    };
    let top = folders(root)?.into_iter().find(|(name, _)| name == layout::DECISIONS);
    let Some((_, EntryKind::Folder(top))) = top else { return Ok(ids) };
    for (namespace, kind) in folders(top)? {
        let EntryKind::Folder(tree) = kind else { continue };
        for (name, kind) in folders(tree)? {
            if let EntryKind::File(id) = kind
                && !placement_decision::is_one(&name)
            {
                ids.insert(format!("{namespace}/{name}"), id);
            }
        }
    }
    Ok(ids)
}
