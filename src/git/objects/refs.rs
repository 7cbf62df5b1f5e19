//! Refs: moved by compare-and-swap, so that no other process's move is lost, and listed many at once.
//!
//! An existing ref is moved by replacing its file directly: libgit2 would first compare its name with all others, which
//! only a new ref needs. The lock file of a ref, or of the packed refs, takes the new content, and replaces the old file
//! by a rename. Lists are read straight from the files: looking up each ref takes five times as long.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use git2::ErrorCode;

use super::error::GitError;
use super::id::CommitId;
use super::packed_refs;
use super::repo::Repo;
use berth_base::model::Map;

/// The refs that nobody but berth writes.
const OWN: &str = "refs/berth/";

/// A move of a ref, from the value last seen to the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMove {
    pub name: String,
    pub old: Option<CommitId>,
    pub new: CommitId,
}

impl Repo {
    /// Returns the commit that a ref points to, by its full name.
    pub fn read_ref(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        match self.inner.refname_to_id(name) {
            Ok(id) => Ok(Some(CommitId::of(id))),
            Err(error) => match error.code() {
                ErrorCode::NotFound => Ok(None),
                ErrorCode::InvalidSpec => Err(GitError::InvalidRef { name: name.to_owned() }),
                _ => Err(GitError::failed(format!("reading `{name}`"))(error)),
            },
        }
    }

    /// Reports whether a ref of this name exists, even if it is dangling or unreadable.
    pub fn has_ref(&self, name: &str) -> Result<bool, GitError> {
        match self.inner.find_reference(name) {
            Ok(_) => Ok(true),
            Err(error) => Ok(!matches!(error.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec)),
        }
    }

    /// Moves a ref from `old` to `new`; `old` of `None` means that it must not exist yet.
    pub fn move_ref(&self, name: &str, old: Option<CommitId>, new: CommitId) -> Result<(), GitError> {
        self.refuse_in_rehearsal(name)?;
        self.move_one_by_one(&[&RefMove { name: name.to_owned(), old, new }])
    }

    /// Like [`Repo::move_ref`], for any kind of ref. Slower: libgit2 reads all packed refs.
    fn move_any_ref(&self, one: &RefMove) -> Result<(), GitError> {
        let RefMove { name, old, new } = one;
        // The commit behind the symbolic ref belongs to another ref, which stays.
        let old = if self.discard_symbolic_ref(name) { &None } else { old };
        // The zero id stands for "absent" and, unlike a create, is compared while the ref is locked.
        let expected = old.map_or(git2::Oid::ZERO_SHA1, CommitId::oid);
        self.despite_locks(name, || {
            match self.inner.reference_matching(name, new.oid(), true, expected, "berth") {
                Ok(_) => Ok(()),
                Err(error) => Err(lost(name, &error)),
            }
        })
    }

    /// Deletes a ref that points to `old`.
    pub fn delete_ref(&self, name: &str, old: CommitId) -> Result<(), GitError> {
        self.refuse_in_rehearsal(name)?;
        if self.discard_symbolic_ref(name) {
            return Ok(());
        }
        self.despite_locks(name, || {
            let mut reference = self.inner.find_reference(name).map_err(|error| lost(name, &error))?;
            if reference.target() != Some(old.oid()) {
                return Err(GitError::Raced { name: name.to_owned() });
            }
            // libgit2 deletes only while the ref still has the value that was found.
            reference.delete().map_err(|error| lost(name, &error))
        })
    }

    /// Deletes refs that block this one because its name continues theirs. Only for names below `refs/berth/`.
    pub fn clear_above(&self, name: &str) -> Result<(), GitError> {
        // Skips `refs` itself.
        for (at, _) in name.match_indices('/').skip(1) {
            let above = name.get(..at).unwrap_or_default();
            if self.has_ref(above)?
                && let Some(commit) = self.read_ref(above)?
            {
                self.delete_ref(above, commit)?;
            }
        }
        Ok(())
    }

    /// Deletes refs that block this one because their names continue its name.
    pub(crate) fn clear_below(&self, name: &str) -> Result<(), GitError> {
        let below = self.list_refs(&format!("{name}/"))?;
        below.into_iter().try_for_each(|(name, commit)| self.delete_ref(&name, commit))
    }

    /// Refuses a move in a rehearsal: the ref would point to an object that ends with the process.
    pub(super) fn refuse_in_rehearsal(&self, name: &str) -> Result<(), GitError> {
        if !self.is_rehearsal {
            return Ok(());
        }
        let message = "a rehearsal changes nothing".to_owned();
        Err(GitError::Failed { doing: format!("moving `{name}`"), message })
    }

    /// Deletes a symbolic ref below `refs/berth/`, where berth never makes any. Returns true if one was deleted.
    fn discard_symbolic_ref(&self, name: &str) -> bool {
        let is_own = name.starts_with(OWN);
        let found = self.inner.find_reference(name).ok().filter(|_| is_own);
        let symbolic = found.filter(|found| found.kind() == Some(git2::ReferenceType::Symbolic));
        symbolic.is_some_and(|mut symbolic| symbolic.delete().is_ok())
    }

    /// Removes a ref's file with invalid content, as a power cut leaves it. No call of libgit2 can.
    pub fn discard_broken_ref(&self, name: &str) -> Result<(), GitError> {
        if !is_valid_ref(name) || self.read_ref(name).is_ok() {
            return Ok(());
        }
        fs::remove_file(self.inner.commondir().join(name)).map_err(|error| GitError::Failed {
            doing: format!("removing the broken ref `{name}`"),
            message: error.to_string(),
        })
    }
}

