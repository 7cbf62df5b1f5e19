//! The files of charts and bases: all files of a commit or folder, not only the YAML files of the source tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use berth_base::model::ContentId;
use berth_base::source::SourceTree;
use berth_base::yaml::{self, Limits, Node, Value};
use berth_git::repo::{MODE_EXECUTABLE, MODE_LINK};
use berth_git::{EntryKind, GitError, Repo, TreeId};
use berth_sources::{Tree, TreeFile};

/// The bytes of a chart or base, and of a single file of values.
const MOST_BYTES: usize = 100 << 20;

/// The files of a chart or base, and the folders in it.
const MOST_FILES: usize = 50_000;

/// The deepest folder that is read.
const DEEPEST: usize = 100;

/// The origin of a source tree, with the files that are no YAML.
#[derive(Clone, Debug)]
pub(in crate::inputs) enum Origin {
    Commit(TreeId),
    Folder(PathBuf),
}

/// The files that charts and bases consist of.
pub(super) struct Files<'a> {
    pub repo: Option<&'a Repo>,
    pub origin: &'a Origin,
    /// The YAML files, which may be edited.
    pub tree: &'a SourceTree,
    /// The tree may have files that its origin lacks.
    pub is_edited: bool,
}

/// A file of a chart or base.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    mode: &'static str,
    id: ContentId,
    /// The bytes, where the origin is a folder or the file is edited.
    bytes: Option<Vec<u8>>,
}

/// The files of a chart or base, by path from the root of the repository.
pub(super) type Entries = BTreeMap<String, Entry>;

/// The reason why files cannot be read.
#[derive(Debug)]
pub(super) enum FilesError {
    Git(GitError),
    /// A fault of the source, for people.
    Fault(String),
}

impl From<GitError> for FilesError {
    fn from(error: GitError) -> FilesError {
        FilesError::Git(error)
    }
}

impl Files<'_> {
    /// Returns all files below a folder. `None` if there is no such folder.
    pub fn below(&self, folder: &str) -> Result<Option<Entries>, FilesError> {
        let mut found = Entries::new();
        let exists = match (self.origin, self.repo) {
            (Origin::Commit(root), Some(repo)) => match repo.entry_at(*root, folder)? {
                Some(EntryKind::Folder(id)) => {
                    list_tree(repo, id, folder, 0, &mut found)?;
                    true
                }
                _ => false,
            },
            (Origin::Folder(root), _) => list_folder(root, folder, &mut found)?,
            (Origin::Commit(_), None) => false,
        };
        let mut in_tree = BTreeSet::new();
        if self.is_edited {
            let prefix = format!("{folder}/");
            in_tree.extend(self.tree.files.keys().filter(|path| path.starts_with(&prefix)).cloned());
        }
        for (path, entry) in &mut found {
            if let Some(file) = self.tree.files.get(path.as_str()).filter(|_| entry.mode != LINK) {
                (entry.id, entry.bytes) = (file.id, Some(file.bytes.to_vec()));
            }
        }
        for path in in_tree {
            if let Some(file) = self.tree.files.get(&path) {
                let entry = Entry { mode: FILE, id: file.id, bytes: Some(file.bytes.to_vec()) };
                found.entry(path.to_string()).or_insert(entry);
            }
        }
        Ok((exists || !found.is_empty()).then_some(found))
    }

    /// Returns a file. `None` if there is none.
    pub fn file(&self, path: &str) -> Result<Option<Entry>, FilesError> {
        if let Some(file) = self.tree.files.get(path) {
            return Ok(Some(Entry { mode: FILE, id: file.id, bytes: Some(file.bytes.to_vec()) }));
        }
        match (self.origin, self.repo) {
            (Origin::Commit(root), Some(repo)) => {
                let kind = repo.entry_at(*root, path)?;
                Ok(kind.and_then(entry_of).filter(|entry| entry.mode != LINK))
            }
            (Origin::Folder(root), _) => match without_links(root, path)? {
                Some(file) if file.is_file() => Ok(Some(read_entry(&file, path)?)),
                _ => Ok(None),
            },
            (Origin::Commit(_), None) => Ok(None),
        }
    }

    /// Returns the bytes of a file.
    pub fn read(&self, entry: &Entry) -> Result<Vec<u8>, FilesError> {
        match (&entry.bytes, self.repo) {
            (Some(bytes), _) => Ok(bytes.clone()),
            (None, Some(repo)) => Ok(repo.blob(entry.id)?),
            (None, None) => Err(FilesError::Fault("a file cannot be read".to_owned())),
        }
    }

    /// Returns the files that a base may read: those below its folder, and those that a kustomization in them names.
    pub fn closure(&self, folder: &str) -> Result<Option<Entries>, FilesError> {
        let Some(mut found) = self.below(folder)? else { return Ok(None) };
        let mut seen = BTreeSet::new();
        loop {
            let new: Vec<String> = found
                .keys()
                .filter(|path| is_kustomization(path) && !seen.contains(*path))
                .cloned()
                .collect();
            if new.is_empty() {
                return Ok(Some(found));
            }
            for path in new {
                let text = self.read(&found[&path])?;
                seen.insert(path.clone());
                for named in named_outside(&path, &text) {
                    let more = match self.below(&named)? {
                        Some(more) => more,
                        None => self.file(&named)?.map(|file| (named, file)).into_iter().collect(),
                    };
                    more.into_iter().for_each(|(path, entry)| _ = found.entry(path).or_insert(entry));
                    check_count(&found, folder)?;
                }
            }
        }
    }
}

