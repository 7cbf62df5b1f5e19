//! Lists many refs at once, straight from their files. Looking up each takes five times as long.

use std::fs;
use std::path::Path;

use super::error::GitError;
use super::id::CommitId;
use super::repo::Repo;
use berth_base::model::Map;

/// Deeper than any name of a ref.
const DEEPEST: usize = 64;

impl Repo {
    /// Lists the refs whose full names have this prefix, by name. Follows symbolic refs; omits broken and dangling
    /// ones.
    pub fn list_refs(&self, prefix: &str) -> Result<Map<String, CommitId>, GitError> {
        let mut own_file = Map::new();
        // Loose refs first, packed refs after: a ref that is packed meanwhile is found in at least one of them.
        let (folder, _) = prefix.rsplit_once('/').unwrap_or_default();
        self.list_files(folder, prefix, &mut own_file, 0)?;
        let mut found = self.packed_file().map_err(|error| failed(prefix, &error))?.list(prefix);
        for (name, id) in own_file {
            match id {
                Some(id) => drop(found.insert(name, id)),
                None => drop(found.remove(&name)),
            }
        }
        Ok(found)
    }

    /// Adds the loose refs of a folder. A ref that leads nowhere gets `None`.
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

    /// Reads a loose ref. The outer `None` means that the file is gone by now; the ref may still be packed.
    fn target_in(&self, file: &Path, name: &str) -> Option<Option<CommitId>> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(_) => return Some(None),
        };
        let direct = text.strip_suffix('\n').unwrap_or(&text).parse().ok();
        // A symbolic ref, or one that only Git can read.
        Some(direct.or_else(|| self.read_ref(name).ok().flatten()))
    }
}

fn is_no_folder(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn failed(prefix: &str, error: &std::io::Error) -> GitError {
    GitError::Failed { doing: format!("listing `{prefix}`"), message: error.to_string() }
}
