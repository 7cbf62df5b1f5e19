//! Listing many refs at once, straight from their files: a look-up of each takes five times as long.

use std::fs;
use std::path::Path;

use super::error::GitError;
use super::id::CommitId;
use super::locks::PACKED;
use super::packed_refs;
use super::repo::Repo;
use berth_base::model::Map;

/// Deeper than any name of a ref.
const DEEPEST: usize = 64;

impl Repo {
    /// All refs whose full names begin so, by name. Symbolic refs are followed, broken and dangling ones left out.
    pub fn list_refs(&self, prefix: &str) -> Result<Map<String, CommitId>, GitError> {
        self.list_refs_like(prefix, &Map::new())
    }

    /// [`Repo::list_refs`] where an earlier list is known: what is equal is shared, which most refs are.
    pub fn list_refs_like(
        &self,
        prefix: &str,
        earlier: &Map<String, CommitId>,
    ) -> Result<Map<String, CommitId>, GitError> {
        let mut own_file = Map::new();
        // The others after these: a ref that is packed meanwhile is in one of both.
        let (folder, _) = prefix.rsplit_once('/').unwrap_or_default();
        self.list_files(folder, prefix, &mut own_file, 0)?;
        let packed = match fs::read(self.shared_path().join(PACKED)) {
            Ok(packed) => packed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(prefix, &error)),
        };
        let one = |(id, name)| Some((str::from_utf8(name).ok()?, str::from_utf8(id).ok()?.parse().ok()?));
        let listed = packed_refs::beginning_with(&packed, prefix).filter_map(one);
        let mut found = brought_up_to(earlier, listed);
        for (name, id) in own_file {
            match id {
                Some(id) => drop(found.insert(name, id)),
                None => drop(found.remove(&name)),
            }
        }
        Ok(found)
    }

    /// Adds the refs with a file of their own below a folder; `None` for one that leads nowhere.
    fn list_files(
        &self,
        folder: &str,
        prefix: &str,
        found: &mut Map<String, Option<CommitId>>,
        depth: usize,
    ) -> Result<(), GitError> {
        let path = self.shared_path().join(folder);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_no_folder(&error) || depth == DEEPEST => return Ok(()),
            Err(error) => return Err(failed(prefix, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| failed(prefix, &error))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let name = format!("{folder}/{name}");
            let begins = name.starts_with(prefix) || prefix.starts_with(&format!("{name}/"));
            if !begins || name.ends_with(".lock") {
                continue;
            }
            let is_folder = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
                kind => kind.is_ok_and(|kind| kind.is_dir()),
            };
            if is_folder {
                self.list_files(&name, prefix, found, depth + 1)?;
            } else if name.starts_with(prefix)
                && let Some(id) = self.target_in(&entry.path(), &name)
            {
                found.insert(name, id);
            }
        }
        Ok(())
    }

    /// Reads a ref's own file: `None` where it is gone by now, which says nothing about a packed one.
    fn target_in(&self, file: &Path, name: &str) -> Option<Option<CommitId>> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(_) => return Some(None),
        };
        let direct = text.strip_suffix('\n').unwrap_or(&text).parse().ok();
        // A symbolic one, or one that only Git can read.
        Some(direct.or_else(|| self.read_ref(name).ok().flatten()))
    }
}

/// Makes a list of these refs out of an earlier one. Both mostly ascend, and any order gives the same list.
fn brought_up_to<'n>(
    earlier: &Map<String, CommitId>,
    listed: impl Iterator<Item = (&'n str, CommitId)>,
) -> Map<String, CommitId> {
    let mut found = earlier.clone();
    let mut rest = earlier.iter().peekable();
    let mut new = Vec::new();
    for (name, id) in listed {
        while let Some((gone, _)) = rest.next_if(|(known, _)| known.as_str() < name) {
            found.remove(gone);
        }
        if rest.next_if(|(known, known_id)| *known == name && **known_id == id).is_none() {
            new.push((name.to_owned(), id));
        }
    }
    for (gone, _) in rest {
        found.remove(gone);
    }
    found.extend(new);
    found
}

fn is_no_folder(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn failed(prefix: &str, error: &std::io::Error) -> GitError {
    GitError::Failed { doing: format!("listing `{prefix}`"), message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(refs: &[(&str, u8)]) -> Map<String, CommitId> {
        refs.iter().map(|(name, id)| ((*name).to_owned(), CommitId([*id; 20]))).collect()
    }

    #[test]
    fn a_list_is_the_same_whatever_was_known_before_it() {
        let known: &[&[(&str, u8)]] = &[
            &[],
            &[("a", 1), ("b", 2), ("c", 3)],
            &[("b", 2)],
            &[("a", 9), ("c", 3), ("d", 4), ("e", 5)],
            &[("x", 1), ("y", 2)],
        ];
        let files: &[&[(&str, u8)]] = &[
            &[],
            &[("a", 1), ("b", 2), ("c", 3)],
            &[("c", 3), ("a", 1), ("b", 2)],
            &[("b", 2), ("b", 7)],
            &[("d", 4), ("a", 9), ("e", 6)],
        ];
        for known in known {
            for file in files {
                let listed = file.iter().map(|(name, id)| (*name, CommitId([*id; 20])));
                assert_eq!(brought_up_to(&list(known), listed), list(file), "{known:?} {file:?}");
            }
        }
    }

    #[test]
    fn a_list_that_is_as_before_is_the_one_from_before() {
        let known = list(&[("a", 1), ("b", 2)]);
        let listed = [("a", CommitId([1; 20])), ("b", CommitId([2; 20]))];
        assert!(brought_up_to(&known, listed.into_iter()).is_same(&known));
    }
}
