//! Converts a folder's tree in Git to an artifact and back: one manifest with one tar+gzip layer, which Flux, Argo CD
//! and Config Sync accept.
//!
//! - [`layer`]: packs a tree. Equal trees give equal layers, on any machine at any time. Unpacks a layer into Git
//!   objects, within limits. The caller compares the content with the tree's id.

mod layer;

use crate::client::{Descriptor, Digest, Manifest, media};
use berth_base::source::budget::MOST_OF_A_CLUSTER;

pub use layer::pack;
pub use layer::{UnpackError, unpack};

/// The type of a folder's artifact.
pub const FOLDER: &str = "application/vnd.berth.folder.v1";

/// The longest layer, packed and unpacked, and the longest file in it. Argo CD unpacks at most 1 GiB by default.
pub const LONGEST_LAYER: u64 = 1 << 30;
pub const LONGEST_FILE: u64 = 32 << 20;
/// The most files and folders of a layer.
pub const MOST_ENTRIES: u64 = MOST_OF_A_CLUSTER;

/// A packed folder.
#[derive(Clone, PartialEq, Eq)]
pub struct Artifact {
    pub layer: Vec<u8>,
    pub manifest: Manifest,
}

// The layer may contain Secrets.
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

    /// Returns the manifest's digest, which identifies the folder.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest.bytes())
    }
}

/// Returns the layer of a folder's manifest; `None` if the manifest has another form.
pub fn layer_of(manifest: &Manifest) -> Option<&Descriptor> {
    match manifest.layers.as_slice() {
        [layer] if layer.media_type == media::LAYER => Some(layer),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
