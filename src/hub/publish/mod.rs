//! Commits decisions and rendered objects: the rendered branch, and the refs derived from it.
//!
//! Objects are written first and one ref moves last, by compare-and-swap. The same inputs give the
//! same commit id on any machine.
//!
//! - [`rendered_state`]: the current state from the branch. [`own_commits`]: berth's commits on the branch.
//!   [`commit`]: the next commit, with [`summary`] and [`trailers`]. [`rollout_steps`], [`member_lines`]: the lines
//!   of its message about rollouts and members.
//! - [`import`]: a first commit with an imported state.
//! - [`cluster_refs`]: each member's own ref. [`cluster_branches`]: branches for programs that read no other refs.
//!   [`processed`], [`report`]: the small refs beside the branch.
//! - [`differing`]: the paths at which outdated members differ.
//! - [`trusted_commits`]: the commits that this machine made or proved.
//! - [`prune_permits`]: approved removals that members may carry out. [`rollback`]: earlier publications of the same
//!   state.

pub mod cluster_branches;
mod cluster_ref_cache;
pub mod cluster_refs;
pub mod commit;
mod differing;
mod error;
mod folder_history;
pub mod import;
mod member_lines;
pub(crate) mod own_commits;
pub(crate) mod own_files;
mod owned;
pub mod processed;
pub(crate) mod prune_permits;
mod rendered_state;
pub mod report;
pub mod rollback;
pub mod rollout_steps;
pub(crate) mod source_trailers;
pub mod summary;
pub mod trailers;
mod tree;
pub(crate) mod trusted_commits;

pub use cluster_ref_cache::ClusterRefCache;
pub use commit::{
    Committed, Published, Stamp, draft, point, refuse_empty, refuse_gone, refuse_rewritten, tree_of,
};
pub use differing::{DifferingCache, differing};
pub use error::PublishError;
pub use own_commits::{claimed, is_unsigned, own_source};
pub use processed::{Processed, read_processed, write_processed};
pub use rendered_state::{CurrentState, StateRead, read_current, read_current_at, read_state};
pub use report::{WrittenReport, write_report};
pub use summary::Summary;
pub use trailers::Trailers;

#[cfg(test)]
mod tests;
