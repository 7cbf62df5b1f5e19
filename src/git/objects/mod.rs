//! The Git object store and the local ref database, as plain blocking calls.
//!
//! Nothing else in berth names git2. Objects are written first, then one ref moves, by compare-and-swap. The user's
//! Git configuration does not affect them. No network here.
//!
//! - [`repo`]: opening, revisions, commits, trees. [`source_tree`]: a commit as a source tree.
//! - [`write`]: blobs, trees and commits; `raw_tree`, `recent_trees`: trees as Git stores them.
//!   [`contents`]: rendered bytes by id.
//! - [`refs`]: moving refs, [`locks`] and all. `list_refs`, `packed_refs`, `packed_file`: many refs at once.
//!   `known_refs`, `ref_lock`: one by one. `recent`: caches shared by the passes of a process.
//! - `pending`: new objects until they are flushed. `pack`, `pack_index`: many new objects as one pack. `damage`:
//!   unreadable objects.
//! - `collection`: `git gc` and its settings. `commit_signature`: the signatures of commits.
//! - [`remotes`]: the tracking refs of a clone. [`merge`]: three-way merges.
//! - `tree_changes`: the paths that differ between two trees. `tree_size`: the size of a tree, where one folder may
//!   appear under many names.
//! - [`history`]: ancestry. [`scratch`]: a temporary repository with the same objects, which leaves no trace.

mod collection;
mod commit_signature;
pub mod contents;
mod damage;
mod error;
pub mod history;
mod id;
mod known_refs;
mod list_refs;
mod locks;
pub mod merge;
mod pack;
mod packed_file;
mod packed_refs;
mod pending;
mod raw_tree;
mod recent;
mod recent_trees;
mod ref_lock;
pub mod refs;
pub mod remotes;
pub mod repo;
mod revision;
pub mod scratch;
pub mod source_tree;
mod tree_changes;
mod tree_size;
pub mod worktree;
pub mod write;

pub use contents::{BlobIds, GitContents};
pub use error::GitError;
pub use id::{CommitId, TreeId};
pub use merge::Merged;
pub use recent::Recent;
pub use refs::{RefMove, is_valid_ref};
pub use repo::{CommitInfo, Entry, EntryKind, PathChange, Repo};
pub use scratch::Scratch;
pub use source_tree::{SourceCache, is_behind_link, read_file_at, read_source, read_source_with_cache};
pub use write::{Counts, HashedBlob, Identity, Writer, commit_id, tree_id};

#[cfg(test)]
mod tests;
