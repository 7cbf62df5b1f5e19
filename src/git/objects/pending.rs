//! Objects that are not yet in the repository. A flush writes a handful as loose objects, many as one pack.
//!
//! A repository has one such store. It is flushed before any ref moves and before any of its objects is read, so that
//! no ref points at a missing object. Objects that nothing points at are never written.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use git2::{ObjectType, Oid};

use super::error::GitError;
use super::pack::Spool;

/// Up to this many objects and bytes stay in memory and become loose objects.
const FEW: usize = 24;
const FEW_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Pending {
    unwritten: RefCell<Unwritten>,
}

#[derive(Default)]
struct Unwritten {
    known: HashSet<Oid>,
    few: Vec<(Oid, ObjectType, Arc<[u8]>)>,
    few_bytes: usize,
    spool: Option<Spool>,
    /// An object was lost: no ref may move until `drop_all`.
    failed: bool,
}

impl Pending {
    pub(super) fn has(&self, id: Oid) -> bool {
        self.unwritten.borrow().known.contains(&id)
    }

    /// Adds a new object. `packed` forces a pack even for few objects: libgit2 would not write a loose object that
    /// seems to exist.
    pub(super) fn add(
        &self,
        objects_folder: &Path,
        id: Oid,
        kind: ObjectType,
        bytes: Arc<[u8]>,
        packed: bool,
    ) -> Result<(), GitError> {
        let mut unwritten = self.unwritten.borrow_mut();
        let added = unwritten.add(objects_folder, id, kind, bytes, packed);
        unwritten.failed |= added.is_err();
        added?;
        unwritten.known.insert(id);
        Ok(())
    }

    pub(super) fn drop_all(&self) {
        self.unwritten.take();
    }

    /// Writes all added objects to the repository.
    pub(super) fn flush(&self, repository: &git2::Repository) -> Result<(), GitError> {
        let unwritten = self.unwritten.take();
        if unwritten.failed {
            self.unwritten.borrow_mut().failed = true;
            let message = "an object could not be written before".to_owned();
            return Err(GitError::Failed { doing: "writing objects".to_owned(), message });
        }
        if unwritten.known.is_empty() {
            return Ok(());
        }
        let odb = repository.odb().map_err(GitError::failed("opening the object database"));
        let written = odb.and_then(|odb| unwritten.write(&odb));
        self.unwritten.borrow_mut().failed = written.is_err();
        written
    }
}

impl Unwritten {
    fn add(
        &mut self,
        objects_folder: &Path,
        id: Oid,
        kind: ObjectType,
        bytes: Arc<[u8]>,
        packed: bool,
    ) -> Result<(), GitError> {
        if !packed && self.spool.is_none() && self.few.len() < FEW && self.few_bytes + bytes.len() < FEW_BYTES
        {
            self.few_bytes += bytes.len();
            self.few.push((id, kind, bytes));
            return Ok(());
        }
        let spool = match &mut self.spool {
            Some(spool) => spool,
            none => none.insert(Spool::new(objects_folder)?),
        };
        for (id, kind, bytes) in self.few.drain(..) {
            spool.add(id, kind, bytes)?;
        }
        spool.add(id, kind, bytes)
    }

    fn write(self, odb: &git2::Odb<'_>) -> Result<(), GitError> {
        for (_, kind, bytes) in self.few {
            odb.write(kind, &bytes).map_err(GitError::failed("writing an object"))?;
        }
        let Some(spool) = self.spool else { return Ok(()) };
        spool.finish()?;
        odb.refresh().map_err(GitError::failed("looking for the new pack"))
    }
}
