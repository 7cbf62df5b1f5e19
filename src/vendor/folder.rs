//! A tree of Git ↔ a folder on the disk, and the check that vendored folders are as their lock says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use berth_base::diag::{Diagnostic, Diagnostics, Pos, harmless_line};
use berth_base::model::ContentId;
use berth_git::repo::MODE_EXECUTABLE;
use berth_git::{EntryKind, Repo, TreeId, Writer};

use crate::lock::{LOCK, Lock, is_folder};
use crate::{Origin, VendorError, Vendored};

/// The files of a chart or base, and the bytes of all of them.
const MOST_FILES: usize = 50_000;
const MOST_BYTES: u64 = 100 << 20;
const DEEPEST: usize = 32;

/// Lists the plain files of a tree. Refuses links, submodules and names that lead out of the folder. An executable file
/// counts as a plain one.
pub(crate) fn files(repo: &Repo, tree: TreeId) -> Result<BTreeMap<String, ContentId>, VendorError> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(String::new(), tree, 0)];
    while let Some((prefix, tree, depth)) = folders.pop() {
        for entry in repo.tree(tree)? {
            let name = String::from_utf8_lossy(&entry.name);
            let path = format!("{prefix}{name}");
            let refuse = |what: &str| {
                Err(VendorError::server(format!(
                    "`{}` {what}, which berth does not vendor",
                    path.escape_debug()
                )))
            };
            if !is_folder(&path) || std::str::from_utf8(&entry.name).is_err() {
                return refuse("has a name that leads elsewhere");
            }
            match entry.kind {
                EntryKind::File(id) => _ = found.insert(path, id),
                EntryKind::Other { mode: MODE_EXECUTABLE, id } => _ = found.insert(path, ContentId(id)),
                EntryKind::Other { .. } => return refuse("is a link or a submodule"),
                EntryKind::Folder(_) if depth == DEEPEST => return refuse("is in too many folders"),
                EntryKind::Folder(tree) => folders.push((format!("{path}/"), tree, depth + 1)),
            }
            if found.len() > MOST_FILES {
                return Err(VendorError::server(format!("it has more than {MOST_FILES} files")));
            }
        }
    }
    Ok(found)
}

/// Brings a folder to the files of a tree. A reader of the folder sees the files of before or those of afterwards, never
/// a part.
pub fn write(repo: &Repo, tree: TreeId, root: &Path, folder: &str) -> Result<(), VendorError> {
    let files = files(repo, tree)?;
    let place = checked_place(root, folder)?;
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = |kind: &str| place.with_file_name(format!(".{name}.berth-{kind}"));
    let (fresh, old) = (beside("new"), beside("old"));
    for leftover in [&fresh, &old] {
        if leftover.exists() {
            fs::remove_dir_all(leftover).map_err(VendorError::io("removing", leftover))?;
        }
    }
    let sizes = files.values().map(|id| repo.blob_size(*id)).sum::<Result<u64, _>>()?;
    if sizes > MOST_BYTES {
        return Err(VendorError::server(format!("it has more than {MOST_BYTES} bytes")));
    }
    if let Err(error) = write_files(repo, &files, &fresh) {
        // What is left would be committed with the rest.
        let _ = fs::remove_dir_all(&fresh);
        return Err(error);
    }
    if place.exists() {
        fs::rename(&place, &old).map_err(VendorError::io("moving", &place))?;
    }
    fs::rename(&fresh, &place).map_err(VendorError::io("making", &place))?;
    if old.exists() {
        fs::remove_dir_all(&old).map_err(VendorError::io("removing", &old))?;
    }
    Ok(())
}

fn write_files(repo: &Repo, files: &BTreeMap<String, ContentId>, into: &Path) -> Result<(), VendorError> {
    for (path, id) in files {
        let file = into.join(path);
        let parent = file.parent().unwrap_or(into);
        fs::create_dir_all(parent).map_err(VendorError::io("making", parent))?;
        fs::write(&file, repo.blob(*id)?).map_err(VendorError::io("writing", &file))?;
    }
    Ok(())
}

/// Returns the path of a folder, whose parents exist.
fn checked_place(root: &Path, folder: &str) -> Result<PathBuf, VendorError> {
    let place = plain_place(root, folder)?;
    let parent = place.parent().unwrap_or(root);
    fs::create_dir_all(parent).map_err(VendorError::io("making", parent))?;
    Ok(place)
}

/// Returns the path of a folder, which may be missing. Refuses one that is behind a link, and a file.
fn plain_place(root: &Path, folder: &str) -> Result<PathBuf, VendorError> {
    let place = root.join(folder);
    for path in place.ancestors().take_while(|path| *path != root) {
        match path.symlink_metadata() {
            Ok(about) if about.is_symlink() => {
                return Err(VendorError::wrong(format!("`{folder}` is behind a link")));
            }
            Ok(about) if !about.is_dir() => {
                return Err(VendorError::wrong(format!("`{folder}` is a file, or below one")));
            }
            _ => {}
        }
    }
    Ok(place)
}

