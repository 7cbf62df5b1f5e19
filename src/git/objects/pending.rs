//! Objects that are written but not in the repository yet: a handful become loose objects, many one pack.
//!
//! A repository has one such store. It is emptied before any ref moves and before anything in it is read,
//! so that nobody can point at a missing object; objects that nothing points at are never written.

use std::collections::HashSet;
use std::path::Path;

use git2::{ObjectType, OdbLookupFlags, Oid};

use super::damage;
use super::error::GitError;
use super::pack::Spool;
use super::repo::Repo;

/// So many objects, or bytes, are kept in memory and become loose objects.
const FEW: usize = 24;
const FEW_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Pending {
    known: HashSet<Oid>,
    few: Vec<(ObjectType, Vec<u8>)>,
    few_bytes: usize,
    spool: Option<Spool>,
    /// Something was lost: from now on nothing may be pointed at.
    failed: bool,
}

impl Pending {
    fn add(&mut self, objects_folder: &Path, kind: ObjectType, bytes: &[u8]) -> Result<(), GitError> {
        if self.spool.is_none() && self.few.len() < FEW && self.few_bytes + bytes.len() < FEW_BYTES {
            self.few_bytes += bytes.len();
            self.few.push((kind, bytes.to_vec()));
            return Ok(());
        }
        let spool = match &mut self.spool {
            Some(spool) => spool,
            none => none.insert(Spool::new(objects_folder)?),
        };
        for (kind, bytes) in self.few.drain(..) {
            spool.add(kind, &bytes)?;
        }
        spool.add(kind, bytes)
    }

    fn write(self, odb: &git2::Odb<'_>) -> Result<(), GitError> {
        for (kind, bytes) in self.few {
            odb.write(kind, &bytes).map_err(GitError::failed("writing an object"))?;
        }
        self.spool.map_or(Ok(()), |spool| spool.finish(odb))
    }
}

impl Repo {
    /// Hashes an object and takes it over where it is new; says whether it was.
    pub(super) fn add_object(
        &self,
        odb: &git2::Odb<'_>,
        kind: ObjectType,
        bytes: &[u8],
    ) -> Result<(Oid, bool), GitError> {
        let id = Oid::hash_object(kind, bytes).map_err(GitError::failed("hashing an object"))?;
        // A refresh would list the pack folder again for each new object.
        if self.pending.borrow().known.contains(&id) || odb.exists_ext(id, OdbLookupFlags::NO_REFRESH) {
            return Ok((id, false));
        }
        if self.is_rehearsal {
            // A pack would be written beside the repository's own.
            odb.write(kind, bytes).map_err(GitError::failed("keeping an object in memory"))?;
            return Ok((id, true));
        }
        let mut pending = self.pending.borrow_mut();
        let added = pending.add(&self.inner.commondir().join("objects"), kind, bytes);
        pending.failed |= added.is_err();
        added?;
        pending.known.insert(id);
        Ok((id, true))
    }

    pub(super) fn is_pending(&self, id: Oid) -> bool {
        self.pending.borrow().known.contains(&id)
    }

    /// Puts everything that was written so far into the repository.
    pub fn flush(&self) -> Result<(), GitError> {
        let pending = self.pending.take();
        if pending.failed {
            self.pending.borrow_mut().failed = true;
            let message = "an object could not be written before".to_owned();
            return Err(GitError::Failed { doing: "writing objects".to_owned(), message });
        }
        if pending.known.is_empty() {
            return Ok(());
        }
        let odb = self.inner.odb().map_err(GitError::failed("opening the object database"));
        let written = odb.and_then(|odb| pending.write(&odb));
        self.pending.borrow_mut().failed = written.is_err();
        written
    }

    /// Before an object is read: [`Repo::flush`], if it is among what was written; otherwise it must be whole.
    pub(super) fn flush_for(&self, id: Oid) -> Result<(), GitError> {
        if self.is_pending(id) { self.flush() } else { damage::check(self.inner.commondir(), id) }
    }
}
