//! Publishes one cluster's folder and pointer in steps: each step only names what exists already.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{Publication, Publisher};
use crate::artifact::{self, Artifact};
use crate::client::{Descriptor, Digest, Manifest, Repository, media};
use crate::error::RegistryError;
use crate::pointer::{CURRENT, MEMBER, Pointer, SEQUENCE};
use berth_base::model::Timestamp;
use berth_git::shared_refs::cluster_ref::read_cluster_ref_bytes;
use berth_git::shared_refs::{ClusterRef, read_cluster_ref};
use berth_git::{CommitId, GitError, Repo};

/// The number of layers whose repository is remembered.
const MOST_MOUNTS: usize = 10_000;

/// The result for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The registry already has this commit.
    Unchanged,
    /// The folder existed, under another commit.
    Renamed,
    /// The folder is new.
    Folder(Digest),
    /// Another daemon publishes now.
    NotOurs,
}

/// The pointer in the registry.
struct There {
    /// The digest of its manifest.
    manifest: Digest,
    pointer: Pointer,
    said: ClusterRef,
}

impl Publisher {
    /// Publishes one cluster's folder.
    pub(super) fn publish_one(&self, repo: &Repo, commit: CommitId) -> Result<Published, RegistryError> {
        let said = read_cluster_ref(repo, commit).ok_or_else(|| GitError::Failed {
            doing: format!("reading the cluster's commit {commit}"),
            message: "it is not berth's".to_owned(),
        })?;
        let repository = self.registry.repository_of(&said.cluster);
        let there = self.pointer_of(&repository)?;
        if let Some(there) = &there {
            self.refuse_to_go_back(&repository, there, &said)?;
        }
        // The artifact is built from the folder itself, and not taken from the registry: nothing else is signed or
        // tagged.
        let artifact = artifact::pack(repo, said.tree, &said.cluster)?;
        let (folder, bytes) = (artifact.digest(), artifact.manifest.bytes());
        let is_same = there.as_ref().is_some_and(|there| there.pointer.folder == folder);
        // Somebody may have removed a part of the published folder.
        let is_there = is_same
            && repository.manifest_digest(&folder.to_string())?.is_some()
            && repository.has_blob(Digest::of(&artifact.layer))?;
        if !is_there {
            self.push_folder(&repository, &artifact, there.is_none() || is_same)?;
        }
        let manifest = Descriptor::of(media::MANIFEST, &bytes);
        let publication =
            Publication { repository: &repository, manifest: &manifest, cluster: &said, commit, repo };
        for attach in &self.attached {
            attach.attach(&publication)?;
        }
        if !self.leads.load(Ordering::SeqCst) {
            return Ok(Published::NotOurs);
        }
        let names_commit = |there: &There| there.pointer.commit_id().is_ok_and(|named| named == commit);
        let is_whole = is_there && there.as_ref().is_some_and(names_commit);
        if is_whole && repository.manifest_digest(CURRENT)? == Some(folder) {
            return Ok(Published::Unchanged);
        }
        repository.push_manifest(&format!("{SEQUENCE}{}", said.seq), media::MANIFEST, &bytes)?;
        repository.push_manifest(CURRENT, media::MANIFEST, &bytes)?;
        let pointer = Pointer { commit: repo.raw_commit(commit)?, folder };
        let manifest = pointer.manifest(&said.cluster).bytes();
        repository.push_manifest(MEMBER, media::MANIFEST, &manifest)?;
        let old_pointer =
            there.as_ref().map(|there| there.manifest).filter(|old| *old != Digest::of(&manifest));
        self.collect(&repository, folder, old_pointer);
        Ok(if is_same { Published::Renamed } else { Published::Folder(folder) })
    }

    /// Reads the pointer in the registry. Ignores one that is not trusted.
    fn pointer_of(&self, repository: &Repository) -> Result<Option<There>, RegistryError> {
        let Some(pulled) = repository.pull_manifest(MEMBER)? else { return Ok(None) };
        let Some(pointer) = Pointer::read(&pulled.bytes) else { return Ok(None) };
        let Some(said) = read_cluster_ref_bytes(&pointer.commit) else { return Ok(None) };
        if let Some(keys) = &self.keys
            && keys.check(&pointer.commit, Timestamp::now()).is_err()
        {
            return Ok(None);
        }
        Ok(Some(There { manifest: pulled.digest, pointer, said }))
    }

    /// Refuses to move tags back, as an older daemon or one with an older branch would.
    fn refuse_to_go_back(
        &self,
        repository: &Repository,
        there: &There,
        here: &ClusterRef,
    ) -> Result<(), RegistryError> {
        let what = || repository.full_name();
        if self.may_go_back {
            return Ok(());
        }
        if there.said.seq > here.seq {
            return Err(RegistryError::Ahead { what: what(), there: there.said.seq, here: here.seq });
        }
        if there.said.seq == here.seq && there.said.tree != here.tree {
            return Err(RegistryError::Different { what: what(), sequence: here.seq });
        }
        Ok(())
    }

    fn push_folder(
        &self,
        repository: &Repository,
        artifact: &Artifact,
        with_config: bool,
    ) -> Result<(), RegistryError> {
        let Artifact { layer, manifest } = artifact;
        let empty = Digest::of(b"{}");
        let layer_digest = Digest::of(layer);
        let place =
            |digest: &Digest| self.mounts.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned();
        if with_config {
            repository.push_blob(b"{}", place(&empty).as_deref())?;
        }
        repository.push_blob(layer, place(&layer_digest).as_deref())?;
        {
            let mut mounts = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
            if mounts.len() >= MOST_MOUNTS {
                mounts.clear();
            }
            for digest in [empty, layer_digest] {
                mounts.insert(digest, repository.name().to_owned());
            }
        }
        let bytes = Manifest::bytes(manifest);
        repository.push_manifest(&Digest::of(&bytes).to_string(), media::MANIFEST, &bytes)?;
        Ok(())
    }
}
