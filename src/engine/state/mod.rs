//! The state: everything on the rendered branch that outlives a process, and its stored forms.
//!
//! - [`decision`]: a decision ↔ the value in its file ↔ bytes.
//! - [`placement_decision`]: files beside a decision for OCM's consumers. [`layout`]: paths on the branch.
//! - [`releases_file`]: a workload's releases ↔ bytes. [`ledger`]: losses and approvals ↔
//!   bytes.
//! - [`decisions_json`]: all decisions as `berth decide -o json` prints them.
//! - [`comparison`]: the files that differ between two states, and their owners.

mod comparison;
pub mod decision;
pub mod decisions_json;
pub mod layout;
pub mod ledger;
mod object_index;
pub mod placement_decision;
pub mod releases_file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use berth_base::model::release::Releases;
use berth_base::model::{ClusterStatus, ContentId, Decision, Folder, Folders, Key, Map, Shared};

pub use comparison::{Comparison, FileDifference, Owner, PlaceOwners, WorkloadClaim};
pub use decisions_json::{ConditionForm, DecisionList, adopt, decisions_from_json};
pub use ledger::Ledger;
pub use object_index::ObjectIndex;

/// A state, as read from a rendered commit or about to be written as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub decisions: Map<Key, Decision>,
    pub folders: Folders,
    /// The facts: members' statuses as decisions have read them, by cluster.
    pub facts: Map<String, Shared<ClusterStatus>>,
    /// The releases of workloads that roll out step by step.
    pub releases: Map<Key, Shared<Releases>>,
    /// The last good forms of unreadable source files, by source path.
    pub kept: BTreeMap<String, ContentId>,
    /// The future and recent losses, and the approvals.
    pub ledger: Shared<Ledger>,
}

impl State {
    /// Reports whether two states are equal on the branch, apart from the ledger. The branch has no folder
    /// without objects.
    pub fn holds_the_same_as(&self, other: &State) -> bool {
        let State { decisions, folders, facts, releases, kept, ledger: _ } = self;
        let is_empty = |folder: Option<&Folder>| folder.is_none_or(|folder| folder.is_empty());
        let mut changed = folders.changes(&other.folders);
        *decisions == other.decisions
            && *facts == other.facts
            && *releases == other.releases
            && *kept == other.kept
            && changed.all(|one| is_empty(one.before) && is_empty(one.after))
    }
}
