//! Moves refs one by one. For an existing ref, its file is replaced directly: libgit2 would first compare its name
//! with all others, which only a new ref needs.

use std::path::Path;
use std::{fs, io};

use super::error::GitError;
use super::id::CommitId;
use super::packed_refs;
use super::ref_lock::RefLock;
use super::refs::{RefMove, is_valid_ref};
use super::repo::Repo;

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
