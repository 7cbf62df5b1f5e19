//! Writes blobs, trees and commits. Each object is hashed first and written only if it is missing, so an unchanged
//! subtree costs only its hash. Commits and replaced blobs are nearly always new, so the packs are not searched for
//! them. Objects reach the repository together, see `pending`.

use std::collections::BTreeMap;
use std::sync::Arc;

use git2::{ObjectType, OdbLookupFlags, Oid};
use sha1::{Digest as _, Sha1};

use super::error::GitError;
use super::id::{CommitId, TreeId, bytes_of, oid};
use super::raw_tree;
use super::repo::{Entry, EntryKind, Repo};
use crate::signature::{self, Signer};
use berth_base::model::ContentId;
use berth_base::progress::Progress;

/// The author of a commit. Always an argument: a user's Git configuration must not change a commit's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub email: String,
    /// Signs the commits of this identity. Independent of the user's Git settings.
    pub signer: Option<Signer>,
    /// The name of the published fleet, which commits carry in a trailer.
    pub fleet: Option<String>,
}

impl Default for Identity {
    fn default() -> Identity {
        Identity { name: "berth".to_owned(), email: "berth@berth.dev".to_owned(), signer: None, fleet: None }
    }
}

/// The numbers of newly written objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub blobs: usize,
    pub trees: usize,
    pub commits: usize,
}

/// A blob's bytes with their id. Any thread can hash them.
#[derive(Debug)]
pub struct HashedBlob {
    id: Oid,
    bytes: Arc<[u8]>,
}

impl HashedBlob {
    pub fn of(bytes: &[u8]) -> Result<HashedBlob, GitError> {
        Ok(HashedBlob { id: hash(ObjectType::Blob, bytes)?, bytes: bytes.into() })
    }

    pub fn id(&self) -> ContentId {
        ContentId(bytes_of(self.id))
    }
}

/// Writes into a repository's object database.
pub struct Writer<'r> {
    repo: &'r Repo,
    odb: git2::Odb<'r>,
    /// `git gc` is running and may remove unreachable objects, so all objects are written again.
    anew: bool,
    pub counts: Counts,
}

impl std::fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("repo", self.repo)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl<'r> Writer<'r> {
    pub fn new(repo: &'r Repo) -> Result<Writer<'r>, GitError> {
        let odb = repo.inner.odb().map_err(GitError::failed("opening the object database"))?;
        let anew = !repo.is_rehearsal && repo.is_being_collected();
        Ok(Writer { repo, odb, anew, counts: Counts::default() })
    }

    pub fn blob(&mut self, bytes: &[u8]) -> Result<ContentId, GitError> {
        let (id, new) = self.object(ObjectType::Blob, bytes.into())?;
        self.counts.blobs += usize::from(new);
        Ok(ContentId(bytes_of(id)))
    }

    /// Writes a blob without looking for it first, since it replaces another one.
    pub fn new_blob(&mut self, bytes: &[u8]) -> Result<ContentId, GitError> {
        self.new_hashed_blob(HashedBlob::of(bytes)?)
    }

    /// Like [`Writer::new_blob`], for bytes hashed on another thread.
    pub fn new_hashed_blob(&mut self, HashedBlob { id, bytes }: HashedBlob) -> Result<ContentId, GitError> {
        let (id, new) = self.take(id, ObjectType::Blob, bytes)?;
        self.counts.blobs += usize::from(new);
        Ok(ContentId(bytes_of(id)))
    }

    /// Returns the handle for the progress of writing.
    pub fn progress(&self) -> &'r Progress {
        &self.repo.progress
    }

    /// Lists the entries of a tree in the repository.
    pub fn read_tree(&self, id: TreeId) -> Result<Vec<Entry>, GitError> {
        self.repo.tree(id)
    }

    /// Reports whether the repository has these bytes.
    pub fn has_blob(&self, id: ContentId) -> bool {
        let id = oid(id.0);
        self.repo.pending.has(id) || self.odb.read_header(id).is_ok_and(|(_, kind)| kind == ObjectType::Blob)
    }

    /// Writes one tree. Entries may come in any order; names must be unique.
    pub fn tree(&mut self, entries: Vec<Entry>) -> Result<TreeId, GitError> {
        let (id, new) = self.object(ObjectType::Tree, raw_tree::of(entries).into())?;
        self.counts.trees += usize::from(new);
        Ok(TreeId::of(id))
    }

