//! Moves of refs at a remote: what stands in whose way, and what never goes back.

use super::error::PassError;
use berth_git::transport::RefPush;
use berth_git::{GitError, Repo};

/// Reports whether a ref's name stands below another one, as a file below a folder.
pub(super) fn is_below(name: &str, other: &str) -> bool {
    name.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// A lease alone would let the state go back, whatever moved it here.
pub(super) fn refuse_backwards(repo: &Repo, rendered: &str, moves: &[RefPush]) -> Result<(), PassError> {
    for RefPush { name, old, new } in moves.iter().filter(|change| change.name == rendered) {
        let Some(old) = *old else { continue };
        let forward = match new {
            Some(new) => repo.is_same_or_after(*new, old)?,
            None => false,
        };
        if !forward {
            return Err(GitError::Raced { name: name.clone() }.into());
        }
    }
    Ok(())
}
