//! Commits decisions and rendered objects: the rendered branch, and the refs derived from it.
//!
//! Objects are written first and one ref moves last, by compare-and-swap. The same inputs give the
//! same commit id on any machine.
//!
//! - [`rendered_state`]: the current state from the branch. [`commit`]: the next commit, or a first one
//!   with an imported state, with [`summary`] and [`trailers`], by which berth knows its own commits.
//!   [`rollout_steps`]: the lines of its message about rollouts.
//! - [`cluster_refs`]: each member's own ref, and branches for programs that read no other refs.
//!   [`processed`], [`report`]: the small refs beside the branch.
//! - [`folder_history`]: the clusters' folders, and the paths at which outdated members differ.
//! - [`own_files`]: the commits that this machine made or proved, and caches for the next process.
//! - [`prune_permits`]: approved removals that members may carry out. [`rollback`]: earlier publications of the same
//!   state.

mod cluster_ref_cache;
pub mod cluster_refs;
pub mod commit;
mod error;
mod folder_history;
pub(crate) mod own_files;
pub mod processed;
pub(crate) mod prune_permits;
mod rendered_state;
pub mod report;
pub mod rollback;
pub mod rollout_steps;
pub mod summary;
pub mod trailers;
mod tree;

pub use cluster_ref_cache::ClusterRefCache;
pub use commit::{
    Committed, Published, Stamp, draft, point, refuse_empty, refuse_gone, refuse_rewritten, tree_of,
};
pub use error::PublishError;
pub use folder_history::{DifferingCache, differing};
pub use processed::{Processed, read_processed, write_processed};
pub use rendered_state::{CurrentState, StateRead, read_current, read_current_at, read_state};
pub use report::{WrittenReport, write_report};
pub use summary::Summary;
pub use trailers::Trailers;
pub use trailers::{claimed, is_unsigned, own_source};

#[cfg(test)]
mod tests;
