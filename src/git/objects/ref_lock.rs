//! The lock file of one ref, or of the packed refs. It takes the new content, and replaces the old file by a rename.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::error::GitError;

/// Dropping the lock releases it.
pub(super) struct RefLock {
    name: String,
    pub(super) target: PathBuf,
    path: PathBuf,
    file: Option<File>,
}

impl RefLock {
    /// Takes the lock of a file in the repository.
    pub(super) fn take(common: &Path, name: &str) -> Result<RefLock, GitError> {
        let path = common.join(format!("{name}.lock"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                Ok(RefLock { name: name.to_owned(), target: common.join(name), path, file: Some(file) })
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(GitError::Locked { name: name.to_owned() })
            }
            Err(error) => Err(failed(name, &error)),
        }
    }

    /// Replaces the old content.
    pub(super) fn replace(mut self, text: &[u8]) -> Result<(), GitError> {
        let replaced = self.write(text).and_then(|()| self.rename());
        replaced.map(drop).map_err(|error| failed(&self.name, &error))
    }

    /// Like [`RefLock::replace`], for content that must survive a power cut. Returns the new file.
    pub(super) fn replace_for_good(mut self, text: &[u8]) -> Result<Option<File>, GitError> {
        let written = self.write(text).and_then(|()| self.file.as_ref().map_or(Ok(()), File::sync_all));
        written.and_then(|()| self.rename()).map_err(|error| failed(&self.name, &error))
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(text))
    }

    fn rename(&mut self) -> io::Result<Option<File>> {
        fs::rename(&self.path, &self.target)?;
        // After the rename the lock's path is free: a file there belongs to another process.
        self.path = PathBuf::new();
        Ok(self.file.take())
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn failed(name: &str, error: &io::Error) -> GitError {
    GitError::Failed { doing: format!("writing `{name}`"), message: error.to_string() }
}
