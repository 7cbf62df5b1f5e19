//! A temporary repository: it borrows every object of another one, and its own objects disappear with it.
//!
//! The publishing code can compute a commit again in it, without a trace in the repository.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::GitError;
use super::repo::Repo;

/// A scratch repository. Dropping it removes its folder.
#[derive(Debug)]
pub struct Scratch {
    repo: Repo,
    folder: PathBuf,
    /// Locked while the folder is in use.
    lock: Option<File>,
}

const PREFIX: &str = "berth-scratch-";
const LOCK: &str = "berth-lock";

/// The folder names tried in turn. Killed processes leave far fewer folders before they are removed.
const MOST_TRIES: u32 = 1_000;

/// A younger folder may belong to a process that has not locked it yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The age at which an unlocked folder counts as abandoned, because older versions of berth lock none.
const ABANDONED: Duration = Duration::from_secs(24 * 3_600);

impl Repo {
    /// Makes an empty bare repository that borrows this one's objects.
    pub fn scratch(&self) -> Result<Scratch, GitError> {
        let doing = "making a scratch repository";
        let io = |error: io::Error| GitError::Failed { doing: doing.into(), message: error.to_string() };
        let base = std::env::temp_dir();
        let folder = new_folder(&base).map_err(io)?;
        let made = (|| {
            let lock = File::create(folder.join(LOCK)).map_err(io)?;
            lock.lock().map_err(io)?;
            remove_abandoned(&base, &folder);
            let mut options = git2::RepositoryInitOptions::new();
            options.bare(true).initial_head("main").external_template(false);
            git2::Repository::init_opts(&folder, &options).map_err(GitError::failed(doing))?;
            let lent = std::path::absolute(self.inner.commondir()).map_err(io)?.join("objects");
            fs::write(folder.join("objects/info/alternates"), format!("{}\n", lent.display())).map_err(io)?;
            Ok((Repo::open(&folder)?, lock))
        })();
        match made {
            Ok((repo, lock)) => Ok(Scratch { repo, folder, lock: Some(lock) }),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(error)
            }
        }
    }
}

impl Scratch {
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.lock = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes a folder that only this user can read: rendered Secrets may be in it.
fn new_folder(base: &Path) -> io::Result<PathBuf> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let mut tried = 0;
    loop {
        let folder = base.join(format!("{PREFIX}{}-{tried}", std::process::id()));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < MOST_TRIES => {
                tried += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes the folders of killed processes, which fill the disk and may hold Secrets. Skips folders of other users
/// and links.
fn remove_abandoned(base: &Path, own: &Path) {
    let Ok(about_own) = fs::symlink_metadata(own) else { return };
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let folder = entry.path();
        let is_named_so = entry.file_name().to_string_lossy().starts_with(PREFIX) && folder != own;
        if is_named_so
            && fs::symlink_metadata(&folder)
                .is_ok_and(|about| about.is_dir() && same_owner(&about, &about_own))
            && is_abandoned(&folder)
        {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let age = fs::metadata(folder).and_then(|about| about.modified()).map(|at| at.elapsed());
    let Ok(Ok(age)) = age else { return false };
    match File::open(folder.join(LOCK)) {
        Ok(lock) => age > YOUNG && lock.try_lock().is_ok(),
        Err(_) => age > ABANDONED,
    }
}

#[cfg(unix)]
fn same_owner(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    a.uid() == b.uid()
}

#[cfg(not(unix))]
fn same_owner(_: &Metadata, _: &Metadata) -> bool {
    // On this system each user has a temporary folder.
    true
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn folders_of_killed_processes_are_removed_and_no_others() {
        let base = tempfile::tempdir().unwrap();
        let folder = |name: &str, locked: bool, hours: u64| {
            let folder = base.path().join(name);
            fs::create_dir(&folder).unwrap();
            let lock = locked.then(|| File::create(folder.join(LOCK)).unwrap());
            let old = SystemTime::now() - Duration::from_secs(hours * 3_600);
            File::open(&folder).unwrap().set_modified(old).unwrap();
            lock
        };
        let names = |prefix: &str| format!("{PREFIX}{prefix}");
        drop(folder(&names("killed"), true, 1));
        let used = folder(&names("used"), true, 1).unwrap();
        used.try_lock().unwrap();
        drop(folder(&names("young"), true, 0));
        folder(&names("before-locks"), false, 48);
        folder(&names("before-locks-used"), false, 1);
        folder("a-strangers", true, 48);
        let own = new_folder(base.path()).unwrap();
        remove_abandoned(base.path(), &own);
        let mut left: Vec<String> = fs::read_dir(base.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| Path::new(name) != Path::new(own.file_name().unwrap()))
            .collect();
        left.sort();
        assert_eq!(left, ["a-strangers", &names("before-locks-used"), &names("used"), &names("young")]);
    }
}