/// Returns the id of the tree that a folder would have in Git. `None` if there is no such folder. `scratch` takes the
/// objects.
pub fn tree_of(scratch: &Repo, root: &Path, folder: &str) -> Result<Option<String>, VendorError> {
    let place = plain_place(root, folder)?;
    if !place.is_dir() {
        return Ok(None);
    }
    let mut writer = Writer::new(scratch)?;
    let (mut files, mut left) = (BTreeMap::new(), MOST_BYTES);
    let mut folders = vec![(String::new(), place, 0)];
    while let Some((prefix, folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(VendorError::io("reading", &folder))? {
            let entry = entry.map_err(VendorError::io("reading", &folder))?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(VendorError::io("reading", &entry.path()))?;
            if kind.is_dir() && depth < DEEPEST {
                folders.push((format!("{path}/"), entry.path(), depth + 1));
                continue;
            }
            let size = entry.metadata().map_err(VendorError::io("reading", &entry.path()))?.len();
            if kind.is_file() && files.len() < MOST_FILES && size <= left {
                left -= size;
                let bytes = fs::read(entry.path()).map_err(VendorError::io("reading", &entry.path()))?;
                files.insert(path, writer.blob(&bytes)?);
            } else {
                // No vendored folder has this.
                return Ok(Some(String::new()));
            }
        }
    }
    let tree = writer.folder(files.iter().map(|(path, id)| (path.as_str(), *id)))?;
    Ok(Some(tree.to_string()))
}

/// Checks the vendored folders of a commit's tree against its lock.
pub fn check(repo: &Repo, root: TreeId) -> Result<Diagnostics, VendorError> {
    let mut found = Diagnostics::new();
    let id = match repo.entry_at(root, LOCK)? {
        None => return Ok(found),
        Some(EntryKind::File(id)) => id,
        Some(EntryKind::Other { mode: MODE_EXECUTABLE, id }) => ContentId(id),
        Some(_) => {
            found.push(Diagnostic::error(Pos::file(LOCK), format!("{LOCK} is no plain file")));
            return Ok(found);
        }
    };
    let lock = match Lock::parse(&String::from_utf8_lossy(&repo.blob(id)?)) {
        Ok(lock) => lock,
        Err(error) => {
            found.push(Diagnostic::error(Pos::file(LOCK), error.to_string()));
            return Ok(found);
        }
    };
    for (folder, vendored) in &lock.folders {
        let tree = match repo.entry_at(root, folder)? {
            Some(EntryKind::Folder(tree)) => Some(tree.to_string()),
            _ => None,
        };
        found.extend(vendored.fault(folder, tree.as_deref()));
    }
    Ok(found)
}

impl Vendored {
    /// Reports whether somebody edited the version in the lock, and nobody fetched it yet.
    pub fn is_outdated(&self) -> bool {
        self.fetched != self.origin.wanted()
    }

    /// Returns the fault of a folder that is not as the lock says. `tree` is the id of its tree; `None` if it is missing.
    pub fn fault(&self, folder: &str, tree: Option<&str>) -> Option<Diagnostic> {
        let origin = &self.origin;
        let message = match tree {
            None => format!("`{folder}` is missing, which the lock has as {origin}"),
            Some(_) if self.is_outdated() => {
                format!("`{folder}` has version {} and not yet {origin}", harmless_line(&self.fetched))
            }
            Some(tree) if tree == self.tree => return None,
            Some(_) => {
                format!("`{folder}` does not have the files of {origin}: somebody edited them, or the lock")
            }
        };
        let hint = "`berth vendor fetch` brings it to what the lock names; for edits of your own, take it out of the lock";
        Some(Diagnostic::warning(Pos::file(LOCK), message).hint(hint))
    }

    /// Returns the fault of a server that has something else now than when it was vendored.
    pub fn replaced(&self, folder: &str, now: &Vendored) -> Option<Diagnostic> {
        if (self.origin.digest(), &self.tree) == (now.origin.digest(), &now.tree) {
            return None;
        }
        let message = format!(
            "`{folder}`: the server of {} has {} now, and the lock {}",
            self.origin,
            now.origin.digest(),
            self.origin.digest()
        );
        Some(
            Diagnostic::error(Pos::file(LOCK), message)
                .hint("somebody replaced this version; ask its publisher why"),
        )
    }
}

impl Origin {
    /// Returns what people want: the version of a chart; the branch, tag or commit of a base.
    pub fn wanted(&self) -> &str {
        match self {
            Origin::Chart { version, .. } => version,
            Origin::Base { reference, .. } => reference,
        }
    }

    /// Returns the digest of a chart, or the commit of a base.
    pub fn digest(&self) -> &str {
        match self {
            Origin::Chart { digest, .. } => digest,
            Origin::Base { commit, .. } => commit,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Chart { chart, version, .. } => write!(f, "{chart} {version}"),
            Origin::Base { git, reference, path, .. } if path.is_empty() => write!(f, "{git} at {reference}"),
            Origin::Base { git, reference, path, .. } => write!(f, "{path} of {git} at {reference}"),
        }
    }
}
