//! Reads a folder into a source tree.
//!
//! Symbolic links are not followed, because a link could point out of the repository, and oversized files are
//! not read; both are reported, so that nothing is left out silently.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::budget::{MOST_BYTES, Part, TOO_LARGE_HINT, TreeSize, too_large_folder};
use super::{MARKER, SourceFile, SourceTree, fault_of_entry, output_note, wanted, wanted_folder};
use crate::diag::{Diagnostic, Pos};
use crate::parallel;
use crate::yaml::Limits;

/// The reasons why a folder cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("`{0}` is not a folder")]
    NotAFolder(PathBuf),
    #[error("failed to read the folder `{0}`: {1}")]
    Unreadable(PathBuf, io::Error),
    #[error("`{0}`: the tree is too large")]
    TooLarge(PathBuf),
}

/// Reads every YAML file below a folder, except in folders whose name begins with a dot.
pub fn read_dir(root: &Path, limits: &Limits) -> Result<SourceTree, SourceError> {
    let unreadable = |error| SourceError::Unreadable(root.to_owned(), error);
    if !fs::metadata(root).map_err(unreadable)?.is_dir() {
        return Err(SourceError::NotAFolder(root.to_owned()));
    }
    let mut tree = SourceTree::default();
    let mut wanted: Vec<(String, PathBuf)> = Vec::new();
    let mut size = TreeSize::default();
    let mut open = vec![(root.to_owned(), String::new())];
    let mut first = true;
    while let Some((folder, path)) = open.pop() {
        match fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>) {
            Ok(entries) => {
                for entry in entries {
                    let length = path.len() + 1 + entry.file_name().len();
                    size = size.plus(TreeSize::of_entry(length, 0));
                    take(&mut tree, &mut wanted, &mut open, &path, &entry);
                }
            }
            Err(error) if first => return Err(unreadable(error)),
            Err(error) => {
                let message = format!("the folder cannot be read: {error}");
                tree.found.push(Diagnostic::error(Pos::file(path), message));
            }
        }
        first = false;
    }
    if size.is_too_large() {
        return Err(SourceError::TooLarge(root.to_owned()));
    }
    wanted.sort_unstable();
    let read = match read_all(&wanted, size, limits) {
        Some(read) => read,
        None => {
            let left_out = too_large(&wanted).ok_or_else(|| SourceError::TooLarge(root.to_owned()))?;
            wanted
                .retain(|(path, _)| !path.strip_prefix(&left_out).is_some_and(|rest| rest.starts_with('/')));
            let fault = "with this folder the tree is too large; it is not read";
            tree.found.push(Diagnostic::error(Pos::file(left_out), fault).hint(TOO_LARGE_HINT));
            read_all(&wanted, TreeSize::default(), limits)
                .ok_or_else(|| SourceError::TooLarge(root.to_owned()))?
        }
    };
    for outcome in read {
        match outcome {
            Ok(file) => _ = tree.files.put(file),
            Err(fault) => tree.found.push(fault),
        }
    }
    tree.found.sort();
    Ok(tree)
}

/// Reads files. `None` if their total size is too large.
fn read_all(
    files: &[(String, PathBuf)],
    entries: TreeSize,
    limits: &Limits,
) -> Option<Vec<Result<SourceFile, Diagnostic>>> {
    let left = AtomicU64::new(MOST_BYTES.saturating_sub(entries.bytes));
    let read = parallel::map(files, |(path, file)| {
        let read = read_one(path, file, limits);
        let bytes = read.as_ref().map_or(0, |read| read.bytes.len() as u64);
        let take = |left: u64| left.checked_sub(bytes);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok().map(|_| read)
    });
    read.into_iter().collect()
}

