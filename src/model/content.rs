//! Contents by id: rendered bytes are handed over once and named by their id from then on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::shared::Shared;

/// The id of some bytes. Equal ids mean equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub [u8; 20]);

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Where rendered bytes go. A Git object database, a folder's contents, or only a hash.
pub trait Contents {
    /// Takes the bytes and names them. Called once for identical copies.
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError>;
}

/// The store behind [`Contents`] failed; says how.
#[derive(Debug, thiserror::Error)]
#[error("storing a rendered object failed: {0}")]
pub struct ContentError(pub String);

/// A cluster's folder: path within it → content. Paths are shared between clusters.
pub type Folder = Shared<BTreeMap<Arc<str>, ContentId>>;

/// All clusters' folders by cluster name.
pub type Folders = BTreeMap<String, Folder>;
