//! The pointer that berth's members follow: the commit of the cluster's ref, and the digest of its folder's artifact.
//!
//! It is a manifest without content, under the tag `member`. An annotation contains the commit, so that one request
//! fetches it. The commit has the daemon's signature and names the tree that the folder must match.

use std::collections::BTreeMap;

use crate::client::{Descriptor, Digest, Manifest};
use berth_base::text::base64;
use berth_git::{CommitId, GitError, TreeId};

/// The tag of the pointer. It moves last.
pub const MEMBER: &str = "member";
/// The tag of the newest folder, for programs other than berth.
pub const CURRENT: &str = "current";
/// The prefix of folders' tags, before the sequence of their publication.
pub const SEQUENCE: &str = "seq-";

const TYPE: &str = "application/vnd.berth.member.v1";
const COMMIT: &str = "dev.berth.commit";
const FOLDER: &str = "dev.berth.folder";
/// Only for people.
const CLUSTER: &str = "dev.berth.cluster";

/// A member's pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The commit's bytes, as Git stores them.
    pub commit: Vec<u8>,
    /// The digest of the artifact with the folder.
    pub folder: Digest,
}

impl Pointer {
    /// Returns the manifest of the pointer.
    pub fn manifest(&self, cluster: &str) -> Manifest {
        let annotations = [
            (COMMIT, base64::encode(&self.commit)),
            (FOLDER, self.folder.to_string()),
            (CLUSTER, cluster.to_owned()),
        ];
        let annotations: BTreeMap<String, String> =
            annotations.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Manifest { annotations, ..Manifest::of(TYPE, vec![Descriptor::empty()]) }
    }

    /// Reads a pointer. `None` for any other manifest.
    pub fn read(manifest: &[u8]) -> Option<Pointer> {
        let manifest: Manifest = serde_json::from_slice(manifest).ok()?;
        if manifest.artifact_type.as_deref() != Some(TYPE) {
            return None;
        }
        let commit = base64::decode(manifest.annotations.get(COMMIT)?)?;
        let folder = manifest.annotations.get(FOLDER)?.parse().ok()?;
        Some(Pointer { commit, folder })
    }

    /// Returns the id of the commit.
    pub fn commit_id(&self) -> Result<CommitId, GitError> {
        berth_git::commit_id(&self.commit)
    }

    /// Returns the tree that the commit names.
    pub fn tree(&self) -> Option<TreeId> {
        let (first, _) = std::str::from_utf8(self.commit.get(..46)?).ok()?.split_once('\n')?;
        first.strip_prefix("tree ")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_read_as_it_was_written() {
        let commit = format!("tree {}\nauthor a <b> 0 +0000\n\nx\n", TreeId::EMPTY).into_bytes();
        let pointer = Pointer { commit, folder: Digest::of(b"x") };
        let manifest = pointer.manifest("oslo").bytes();
        assert_eq!(Pointer::read(&manifest), Some(pointer.clone()));
        assert_eq!(pointer.tree(), Some(TreeId::EMPTY));
        let other = Manifest::of("application/x", vec![]).bytes();
        for wrong in [b"".as_slice(), b"{}", b"null", &other, &manifest[..manifest.len() - 1]] {
            assert_eq!(Pointer::read(wrong), None);
        }
        let short = Pointer { commit: b"tree ".to_vec(), ..pointer };
        assert_eq!(short.tree(), None);
    }
}