/// Returns the folder without which the other files can be read.
fn too_large(files: &[(String, PathBuf)]) -> Option<String> {
    let size = |(path, file): &(String, PathBuf)| {
        TreeSize::of_entry(path.len(), fs::metadata(file).map_or(0, |file| file.len()))
    };
    let sizes: Vec<TreeSize> = parallel::map(files, size);
    let parts = |folder: &str| {
        let mut parts: BTreeMap<(&str, bool), TreeSize> = BTreeMap::new();
        for ((path, _), size) in files.iter().zip(&sizes) {
            let below = match folder {
                "" => Some(path.as_str()),
                folder => path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(below) = below else { continue };
            let part = below.split_once('/').map_or((below, false), |(folder, _)| (folder, true));
            let sum = parts.entry(part).or_default();
            *sum = sum.plus(*size);
        }
        let part = |((name, is_folder), size): ((&str, bool), TreeSize)| Part {
            name: name.to_owned(),
            is_folder,
            size,
        };
        Ok::<_, Infallible>(parts.into_iter().map(part).collect())
    };
    let Ok(folder) = too_large_folder(parts);
    (!folder.is_empty()).then_some(folder)
}

/// Handles an entry of a folder: a file to read, a folder to open, or a fault.
fn take(
    tree: &mut SourceTree,
    files: &mut Vec<(String, PathBuf)>,
    open: &mut Vec<(PathBuf, String)>,
    parent: &str,
    entry: &DirEntry,
) {
    let name = entry.file_name();
    let Some(name) = name.to_str() else {
        let shown = join(parent, &name.to_string_lossy());
        if wanted(&shown) || (wanted_folder(&shown) && entry.path().is_dir()) {
            let fault = Diagnostic::error(
                Pos::file(shown),
                "the name is not UTF-8 text, so the file is \
                not read",
            );
            tree.found.push(fault.hint("rename it"));
        }
        return;
    };
    let path = join(parent, name);
    if let Some(fault) = fault_of_entry(name) {
        if wanted(&path) || (wanted_folder(&path) && entry.path().is_dir()) {
            tree.found.push(Diagnostic::error(Pos::file(path), fault).hint("rename it"));
        }
        return;
    }
    let file_type = match entry.file_type() {
        Ok(file_type) => file_type,
        Err(error) => {
            tree.found.push(Diagnostic::error(Pos::file(path), format!("cannot be read: {error}")));
            return;
        }
    };
    if file_type.is_symlink() {
        if wanted(&path) || (wanted_folder(&path) && entry.path().is_dir()) {
            let fault = Diagnostic::warning(Pos::file(path), "a symbolic link is not followed");
            tree.found.push(fault.hint("replace the link with the files"));
        }
    } else if file_type.is_dir() {
        // A commit of this repository would not contain its files.
        if wanted_folder(&path) && entry.path().join(".git").exists() {
            let fault = Diagnostic::warning(Pos::file(path), "a submodule is not read");
            tree.found.push(fault.hint("put the files into this repository"));
        } else if wanted_folder(&path) && entry.path().join(MARKER).is_file() {
            tree.found.push(output_note(path));
        } else if wanted_folder(&path) {
            open.push((entry.path(), path));
        }
    } else if wanted(&path) {
        if !file_type.is_file() {
            // Opening a pipe could block for ever.
            tree.found.push(Diagnostic::error(Pos::file(path), "not a regular file, so it is not read"));
            return;
        }
        files.push((path, entry.path()));
    }
}

fn read_one(path: &str, file: &Path, limits: &Limits) -> Result<SourceFile, Diagnostic> {
    match read_file(file, limits.bytes) {
        Ok(Some(bytes)) => Ok(SourceFile::new(path, bytes)),
        Ok(None) => {
            let message = format!("the file has more than the {} bytes that are read", limits.bytes);
            Err(Diagnostic::error(Pos::file(path), message).hint("split it into smaller files"))
        }
        Err(error) => Err(Diagnostic::error(Pos::file(path), format!("cannot be read: {error}"))),
    }
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}

/// The read call needs at least this much spare space, or it allocates its own buffer.
const ROOM_AT_THE_END: usize = 32;

/// Returns a file's bytes; `None` if they exceed the limit.
fn read_file(path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    // Spare space lets the read call find the end of the file without another buffer.
    let size = usize::try_from(file.metadata()?.len().min(most)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(size + ROOM_AT_THE_END);
    file.take(most).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn found(tree: &SourceTree) -> Vec<String> {
        tree.found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn yaml_files_are_read_in_path_order() {
        let root = tempfile::tempdir().unwrap();
        for path in ["b.yaml", "a/z.yml", "a/b/c.yaml", ".git/config.yaml", "notes.txt", "a-b.yaml"] {
            write(root.path(), path, path);
        }
        let tree = read_dir(root.path(), &Limits::default()).unwrap();
        let paths: Vec<&str> = tree.files.keys().map(|path| &**path).collect();
        assert_eq!(paths, ["a-b.yaml", "a/b/c.yaml", "a/z.yml", "b.yaml"]);
        assert_eq!(&*tree.files["a/b/c.yaml"].bytes, b"a/b/c.yaml");
        assert!(tree.found.is_empty());
    }

    #[test]
    fn submodules_and_repositories_inside_are_named_and_not_read() {
        let root = tempfile::tempdir().unwrap();
        for path in [".git/HEAD", "a.yaml", "inner/.git/HEAD", "inner/b.yaml", "module/.git", "module/c.yaml"]
        {
            write(root.path(), path, path);
        }
        let tree = read_dir(root.path(), &Limits::default()).unwrap();
        assert_eq!(tree.files.keys().map(|path| &**path).collect::<Vec<_>>(), ["a.yaml"]);
        let named = found(&tree);
        assert!(named.len() == 2 && named[0].starts_with("inner: warning: a submodule"), "{named:?}");
    }

    #[test]
    fn the_output_of_render_is_passed_over_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        for path in ["berth.json", "a.yaml", "out/berth.json", "out/clusters/a/shop/ConfigMap_web.yaml"] {
            write(root.path(), path, path);
        }
        let tree = read_dir(root.path(), &Limits::default()).unwrap();
        assert_eq!(tree.files.keys().map(|path| &**path).collect::<Vec<_>>(), ["a.yaml"]);
        assert_eq!(found(&tree), ["out: note: the output of `berth render` is not read"]);
    }

    #[test]
    fn a_file_over_the_limit_is_named() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "a.yaml", "12345");
        write(root.path(), "b.yaml", "123456");
        let tree = read_dir(root.path(), &Limits { bytes: 5, ..Limits::default() }).unwrap();
        assert_eq!(tree.files.len(), 1);
        assert!(found(&tree)[0].starts_with("b.yaml: error: the file has more than the 5 bytes"));
    }

    #[test]
    fn of_a_tree_that_is_too_large_one_folder_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "a.yaml", "a: 1");
        write(root.path(), "team/good/b.yaml", "b: 1");
        for number in 0..40 {
            let file = root.path().join(format!("team/x/{number}.yaml"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            File::create(file).unwrap().set_len(9 << 20).unwrap();
        }
        let tree = read_dir(root.path(), &Limits::default()).unwrap();
        assert_eq!(tree.files.keys().map(|path| &**path).collect::<Vec<_>>(), ["a.yaml", "team/good/b.yaml"]);
        assert!(found(&tree)[0].starts_with("team/x: error: with this folder the tree is too large"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_named_and_not_followed() {
        use std::os::unix::fs::symlink;
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(outside.path(), "x.yaml", "secret");
        symlink(outside.path(), root.path().join("folder")).unwrap();
        symlink(outside.path().join("x.yaml"), root.path().join("x.yaml")).unwrap();
        symlink(outside.path().join("x.yaml"), root.path().join("x.txt")).unwrap();
        let tree = read_dir(root.path(), &Limits::default()).unwrap();
        assert!(tree.files.is_empty());
        let named = found(&tree);
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(named[0].starts_with("folder: warning") && named[1].starts_with("x.yaml: warning"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_that_is_no_text_is_named() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(OsStr::from_bytes(b"a\xFF.yaml")), "x").unwrap();
        let tree = read_dir(root.path(), &Limits::default()).unwrap();
        assert!(tree.files.is_empty() && found(&tree)[0].contains("not UTF-8"));
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert!(read_dir(&root.path().join("no"), &Limits::default()).is_err());
        write(root.path(), "a.yaml", "x");
        assert!(read_dir(&root.path().join("a.yaml"), &Limits::default()).is_err());
    }
}
