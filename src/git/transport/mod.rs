//! The network of Git: fetching from remote repositories and pushing to them.
//!
//! ```text
//! remote ── list ──▶ refs            polling fetches exactly named refs: the server gets only these names,
//!        ── fetch ─▶ repository      and the exchange ends early if none of them has moved
//!        ◀─ push ─── repository      moves each ref by compare-and-swap, atomically if the server can
//! ```
//!
//! - [`remote`]: addresses. [`credentials`]: names and tokens, and their removal from messages.
//! - [`git`]: the implementation, by the `git` executable. `process`: running it with a time limit.
//! - `sandbox`: the bounds of a `git`.
//! - [`error`]: errors, by what the caller can do. [`working_copy`]: the local repository.
//! - [`upkeep`]: repacking repositories on this machine.
//! - [`probe`]: checks an account's rights without moving a ref.
//! - `orphans`: a `git` process whose berth has ended.

pub mod credentials;
mod environment;
pub mod error;
pub mod git;
pub mod probe;
pub(crate) mod process;
pub mod remote;
mod sandbox;
pub mod upkeep;
pub(crate) mod working_copy;

use std::collections::BTreeMap;
use std::path::Path;

use crate::CommitId;

pub use credentials::Access;
pub use error::TransportError;
pub use git::GitTransport;
pub use process::Cancel;
pub use remote::RemoteUrl;
pub use sandbox::{Limits, Sandbox, start_closed};
pub use working_copy::WorkingCopy;

/// Access to one remote repository.
pub trait Transport: std::fmt::Debug + Send + Sync {
    /// Lists the refs with this prefix, and the target of HEAD. Some servers send all their refs even so.
    fn list(&self, prefix: &str) -> Result<Listing, TransportError>;

    /// Fetches refs and all their objects into a local repository. On success all of them move. After an error, no
    /// ref points at an object that did not arrive completely.
    fn fetch(&self, into: &Path, wants: &[Want], depth: Option<u32>) -> Result<(), TransportError>;

    /// Moves refs of the remote from the values last seen. `atomic` asks for all or none, as far as the server and
    /// the number of refs allow; otherwise refs move in this order.
    fn push(&self, from: &Path, moves: &[RefPush], atomic: bool) -> Result<(), TransportError>;

    /// Repacks a working copy, so that it stays small and fast.
    fn tidy(&self, repository: &Path, step: upkeep::Step) -> Result<(), TransportError>;

    /// Reports whether every object of a working copy exists and is undamaged. Reads all of them.
    fn is_sound(&self, repository: &Path) -> Result<bool, TransportError>;

    /// Returns the stale lock files removed at the remote since the last call.
    fn cleared_locks(&self) -> Vec<String>;

    /// Returns the remote as messages may show it.
    fn shown(&self) -> &str;
}

/// The refs of a remote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The ref that the remote's HEAD points to, if it has a commit.
    pub head: Option<String>,
    pub refs: BTreeMap<String, CommitId>,
}

/// Refs to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// A ref that must exist at the remote, and its local name.
    One { there: String, here: String },
    /// All refs with the prefix `there`, stored under the prefix `here`. Refs that are gone at the remote are removed
    /// locally.
    All { there: String, here: String },
}

impl Want {
    /// Wants a ref under the same local name.
    pub fn same(name: &str) -> Want {
        Want::One { there: name.to_owned(), here: name.to_owned() }
    }

    /// Wants all refs with this prefix under the same local names.
    pub fn all(prefix: &str) -> Want {
        Want::All { there: prefix.to_owned(), here: prefix.to_owned() }
    }
}

/// A move of a ref at the remote, from the value last seen to the new one; without `new` the ref is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefPush {
    pub name: String,
    pub old: Option<CommitId>,
    pub new: Option<CommitId>,
}

#[cfg(test)]
mod tests;
