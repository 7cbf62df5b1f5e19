//! A commit's signature: its check, the key it claims, and the id of the commit without it.

use git2::{ObjectType, Oid};

use super::error::GitError;
use super::id::CommitId;
use super::repo::Repo;
use crate::signature::{AllowedSigners, PublicKey, commit};
use berth_base::model::Timestamp;

impl Repo {
    /// The bytes of a commit, as Git stores them.
    pub fn raw_commit(&self, id: CommitId) -> Result<Vec<u8>, GitError> {
        self.raw_object(ObjectType::Commit, id.oid())
    }

    /// Checks that one of these keys signed a commit at the commit's date. Otherwise returns why the signature is not
    /// valid.
    pub fn vouch(&self, id: CommitId, allowed: &AllowedSigners) -> Result<Result<(), String>, GitError> {
        let raw = self.raw_commit(id)?;
        let at = Timestamp::from_second(self.commit(id)?.seconds);
        let Ok(at) = at else { return Ok(Err("its date is out of range".to_owned())) };
        Ok(allowed.check(&raw, at).map(|_| ()))
    }

    /// Returns the key that the commit claims to be signed by. Proves nothing.
    pub fn claimed_key(&self, id: CommitId) -> Result<Option<PublicKey>, GitError> {
        Ok(commit::claimed_key(&self.raw_commit(id)?))
    }

    /// Returns the id that the commit would have without its signature.
    pub fn unsigned_id(&self, id: CommitId) -> Result<CommitId, GitError> {
        let Some(signed) = commit::split(&self.raw_commit(id)?) else { return Ok(id) };
        let hashed = Oid::hash_object(ObjectType::Commit, &signed.payload);
        hashed.map(CommitId::of).map_err(GitError::failed("hashing a commit"))
    }
}
