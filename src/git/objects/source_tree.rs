//! Reads a commit as a source tree, straight from Git's objects: no checkout, no filters, no links followed.
//!
//! Selects and reports the same files as reading a folder does.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::{Arc, Weak};

use super::error::GitError;
use super::id::{CommitId, TreeId, oid};
use super::raw_tree::{self, Change};
use super::repo::{EntryKind, MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE, Repo};
use super::tree_size::{self, Measure, Measured};
use berth_base::cache::Cache;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{ContentId, Map, map};
use berth_base::source::budget::{DEEPEST, TOO_LARGE_HINT};
use berth_base::source::{
    MARKER, SourceFile, SourceFiles, SourceTree, TreeSize, fault_of_entry, output_note, wanted, wanted_folder,
};
use berth_base::yaml::Limits;

/// The entries read before the tree is measured. Measuring looks at each of its folders.
const UNMEASURED: u64 = 100_000;

/// The files of a commit that berth may read, in path order.
pub fn read_source(repo: &Repo, commit: CommitId) -> Result<SourceTree, GitError> {
    read_source_with_cache(repo, commit, &mut SourceCache::default())
}

/// The files and trees read earlier.
#[derive(Clone, Debug, Default)]
pub struct SourceCache {
    /// File contents, for as long as a tree holds them.
    blobs: BTreeMap<ContentId, Weak<[u8]>>,
    /// The number of blobs in use at the last cleanup.
    n_had: usize,
    trees: Cache<TreeId, ReadTree>,
    /// The tree read last, from which the next one is made. Without an id, only its files are valid.
    last: (Option<TreeId>, ReadTree),
}

/// Everything that berth reads of a tree.
#[derive(Clone, Debug, Default)]
struct ReadTree {
    files: SourceFiles,
    /// Diagnostics of skipped entries, by their keys. See [`SourceTree::found`].
    found: Map<Vec<u8>, Diagnostic>,
    /// An upper bound: a tree made from another one also counts the removed entries.
    size: TreeSize,
    /// The folder that is skipped because the tree is too large with it.
    left_out: Option<String>,
}

impl SourceCache {
    /// Forgets entries not used since the last call.
    pub fn forget_unused(&mut self) {
        self.trees.forget_unused();
        // Cleans up only when the map has grown by an eighth.
        if self.blobs.len() > self.n_had + self.n_had / 8 {
            self.blobs.retain(|_, bytes| bytes.strong_count() > 0);
            self.n_had = self.blobs.len();
        }
    }
}

/// [`read_source`] with a cache: skips entries that the last tree has too.
pub fn read_source_with_cache(
    repo: &Repo,
    commit: CommitId,
    cache: &mut SourceCache,
) -> Result<SourceTree, GitError> {
    let root = repo.commit(commit)?.tree;
    let tree = match cache.trees.get(&root) {
        Some(tree) => tree,
        None => {
            let tree = read_tree(repo, root, cache)?;
            cache.trees.insert(root, tree.clone());
            if tree.left_out.is_none() {
                cache.last = (Some(root), tree.clone());
            }
            tree
        }
    };
    let mut found = Diagnostics::new();
    found.extend(tree.found.values().cloned());
    found.sort();
    Ok(SourceTree { files: tree.files, found, ..SourceTree::default() })
}

