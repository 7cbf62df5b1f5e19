//! Charts and bases of others → files in a folder of the repository, and a lock that says where they came from.
//!
//! - [`lock`]: the file `vendor.lock`. [`folder`]: a tree of Git ↔ a folder, and the check of vendored folders.
//! - [`chart`]: a chart's address and version → its tree, from a registry or by [`repository`].
//! - [`base`]: a Git address, a branch, tag or commit → the tree of a folder there.
//!
//! Whatever a server sends becomes objects of a scratch repository first, within limits. Only plain files whose paths
//! stay in their folder are written to the disk.

pub mod base;
pub mod chart;
mod error;
pub mod folder;
pub mod lock;
mod repository;

use berth_git::TreeId;

pub use chart::ChartAddress;
pub use error::VendorError;
pub use lock::{Lock, Origin, Vendored};

/// The files of a chart or base, in a scratch repository.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub tree: TreeId,
    pub origin: Origin,
}

impl Fetched {
    /// Returns the entry of the lock.
    pub fn vendored(&self) -> Vendored {
        let origin = self.origin.clone();
        Vendored { fetched: origin.wanted().to_owned(), origin, tree: self.tree.to_string() }
    }
}
