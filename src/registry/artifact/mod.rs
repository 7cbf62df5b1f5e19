//! A folder's tree in Git ↔ an artifact: one manifest with one tar+gzip layer, which Flux, Argo CD and Config Sync take.
//!
//! - [`pack`]: a tree → a layer. Equal trees have equal layers, wherever and whenever they are packed.
//! - [`unpack`]: a layer → objects of Git, within limits. What is in it is compared with the tree's id by the caller.

mod layer;
mod pack;
mod unpack;

use crate::client::{Descriptor, Digest, Manifest, media};
use berth_base::source::budget::MOST_OF_A_CLUSTER;

pub use pack::pack;
pub use unpack::{UnpackError, unpack};

/// The type of a folder's artifact.
pub const FOLDER: &str = "application/vnd.berth.folder.v1";

/// The longest layer, packed and unpacked, and the longest file in it. Argo CD unpacks 1 GiB as it is installed.
pub const LONGEST_LAYER: u64 = 1 << 30;
pub const LONGEST_FILE: u64 = 32 << 20;
/// The most files and folders of a layer.
pub const MOST_ENTRIES: u64 = MOST_OF_A_CLUSTER;

/// A folder that is packed.
#[derive(Clone, PartialEq, Eq)]
pub struct Artifact {
    pub layer: Vec<u8>,
    pub manifest: Manifest,
}

// The layer may hold Secrets.
impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifact").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

impl Artifact {
    fn of(layer: Vec<u8>) -> Artifact {
        let manifest = Manifest::of(FOLDER, vec![Descriptor::of(media::LAYER, &layer)]);
        Artifact { layer, manifest }
    }

    /// Returns the digest of the manifest, which stands for the folder.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest.bytes())
    }
}

/// Returns the layer of a folder's manifest; none where it is of another form.
pub fn layer_of(manifest: &Manifest) -> Option<&Descriptor> {
    match manifest.layers.as_slice() {
        [layer] if layer.media_type == media::LAYER => Some(layer),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
