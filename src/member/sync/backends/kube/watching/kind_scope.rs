//! The objects that one watch follows.

use std::sync::Arc;

use berth_base::model::ObjectId;

/// All objects of a kind in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindScope {
    pub group: Arc<str>,
    pub kind: Arc<str>,
    pub version: String,
    pub path: String,
}

impl KindScope {
    pub fn holds(&self, id: &ObjectId) -> bool {
        self.group == id.group && self.kind == id.kind
    }

    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        *self.group == *group && *self.kind == *kind
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}
