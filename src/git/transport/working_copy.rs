//! The local bare repository for exchanges with one remote.
//!
//! It is a cache, and can be deleted while no process uses it. It belongs to berth, one remote and one process at a
//! time. Fetching moves and deletes refs, so a folder that berth did not make is refused.
//!
//! Creating and repairing are the same code: each missing step is done, and each file is written atomically. So the
//! next start can continue after a kill or a full disk at any moment.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use super::error::TransportError;
use crate::Repo;
use berth_base::backoff::pace::paced;

/// Contains the remote's address. Its presence shows that berth made the folder.
const MARKER: &str = "berth-remote";
const LOCK: &str = "berth-lock";
/// The temporary name of a file before the rename.
const FRESH: &str = "berth-new";

/// Overwrites whatever the file contained, because `git` reads it.
const CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = true\n\tlogAllRefUpdates = false\n";
const HEAD: &str = "ref: refs/heads/main\n";

/// The folders required to open a repository.
const FOLDERS: [&str; 4] = ["objects/info", "objects/pack", "refs/heads", "refs/tags"];

/// The entries of a repository. All are removed if the marker does not name the remote.
const PARTS: [&str; 12] = [
    "HEAD",
    "FETCH_HEAD",
    "config",
    "description",
    "hooks",
    "info",
    "branches",
    "objects",
    "refs",
    "packed-refs",
    "shallow",
    OWN,
];

/// The folder of berth's own caches in the repository.
const OWN: &str = "berth";

/// The time for which a lock may outlast its berth: a running `git` may end by itself within it.
const HANDOVER: Duration = Duration::from_secs(2);
/// The times after which a `git` that was asked to end is killed, and after which killing it counts as failed.
const FORCE: Duration = Duration::from_secs(15);
const ENDING: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// The folder, locked until this is dropped.
#[derive(Debug)]
pub struct WorkingCopy {
    path: PathBuf,
    lock: File,
}