/// Names files for the renderer, without the part of the paths up to `root`.
pub(super) fn tree_of(entries: &Entries, root: &str) -> Tree {
    Tree::of(entries.iter().map(|(path, entry)| (below_root(path, root), entry.mode, entry.id.0.as_slice())))
}

/// Reads files for the renderer.
pub(super) fn read_all(
    files: &Files<'_>,
    entries: &Entries,
    root: &str,
) -> Result<Vec<TreeFile>, FilesError> {
    let mut left = MOST_BYTES;
    let mut read = Vec::with_capacity(entries.len());
    for (path, entry) in entries {
        let bytes = files.read(entry)?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            FilesError::Fault(format!("has more than the {} MiB that are read", MOST_BYTES >> 20))
        })?;
        read.push(TreeFile { path: below_root(path, root).to_owned(), mode: entry.mode, bytes });
    }
    Ok(read)
}

fn below_root<'p>(path: &'p str, root: &str) -> &'p str {
    path.strip_prefix(root).map_or(path, |rest| rest.trim_start_matches('/'))
}

const FILE: &str = "100644";
const EXECUTABLE: &str = "100755";
const LINK: &str = "120000";

fn entry_of(kind: EntryKind) -> Option<Entry> {
    let (mode, id) = match kind {
        EntryKind::File(id) => (FILE, id),
        EntryKind::Other { mode: MODE_EXECUTABLE, id } => (EXECUTABLE, ContentId(id)),
        EntryKind::Other { mode: MODE_LINK, id } => (LINK, ContentId(id)),
        EntryKind::Folder(_) | EntryKind::Other { .. } => return None,
    };
    Some(Entry { mode, id, bytes: None })
}

fn check_count(found: &Entries, folder: &str) -> Result<(), FilesError> {
    match found.len() > MOST_FILES {
        true => {
            Err(FilesError::Fault(format!("`{folder}` has more than the {MOST_FILES} files that are read")))
        }
        false => Ok(()),
    }
}

fn list_tree(
    repo: &Repo,
    tree: TreeId,
    folder: &str,
    depth: usize,
    found: &mut Entries,
) -> Result<(), FilesError> {
    if depth > DEEPEST {
        return Err(FilesError::Fault(format!("the folders of `{folder}` are too deep")));
    }
    for entry in repo.tree(tree)? {
        let Ok(name) = String::from_utf8(entry.name) else {
            return Err(FilesError::Fault(format!("`{folder}` has a name that is not UTF-8 text")));
        };
        let path = format!("{folder}/{name}");
        match entry.kind {
            EntryKind::Folder(id) => list_tree(repo, id, &path, depth + 1, found)?,
            kind => found.extend(entry_of(kind).map(|entry| (path, entry))),
        }
    }
    check_count(found, folder)
}