    /// Writes the trees for paths with `/` between parts. Paths must be sorted, and no file may be a prefix of
    /// another's path.
    pub fn folder<'p>(
        &mut self,
        files: impl IntoIterator<Item = (&'p str, ContentId)>,
    ) -> Result<TreeId, GitError> {
        let files: Vec<(&str, ContentId)> = files.into_iter().collect();
        self.subfolder(&files, 0)
    }

    fn subfolder(&mut self, files: &[(&str, ContentId)], skip: usize) -> Result<TreeId, GitError> {
        let mut entries = Vec::new();
        let mut rest = files;
        while let Some((path, id)) = rest.first() {
            let below = path.get(skip..).unwrap_or_default();
            let Some((name, _)) = below.split_once('/') else {
                entries.push(Entry { name: below.as_bytes().to_vec(), kind: EntryKind::File(*id) });
                rest = &rest[1..];
                continue;
            };
            // Paths are sorted, so the paths of one folder are adjacent.
            let inside = skip + name.len() + 1;
            let prefix = &path[..inside];
            let (folder, after) = rest.split_at(rest.partition_point(|(path, _)| path.starts_with(prefix)));
            let tree = self.subfolder(folder, inside)?;
            entries.push(Entry { name: name.as_bytes().to_vec(), kind: EntryKind::Folder(tree) });
            rest = after;
        }
        self.tree(entries)
    }

    /// Writes an edited tree: each path gets its new entry, or is removed if it has none. Paths have `/` between
    /// parts and must be sorted. A file may replace a folder that the edits empty, and a folder may replace a file.
    /// Folders without an edit are not read.
    pub fn edited<'p>(
        &mut self,
        tree: TreeId,
        edits: impl IntoIterator<Item = (&'p str, Option<EntryKind>)>,
    ) -> Result<TreeId, GitError> {
        let edits: Vec<(&str, Option<EntryKind>)> = edits.into_iter().collect();
        self.edited_below(tree, &edits, 0)
    }

    fn edited_below(
        &mut self,
        tree: TreeId,
        edits: &[(&str, Option<EntryKind>)],
        skip: usize,
    ) -> Result<TreeId, GitError> {
        if edits.is_empty() {
            return Ok(tree);
        }
        let before = self.repo.raw_tree(tree)?;
        let mut new: BTreeMap<&[u8], Option<EntryKind>> = BTreeMap::new();
        let mut rest = edits;
        while let Some((path, kind)) = rest.first() {
            let below = path.get(skip..).unwrap_or_default();
            let Some((name, _)) = below.split_once('/') else {
                new.insert(below.as_bytes(), *kind);
                rest = &rest[1..];
                continue;
            };
            // Paths are sorted, so the paths of one folder are adjacent.
            let inside = skip + name.len() + 1;
            let prefix = &path[..inside];
            let (folder, after) = rest.split_at(rest.partition_point(|(path, _)| path.starts_with(prefix)));
            rest = after;
            let of_before = before.folder(name.as_bytes()).map_or(TreeId::EMPTY, TreeId);
            let tree = self.edited_below(of_before, folder, inside)?;
            let kind = (tree != TreeId::EMPTY).then_some(EntryKind::Folder(tree));
            let in_its_place = new.get(name.as_bytes()).copied().flatten();
            if kind.is_some() && in_its_place.is_some() {
                let path = prefix.trim_end_matches('/').escape_debug();
                let message = format!("`{path}` would be both a file and a folder");
                return Err(GitError::Failed { doing: "writing a tree".to_owned(), message });
            }
            new.insert(name.as_bytes(), kind.or(in_its_place));
        }
        let edited = before.edited(&new);
        let bytes = edited.bytes().clone();
        if bytes.is_empty() {
            return Ok(TreeId::EMPTY);
        }
        if bytes == *before.bytes() {
            return Ok(tree);
        }
        let (id, new) = match tree {
            TreeId::EMPTY => self.object(ObjectType::Tree, bytes)?,
            _ => self.new_object(ObjectType::Tree, bytes)?,
        };
        self.repo.recent.trees.replace(tree, TreeId::of(id), edited);
        self.counts.trees += usize::from(new);
        Ok(TreeId::of(id))
    }

    /// Writes a commit, dated in UTC, and all pending objects. Other processes can then read them.
    pub fn commit(
        &mut self,
        tree: TreeId,
        parents: &[CommitId],
        message: &str,
        identity: &Identity,
        seconds: i64,
    ) -> Result<CommitId, GitError> {
        let id = self.commit_later(tree, parents, message, identity, seconds)?;
        self.repo.flush()?;
        Ok(id)
    }

