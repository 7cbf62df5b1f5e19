//! What the rendered branch holds: the whole state that outlives a process, and its stored forms.
//!
//! - [`decision`]: a decision as the value that its file holds. [`decision_file`]: files' bytes, both ways.
//! - [`placement_decision`]: what stands beside a decision file for OCM's consumers.
//! - [`decisions_json`]: all decisions as `berth decide -o json` prints them. [`layout`]: what stands where.

pub mod codec;
pub mod decision;
pub mod decision_file;
pub mod decisions_json;
pub mod layout;
pub mod placement_decision;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use berth_base::model::{ClusterStatus, ContentId, Decision, Folders, Key, Shared};

pub use decisions_json::{adopt, decisions_from_json, decisions_json};

/// One state, as read from a rendered commit or about to be written as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub decisions: Shared<BTreeMap<Key, Decision>>,
    pub folders: Folders,
    /// What decisions have read of members' statuses, by cluster.
    pub facts: BTreeMap<String, ClusterStatus>,
    /// The last good form of source files that are unreadable now, by source path.
    pub kept: BTreeMap<String, ContentId>,
}
