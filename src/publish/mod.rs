//! Decisions and rendered objects become commits: the rendered branch, and the refs derived from it.
//!
//! Objects are written first and one ref moves last, by compare-and-swap. The same inputs give the
//! same commit id on any machine.
//!
//! - [`read`]: the previous state from the branch. [`commit`]: the next one onto it, with [`summary`] and [`trailers`].
//! - [`cluster_refs`]: each member's own ref. [`processed`], [`statuses`], [`report`]: the small refs beside the branch.

pub mod cluster_refs;
pub mod commit;
mod error;
pub mod processed;
pub mod read;
pub mod refs;
pub mod report;
mod single;
pub mod statuses;
pub mod summary;
pub mod trailers;
mod tree;

pub use commit::{Committed, Published, Stamp, publish};
pub use error::PublishError;
pub use processed::{Processed, read_processed, write_processed};
pub use read::{Ids, Previous, StateRead, read_previous, read_state};
pub use refs::Refs;
pub use report::write_report;
pub use statuses::{STATUS_FILE, read_status, read_statuses};
pub use summary::Summary;
pub use trailers::Trailers;

#[cfg(test)]
mod tests;