impl WorkingCopy {
    /// Opens or creates the folder, and completes an interrupted creation.
    pub fn open(path: &Path, remote: &dyn Display) -> Result<WorkingCopy, TransportError> {
        let failed = |doing: &str, error: &dyn Display| TransportError::WorkingCopy {
            message: format!("{doing} `{}` failed: {error}", path.display()),
        };
        let path = std::path::absolute(path).map_err(|error| failed("finding", &error))?;
        if !is_ours(&path).map_err(|error| failed("reading", &error))? {
            return Err(TransportError::Setting {
                message: format!("`{}` is not a working copy that berth made", path.display()),
                hint: Some(
                    "with a remote, name a new or empty folder with `--repo`: berth keeps its working \
                     copy there"
                        .to_owned(),
                ),
            });
        }
        make_private(&path).map_err(|error| failed("making", &error))?;
        let Some(lock) = lock(&path).map_err(|error| failed("locking", &error))? else {
            return Err(TransportError::Setting {
                message: format!("locking `{}` failed: another berth process uses it", path.display()),
                hint: Some("name another folder for the working copy with `--repo`".to_owned()),
            });
        };
        remove_leftovers(&path);
        match read_marker(&path).map_err(|error| failed("reading", &error))? {
            Marker::Names(of) if of == remote.to_string() => {}
            Marker::Names(of) => {
                let hint = "give each remote its own folder, or delete the folder if the remote has moved";
                return Err(TransportError::Setting {
                    message: format!("`{}` is the working copy of `{of}`", path.display()),
                    hint: Some(hint.to_owned()),
                });
            }
            Marker::Missing | Marker::Torn => {
                remove_parts(&path).map_err(|error| failed("emptying", &error))?;
                write_whole(&path, MARKER, &format!("{remote}\n"))
                    .map_err(|error| failed("marking", &error))?;
            }
        }
        lay_out(&path).map_err(|error| failed("making", &error))?;
        Repo::open(&path).map_err(|error| failed("opening", &error))?;
        Ok(WorkingCopy { path, lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Recreates the repository without objects and refs. Keeps the folder `berth`, which has no objects.
    pub fn renew(&self) -> io::Result<()> {
        remove(&self.path, PARTS.into_iter().filter(|part| *part != OWN))?;
        lay_out(&self.path)
    }

    /// Returns the lock for a `git` that works here, which keeps the folder locked even if its berth is killed.
    pub(super) fn lock(&self) -> io::Result<File> {
        self.lock.try_clone()
    }
}

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        // Unlocked explicitly: the transport may keep the file open for longer.
        let _ = self.lock.unlock();
    }
}

enum Marker {
    /// The marker names this remote.
    Names(String),
    Missing,
    /// The marker is incomplete: older versions wrote it in place, so a kill or a full disk could cut it short.
    Torn,
}

fn read_marker(path: &Path) -> io::Result<Marker> {
    match fs::read(path.join(MARKER)) {
        Ok(bytes) => match bytes.strip_suffix(b"\n") {
            Some(line) => Ok(Marker::Names(String::from_utf8_lossy(line).into_owned())),
            None => Ok(Marker::Torn),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Marker::Missing),
        Err(error) => Err(error),
    }
}

/// Reports whether the folder is berth's or may become so: missing, empty, marked, or left by a start that was
/// interrupted before it marked the folder. Changes nothing.
fn is_ours(path: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let marker = read_marker(path)?;
    if matches!(marker, Marker::Names(_)) {
        return Ok(true);
    }
    let is_torn = matches!(marker, Marker::Torn) && path.join(LOCK).is_file();
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        // A new file system contains `lost+found`.
        let harmless = [LOCK, FRESH, "lost+found"].contains(&&*name);
        let part = is_torn && (name == MARKER || is_part(&name));
        if !harmless && !part {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_part(name: &str) -> bool {
    PARTS.contains(&name) || is_leftover(name)
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    // The repository may contain Secrets.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Locks the folder. `None` if another process uses it. Ends a `git` whose berth was killed.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let place = path.join(LOCK);
    let lock = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&place)?;
    let begun = Instant::now();
    while lock.try_lock().is_err() {
        // A newly started process briefly has its parent's open files.
        let waited = begun.elapsed();
        let by = match waited {
            waited if waited > paced(FORCE) => Means::Force,
            waited if waited > paced(HANDOVER) => Means::Request,
            _ => Means::Patience,
        };
        if !end(&place, by) && waited > paced(HANDOVER) || waited > paced(ENDING) {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
    Ok(Some(lock))
}

/// Creates the missing or unusable parts of a repository.
fn lay_out(path: &Path) -> io::Result<()> {
    for folder in FOLDERS {
        fs::create_dir_all(path.join(folder))?;
    }
    if fs::read(path.join("config")).ok().as_deref() != Some(CONFIG.as_bytes()) {
        write_whole(path, "config", CONFIG)?;
    }
    let head = fs::read_to_string(path.join("HEAD")).unwrap_or_default();
    if !head.starts_with("ref: refs/") || !head.ends_with('\n') {
        write_whole(path, "HEAD", HEAD)?;
    }
    Ok(())
}

/// Writes a file atomically: afterwards it has either its old content or the whole text.
fn write_whole(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let fresh = folder.join(FRESH);
    let write = || {
        let mut file = File::create(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, folder.join(name))
    };
    write().inspect_err(|_| drop(fs::remove_file(&fresh)))?;
    // Not every system can open a folder for syncing; the rename is atomic anyway.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn remove_parts(path: &Path) -> io::Result<()> {
    remove(path, PARTS)
}

fn remove(path: &Path, parts: impl IntoIterator<Item = &'static str>) -> io::Result<()> {
    for part in parts {
        let place = path.join(part);
        match fs::symlink_metadata(&place) {
            Ok(about) if about.is_dir() => fs::remove_dir_all(&place)?,
            Ok(_) => fs::remove_file(&place)?,
            Err(_) => {}
        }
    }
    Ok(())
}

/// Removes the leftovers of a killed process. No other process works here, so every lock is stale.
fn remove_leftovers(path: &Path) {
    remove_files(path, is_leftover);
    remove_files(&path.join("objects/info"), is_leftover);
    remove_unfinished_objects(path);
    remove_useless_refs(&path.join("refs"), 0);
}

fn is_leftover(name: &str) -> bool {
    [FRESH, "gc.pid", "packed-refs.new"].contains(&name)
        || name.ends_with(".lock")
        || name.starts_with("berth-stale-lock-")
}

/// Removes unfinished objects and packs, which a `git` leaves on a full disk and which keep it full.
pub(super) fn remove_unfinished_objects(path: &Path) {
    let objects = path.join("objects");
    remove_files(&objects, |name| name.starts_with("tmp_"));
    remove_files(&objects.join("pack"), |name| {
        ["tmp_", ".tmp-", "pack_git2_"].iter().any(|start| name.starts_with(start))
            || has_extension(name, "keep")
    });
    for byte in 0..=255_u8 {
        remove_files(&objects.join(format!("{byte:02x}")), |name| name.starts_with("tmp_"));
    }
}

fn remove_files(folder: &Path, is_useless: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_useless(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes ref locks and empty refs, which block moves. The next fetch restores the refs.
fn remove_useless_refs(folder: &Path, depth: usize) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_useless = || {
            has_extension(&entry.file_name().to_string_lossy(), "lock")
                || entry.metadata().is_ok_and(|about| about.len() == 0)
        };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < 16 => remove_useless_refs(&path, depth + 1),
            Ok(kind) if kind.is_file() && is_useless() => {
                let _ = fs::remove_file(path);
            }
            _ => {}
        }
    }
}

fn has_extension(name: &str, wanted: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == wanted)
}

/// The means to end an orphan, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    Patience,
    /// A `git` that gets this request first removes its locks, even those at a remote on this machine.
    Request,
    Force,
}

/// Ends every orphan that holds the lock. Returns false if a berth holds it, or if no holder is found.
#[cfg(target_os = "linux")]
pub(super) fn end(lock: &Path, by: Means) -> bool {
    use rustix::process::Signal;
    let Some(holders) = holders(lock) else { return false };
    let signal = match by {
        Means::Patience => return !holders.is_empty(),
        Means::Request => Signal::TERM,
        Means::Force => Signal::KILL,
    };
    for pid in &holders {
        let Some(pid) = rustix::process::Pid::from_raw(*pid) else { continue };
        // Only `git` itself leads a group. A helper that outlived it gets the signal alone.
        let _ = rustix::process::kill_process_group(pid, signal);
        let _ = rustix::process::kill_process(pid, signal);
    }
    !holders.is_empty()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end(_lock: &Path, _by: Means) -> bool {
    // Most exchanges end soon. On this system, berth can only wait.
    true
}

/// Lists the processes whose standard input is the lock. Returns `None` if a berth holds it: a process with the lock
/// open elsewhere. A `git` has it open both ways until it is loaded, which takes long on a busy machine.
#[cfg(target_os = "linux")]
fn holders(lock: &Path) -> Option<Vec<i32>> {
    let lock = fs::canonicalize(lock).ok()?;
    let own = std::process::id().to_string();
    let mut holders = Vec::new();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().filter(|name| *name != own).and_then(|name| name.parse().ok()) else {
            continue;
        };
        let files = process.path().join("fd");
        let is_lock = |file: &Path| fs::read_link(file).is_ok_and(|target| target == lock);
        if is_lock(&files.join("0")) {
            holders.push(pid);
        } else if fs::read_dir(files).into_iter().flatten().flatten().any(|file| is_lock(&file.path())) {
            return None;
        }
    }
    Some(holders)
}
