//! Contents by id: rendered bytes are stored once and then referred to by their id.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::map::{EntryMap, Map};
use super::shared::Shared;
use crate::text::hex;

/// The id of some bytes. Equal ids mean equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentId(pub [u8; 20]);

impl ContentId {
    /// Returns the id of bytes that do not come from Git.
    pub fn of(bytes: &[u8]) -> ContentId {
        let mut id = [0; 20];
        id.copy_from_slice(&Sha256::digest(bytes)[..20]);
        ContentId(id)
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A store for rendered bytes: a Git object database, a folder's contents, or only a hash.
pub trait Contents {
    /// Stores bytes and returns their id. Identical copies are stored once.
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError>;

    /// Returns the bytes of an id, from contents that were put here or were there before.
    fn get(&self, id: ContentId) -> Result<Vec<u8>, ContentError>;
}

/// A failure of the store behind [`Contents`], with its message.
#[derive(Debug, thiserror::Error)]
#[error("the store of rendered objects failed: {0}")]
pub struct ContentError(pub String);

/// A path in a cluster's folder, and its content. Clusters share entries: few of a workload's copies differ.
pub type FolderEntry = Arc<(Arc<str>, ContentId)>;

/// A cluster's folder: path within it → content.
pub type Folder = Shared<EntryMap<FolderEntry>>;

/// All clusters' folders by cluster name.
pub type Folders = Map<String, Folder>;

/// A path whose content differs between two folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'f> {
    pub path: &'f Arc<str>,
    pub before: Option<&'f ContentId>,
    pub after: Option<&'f ContentId>,
}

/// Returns the differences between two folders, by path.
pub fn differences<'f>(before: &'f Folder, after: &'f Folder) -> impl Iterator<Item = Difference<'f>> {
    let changes = before.changes(after);
    changes.map(|one| Difference { path: one.key, before: one.before, after: one.after })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, id: u8) -> FolderEntry {
        Arc::new((path.into(), ContentId([id; 20])))
    }

    fn folder(files: &[(&str, u8)]) -> Folder {
        files.iter().map(|(path, id)| entry(path, *id)).collect()
    }

    #[test]
    fn differences_are_what_came_went_and_changed() {
        let before = folder(&[("a", 1), ("b", 1), ("c", 1), ("e", 1)]);
        let mut after = before.clone();
        assert_eq!(differences(&before, &after).count(), 0);
        after.take("a");
        after.put(entry("c", 2));
        after.put(entry("d", 3));
        after.put(entry("f", 4));
        let found = differences(&before, &after);
        let found: Vec<_> = found
            .map(|one| (&**one.path, one.before.map(|id| id.0[0]), one.after.map(|id| id.0[0])))
            .collect();
        let wanted =
            [("a", Some(1), None), ("c", Some(1), Some(2)), ("d", None, Some(3)), ("f", None, Some(4))];
        assert_eq!(found, wanted);
        assert_eq!(differences(&before, &folder(&[("b", 1), ("a", 1), ("c", 1), ("e", 1)])).count(), 0);
    }
}
