//! The network of Git: fetching from remote repositories and pushing to them.
//!
//! ```text
//! remote ── list ──▶ refs            a fetch of exactly named refs is the cheap way to poll: the server is
//!        ── fetch ─▶ repository      told these names only, and nothing more is said where none has moved
//!        ◀─ push ─── repository      each ref by compare-and-swap, all or none where the server can
//! ```
//!
//! - [`remote`]: addresses. [`credentials`]: names and tokens, and their removal from messages.
//! - [`git`]: the implementation, by the `git` executable. `process`: running it with an end.
//! - `sandbox`: its bounds.
//! - [`error`]: the meaning of a fault to the caller. [`working_copy`]: the local repository.
//! - [`upkeep`]: packing repositories of this machine anew.
//! - [`probe`]: the rights of an account, asked for without a move of any ref.
//! - `orphans`: a `git` that outlived its berth.

mod access;
pub mod credentials;
mod environment;
pub mod error;
pub mod git;
pub mod probe;
pub(crate) mod process;
pub mod remote;
mod sandbox;
pub mod upkeep;
mod verdict;
pub(crate) mod working_copy;

use std::collections::BTreeMap;
use std::path::Path;

use crate::CommitId;

pub use access::Access;
pub use error::TransportError;
pub use git::GitTransport;
pub use process::Cancel;
pub use remote::RemoteUrl;
pub use sandbox::{Limits, Sandbox};
pub use working_copy::WorkingCopy;

/// A way to one remote repository.
pub trait Transport: std::fmt::Debug + Send + Sync {
    /// Lists the refs with this prefix, and the target of HEAD. Some servers send all their refs for it.
    fn list(&self, prefix: &str) -> Result<Listing, TransportError>;

    /// Brings refs with all they hold into a local repository. Either all of them move there or, after an
    /// error, none that matters: an object that did not arrive whole is never pointed at.
    fn fetch(&self, into: &Path, wants: &[Want], depth: Option<u32>) -> Result<(), TransportError>;

    /// Moves refs of the remote from the values last seen, in this order where they cannot move together. `atomic`
    /// asks for all or none, as far as the server and the number of refs allow.
    fn push(&self, from: &Path, moves: &[RefPush], atomic: bool) -> Result<(), TransportError>;

    /// Packs a working copy anew, so that it stays small and quick.
    fn tidy(&self, repository: &Path, step: upkeep::Step) -> Result<(), TransportError>;

    /// Reads a working copy to its end, and reports whether every object is there and whole.
    fn is_sound(&self, repository: &Path) -> Result<bool, TransportError>;

    /// The lock files of processes that are gone, removed at the remote since the last call.
    fn cleared_locks(&self) -> Vec<String>;

    /// The remote as messages may show it.
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
    /// A ref that must exist at the remote, and its name here.
    One { there: String, here: String },
    /// All refs whose names begin so, with another beginning here; those that are gone there go here, too.
    All { there: String, here: String },
}

impl Want {
    /// Wants a ref under the name it has at the remote.
    pub fn same(name: &str) -> Want {
        Want::One { there: name.to_owned(), here: name.to_owned() }
    }

    /// Wants all refs whose names begin so under the names that they have at the remote.
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
