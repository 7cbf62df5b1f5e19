//! Decisions and rendered objects become commits: the rendered branch, and the refs derived from it.
//!
//! Objects are written first and one ref moves last, by compare-and-swap. The same inputs give the
//! same commit id on any machine.
//!
//! - [`rendered_state`]: the current state from the branch. [`own_commits`]: the commits on it that berth made. [`commit`]: the next one onto it, with [`summary`] and [`trailers`].
//!   [`rollout_steps`], [`member_lines`]: the story of rollouts and of members' reports in its message.
//! - [`import`]: a first commit that was found, not decided.
//! - [`cluster_refs`]: each member's own ref. [`cluster_branches`]: a branch for programs that read no other refs.
//!   [`processed`], [`report`]: the small refs beside the branch.
//!   [`differing`]: what members that are behind lack.
//! - [`trusted_commits`]: the commits that this machine made or proved.
//! - [`prune_permits`]: removals that members may carry out for good. [`rollback`]: earlier publications of the same state.

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
