//! Files below one folder. Never follows a symbolic link, and never leaves a partly written file.
//!
//! Paths are relative, with `/` between parts. A file is written under a temporary name next to its place and then
//! moved. A new file never replaces one that appeared meanwhile.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::sync::backends::BackendError;
use berth_base::text::hex;

/// A folder, by its real path.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
}

/// The options of one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    /// Replaces an existing file.
    pub replace: bool,
    /// Only its owner may read the file.
    pub private: bool,
    /// The content reaches the disk before the file is moved to its place.
    pub durable: bool,
}

/// A held lock. Dropping it unlocks explicitly: a child process may still have the file open for a moment.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Root {
    /// Opens the folder at a path, which may not exist yet.
    pub fn new(path: &Path) -> Result<Root, BackendError> {
        match fs::canonicalize(path) {
            Ok(real) if real.is_dir() => Ok(Root { path: real }),
            Ok(_) => Err(BackendError::Failed(format!("`{}` is not a folder", path.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let whole = std::path::absolute(path).map_err(|error| failed("find", path, &error))?;
                Ok(Root { path: whole })
            }
            Err(error) => Err(failed("open", path, &error)),
        }
    }

    /// Creates the folder if it is missing.
    pub fn make(&mut self) -> Result<(), BackendError> {
        fs::create_dir_all(&self.path).map_err(|error| failed("make", &self.path, &error))?;
        self.path = fs::canonicalize(&self.path).map_err(|error| failed("open", &self.path, &error))?;
        Ok(())
    }

    /// Returns the SHA-256 of a file and its size. `None` if the file is missing.
    pub fn hash(&self, path: &str) -> Result<Option<(String, u64)>, BackendError> {
        let Some(mut file) = self.open(path)? else { return Ok(None) };
        let mut hasher = Sha256::new();
        let mut buffer = [0; 64 << 10];
        let mut size = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(Some((hex(&hasher.finalize()), size))),
                Ok(count) => {
                    hasher.update(buffer.get(..count).unwrap_or_default());
                    size += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read", &self.path.join(path), &error)),
            }
        }
    }

    /// Returns a file's content. `None` if the file is missing.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, BackendError> {
        let Some(mut file) = self.open(path)? else { return Ok(None) };
        let mut content = Vec::new();
        match file.read_to_end(&mut content) {
            Ok(_) => Ok(Some(content)),
            Err(error) => Err(failed("read", &self.path.join(path), &error)),
        }
    }

    /// Writes a file atomically.
    pub fn write(&self, path: &str, content: &[u8], how: WriteOptions) -> Result<(), BackendError> {
        self.make_parents(path)?;
        let (temporary, place) = (self.path.join(temporary(path)), self.path.join(path));
        self.clear_temporary(path)?;
        let written = fill(&temporary, content, how).and_then(|()| {
            if how.replace { fs::rename(&temporary, &place) } else { put_new(&temporary, &place) }
        });
        if written.is_err() {
            // The temporary file may be missing. The next sync removes one that is left.
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                BackendError::Failed(format!("`{path}` was created by another process"))
            }
            _ => failed("write", &place, &error),
        })
    }

    /// Writes a file and waits until it is on the disk.
    pub(crate) fn write_durably(&self, path: &str, content: &[u8]) -> Result<(), BackendError> {
        self.write(path, content, WriteOptions { replace: true, private: true, durable: true })?;
        let place = self.path.join(path);
        let folder = place.parent().unwrap_or(&self.path);
        // Not every system can open a folder for syncing. The move is atomic anyway.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Removes a file, and the folders that it leaves empty.
    pub fn remove(&self, path: &str) -> Result<(), BackendError> {
        let place = self.path.join(path);
        self.check_parents(path)?;
        match fs::remove_file(&place) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("remove", &place, &error));
            }
            _ => {}
        }
        let mut folder = Path::new(path).parent();
        while let Some(empty) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
            if fs::remove_dir(self.path.join(empty)).is_err() {
                break;
            }
            folder = empty.parent();
        }
        Ok(())
    }

    /// Removes the temporary file that a crash left.
    pub(crate) fn clear_temporary(&self, path: &str) -> Result<(), BackendError> {
        let left = temporary(path);
        if !self.check_parents(path)? {
            return Ok(());
        }
        let place = self.path.join(&left);
        match fs::symlink_metadata(&place) {
            Ok(what) if what.is_file() => {
                fs::remove_file(&place).map_err(|error| failed("remove", &place, &error))
            }
            Ok(_) => Err(BackendError::Failed(format!("`{}` is in the way", left.display()))),
            Err(_) => Ok(()),
        }
    }

    /// Takes a lock that only one process can hold.
    pub fn lock(&self, path: &str) -> Result<Lock, BackendError> {
        self.make_parents(path)?;
        let place = self.path.join(path);
        if fs::symlink_metadata(&place).is_ok_and(|what| !what.is_file()) {
            return Err(BackendError::Failed(format!("`{path}` is in the way")));
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&place);
        let file = file.map_err(|error| failed("open", &place, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(fs::TryLockError::WouldBlock) => {
                Err(BackendError::Failed("another syncer uses this folder".to_owned()))
            }
            Err(fs::TryLockError::Error(error)) => Err(failed("lock", &place, &error)),
        }
    }

    fn open(&self, path: &str) -> Result<Option<File>, BackendError> {
        if !self.check_parents(path)? {
            return Ok(None);
        }
        let place = self.path.join(path);
        match fs::symlink_metadata(&place) {
            Ok(what) if what.is_file() => {
                File::open(&place).map(Some).map_err(|error| failed("read", &place, &error))
            }
            Ok(what) if what.is_symlink() => {
                Err(BackendError::Failed(format!("`{path}` is a symbolic link, which is never followed")))
            }
            Ok(_) => Err(BackendError::Failed(format!("`{path}` is in the way and is no file"))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look at", &place, &error)),
        }
    }

    /// Reports whether all parent folders of a file exist. Fails if one of them is not a folder.
    fn check_parents(&self, path: &str) -> Result<bool, BackendError> {
        for folder in parents(path) {
            match fs::symlink_metadata(self.path.join(&folder)) {
                Ok(what) if what.is_dir() => {}
                Ok(what) if what.is_symlink() => {
                    let name = folder.display();
                    return Err(BackendError::Failed(format!(
                        "`{name}` is a symbolic link, which is never followed"
                    )));
                }
                Ok(_) => {
                    return Err(BackendError::Failed(format!(
                        "`{}` is in the way and is no folder",
                        folder.display()
                    )));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(failed("look at", &self.path.join(folder), &error)),
            }
        }
        Ok(true)
    }

    fn make_parents(&self, path: &str) -> Result<(), BackendError> {
        if self.check_parents(path)? {
            return Ok(());
        }
        for folder in parents(path) {
            let place = self.path.join(folder);
            match DirBuilder::new().create(&place) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(failed("make", &place, &error));
                }
                _ => {}
            }
        }
        self.check_parents(path).map(|_| ())
    }
}

/// Returns the SHA-256 of some bytes, as [`Root::hash`] does.
pub fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the parent folders of a file, outermost first.
fn parents(path: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        Path::new(path).ancestors().skip(1).map(Path::to_owned).filter(|p| p.file_name().is_some()).collect();
    all.reverse();
    all
}

/// Returns the temporary path of a file.
fn temporary(path: &str) -> PathBuf {
    let path = Path::new(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.berth-new"))
}

fn fill(place: &Path, content: &[u8], how: WriteOptions) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if how.private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(place)?;
    file.write_all(content)?;
    if how.durable { file.sync_data() } else { Ok(()) }
}

/// Moves a file to a place that must be free.
fn put_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // Not every file system has hard links.
        Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        Err(_) => Err(ErrorKind::AlreadyExists.into()),
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> BackendError {
    BackendError::Failed(format!("failed to {what} `{}`: {error}", path.display()))
}
