//! Measures a tree without visiting each path: a folder that appears under many names is measured once.

use std::collections::BTreeMap;

use super::error::GitError;
use super::id::{TreeId, oid};
use super::raw_tree::{self, Change, Tree};
use super::repo::{EntryKind, Repo};
use super::source_tree::file_of;
use berth_base::source::budget::{DEEPEST, Part, TreeSize, too_large_folder};
use berth_base::source::{MARKER, wanted, wanted_folder};
use berth_base::yaml::Limits;

/// The entries that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    /// The folders and files that berth reads of a source.
    Source,
    /// Every entry, without the bytes of files.
    Everything,
}

/// Measures trees of one repository.
pub(super) struct Measure<'r> {
    repo: &'r Repo,
    odb: git2::Odb<'r>,
    what: Measured,
    /// The sizes of folders by id and depth, since folders deeper than a limit are skipped.
    known: BTreeMap<(TreeId, usize), TreeSize>,
}

impl<'r> Measure<'r> {
    pub(super) fn new(repo: &'r Repo, what: Measured) -> Result<Measure<'r>, GitError> {
        let odb = repo.inner.odb().map_err(GitError::failed("opening the object database"))?;
        Ok(Measure { repo, odb, what, known: BTreeMap::new() })
    }

    /// Returns the path of the smallest folder without which the tree is within the limits; the empty path for the
    /// whole tree. `None` if the tree is within the limits.
    pub(super) fn too_large(&mut self, root: TreeId) -> Result<Option<String>, GitError> {
        if !self.folder(root, 0)?.is_too_large() {
            return Ok(None);
        }
        let (mut folder, mut depth) = (root, 0);
        too_large_folder(|path| {
            if let Some(name) = path.rsplit('/').next().filter(|name| !name.is_empty()) {
                let id = self.repo.raw_tree(folder)?.folder(name.as_bytes()).unwrap_or(TreeId::EMPTY.0);
                (folder, depth) = (TreeId(id), depth + 1);
            }
            self.parts(folder, depth)
        })
        .map(Some)
    }

    fn folder(&mut self, id: TreeId, depth: usize) -> Result<TreeSize, GitError> {
        if let Some(known) = self.known.get(&(id, depth)) {
            return Ok(*known);
        }
        let parts = self.parts(id, depth)?;
        let size = parts.iter().fold(TreeSize::default(), |sum, part| sum.plus(part.size));
        self.known.insert((id, depth), size);
        Ok(size)
    }

    fn parts(&mut self, id: TreeId, depth: usize) -> Result<Vec<Part>, GitError> {
        let (nothing, tree) = (Tree::default(), self.repo.raw_tree(id)?);
        // A folder that berth wrote is skipped.
        if self.what == Measured::Source && depth > 0 && tree.has_file(MARKER.as_bytes()) {
            return Ok(Vec::new());
        }
        let malformed = || GitError::Failed {
            doing: format!("reading tree {id}"),
            message: "it holds more than entries of a tree".to_owned(),
        };
        // Repeated names count once, as the reader sees them.
        let entries = raw_tree::changes(&nothing, &tree).ok_or_else(malformed)?;
        let parts = entries.into_iter().filter_map(|entry| Some(self.part(entry, entry.after?, depth)));
        parts.collect()
    }

    fn part(&mut self, entry: Change<'_>, kind: EntryKind, depth: usize) -> Result<Part, GitError> {
        let name = String::from_utf8_lossy(entry.name).into_owned();
        let everything = self.what == Measured::Everything;
        let below = match kind {
            EntryKind::Folder(id) if depth < DEEPEST && (everything || wanted_folder(&name)) => {
                self.folder(id, depth + 1)?.below(entry.name.len())
            }
            // Deeper folders are not visited, so the size is unknown.
            EntryKind::Folder(_) if everything => TreeSize { entries: u64::MAX, bytes: 0 },
            _ => TreeSize::default(),
        };
        let bytes = match file_of(kind).filter(|_| !everything && wanted(&name)) {
            Some(id) => read_bytes(&self.odb, id, &name)?,
            None => 0,
        };
        let size = TreeSize::of_entry(entry.name.len(), bytes).plus(below);
        Ok(Part { name, is_folder: entry.is_folder, size })
    }
}

/// Returns the bytes that berth reads of a file: none if the file is too large.
pub(super) fn read_bytes(
    odb: &git2::Odb<'_>,
    id: berth_base::model::ContentId,
    path: &str,
) -> Result<u64, GitError> {
    let (size, _) = odb.read_header(oid(id.0)).map_err(GitError::failed(format!("reading `{path}`")))?;
    Ok(if size > Limits::default().bytes { 0 } else { size as u64 })
}
