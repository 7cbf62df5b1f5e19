//! Small cache files in a repository's folder that one process leaves for the next. Losing them only costs time.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use berth_git::Repo;

/// The size limit of a file.
const MOST: u64 = 64 << 20;

/// The path of such a file.
pub(crate) fn path(repo: &Repo, name: &str) -> PathBuf {
    repo.shared_path().join("berth").join(name)
}

/// Reads a file. Only a plain file is read, because a pipe or a device may have no end.
pub(crate) fn read(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut text = String::new();
    File::open(path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Replaces a file atomically.
pub(crate) fn replace(target: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(target.parent().unwrap_or(target))?;
    let fresh = target.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&fresh);
    let written = File::create_new(&fresh).and_then(|mut file| file.write_all(text.as_bytes()));
    let done = written.and_then(|()| fs::rename(&fresh, target));
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    done
}