/// Lists the files below a folder. Reports whether the folder exists.
fn list_folder(root: &Path, folder: &str, found: &mut Entries) -> Result<bool, FilesError> {
    let Some(top) = without_links(root, folder)?.filter(|top| top.is_dir()) else { return Ok(false) };
    let mut open = vec![(top, folder.to_owned(), 0)];
    while let Some((folder, path, depth)) = open.pop() {
        if depth > DEEPEST {
            return Err(FilesError::Fault(format!("the folders of `{path}` are too deep")));
        }
        for entry in fs::read_dir(&folder).map_err(|error| unreadable(&path, &error))? {
            let entry = entry.map_err(|error| unreadable(&path, &error))?;
            let Ok(name) = entry.file_name().into_string() else {
                return Err(FilesError::Fault(format!("`{path}` has a name that is not UTF-8 text")));
            };
            let path = format!("{path}/{name}");
            let kind = entry.file_type().map_err(|error| unreadable(&path, &error))?;
            // A commit has no repository inside of it, and no file that is neither regular nor a link.
            if kind.is_dir() && name != ".git" && !entry.path().join(".git").exists() {
                open.push((entry.path(), path, depth + 1));
            } else if kind.is_file() || kind.is_symlink() {
                found.insert(path.clone(), read_entry(&entry.path(), &path)?);
            }
        }
        check_count(found, &path)?;
    }
    Ok(true)
}

/// Returns a path below the root, if no part of it is a link.
fn without_links(root: &Path, path: &str) -> Result<Option<PathBuf>, FilesError> {
    let mut at = root.to_owned();
    for part in path.split('/') {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(found) if !found.is_symlink() => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    Ok(Some(at))
}

fn read_entry(file: &Path, path: &str) -> Result<Entry, FilesError> {
    let found = fs::symlink_metadata(file).map_err(|error| unreadable(path, &error))?;
    if found.is_symlink() {
        let target = fs::read_link(file).map_err(|error| unreadable(path, &error))?;
        let bytes = target.to_string_lossy().into_owned().into_bytes();
        return Ok(Entry { mode: LINK, id: ContentId::of(&bytes), bytes: Some(bytes) });
    }
    if found.len() > MOST_BYTES as u64 {
        return Err(FilesError::Fault(format!(
            "`{path}` has more than the {} MiB that are read",
            MOST_BYTES >> 20
        )));
    }
    let bytes = fs::read(file).map_err(|error| unreadable(path, &error))?;
    Ok(Entry { mode: FILE, id: ContentId::of(&bytes), bytes: Some(bytes) })
}

fn unreadable(path: &str, error: &io::Error) -> FilesError {
    FilesError::Fault(format!("`{path}` cannot be read: {error}"))
}

fn is_kustomization(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["kustomization.yaml", "kustomization.yml", "Kustomization"].contains(&name)
}

/// Returns the paths outside of its folder that a kustomization names. Kustomize itself judges what it may name.
fn named_outside(path: &str, text: &[u8]) -> BTreeSet<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut named = BTreeSet::new();
    for document in yaml::read(text, &Limits::default()).documents {
        collect(&document.root, &mut |text| {
            // A generator names a file as `key=path`.
            let path = text.rsplit('=').next().unwrap_or(text);
            if path.split('/').any(|part| part == "..") {
                named.extend(resolve(folder, path));
            }
        });
    }
    named
}

fn collect(node: &Node, take: &mut dyn FnMut(&str)) {
    match &node.value {
        Value::String(text) => take(text),
        Value::List(items) => items.iter().for_each(|item| collect(item, take)),
        Value::Map(entries) => entries.iter().for_each(|entry| collect(&entry.value, take)),
        _ => {}
    }
}

/// Resolves a relative path. `None` for the root, and for what is outside of it.
fn resolve(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            ".git" => return None,
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kustomization_names_files_outside_of_its_folder() {
        let text = b"resources: [../../base, local.yaml, ./../side/x.yaml]\n\
            configMapGenerator: [{name: a, files: [key=../../files/a.txt]}]\nnamespace: a..b\n";
        let named = named_outside("apps/web/prod/kustomization.yaml", text);
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        assert_eq!(named, ["apps/base", "apps/files/a.txt", "apps/web/side/x.yaml"]);
    }

    #[test]
    fn a_path_above_the_root_is_not_resolved() {
        assert_eq!(resolve("a", "../../b"), None);
        assert_eq!(resolve("a", ".."), None);
        assert_eq!(resolve("a/b", "../c/./d"), Some("a/c/d".to_owned()));
    }
}
