//! Refs moved one by one. One that exists gets its new file straight away: libgit2 would compare its name with those of
//! all others first, which a new ref needs and a known one does not.

use std::path::Path;
use std::{fs, io};

use super::error::GitError;
use super::id::CommitId;
use super::packed_refs;
use super::ref_lock::RefLock;
use super::refs::{RefMove, is_valid_ref};
use super::repo::Repo;

impl Repo {
    /// Moves refs, each only if it still is where it was last seen. The first that is not ends it.
    pub(super) fn move_one_by_one(&self, moves: &[&RefMove]) -> Result<(), GitError> {
        // State is written before it is pointed at.
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

    /// Replaces the file of a known ref; false where it is another kind of ref, one with a log, or none.
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
