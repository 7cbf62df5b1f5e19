//! A commit as a source tree, read straight from Git's objects: no checkout, no filters, no links followed.
//!
//! The same files count as in a folder, and skipped files are reported in the same words.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::GitError;
use super::id::{CommitId, TreeId, oid};
use super::raw_tree;
use super::repo::{EntryKind, MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE, Repo, kind_of};
use berth_base::cache::Cache;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{ContentId, Shared};
use berth_base::source::{
    FileBytes, SourceFile, SourceTree, WeakBytes, fault_of_entry, wanted, wanted_folder,
};
use berth_base::yaml::Limits;

/// Deeper than any fleet; a tree made to exhaust the stack ends here.
const DEEPEST: usize = 64;

/// The files of a commit that berth may read, in path order.
pub fn read_source(repo: &Repo, commit: CommitId) -> Result<SourceTree, GitError> {
    read_source_with_cache(repo, commit, &mut SourceCache::default())
}

/// The files and folders that were read before.
#[derive(Clone, Debug, Default)]
pub struct SourceCache {
    /// As long as a folder has them.
    blobs: BTreeMap<ContentId, WeakBytes>,
    /// The number of blobs that some folder had when they were last looked through.
    n_had: usize,
    /// By the tree and the path, which stands in the paths of its files.
    folders: Cache<(TreeId, String), Arc<Folder>>,
    trees: Cache<TreeId, SourceTree>,
    /// The files of the tree that was read last: most of the next one are the same.
    last: Shared<Vec<SourceFile>>,
}

/// All that is below a folder.
#[derive(Clone, Debug, Default)]
struct Folder {
    /// In path order.
    files: Vec<SourceFile>,
    /// See [`SourceTree::found`].
    found: Diagnostics,
}

impl SourceCache {
    /// Begins with the blobs of a tree that was read before.
    pub fn of(tree: &SourceTree) -> SourceCache {
        let blobs: BTreeMap<_, _> = tree.files.iter().map(|file| (file.id, file.bytes.downgrade())).collect();
        SourceCache { n_had: blobs.len(), blobs, last: tree.files.clone(), ..SourceCache::default() }
    }

    /// Forgets what was not used since the last call.
    pub fn forget_unused(&mut self) {
        self.folders.forget_unused();
        self.trees.forget_unused();
        // A look at all of them waits until an eighth may have gone.
        if self.blobs.len() > self.n_had + self.n_had / 8 {
            self.blobs.retain(|_, bytes| bytes.is_in_use());
            self.n_had = self.blobs.len();
        }
    }
}

/// [`read_source`], with the files that were read before.
pub fn read_source_with_cache(
    repo: &Repo,
    commit: CommitId,
    cache: &mut SourceCache,
) -> Result<SourceTree, GitError> {
    let root = repo.commit(commit)?.tree;
    if let Some(tree) = cache.trees.get(&root) {
        return Ok(tree);
    }
    let odb = repo.inner.odb().map_err(GitError::failed("opening the object database"))?;
    let last = std::mem::take(&mut cache.last);
    let Folder { files, mut found } =
        Reader { repo, odb, last: &last, cache: &mut *cache }.read_folder(root, "", 0)?;
    found.sort();
    let tree = SourceTree { files: files.into(), found, ..SourceTree::default() };
    cache.trees.insert(root, tree.clone());
    cache.last = tree.files.clone();
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
    last: &'b [SourceFile],
    cache: &'b mut SourceCache,
}

impl Reader<'_, '_> {
    fn folder(&mut self, id: TreeId, prefix: &str, depth: usize) -> Result<Arc<Folder>, GitError> {
        let key = (id, prefix.to_owned());
        if let Some(folder) = self.cache.folders.get(&key) {
            return Ok(folder);
        }
        let folder = Arc::new(self.read_folder(id, prefix, depth)?);
        self.cache.folders.insert(key, folder.clone());
        Ok(folder)
    }

