//! Decisions and rendered objects become commits: the rendered branch, and the refs derived from it.
//!
//! Objects are written first and one ref moves last, by compare-and-swap. The same inputs give the
//! same commit id on any machine.
//!
//! - [`read`]: the previous state from the branch. [`commit`]: the next one onto it, with [`summary`] and [`trailers`].
//! - [`import`]: a first commit that was found, not decided.
//! - [`cluster_refs`]: each member's own ref. [`processed`], [`statuses`], [`report`]: the small refs beside the branch.
//! - [`remembered`]: the commits that this machine made or proved.
//! - [`ledger`]: approvals that earlier commits used. [`rollback`]: whether a state was in force before.

pub mod cluster_refs;
pub mod commit;
mod error;
pub mod import;
pub mod ledger;
pub mod message;
pub mod processed;
pub mod read;
pub mod remembered;
pub mod report;
pub mod rollback;
mod stored;
pub mod summary;
pub mod trailers;
mod tree;

pub use commit::{
    Committed, Published, Stamp, draft, point, publish, refuse_empty, refuse_gone, refuse_loss,
    refuse_rewritten,
};
pub use error::PublishError;
pub use processed::{Processed, read_processed, write_processed};
pub use read::{Ids, Previous, StateRead, claimed, own_source, read_previous, read_previous_at, read_state};
pub use report::write_report;
pub use stored::{decode_previous, encode_previous};
pub use summary::Summary;
pub use trailers::Trailers;

#[cfg(test)]
mod tests;