    /// Like [`Writer::commit`], for many commits: they are flushed together, before a ref moves.
    pub fn commit_later(
        &mut self,
        tree: TreeId,
        parents: &[CommitId],
        message: &str,
        identity: &Identity,
        seconds: i64,
    ) -> Result<CommitId, GitError> {
        let time = git2::Time::new(seconds, 0);
        let by = git2::Signature::new(&identity.name, &identity.email, &time).map_err(GitError::failed(
            format!("using the identity `{} <{}>`", identity.name, identity.email),
        ))?;
        if tree == TreeId::EMPTY {
            self.tree(Vec::new())?;
        }
        let mut bytes = format!("tree {tree}\n").into_bytes();
        for parent in parents {
            bytes.extend(format!("parent {parent}\n").bytes());
        }
        for role in ["author", "committer"] {
            bytes.extend(format!("{role} ").bytes());
            bytes.extend(by.name_bytes());
            bytes.extend(b" <");
            bytes.extend(by.email_bytes());
            bytes.extend(format!("> {seconds} +0000\n").bytes());
        }
        bytes.push(b'\n');
        bytes.extend(message.bytes());
        if let Some(signer) = &identity.signer {
            bytes = signature::commit::sign(&bytes, signer)
                .map_err(|why| GitError::Unsigned { key: signer.public().to_string(), why })?;
        }
        let (id, new) = self.new_object(ObjectType::Commit, bytes.into())?;
        self.counts.commits += usize::from(new);
        Ok(CommitId::of(id))
    }

    /// Writes a commit made elsewhere, byte by byte, and all pending objects.
    pub fn foreign_commit(&mut self, bytes: &[u8]) -> Result<CommitId, GitError> {
        let (id, new) = self.object(ObjectType::Commit, bytes.into())?;
        self.counts.commits += usize::from(new);
        self.repo.flush()?;
        Ok(CommitId::of(id))
    }

    /// Hashes an object and stores it if it is missing. Returns its id, and true if it was stored.
    fn object(&self, kind: ObjectType, bytes: Arc<[u8]>) -> Result<(Oid, bool), GitError> {
        let id = hash(kind, &bytes)?;
        // Refreshing would list the pack folder again for each new object.
        let is_there = || !self.anew && self.odb.exists_ext(id, OdbLookupFlags::NO_REFRESH);
        if self.repo.pending.has(id) || is_there() {
            return Ok((id, false));
        }
        self.take(id, kind, bytes)
    }

    /// Like [`Writer::object`], without searching the repository.
    fn new_object(&self, kind: ObjectType, bytes: Arc<[u8]>) -> Result<(Oid, bool), GitError> {
        self.take(hash(kind, &bytes)?, kind, bytes)
    }

    fn take(&self, id: Oid, kind: ObjectType, bytes: Arc<[u8]>) -> Result<(Oid, bool), GitError> {
        let Repo { pending, inner, .. } = self.repo;
        if pending.has(id) {
            return Ok((id, false));
        }
        if self.repo.is_rehearsal {
            // A pack would be written next to the repository's own packs.
            self.odb.write(kind, &bytes).map_err(GitError::failed("keeping an object in memory"))?;
        } else {
            pending.add(&inner.commondir().join("objects"), id, kind, bytes, self.anew)?;
        }
        Ok((id, true))
    }
}

/// Returns an object's id. libgit2's hash detects collisions and takes several times as long. Trees need no
/// detection: they hold names and ids, which nobody can choose freely enough to make collide.
fn hash(kind: ObjectType, bytes: &[u8]) -> Result<Oid, GitError> {
    match kind {
        ObjectType::Tree => Ok(plain_hash(kind, bytes)),
        _ => Oid::hash_object(kind, bytes).map_err(GitError::failed("hashing an object")),
    }
}

fn plain_hash(kind: ObjectType, bytes: &[u8]) -> Oid {
    let mut sum = Sha1::new();
    sum.update(format!("{} {}\0", kind.str(), bytes.len()));
    sum.update(bytes);
    oid(sum.finalize().into())
}

/// Returns the id that a tree would have, without writing it.
pub fn tree_id(entries: Vec<Entry>) -> Result<TreeId, GitError> {
    hash(ObjectType::Tree, &raw_tree::of(entries)).map(TreeId::of)
}

/// Returns the id that a commit of these bytes would have, without writing it.
pub fn commit_id(bytes: &[u8]) -> Result<CommitId, GitError> {
    let id = Oid::hash_object(ObjectType::Commit, bytes);
    id.map(CommitId::of).map_err(GitError::failed("hashing a commit"))
}
