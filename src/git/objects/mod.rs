//! The Git object store and the local ref database, as plain blocking calls.
//!
//! Nothing else in berth names git2. Objects are written first, then one ref moves, by compare-and-swap. The user's
//! Git configuration does not affect them. No network here.
//!
//! - [`repo`]: opening, revisions, commits, trees. [`source_tree`]: a commit as a source tree.
//! - [`write`]: blobs, trees and commits; `raw_tree`: trees as Git stores them.
//!   [`contents`]: rendered bytes by id.
//! - [`refs`]: moving refs one by one, and lists of them. `locks`: locks that were left behind. `packed_refs`,
//!   `packed_file`: many refs at once. `recent`: caches shared by the passes of a process.
//! - `pending`: new objects until they are flushed. `pack`: many new objects as one pack. `collection`: `git gc` and
//!   its settings.
//! - [`commits`]: revisions, ancestry, three-way merges and signatures. [`remotes`]: the tracking refs of a clone.
//! - `tree_changes`: the paths that differ between two trees. `tree_size`: the size of a tree, where one folder may
//!   appear under many names. `loose`: a guard against objects that were cut short.
//! - [`scratch`]: a temporary repository with the same objects, which leaves no trace.

mod collection;
pub mod commits;
pub mod contents;
mod error;
mod id;
mod locks;
mod loose;
mod pack;
mod packed_file;
mod packed_refs;
mod pending;
mod raw_tree;
mod recent;
pub mod refs;
pub mod remotes;
pub mod repo;
pub mod scratch;
pub mod source_tree;
mod tree_changes;
mod tree_size;
pub mod worktree;
pub mod write;

pub use commits::{FirstParents, Merged};
pub use contents::{BlobIds, GitContents};
pub use error::GitError;
pub use id::{CommitId, TreeId};
pub use recent::Recent;
pub use refs::{RefMove, is_valid_ref};
pub use repo::{CommitInfo, Entry, EntryKind, PathChange, Repo};
pub use scratch::Scratch;
pub use source_tree::{SourceCache, is_behind_link, read_file_at, read_source, read_source_with_cache};
pub use write::{Counts, HashedBlob, Identity, Writer, commit_id, tree_id};

#[cfg(test)]
mod tests;
