//! Lock files of refs that a killed process left behind: found, told from those in use, and removed.
//!
//! A ref is locked for as long as it takes to write a line, so a lock that nobody touches for
//! [`STALE`] belongs to nobody. Clocks jump: even one that looks older is watched for a moment first.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::error::GitError;
use super::repo::Repo;

/// Far longer than any process keeps a ref locked.
const STALE: Duration = Duration::from_secs(10);

/// How long a lock that looks old already is watched.
const CONFIRM: Duration = Duration::from_millis(500);

const POLL: Duration = Duration::from_millis(10);

/// The file that holds many refs.
pub(super) const PACKED: &str = "packed-refs";

/// How often a lock may change hands before it counts as a lost race.
const MOST_TURNS: usize = 20;

impl Repo {
    /// Moves refs; where one is locked, waits for the lock to go, or removes it where its holder is gone.
    pub(super) fn despite_locks<T>(
        &self,
        name: &str,
        change: impl Fn() -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let common = self.inner.commondir();
        for _ in 0..MOST_TURNS {
            match change() {
                Err(GitError::Locked { .. }) => {}
                done => return done,
            }
            for lock in in_the_way(common, name) {
                match outlast(&lock, &common.join(format!("berth-stale-lock-{}", std::process::id()))) {
                    Ended::Free => {}
                    Ended::Removed => self.cleared.borrow_mut().push(lock.display().to_string()),
                    Ended::Held => return Err(GitError::Locked { name: name.to_owned() }),
                }
            }
        }
        change()
    }

    /// The lock files of processes that are gone, removed since the repository was opened.
    pub fn cleared_locks(&self) -> Vec<String> {
        self.cleared.borrow().clone()
    }
}

/// The locks that changing a ref can meet.
fn in_the_way(common: &Path, name: &str) -> [PathBuf; 2] {
    [name, PACKED].map(|name| common.join(format!("{name}.lock")))
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It is gone, or is another one by now.
    Free,
    Removed,
    /// Somebody has it open, or it can not be removed.
    Held,
}

/// Waits until a lock goes or has outlived its holder; `aside` is where it is taken to be removed.
fn outlast(lock: &Path, aside: &Path) -> Ended {
    let Some(first) = Marks::of(lock) else { return Ended::Free };
    let patience = if first.age() >= STALE { CONFIRM } else { STALE };
    let begun = Instant::now();
    while begun.elapsed() < patience {
        std::thread::sleep(POLL);
        if Marks::of(lock) != Some(first) {
            return Ended::Free;
        }
    }
    if is_open(lock) { Ended::Held } else { remove(lock, first, aside) }
}

/// Removes exactly the lock that was watched. If another process was quicker, what stands there now may
/// be its own: taken aside first and looked at, that one is put back.
fn remove(lock: &Path, watched: Marks, aside: &Path) -> Ended {
    match std::fs::rename(lock, aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ended::Free,
        Err(_) => return Ended::Held,
        Ok(()) => {}
    }
    let same = Marks::of(aside) == Some(watched);
    if !same {
        let _ = std::fs::hard_link(aside, lock);
    }
    let _ = std::fs::remove_file(aside);
    if same { Ended::Removed } else { Ended::Free }
}

/// What tells one lock file from the next of the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Marks {
    modified: SystemTime,
    length: u64,
    inode: u64,
}

impl Marks {
    fn of(path: &Path) -> Option<Marks> {
        let about = std::fs::symlink_metadata(path).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Marks {
            modified: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            length: about.len(),
            inode,
        })
    }

    fn age(self) -> Duration {
        SystemTime::now().duration_since(self.modified).unwrap_or_default()
    }
}

/// Whether a process of this machine has the file open, as far as the system tells.
fn is_open(path: &Path) -> bool {
    let Ok(path) = std::fs::canonicalize(path) else { return false };
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let folders = processes.flatten().map(|process| process.path().join("fd"));
    let open = |folder: PathBuf| {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.into_iter().any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target == path))
    };
    folders.into_iter().any(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_open_stays() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("main.lock");
        let holder = std::fs::File::create(&lock).unwrap();
        holder.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let aside = folder.path().join("aside");
        if cfg!(target_os = "linux") {
            assert_eq!(outlast(&lock, &aside), Ended::Held);
        }
        drop(holder);
        assert_eq!(outlast(&lock, &aside), Ended::Removed);
        assert!(!lock.exists() && !aside.exists());
        assert_eq!(outlast(&lock, &aside), Ended::Free);
    }

    #[test]
    fn a_lock_that_another_process_took_meanwhile_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("main.lock");
        std::fs::write(&lock, "").unwrap();
        let watched = Marks::of(&lock).unwrap();
        std::fs::write(&lock, "somebody else's").unwrap();
        assert_eq!(remove(&lock, watched, &folder.path().join("aside")), Ended::Free);
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), "somebody else's");
    }
}
