//! The paths that differ between two trees. Folders with equal ids are skipped.

use git2::Oid;

use super::error::GitError;
use super::id::TreeId;
use super::raw_tree::{self, Change};
use super::repo::{EntryKind, PathChange, Repo};
use berth_base::source::budget::DEEPEST;

/// The number of listed paths. Beyond it, a folder is listed in place of the paths in it.
const MOST_LISTED: usize = 100_000;

/// A path that differs, with its new object, or the old one if it is removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Changed {
    pub(super) path: String,
    pub(super) change: PathChange,
    pub(super) id: Oid,
}

impl Repo {
    /// Lists the paths that differ between two trees below some folders of the root, in order.
    pub fn changed_paths(&self, old: TreeId, new: TreeId, under: &[&str]) -> Result<Vec<String>, GitError> {
        Ok(self.tree_changes(old, new, under)?.into_iter().map(|one| one.path).collect())
    }

    /// Like [`Repo::changed_paths`], with the kind of each difference.
    pub fn path_changes(
        &self,
        old: TreeId,
        new: TreeId,
        under: &[&str],
    ) -> Result<Vec<(String, PathChange)>, GitError> {
        Ok(self.tree_changes(old, new, under)?.into_iter().map(|one| (one.path, one.change)).collect())
    }

    pub(super) fn tree_changes(
        &self,
        old: TreeId,
        new: TreeId,
        under: &[&str],
    ) -> Result<Vec<Changed>, GitError> {
        let mut walk = Walk { repo: self, under, found: Vec::new(), n_folders: 0 };
        walk.folder(old, new, "", 0)?;
        walk.found.sort();
        Ok(walk.found)
    }
}

struct Walk<'r> {
    repo: &'r Repo,
    /// The folders of the root to compare; empty for all.
    under: &'r [&'r str],
    found: Vec<Changed>,
    n_folders: usize,
}

impl Walk<'_> {
    fn folder(&mut self, old: TreeId, new: TreeId, prefix: &str, depth: usize) -> Result<(), GitError> {
        let [before, after] = [self.repo.raw_tree(old)?, self.repo.raw_tree(new)?];
        // The next comparison often begins where this one ends.
        self.repo.recent.trees.replace(old, new, after.clone());
        let malformed = || GitError::Failed {
            doing: format!("comparing trees {old} and {new}"),
            message: "one of them holds more than entries of a tree".to_owned(),
        };
        self.n_folders += 1;
        for Change { name, before, after, .. } in raw_tree::changes(&before, &after).ok_or_else(malformed)? {
            let name = String::from_utf8_lossy(name);
            if depth == 0 && !self.under.is_empty() && !self.under.contains(&&*name) {
                continue;
            }
            let path = format!("{prefix}{name}");
            let change = match (before, after) {
                (None, _) => PathChange::Added,
                (_, None) => PathChange::Removed,
                _ => PathChange::Changed,
            };
            let folder = |side| match side {
                Some(EntryKind::Folder(id)) => Some(id),
                _ => None,
            };
            let sides = [before, after].map(folder);
            let is_room = depth < DEEPEST && self.found.len().max(self.n_folders) < MOST_LISTED;
            match (after.or(before), sides) {
                (_, [Some(_), _] | [_, Some(_)]) if is_room => {
                    let [old, new] = sides.map(|side| side.unwrap_or(TreeId::EMPTY));
                    self.folder(old, new, &format!("{path}/"), depth + 1)?;
                }
                (Some(kind), _) => self.found.push(Changed { path, change, id: kind.oid() }),
                (None, _) => {}
            }
        }
        Ok(())
    }
}
