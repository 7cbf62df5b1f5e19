//! Moves refs by compare-and-swap, so that no other process's move is lost.

use git2::ErrorCode;

use super::error::GitError;
use super::id::CommitId;
use super::repo::Repo;

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
    pub(super) fn move_any_ref(&self, one: &RefMove) -> Result<(), GitError> {
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
        std::fs::remove_file(self.inner.commondir().join(name)).map_err(|error| GitError::Failed {
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