    fn read_folder(&mut self, id: TreeId, prefix: &str, depth: usize) -> Result<Folder, GitError> {
        let mut folder = Folder::default();
        let Folder { files, found } = &mut folder;
        let (_, before) = self.last.split_at(self.last.partition_point(|file| *file.path < *prefix));
        let (before, _) = before.split_at(before.partition_point(|file| file.path.starts_with(prefix)));
        files.reserve_exact(before.len());
        let mut before = before.iter().peekable();
        let Some(tree) = self.repo.find_tree(id)? else { return Ok(folder) };
        for entry in tree.iter() {
            let (name, kind) = (entry.name_bytes(), kind_of(&entry));
            if let Some(id) = file_of(kind) {
                // Whatever was read once is read again, for the same reasons.
                let is_this = |file: &&SourceFile| file.id == id && below(prefix, file) == name;
                if !before.peek().is_some_and(is_this) {
                    let comes_before = |file: &&SourceFile| below(prefix, file) < name;
                    while before.next_if(comes_before).is_some() {}
                }
                if let Some(known) = before.next_if(is_this) {
                    files.push(known.clone());
                    continue;
                }
            }
            let name = match str::from_utf8(name) {
                Ok(name) => name,
                Err(_) => {
                    let shown = format!("{prefix}{}", String::from_utf8_lossy(name));
                    let folder = matches!(kind, EntryKind::Folder(_));
                    if wanted(&shown) || (folder && wanted_folder(&shown)) {
                        let fault = "the name is not UTF-8 text, so the file is not read";
                        found.push(Diagnostic::error(Pos::file(shown), fault).hint("rename it"));
                    }
                    continue;
                }
            };
            if let Some(fault) = fault_of_entry(name) {
                // A slash of the name itself must not look like one between folders.
                let shown = format!("{prefix}{}", name.replace('/', "\\u{2f}"));
                if wanted(&shown) || (matches!(kind, EntryKind::Folder(_)) && wanted_folder(&shown)) {
                    found.push(Diagnostic::error(Pos::file(shown), fault).hint("rename it"));
                }
                continue;
            }
            let path = format!("{prefix}{name}");
            match kind {
                EntryKind::Folder(_) if !wanted_folder(&path) => {}
                EntryKind::Folder(_) if depth == DEEPEST => {
                    let message = format!("folders nest deeper than {DEEPEST}; what is below is not read");
                    found.push(Diagnostic::error(Pos::file(path), message));
                }
                EntryKind::Folder(id) => {
                    let below = self.folder(id, &format!("{path}/"), depth + 1)?;
                    files.extend_from_slice(&below.files);
                    found.extend(below.found.iter().cloned());
                }
                EntryKind::Other { mode: MODE_LINK, .. } => found.extend(link(&path, name)),
                EntryKind::Other { mode: MODE_SUBMODULE, .. } => found.push(
                    Diagnostic::warning(Pos::file(path), "a submodule is not read")
                        .hint("put the files into this repository"),
                ),
                kind => {
                    if let Some(id) = file_of(kind).filter(|_| wanted(&path)) {
                        match self.file(path, id)? {
                            Ok(file) => files.push(file),
                            Err(too_large) => found.push(too_large),
                        }
                    }
                }
            }
        }
        // In Git's order whole paths ascend. Only a tree that somebody made by hand has another one.
        let place = |entry: &git2::TreeEntry<'_>| matches!(kind_of(entry), EntryKind::Folder(_));
        let ascends = |one: &git2::TreeEntry<'_>, other: &git2::TreeEntry<'_>| {
            let [one_is_folder, other_is_folder] = [one, other].map(place);
            raw_tree::in_order((one.name_bytes(), one_is_folder), (other.name_bytes(), other_is_folder))
                .is_le()
        };
        if !tree.iter().is_sorted_by(ascends) {
            files.sort_by(|one, other| one.path.cmp(&other.path));
        }
        Ok(folder)
    }

    /// Reads a file. One that is too large is skipped, which the diagnostic says.
    fn file(&mut self, path: String, id: ContentId) -> Result<Result<SourceFile, Diagnostic>, GitError> {
        if let Some(bytes) = self.cache.blobs.get(&id).and_then(WeakBytes::upgrade) {
            return Ok(Ok(SourceFile { path: path.into(), id, bytes }));
        }
        let doing = || format!("reading `{path}`");
        let (size, _) = self.odb.read_header(oid(id.0)).map_err(GitError::failed(doing()))?;
        let limit = Limits::default().bytes;
        if size > limit {
            let message = format!("the file has more than the {limit} bytes that are read");
            let too_large = Diagnostic::error(Pos::file(path), message);
            return Ok(Err(too_large.hint("split it into smaller files")));
        }
        self.repo.flush_for(oid(id.0))?;
        let object = self.odb.read(oid(id.0)).map_err(GitError::failed(doing()))?;
        let bytes = FileBytes::from(object.data());
        self.cache.blobs.insert(id, bytes.downgrade());
        Ok(Ok(SourceFile { path: path.into(), id, bytes }))
    }
}

/// Returns the path of a file below a folder that it is in.
fn below<'f>(prefix: &str, file: &'f SourceFile) -> &'f [u8] {
    file.path.as_bytes().get(prefix.len()..).unwrap_or_default()
}

/// Tells of a link that looks as if people meant it to be read.
fn link(path: &str, name: &str) -> Option<Diagnostic> {
    // A link called `README.md` is no loss; one without an ending may lead to a folder of manifests.
    (wanted(path) || !name.contains('.')).then(|| {
        let fault = Diagnostic::warning(Pos::file(path), "a symbolic link is not followed");
        fault.hint("replace the link with the files")
    })
}
