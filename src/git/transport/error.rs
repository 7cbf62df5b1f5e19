//! Errors of a remote, distinguished by what the caller can do about them.

use std::time::Duration;

/// A failed exchange with a remote. Messages never contain a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// A setting is wrong: an address, or a file named in the settings.
    #[error("{message}")]
    Setting { message: String, hint: Option<String> },
    #[error("`git` cannot be used: {message}")]
    NoGit { message: String },
    #[error("`{remote}` cannot be reached: {message}")]
    Unreachable { remote: String, message: String },
    #[error("`{remote}` did not finish within {} seconds", .after.as_secs())]
    TimedOut { remote: String, after: Duration },
    /// The process was asked to stop.
    #[error("the exchange with `{remote}` was interrupted")]
    Cancelled { remote: String },
    /// The remote cannot prove its identity.
    #[error("`{remote}` is not trusted: {message}")]
    Untrusted { remote: String, message: String },
    /// The remote's content is not valid; none of it is used.
    #[error("`{remote}` sent invalid content: {message}")]
    Wrong { remote: String, message: String },
    /// The remote denies access, or denies this operation.
    #[error("`{remote}` refuses the credentials: {message}")]
    Denied { remote: String, message: String },
    #[error("there is no repository at `{remote}`: {message}")]
    NoRepository { remote: String, message: String },
    #[error("`{remote}` has no `{name}`")]
    NoSuchRef { remote: String, name: String },
    /// Another process moved the ref first. The caller fetches, computes again and tries again.
    #[error("another process changed `{name}` at `{remote}` first")]
    Raced { remote: String, name: String },
    /// Another process is moving the ref right now, or died while moving it.
    #[error("`{name}` is locked at `{remote}`: {lock}")]
    Locked { remote: String, name: String, lock: String },
    /// A hook or a rule of the server refuses the push.
    #[error("`{remote}` refuses to move `{name}`: {message}")]
    Refused { remote: String, name: String, message: String },
    /// The answer was incomplete; none of it is used.
    #[error("the exchange with `{remote}` was cut off: {message}")]
    Truncated { remote: String, message: String },
    /// The local repository's folder cannot be read or written, as with a full disk or missing rights.
    #[error("the working copy cannot be used: {message}")]
    WorkingCopy { message: String },
    /// The sandbox or a resource limit of `git` made it fail.
    #[error("`git` was stopped by its limits in the exchange with `{remote}`: {message}")]
    Limited { remote: String, message: String },
    #[error("`git` failed with `{remote}`: {message}")]
    Failed { remote: String, message: String },
}

impl TransportError {
    /// Makes the error for a `git` that could not be started.
    pub(super) fn not_started(error: std::io::Error) -> TransportError {
        if error.kind() == std::io::ErrorKind::Unsupported {
            let hint = "use `--git-sandbox auto`: it runs `git` with the parts of a sandbox that this system supports";
            let hint = Some(hint.to_owned());
            return TransportError::Setting { message: format!("`git` is not run: {error}"), hint };
        }
        TransportError::NoGit { message: error.to_string() }
    }

    /// Reports whether the same operation may succeed later without anyone's intervention.
    pub fn is_passing(&self) -> bool {
        use TransportError::{
            Cancelled, Failed, Limited, Locked, Raced, TimedOut, Truncated, Unreachable, WorkingCopy,
        };
        matches!(
            self,
            Unreachable { .. }
                | TimedOut { .. }
                | Cancelled { .. }
                | Truncated { .. }
                | Raced { .. }
                | Locked { .. }
                | Failed { .. }
                | Limited { .. }
                | WorkingCopy { .. }
        )
    }

    pub fn is_race(&self) -> bool {
        matches!(self, TransportError::Raced { .. } | TransportError::Locked { .. })
    }

    /// Reports whether the remote allows reading, but not this operation.
    pub fn is_refusal(&self) -> bool {
        matches!(self, TransportError::Denied { .. } | TransportError::Refused { .. })
    }

    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            TransportError::Setting { hint, .. } => return hint.clone(),
            TransportError::NoGit { .. } => "install Git 2.31 or newer; only remotes need it",
            TransportError::TimedOut { .. } => "if the server is only slow, raise `--git-timeout`",
            TransportError::Untrusted { .. } => {
                "for https give the authority's certificate with `--ca-file`; for ssh the host's key with `--known-hosts`"
            }
            TransportError::Denied { .. } => "check the token, password or key, and its permissions",
            TransportError::NoRepository { .. } => {
                "check the address and the credentials: many servers give this answer for both"
            }
            TransportError::Refused { .. } => {
                "allow berth's account to update `refs/heads/berth/*` and `refs/berth/*` in the server's \
                 rules and hooks"
            }
            TransportError::Raced { .. } => "try again",
            TransportError::Locked { .. } => {
                "try again; if no Git process uses that repository, remove the file"
            }
            TransportError::WorkingCopy { .. } => {
                "free disk space, correct the folder's permissions, or name another folder with `--repo`"
            }
            TransportError::Limited { .. } => {
                "a repository that needs more memory gets it by `--git-memory`, longer files by `--git-largest-file`; \
                 other needs by `--git-sandbox never`"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
