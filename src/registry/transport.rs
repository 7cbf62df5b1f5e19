//! A registry as a transport for Git: fetches a cluster's ref from its pointer and its folder's artifact.
//!
//! So the member's own checks are unchanged: the commit names cluster, fleet, sequence and tree, and has the daemon's
//! signature; the arriving folder must match the tree. Nothing is pushed.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::artifact::{self, LONGEST_LAYER, UnpackError, layer_of};
use crate::client::{Digest, Manifest, Registry, Repository};
use crate::error::RegistryError;
use crate::pointer::{MEMBER, Pointer};
use berth_git::shared_refs::Refs;
use berth_git::transport::upkeep::{self, Step};
use berth_git::transport::{Cancel, Limits, Listing, RefPush, Transport, TransportError, Want};
use berth_git::{CommitId, EntryKind, RefMove, Repo, TreeId, Writer};

/// Access to one cluster's folder in a registry.
#[derive(Debug)]
pub struct RegistryTransport {
    repository: Repository,
    shown: String,
    /// The name of the cluster's ref.
    name: String,
    limits: Limits,
    cancel: Cancel,
    seen: Mutex<Option<Seen>>,
}

/// The pointer followed last, and the resulting commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    pointer: Digest,
    commit: CommitId,
}

impl RegistryTransport {
    /// Makes a transport for one cluster. The limits are for `git`, which repacks the local repository.
    pub fn new(
        registry: &Registry,
        refs: &Refs,
        cluster: &str,
        limits: Limits,
        cancel: Cancel,
    ) -> RegistryTransport {
        let repository = registry.repository_of(cluster);
        let (shown, name) = (registry.url().to_string(), refs.cluster(cluster));
        RegistryTransport { repository, shown, name, limits, cancel, seen: Mutex::default() }
    }

    /// Fetches the cluster's newest commit and its folder into a repository, and points `here` to the commit.
    fn bring(&self, repo: &Repo, here: &str) -> Result<(), TransportError> {
        let failed = |error: RegistryError| self.failed(error);
        let missing = || TransportError::NoSuchRef { remote: self.shown.clone(), name: self.name.clone() };
        let before = repo.read_ref(here).map_err(|error| self.local(&error))?;
        let digest = self.repository.manifest_digest(MEMBER).map_err(failed)?.ok_or_else(missing)?;
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|seen| seen.pointer == digest && Some(seen.commit) == before) {
            return Ok(());
        }
        // Pulled by digest, because the tag may move in between.
        let pulled =
            self.repository.pull_manifest(&digest.to_string()).map_err(failed)?.ok_or_else(missing)?;
        let pointer = Pointer::read(&pulled.bytes)
            .ok_or_else(|| self.wrong("its tag `member` is not a pointer that berth wrote"))?;
        let commit = pointer.commit_id().map_err(|error| self.local(&error))?;
        let tree = pointer.tree().ok_or_else(|| self.wrong("the commit in its pointer names no tree"))?;
        if before != Some(commit) {
            let tree_before = before.and_then(|before| repo.commit(before).ok()).map(|before| before.tree);
            if tree_before != Some(tree) {
                self.bring_folder(repo, &pointer, tree)?;
            }
            let written = Writer::new(repo).and_then(|mut writer| writer.foreign_commit(&pointer.commit));
            let new = written.map_err(|error| self.local(&error))?;
            // No ref may point to an unreadable commit.
            if repo.commit(new).is_err() {
                return Err(self.wrong("the commit in its pointer cannot be read"));
            }
            let moves = [RefMove { name: here.to_owned(), old: before, new }];
            repo.move_refs(&moves).map_err(|error| self.local(&error))?;
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Seen { pointer: digest, commit });
        Ok(())
    }

    /// Fetches the folder's objects, which must form the tree of the commit.
    fn bring_folder(&self, repo: &Repo, pointer: &Pointer, tree: TreeId) -> Result<(), TransportError> {
        let failed = |error: RegistryError| self.failed(error);
        let missing = || self.wrong("it has no folder for its pointer");
        let pulled = self.repository.pull_manifest(&pointer.folder.to_string()).map_err(failed)?;
        let pulled = pulled.ok_or_else(missing)?;
        let manifest: Option<Manifest> = serde_json::from_slice(&pulled.bytes).ok();
        let layer = manifest.as_ref().and_then(layer_of);
        let layer = layer.ok_or_else(|| self.wrong("its folder is not one layer of tar and gzip"))?;
        let mut reader = self.repository.open_blob(layer, LONGEST_LAYER).map_err(failed)?;
        let unpacked = artifact::unpack(repo, &mut reader);
        // Checked before the unpacking result: truncated or changed bytes explain any failure of it.
        self.repository.finish_blob(reader).map_err(failed)?;
        match unpacked {
            Ok(arrived) if arrived == tree => Ok(()),
            Ok(_) => Err(self.wrong("its folder is not the one that the signed commit names")),
            Err(UnpackError::Git(error)) => Err(self.local(&error)),
            Err(error) => Err(self.wrong(&error.to_string())),
        }
        .inspect_err(|_| repo.start_over())
    }

    fn wrong(&self, message: &str) -> TransportError {
        TransportError::Wrong { remote: self.shown.clone(), message: message.to_owned() }
    }

    fn local(&self, error: &berth_git::GitError) -> TransportError {
        TransportError::WorkingCopy { message: error.to_string() }
    }

    fn failed(&self, error: RegistryError) -> TransportError {
        let remote = self.shown.clone();
        let message = error.to_string();
        match error {
            RegistryError::Setting { message, hint } => TransportError::Setting { message, hint },
            RegistryError::Unreachable { reason, .. } => {
                TransportError::Unreachable { remote, message: reason }
            }
            RegistryError::Busy { reason, .. } => TransportError::Unreachable { remote, message: reason },
            RegistryError::Denied { reason, .. } => TransportError::Denied { remote, message: reason },
            RegistryError::NotFound { .. } => self.wrong("a part of the folder is missing"),
            RegistryError::Wrong { reason, what, .. } => self.wrong(&format!("`{what}`: {reason}")),
            RegistryError::Git(error) => self.local(&error),
            RegistryError::Refused { .. }
            | RegistryError::Ahead { .. }
            | RegistryError::Different { .. }
            | RegistryError::Unsigned { .. }
            | RegistryError::Unfit { .. } => TransportError::Failed { remote, message },
        }
    }

    fn no_git(&self) -> TransportError {
        let message = "a registry has no Git refs".to_owned();
        TransportError::Refused { remote: self.shown.clone(), name: self.name.clone(), message }
    }
}

