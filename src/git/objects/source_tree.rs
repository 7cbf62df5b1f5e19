//! A commit as a source tree, read straight from Git's objects: no checkout, no filters, no links followed.
//!
//! The same files count as in a folder, and skipped files are reported in the same words.

use std::sync::Arc;

use super::error::GitError;
use super::id::{CommitId, TreeId, oid};
use super::repo::{EntryKind, MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE, Repo};
use berth_base::cache::Cache;
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::ContentId;
use berth_base::source::{SourceFile, SourceTree, fault_of_entry, wanted, wanted_folder};
use berth_base::yaml::Limits;

/// Deeper than any fleet; a tree made to exhaust the stack ends here.
const DEEPEST: usize = 64;

/// The files of a commit that berth may read, in path order.
pub fn read_source(repo: &Repo, commit: CommitId) -> Result<SourceTree, GitError> {
    read_source_with_cache(repo, commit, &mut Blobs::default())
}

/// Contents of files, by blob id.
pub type Blobs = Cache<ContentId, Arc<[u8]>>;

/// [`read_source`], with the files that were read before.
pub fn read_source_with_cache(
    repo: &Repo,
    commit: CommitId,
    blobs: &mut Blobs,
) -> Result<SourceTree, GitError> {
    let root = repo.commit(commit)?.tree;
    let odb = repo.inner.odb().map_err(GitError::failed("opening the object database"))?;
    let mut reader = Reader { repo, odb, tree: SourceTree::default(), blobs };
    reader.folder(root, "", 0)?;
    let mut tree = reader.tree;
    tree.files.sort_by(|a, b| a.path.cmp(&b.path));
    tree.found.sort();
    Ok(tree)
}

/// Reads a file of a commit; `None` where the path names no plain file.
pub fn read_file_at(repo: &Repo, commit: CommitId, path: &str) -> Result<Option<Vec<u8>>, GitError> {
    let mut folder = repo.commit(commit)?.tree;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let entry = repo.tree(folder)?.into_iter().find(|entry| entry.name == part.as_bytes());
        match entry.map(|entry| entry.kind) {
            Some(EntryKind::Folder(id)) => folder = id,
            Some(kind) if parts.peek().is_none() => {
                return file_of(kind).map(|id| repo.blob(id)).transpose();
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn file_of(kind: EntryKind) -> Option<ContentId> {
    match kind {
        EntryKind::File(id) => Some(id),
        EntryKind::Other { mode: MODE_EXECUTABLE, id } => Some(ContentId(id)),
        EntryKind::Folder(_) | EntryKind::Other { .. } => None,
    }
}

struct Reader<'r, 'b> {
    repo: &'r Repo,
    odb: git2::Odb<'r>,
    tree: SourceTree,
    blobs: &'b mut Blobs,
}

impl Reader<'_, '_> {
    fn folder(&mut self, id: TreeId, prefix: &str, depth: usize) -> Result<(), GitError> {
        for entry in self.repo.tree(id)? {
            let name = match String::from_utf8(entry.name) {
                Ok(name) => name,
                Err(error) => {
                    let shown = format!("{prefix}{}", String::from_utf8_lossy(error.as_bytes()));
                    let folder = matches!(entry.kind, EntryKind::Folder(_));
                    if wanted(&shown) || (folder && wanted_folder(&shown)) {
                        let fault = "the name is not UTF-8 text, so the file is not read";
                        self.note(Diagnostic::error(Pos::file(shown), fault).hint("rename it"));
                    }
                    continue;
                }
            };
            if let Some(fault) = fault_of_entry(&name) {
                // A slash of the name itself must not look like one between folders.
                let shown = format!("{prefix}{}", name.replace('/', "\\u{2f}"));
                if wanted(&shown) || (matches!(entry.kind, EntryKind::Folder(_)) && wanted_folder(&shown)) {
                    self.note(Diagnostic::error(Pos::file(shown), fault).hint("rename it"));
                }
                continue;
            }
            let path = format!("{prefix}{name}");
            match entry.kind {
                EntryKind::Folder(_) if !wanted_folder(&path) => {}
                EntryKind::Folder(_) if depth == DEEPEST => {
                    let message = format!("folders nest deeper than {DEEPEST}; what is below is not read");
                    self.note(Diagnostic::error(Pos::file(path), message));
                }
                EntryKind::Folder(id) => self.folder(id, &format!("{path}/"), depth + 1)?,
                EntryKind::Other { mode: MODE_LINK, .. } => self.link(&path, &name),
                EntryKind::Other { mode: MODE_SUBMODULE, .. } => self.note(
                    Diagnostic::warning(Pos::file(path), "a submodule is not read")
                        .hint("put the files into this repository"),
                ),
                kind => {
                    if let Some(id) = file_of(kind).filter(|_| wanted(&path)) {
                        self.file(path, id)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn link(&mut self, path: &str, name: &str) {
        // A link called `README.md` is no loss; one without an ending may lead to a folder of manifests.
        if wanted(path) || !name.contains('.') {
            let fault = Diagnostic::warning(Pos::file(path), "a symbolic link is not followed");
            self.note(fault.hint("replace the link with the files"));
        }
    }

    fn file(&mut self, path: String, id: ContentId) -> Result<(), GitError> {
        if let Some(bytes) = self.blobs.get(&id) {
            self.tree.files.push(SourceFile { path: path.into(), id, bytes });
            return Ok(());
        }
        let doing = || format!("reading `{path}`");
        let (size, _) = self.odb.read_header(oid(id.0)).map_err(GitError::failed(doing()))?;
        let limit = Limits::default().bytes;
        if size > limit {
            let message = format!("the file has more than the {limit} bytes that are read");
            self.note(Diagnostic::error(Pos::file(path), message).hint("split it into smaller files"));
            return Ok(());
        }
        self.repo.flush_for(oid(id.0))?;
        let object = self.odb.read(oid(id.0)).map_err(GitError::failed(doing()))?;
        let bytes: Arc<[u8]> = object.data().into();
        self.blobs.insert(id, bytes.clone());
        self.tree.files.push(SourceFile { path: path.into(), id, bytes });
        Ok(())
    }

    fn note(&mut self, diagnostic: Diagnostic) {
        self.tree.found.push(diagnostic);
    }
}
