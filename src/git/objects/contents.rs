//! Rendered bytes by blob id: stored in the object database, or only hashed and remembered.

use std::collections::BTreeMap;

use git2::{ObjectType, OdbLookupFlags, Oid};

use super::error::GitError;
use super::id::{bytes_of, oid};
use super::repo::Repo;
use super::write::Writer;
use berth_base::model::{ContentError, ContentId, Contents};

/// The repository as the store of rendered bytes.
#[derive(Debug)]
pub struct GitContents<'r> {
    repo: &'r Repo,
    mode: Mode<'r>,
}

enum Mode<'r> {
    Writing(Writer<'r>),
    Remembering { odb: git2::Odb<'r>, new: BTreeMap<ContentId, Box<[u8]>> },
}

impl std::fmt::Debug for Mode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mode::Writing(writer) => writer.fmt(f),
            Mode::Remembering { new, .. } => write!(f, "Remembering({} blobs)", new.len()),
        }
    }
}

/// Computes blob ids as Git does, and stores nothing.
#[derive(Clone, Copy, Debug)]
pub struct BlobIds;

impl Contents for BlobIds {
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError> {
        let id = Oid::hash_object(ObjectType::Blob, bytes)
            .map_err(|error| ContentError(error.message().to_owned()))?;
        Ok(ContentId(bytes_of(id)))
    }

    fn get(&self, id: ContentId) -> Result<Vec<u8>, ContentError> {
        Err(ContentError(format!("{id} was only named, not kept")))
    }
}

impl<'r> GitContents<'r> {
    /// Writes bytes that the repository lacks.
    pub fn writing(repo: &'r Repo) -> Result<GitContents<'r>, GitError> {
        Ok(GitContents { repo, mode: Mode::Writing(Writer::new(repo)?) })
    }

    /// Writes nothing; keeps bytes that the repository lacks in memory.
    pub fn remembering(repo: &'r Repo) -> Result<GitContents<'r>, GitError> {
        let odb = repo.inner.odb().map_err(GitError::failed("opening the object database"))?;
        Ok(GitContents { repo, mode: Mode::Remembering { odb, new: BTreeMap::new() } })
    }

    /// Returns the bytes of an id, from memory or the repository.
    pub fn bytes(&self, id: ContentId) -> Result<Vec<u8>, GitError> {
        match &self.mode {
            Mode::Remembering { new, .. } if new.contains_key(&id) => Ok(new[&id].to_vec()),
            _ => self.repo.blob(id),
        }
    }
}

impl Contents for GitContents<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError> {
        match &mut self.mode {
            Mode::Writing(writer) => {
                self.repo.progress.add(1);
                writer.blob(bytes).map_err(|error| ContentError(error.to_string()))
            }
            Mode::Remembering { odb, new } => {
                let id = Oid::hash_object(ObjectType::Blob, bytes)
                    .map_err(|error| ContentError(error.message().to_owned()))?;
                let content = ContentId(bytes_of(id));
                let known = new.contains_key(&content)
                    || self.repo.pending.has(id)
                    || odb.exists_ext(oid(content.0), OdbLookupFlags::NO_REFRESH);
                if !known {
                    new.insert(content, bytes.into());
                }
                Ok(content)
            }
        }
    }

    fn get(&self, id: ContentId) -> Result<Vec<u8>, ContentError> {
        self.bytes(id).map_err(|error| ContentError(error.to_string()))
    }
}
