//! The name of a placement where another object names it.

use super::key::Key;
use crate::diag::Pos;

/// Names a placement of any dialect, as its users do: by kind and name, without the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRef {
    pub kind: String,
    /// Empty for cluster-scoped placements.
    pub namespace: String,
    pub name: String,
    pub at: Pos,
}

impl PlacementRef {
    /// `Kind namespace/name`, as a key prints.
    pub fn describe(&self) -> String {
        Key::new("", &self.kind, &self.namespace, &self.name).to_string()
    }
}