/// Reports whether Git accepts this as a ref's full name.
pub fn is_valid_ref(name: &str) -> bool {
    git2::Reference::is_valid_name(name)
}

fn lost(name: &str, error: &git2::Error) -> GitError {
    let name = name.to_owned();
    match error.code() {
        ErrorCode::Modified | ErrorCode::NotFound | ErrorCode::Exists => GitError::Raced { name },
        ErrorCode::Locked => GitError::Locked { name },
        ErrorCode::InvalidSpec => GitError::InvalidRef { name },
        _ => GitError::Failed { doing: format!("moving `{name}`"), message: error.message().to_owned() },
    }
}

impl Repo {
    /// Moves refs, each only if it still has the value last seen. Stops at the first that has not.
    pub(super) fn move_one_by_one(&self, moves: &[&RefMove]) -> Result<(), GitError> {
        // Objects must be written before a ref points at them.
        self.flush()?;
        for one in moves {
            let is_moved = match one.old.filter(|_| is_valid_ref(&one.name)) {
                Some(old) => self.despite_locks(&one.name, || self.replace(&one.name, old, one.new))?,
                None => false,
            };
            if !is_moved {
                self.move_any_ref(one)?;
            }
        }
        Ok(())
    }

    /// Replaces the file of an existing direct ref. Returns false for symbolic refs, refs with a reflog and missing
    /// refs.
    fn replace(&self, name: &str, old: CommitId, new: CommitId) -> Result<bool, GitError> {
        let common = self.inner.commondir();
        if common.join("logs").join(name).exists() {
            return Ok(false);
        }
        let folder = common.join(name).parent().map(Path::to_owned).unwrap_or_default();
        if fs::create_dir_all(folder).is_err() {
            return Ok(false);
        }
        let lock = RefLock::take(common, name)?;
        let now = match fs::read_to_string(&lock.target) {
            Ok(text) => text.trim_end().parse().ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.packed_file().ok().and_then(|packed| packed_refs::find(packed.text(), name))
            }
            Err(_) => None,
        };
        match now {
            Some(now) if now == old => lock.replace(format!("{new}\n").as_bytes()).map(|()| true),
            Some(_) => Err(GitError::Raced { name: name.to_owned() }),
            None => Ok(false),
        }
    }
}

/// Deeper than any name of a ref.
const DEEPEST: usize = 64;

impl Repo {
    /// Lists the refs whose full names have this prefix, by name. Follows symbolic refs; omits broken and dangling
    /// ones.
    pub fn list_refs(&self, prefix: &str) -> Result<Map<String, CommitId>, GitError> {
        let mut own_file = Map::new();
        // Loose refs first, packed refs after: a ref that is packed meanwhile is found in at least one of them.
        let (folder, _) = prefix.rsplit_once('/').unwrap_or_default();
        self.list_files(folder, prefix, &mut own_file, 0)?;
        let mut found = self.packed_file().map_err(|error| not_listed(prefix, &error))?.list(prefix);
        for (name, id) in own_file {
            match id {
                Some(id) => drop(found.insert(name, id)),
                None => drop(found.remove(&name)),
            }
        }
        Ok(found)
    }

    /// Adds the loose refs of a folder. A ref that leads nowhere gets `None`.
    fn list_files(
        &self,
        folder: &str,
        prefix: &str,
        found: &mut Map<String, Option<CommitId>>,
        depth: usize,
    ) -> Result<(), GitError> {
        let path = self.shared_path().join(folder);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_no_folder(&error) || depth == DEEPEST => return Ok(()),
            Err(error) => return Err(not_listed(prefix, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| not_listed(prefix, &error))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let name = format!("{folder}/{name}");
            let begins = name.starts_with(prefix) || prefix.starts_with(&format!("{name}/"));
            if !begins || name.ends_with(".lock") {
                continue;
            }
            let is_folder = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
                kind => kind.is_ok_and(|kind| kind.is_dir()),
            };
            if is_folder {
                self.list_files(&name, prefix, found, depth + 1)?;
            } else if name.starts_with(prefix)
                && let Some(id) = self.target_in(&entry.path(), &name)
            {
                found.insert(name, id);
            }
        }
        Ok(())
    }

    /// Reads a loose ref. The outer `None` means that the file is gone by now; the ref may still be packed.
    fn target_in(&self, file: &Path, name: &str) -> Option<Option<CommitId>> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => return Some(None),
        };
        let direct = text.strip_suffix('\n').unwrap_or(&text).parse().ok();
        // A symbolic ref, or one that only Git can read.
        Some(direct.or_else(|| self.read_ref(name).ok().flatten()))
    }
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn not_listed(prefix: &str, error: &io::Error) -> GitError {
    GitError::Failed { doing: format!("listing `{prefix}`"), message: error.to_string() }
}

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
            Err(error) => Err(not_written(name, &error)),
        }
    }

    /// Replaces the old content.
    pub(super) fn replace(mut self, text: &[u8]) -> Result<(), GitError> {
        let replaced = self.write(text).and_then(|()| self.rename());
        replaced.map(drop).map_err(|error| not_written(&self.name, &error))
    }

    /// Like [`RefLock::replace`], for content that must survive a power cut. Returns the new file.
    pub(super) fn replace_for_good(mut self, text: &[u8]) -> Result<Option<File>, GitError> {
        let written = self.write(text).and_then(|()| self.file.as_ref().map_or(Ok(()), File::sync_all));
        written.and_then(|()| self.rename()).map_err(|error| not_written(&self.name, &error))
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

fn not_written(name: &str, error: &io::Error) -> GitError {
    GitError::Failed { doing: format!("writing `{name}`"), message: error.to_string() }
}
