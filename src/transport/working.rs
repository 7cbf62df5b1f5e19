//! The local bare repository that a remote is fetched into and pushed from.
//!
//! A cache: it can be deleted whenever nobody uses it. It is berth's alone (a folder that berth did not make
//! is refused, since fetching moves and deletes refs), of one remote, and used by one process at a time.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use super::error::TransportError;
use super::remote::RemoteUrl;
use crate::git::Repo;

/// Names the remote; its presence says that berth made the folder.
const MARKER: &str = "berth-remote";
const LOCK: &str = "berth-lock";

/// Whatever somebody wrote there, `git` reads this.
const CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = true\n\tlogAllRefUpdates = false\n";

/// More packs than this slow every look-up down.
const MOST_PACKS: usize = 40;

/// The folder, locked for as long as this lives.
#[derive(Debug)]
pub struct WorkingCopy {
    path: PathBuf,
    _lock: File,
}

impl WorkingCopy {
    /// Opens the folder, or makes it.
    pub fn open(path: &Path, url: &RemoteUrl) -> Result<WorkingCopy, TransportError> {
        let failed = |doing: &str, error: &dyn std::fmt::Display| TransportError::Setting {
            message: format!("{doing} `{}` failed: {error}", path.display()),
            hint: Some("name another folder for the working copy with `--repo`".to_owned()),
        };
        let path = std::path::absolute(path).map_err(|error| failed("finding", &error))?;
        let marker = path.join(MARKER);
        let is_new = fs::read_dir(&path).map_or(true, |mut entries| entries.next().is_none());
        if !is_new && !marker.is_file() {
            return Err(TransportError::Setting {
                message: format!("`{}` is not a working copy that berth made", path.display()),
                hint: Some(
                    "with a remote, `--repo` names a folder of berth's own: a new or empty one".to_owned(),
                ),
            });
        }
        make_private(&path).map_err(|error| failed("making", &error))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK));
        let lock = lock.map_err(|error| failed("locking", &error))?;
        lock.try_lock().map_err(|_| failed("locking", &"another berth is at work in it"))?;
        match fs::read_to_string(&marker) {
            Ok(of) if of.trim_end() == url.to_string() => {}
            Ok(of) => {
                let of = of.trim_end().to_owned();
                let hint = "give each remote a folder of its own; or delete it, if the remote has moved";
                return Err(TransportError::Setting {
                    message: format!("`{}` is the working copy of `{of}`", path.display()),
                    hint: Some(hint.to_owned()),
                });
            }
            Err(_) => fs::write(&marker, format!("{url}\n")).map_err(|error| failed("marking", &error))?,
        }
        Repo::init_bare(&path).map_err(|error| failed("making", &error))?;
        fs::write(path.join("config"), CONFIG).map_err(|error| failed("configuring", &error))?;
        clear_abandoned(&path);
        Ok(WorkingCopy { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there are so many packs and loose objects that packing them anew pays.
    pub fn is_scattered(&self) -> bool {
        let count =
            |folder: &str| fs::read_dir(self.path.join("objects").join(folder)).map_or(0, Iterator::count);
        // One of 256 folders stands for all.
        count("pack") > 2 * MOST_PACKS || count("17") > 27
    }
}

#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    // What is in it may be Secrets.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path)
}

/// What a `git` that was killed left: nobody else works here, so a lock is nobody's.
fn clear_abandoned(path: &Path) {
    for name in ["packed-refs.lock", "shallow.lock", "HEAD.lock", "config.lock", "gc.pid.lock", "gc.pid"] {
        let _ = fs::remove_file(path.join(name));
    }
    let parts = fs::read_dir(path.join("objects/pack")).into_iter().flatten().flatten();
    for part in parts.filter(|part| part.file_name().to_string_lossy().starts_with("tmp_")) {
        let _ = fs::remove_file(part.path());
    }
    clear_ref_locks(&path.join("refs"), 0);
}

fn clear_ref_locks(folder: &Path, depth: usize) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < 16 => clear_ref_locks(&path, depth + 1),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|ext| ext == "lock") => {
                let _ = fs::remove_file(path);
            }
            _ => {}
        }
    }
}