fn read_tree(repo: &Repo, root: TreeId, cache: &mut SourceCache) -> Result<ReadTree, GitError> {
    let SourceCache { blobs, last: (last, tree), .. } = cache;
    let mut read = |before: TreeId, tree: ReadTree, known: &SourceFiles, is_measured: bool| {
        let odb = repo.inner.odb().map_err(GitError::failed("opening the object database"))?;
        let known = known.iter().peekable();
        let mut reader = TreeReader { repo, odb, tree, known, blobs, n_entries: 0, is_measured };
        reader.folder(before, root, "", 0)?;
        Ok(reader.tree)
    };
    let done = match last.map(|last| read(last, tree.clone(), &SourceFiles::new(), false)) {
        Some(done @ (Ok(_) | Err(GitError::TooLarge { .. }))) => done,
        // Git may have pruned the last tree, if its branch is gone.
        _ => read(TreeId::EMPTY, ReadTree::default(), &tree.files, false),
    };
    match done {
        Err(GitError::TooLarge { .. }) => {
            let left_out = Measure::new(repo, Measured::Source)?.too_large(root)?;
            if left_out.as_ref().is_some_and(String::is_empty) {
                return Err(GitError::TooLarge { path: ".".to_owned() });
            }
            read(TreeId::EMPTY, ReadTree { left_out, ..ReadTree::default() }, &tree.files, true)
        }
        done => done,
    }
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

/// Reports whether a path of a commit is a symbolic link or a submodule, or leads through one.
pub fn is_behind_link(repo: &Repo, commit: CommitId, path: &str) -> Result<bool, GitError> {
    let mut folder = repo.commit(commit)?.tree;
    for part in path.split('/') {
        let entry = repo.tree(folder)?.into_iter().find(|entry| entry.name == part.as_bytes());
        folder = match entry.map(|entry| entry.kind) {
            Some(EntryKind::Folder(id)) => id,
            Some(EntryKind::Other { mode, .. }) => return Ok([MODE_LINK, MODE_SUBMODULE].contains(&mode)),
            _ => return Ok(false),
        };
    }
    Ok(false)
}

pub(super) fn file_of(kind: EntryKind) -> Option<ContentId> {
    match kind {
        EntryKind::File(id) => Some(id),
        EntryKind::Other { mode: MODE_EXECUTABLE, id } => Some(ContentId(id)),
        EntryKind::Folder(_) | EntryKind::Other { .. } => None,
    }
}

/// Turns the tree read last into the next one.
struct TreeReader<'r, 'b> {
    repo: &'r Repo,
    odb: git2::Odb<'r>,
    tree: ReadTree,
    known: Peekable<map::Iter<'b, SourceFile>>,
    blobs: &'b mut BTreeMap<ContentId, Weak<[u8]>>,
    /// The number of entries read.
    n_entries: u64,
    /// The files to read are known to be within the limits.
    is_measured: bool,
}

impl TreeReader<'_, '_> {
    /// Reads the differences below a folder. Reports whether the folder is berth's own output, which is skipped.
    fn folder(
        &mut self,
        before: TreeId,
        after: TreeId,
        prefix: &str,
        depth: usize,
    ) -> Result<bool, GitError> {
        let [old, new] = [self.repo.raw_tree(before)?, self.repo.raw_tree(after)?];
        let is_output = |tree: &raw_tree::Tree| depth > 0 && tree.has_file(MARKER.as_bytes());
        let shown = |tree: &raw_tree::Tree| match is_output(tree) {
            true => raw_tree::Tree::default(),
            false => tree.clone(),
        };
        let malformed = || GitError::Failed {
            doing: format!("reading tree {after}"),
            message: "it holds more than entries of a tree".to_owned(),
        };
        for change in raw_tree::changes(&shown(&old), &shown(&new)).ok_or_else(malformed)? {
            self.entry(prefix, change, depth)?;
        }
        let is_output = is_output(&new);
        self.repo.recent.trees.replace(before, after, new);
        Ok(is_output)
    }

    fn entry(&mut self, prefix: &str, change: Change<'_>, depth: usize) -> Result<(), GitError> {
        let Change { name: raw_name, is_folder, before, after } = change;
        let place = || place(prefix, raw_name, is_folder);
        if before.is_some() {
            self.tree.found.remove(&place());
        }
        if after.is_some() {
            self.count(TreeSize::of_entry(prefix.len() + raw_name.len(), 0))?;
        }
        let name = match readable(prefix, raw_name, is_folder) {
            Ok(name) => name,
            Err(fault) => {
                let fault = fault.filter(|_| after.is_some());
                self.tree.found.extend(fault.map(|fault| (place(), fault)));
                return Ok(());
            }
        };
        let path = format!("{prefix}{name}");
        let [old, new] = [before, after].map(|side| match side {
            Some(EntryKind::Folder(id)) => Some(id),
            _ => None,
        });
        if before.is_some() && old.is_none() {
            self.tree.files.take(&*path);
        }
        let is_folder = (old.is_some() || new.is_some()) && wanted_folder(&path);
        if is_folder && new.is_some() && self.tree.left_out.as_ref() == Some(&path) {
            let fault =
                Diagnostic::error(Pos::file(path), "with this folder the tree is too large; it is not read");
            self.tree.found.extend([(place(), fault.hint(TOO_LARGE_HINT))]);
            return Ok(());
        }
        let mut is_output = false;
        if is_folder && depth < DEEPEST {
            let [old, new] = [old, new].map(|side| side.unwrap_or(TreeId::EMPTY));
            is_output = self.folder(old, new, &format!("{path}/"), depth + 1)?;
        }
        let found = match after {
            None => None,
            Some(_) if is_output => Some(output_note(path)),
            Some(EntryKind::Folder(_)) => (is_folder && depth == DEEPEST).then(|| {
                let message =
                    format!("folders nest deeper than {DEEPEST}; files below this one are not read");
                Diagnostic::error(Pos::file(path), message)
            }),
            Some(EntryKind::Other { mode: MODE_LINK, .. }) => link(&path, name),
            Some(EntryKind::Other { mode: MODE_SUBMODULE, .. }) => Some(
                Diagnostic::warning(Pos::file(path), "a submodule is not read")
                    .hint("put the files into this repository"),
            ),
            Some(kind) => match file_of(kind).filter(|_| wanted(&path)) {
                Some(id) => self.file(path, id)?,
                None => None,
            },
        };
        self.tree.found.extend(found.map(|found| (place(), found)));
        Ok(())
    }

    /// Counts an entry, or the bytes of a file. Fails if the tree may be too large and has not been measured.
    fn count(&mut self, size: TreeSize) -> Result<(), GitError> {
        self.tree.size = self.tree.size.plus(size);
        self.n_entries += size.entries;
        match !self.is_measured && (self.n_entries > UNMEASURED || self.tree.size.is_too_large()) {
            true => Err(GitError::TooLarge { path: ".".to_owned() }),
            false => Ok(()),
        }
    }

    /// Reads a file, or returns the diagnostic for one that is too large.
    fn file(&mut self, path: String, id: ContentId) -> Result<Option<Diagnostic>, GitError> {
        let bytes = tree_size::read_bytes(&self.odb, id, &path)?;
        self.count(TreeSize { entries: 0, bytes })?;
        while self.known.next_if(|(known, _)| ***known < *path).is_some() {}
        // A file that was within the limits still is.
        if let Some((_, file)) = self.known.next_if(|(_, file)| *file.path == *path && file.id == id) {
            self.tree.files.put(file.clone());
            return Ok(None);
        }
        let bytes = match self.blobs.get(&id).and_then(Weak::upgrade) {
            Some(bytes) => bytes,
            None => {
                let doing = || format!("reading `{path}`");
                let (size, _) = self.odb.read_header(oid(id.0)).map_err(GitError::failed(doing()))?;
                let limit = Limits::default().bytes;
                if size > limit {
                    let message = format!("the file has more than the {limit} bytes that are read");
                    let too_large = Diagnostic::error(Pos::file(path), message);
                    return Ok(Some(too_large.hint("split it into smaller files")));
                }
                self.repo.flush_for(oid(id.0))?;
                let object = self.odb.read(oid(id.0)).map_err(GitError::failed(doing()))?;
                let bytes = Arc::<[u8]>::from(object.data());
                self.blobs.insert(id, Arc::downgrade(&bytes));
                bytes
            }
        };
        self.tree.files.put(SourceFile { path: path.into(), id, bytes });
        Ok(None)
    }
}

/// Returns a key that is unique in the tree. A slash within a name differs from one between folders.
fn place(prefix: &str, name: &[u8], is_folder: bool) -> Vec<u8> {
    let name = name.iter().map(|byte| if *byte == b'/' { 0 } else { *byte });
    prefix.bytes().chain(name).chain(is_folder.then_some(b'/')).collect()
}

/// Returns the name if it is readable, else a diagnostic if berth would have read the entry.
fn readable<'n>(prefix: &str, name: &'n [u8], is_folder: bool) -> Result<&'n str, Option<Diagnostic>> {
    let (shown, fault) = match str::from_utf8(name) {
        Ok(name) => match fault_of_entry(name) {
            None => return Ok(name),
            // A slash within the name must not look like one between folders.
            Some(fault) => (name.replace('/', "\\u{2f}").into(), fault),
        },
        Err(_) => (String::from_utf8_lossy(name), "the name is not UTF-8 text, so the file is not read"),
    };
    let shown = format!("{prefix}{shown}");
    let is_missed = wanted(&shown) || (is_folder && wanted_folder(&shown));
    Err(is_missed.then(|| Diagnostic::error(Pos::file(shown), fault).hint("rename it")))
}

/// Warns about a link that berth would read if it were a file.
fn link(path: &str, name: &str) -> Option<Diagnostic> {
    // A link named `README.md` does not matter; one without an extension may lead to a folder of manifests.
    (wanted(path) || !name.contains('.')).then(|| {
        let fault = Diagnostic::warning(Pos::file(path), "a symbolic link is not followed");
        fault.hint("replace the link with the files")
    })
}
