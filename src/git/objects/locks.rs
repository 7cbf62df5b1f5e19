//! Finds and removes the lock files of refs that a killed process left behind.
//!
//! A process locks a ref only for as long as it takes to write a line. So a lock unchanged for [`STALE`] has no
//! owner. Since clocks jump, even a lock that looks older is watched for a moment first.

use berth_base::backoff::pace::paced;
use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::error::GitError;
use super::repo::Repo;

/// Far longer than any process keeps a ref locked.
const STALE: Duration = Duration::from_secs(10);

/// The time for which a lock that looks stale is watched.
const CONFIRM: Duration = Duration::from_millis(500);

const POLL: Duration = Duration::from_millis(10);

/// The file that holds many refs.
pub(super) const PACKED: &str = "packed-refs";

/// The number of times a lock may change hands before it counts as a lost race.
const MOST_TURNS: usize = 20;

/// Git's new packed file before the rename. Git holds the lock of [`PACKED`] meanwhile.
const PACKED_NEW: &str = "packed-refs.new";

impl Repo {
    /// Runs `change` until no lock stops it. Waits for locks to go, and removes the locks of dead processes.
    pub(super) fn despite_locks<T>(
        &self,
        name: &str,
        change: impl Fn() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        for _ in 0..MOST_TURNS {
            match change() {
                Err(GitError::Locked { .. }) => self.outlast_locks([name])?,
                done => return done,
            }
        }
        change()
    }

    /// Waits until these refs are unlocked, and removes the locks of dead processes. Fails at the first lock that a
    /// process holds.
    pub(crate) fn outlast_locks<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), GitError> {
        let common = self.inner.commondir();
        let names = names.into_iter().chain([PACKED]);
        let watched = names.filter_map(|name| Watched::begin(common, name)).collect();
        outlast(common, watched, &mut self.cleared.borrow_mut())
    }

    /// Returns the stale lock files removed since the repository was opened.
    pub fn cleared_locks(&self) -> Vec<String> {
        self.cleared.borrow().clone()
    }
}

/// A lock file, with its marks when first seen.
struct Watched {
    name: String,
    lock: PathBuf,
    marks: Marks,
}

impl Watched {
    fn begin(common: &Path, name: &str) -> Option<Watched> {
        let lock = common.join(format!("{name}.lock"));
        Marks::of(&lock).map(|marks| Watched { name: name.to_owned(), lock, marks })
    }

    fn is_unchanged(&self) -> bool {
        Marks::of(&self.lock) == Some(self.marks)
    }
}

/// Waits until these locks are gone or stale, removes the stale ones and adds their paths to `removed`.
fn outlast(common: &Path, mut watched: Vec<Watched>, removed: &mut Vec<String>) -> Result<(), GitError> {
    let stale = paced(STALE);
    let is_old = watched.iter().all(|one| one.marks.age() >= stale);
    let patience = if is_old { paced(CONFIRM) } else { stale };
    let begun = Instant::now();
    while !watched.is_empty() && begun.elapsed() < patience {
        std::thread::sleep(POLL);
        watched.retain(Watched::is_unchanged);
    }
    let Some(first) = watched.first() else { return Ok(()) };
    if is_in_use(common, &watched) {
        return Err(GitError::Locked { name: first.name.clone() });
    }
    let aside = common.join(format!("berth-stale-lock-{}", std::process::id()));
    for Watched { name, lock, marks } in watched {
        if name == PACKED && Marks::of(&lock) == Some(marks) {
            // The next process to take the lock must be able to create this file.
            let _ = std::fs::remove_file(common.join(PACKED_NEW));
        }
        if remove(&lock, marks, &aside).map_err(|_| GitError::Locked { name })? {
            removed.push(lock.display().to_string());
        }
    }
    Ok(())
}

/// Removes exactly the lock that was watched; returns false if it is gone. Another process may have locked the ref
/// meanwhile: the lock is moved aside, compared, and put back if it is a new one.
fn remove(lock: &Path, watched: Marks, aside: &Path) -> std::io::Result<bool> {
    match std::fs::rename(lock, aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        done => done?,
    }
    let same = Marks::of(aside) == Some(watched);
    if !same {
        let _ = std::fs::hard_link(aside, lock);
    }
    let _ = std::fs::remove_file(aside);
    Ok(same)
}

