//! Git as berth uses it: objects and refs, signatures, remote repositories, and the refs that hub and members share.
//!
//! - [`objects`]: the object store and the local refs, through libgit2. [`transport`]: remotes, by running `git`.
//! - [`deploy_key`]: new keys for ssh. [`signature`]: signed commits and allowed signers. [`external_signer`]: signatures
//!   by keys outside of this process. [`shared_refs`]: the forms that the hub and its members exchange.

pub mod deploy_key;
pub mod external_signer;
pub mod objects;
pub mod shared_refs;
pub mod signature;
#[cfg(test)]
mod testing;
pub mod transport;

// `testing.rs` is compiled into other crates too, and names this crate `berth_git`.
#[cfg(test)]
extern crate self as berth_git;

pub use objects::{
    BlobIds, CommitId, CommitInfo, Counts, Entry, EntryKind, FirstParents, GitContents, GitError, HashedBlob,
    Identity, Merged, PathChange, Recent, RefMove, Repo, Scratch, SourceCache, TreeId, Writer, commit_id,
    commits, contents, is_behind_link, is_valid_ref, read_file_at, read_source, read_source_with_cache, refs,
    remotes, repo, scratch, source_tree, tree_id, worktree, write,
};
