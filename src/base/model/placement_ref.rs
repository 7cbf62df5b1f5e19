//! A reference to a placement from another object.

use super::key::Key;
use crate::diag::Pos;

/// The name of a placement of any dialect, by kind and name, without the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRef {
    pub kind: String,
    /// Empty for cluster-scoped placements.
    pub namespace: String,
    pub name: String,
    pub at: Pos,
}

impl PlacementRef {
    /// Returns `Kind namespace/name`, in the form of a key.
    pub fn describe(&self) -> String {
        Key::new("", &self.kind, &self.namespace, &self.name).to_string()
    }
}