impl Transport for RegistryTransport {
    fn list(&self, _prefix: &str) -> Result<Listing, TransportError> {
        Err(self.no_git())
    }

    fn fetch(&self, into: &Path, wants: &[Want], _depth: Option<u32>) -> Result<(), TransportError> {
        for want in wants {
            let here = match want {
                Want::One { there, here } if *there == self.name => here,
                Want::One { there, .. } | Want::All { there, .. } => {
                    return Err(TransportError::NoSuchRef {
                        remote: self.shown.clone(),
                        name: there.clone(),
                    });
                }
            };
            let repo = Repo::open(into).map_err(|error| self.local(&error))?;
            self.bring(&repo, here)?;
        }
        Ok(())
    }

    fn push(&self, _from: &Path, _moves: &[RefPush], _atomic: bool) -> Result<(), TransportError> {
        Err(self.no_git())
    }

    fn tidy(&self, repository: &Path, step: Step) -> Result<(), TransportError> {
        upkeep::run(repository, step, upkeep::Grace::Nothing, self.limits, &self.cancel)
    }

    fn is_sound(&self, repository: &Path) -> Result<bool, TransportError> {
        let Ok(repo) = Repo::open(repository) else { return Ok(false) };
        let Ok(refs) = repo.list_refs("refs/") else { return Ok(false) };
        let is_whole = |commit: CommitId| {
            repo.raw_commit(commit).is_ok()
                && repo.commit(commit).is_ok_and(|commit| is_whole(&repo, commit.tree))
        };
        Ok(refs.iter().all(|(_, commit)| is_whole(*commit)))
    }

    fn cleared_locks(&self) -> Vec<String> {
        Vec::new()
    }

    fn shown(&self) -> &str {
        &self.shown
    }
}

/// Reports whether everything below a tree is readable.
fn is_whole(repo: &Repo, tree: TreeId) -> bool {
    repo.tree(tree).is_ok_and(|entries| {
        entries.iter().all(|entry| match entry.kind {
            EntryKind::File(id) => repo.blob(id).is_ok(),
            EntryKind::Folder(id) => is_whole(repo, id),
            EntryKind::Other { .. } => true,
        })
    })
}