/// The attributes that distinguish a file from its successor of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    modified: SystemTime,
    length: u64,
    inode: u64,
    is_file: bool,
}

impl Marks {
    pub(super) fn of(path: &Path) -> Option<Marks> {
        std::fs::symlink_metadata(path).ok().map(|about| Marks::in_metadata(&about))
    }

    /// Returns the marks of an open file, on systems whose files have inode numbers.
    pub(super) fn of_open(file: &File) -> Option<Marks> {
        file.metadata().ok().map(|about| Marks::in_metadata(&about)).filter(|marks| marks.inode != 0)
    }

    fn in_metadata(about: &Metadata) -> Marks {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(about);
        #[cfg(not(unix))]
        let inode = 0;
        Marks {
            modified: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            length: about.len(),
            inode,
            is_file: about.is_file(),
        }
    }

    /// Reports whether no later file can have the same marks: a plain file whose date has fractions of a second and
    /// is older than a `tick`.
    pub(super) fn are_telling(self, tick: Duration) -> bool {
        let since = self.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.is_file && since.subsec_nanos() != 0 && self.age() > tick
    }

    fn age(self) -> Duration {
        SystemTime::now().duration_since(self.modified).unwrap_or_default()
    }
}

/// Reports whether a process of this machine has one of these locks open, or is a `git` working in the repository, as
/// far as `/proc` shows. `git` closes a lock file long before it releases the lock.
fn is_in_use(common: &Path, locks: &[Watched]) -> bool {
    let whole = |path: &Path| std::fs::canonicalize(path).ok();
    let (common, locks) = (whole(common), locks.iter().filter_map(|one| whole(&one.lock)));
    let locks: HashSet<PathBuf> = locks.collect();
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        let link = |path: PathBuf| std::fs::read_link(path).ok();
        let process = process.path();
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let is_git = || std::fs::read(process.join("comm")).is_ok_and(|name| name.starts_with(b"git"));
        files.into_iter().any(|file| link(file.path()).is_some_and(|target| locks.contains(&target)))
            || common.is_some() && link(process.join("cwd")) == common && is_git()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlast_main(folder: &Path) -> Result<usize, GitError> {
        let (watched, mut removed) = (Watched::begin(folder, "main"), Vec::new());
        outlast(folder, watched.into_iter().collect(), &mut removed).map(|()| removed.len())
    }

    #[test]
    fn a_lock_that_is_held_open_stays() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("main.lock");
        let holder = File::create(&lock).unwrap();
        holder.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        if cfg!(target_os = "linux") {
            assert!(matches!(outlast_main(folder.path()), Err(GitError::Locked { name }) if name == "main"));
        }
        drop(holder);
        assert_eq!(outlast_main(folder.path()).unwrap(), 1);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(outlast_main(folder.path()).unwrap(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_stays_while_a_git_is_at_work_in_the_repository() {
        let (folder, _) = crate::testing::bare();
        let lock = folder.path().join("main.lock");
        File::create(&lock).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let mut git = std::process::Command::new("git");
        git.args(["cat-file", "--batch"]).current_dir(folder.path()).stdin(std::process::Stdio::piped());
        let mut git = git.spawn().unwrap();
        let is_locked = |left: Result<usize, GitError>| matches!(left, Err(GitError::Locked { .. }));
        assert!(is_locked(outlast_main(folder.path())));
        git.kill().unwrap();
        git.wait().unwrap();
        assert_eq!(outlast_main(folder.path()).unwrap(), 1);
    }

    #[test]
    fn what_was_packed_halfway_goes_with_its_lock() {
        let (folder, repo) = crate::testing::bare();
        for name in ["packed-refs.lock", "packed-refs.new"] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        repo.outlast_locks(["refs/heads/main"]).unwrap();
        assert_eq!(repo.cleared_locks().len(), 1);
        assert!(!folder.path().join("packed-refs.new").exists());
    }

    #[test]
    fn a_lock_that_another_process_took_meanwhile_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("main.lock");
        std::fs::write(&lock, "").unwrap();
        let watched = Marks::of(&lock).unwrap();
        std::fs::write(&lock, "somebody else's").unwrap();
        assert!(!remove(&lock, watched, &folder.path().join("aside")).unwrap());
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), "somebody else's");
    }
}
