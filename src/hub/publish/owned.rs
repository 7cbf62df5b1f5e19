//! The part of the rendered branch's root tree that belongs to berth.

use super::error::PublishError;
use berth_engine::state::layout;
use berth_git::{Entry, TreeId, tree_id};

/// Reports whether an entry of the branch's root belongs to berth.
pub(super) fn is_owned(entry: &Entry) -> bool {
    let name = entry.name.as_slice();
    name == layout::MARKER.as_bytes() || layout::OWNED.iter().any(|owned| name == owned.as_bytes())
}

/// Returns the tree id of the state: the root tree with only berth's entries.
pub(super) fn state_tree(root: &[Entry]) -> Result<TreeId, PublishError> {
    Ok(tree_id(root.iter().filter(|entry| is_owned(entry)).cloned().collect())?)
}
