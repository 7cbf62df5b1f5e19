//! Failures of a registry, distinguished by what the caller can do about them.

use std::time::Duration;

use berth_git::GitError;

/// A failed request to a registry. Quoted texts of the registry are one harmless line, without credentials.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A setting is wrong: an address, or a file named in the settings.
    #[error("{message}")]
    Setting { message: String, hint: Option<String> },
    #[error("the registry `{registry}` cannot be reached: {reason}")]
    Unreachable { registry: String, reason: String },
    #[error("the registry `{registry}` is busy: {reason}")]
    Busy { registry: String, reason: String, retry_after: Option<Duration> },
    #[error("the registry `{registry}` denies access to `{what}`: {reason}")]
    Denied { registry: String, what: String, reason: String },
    #[error("the registry `{registry}` has no `{what}`")]
    NotFound { registry: String, what: String },
    #[error("the registry `{registry}` refuses `{what}`: {reason}")]
    Refused { registry: String, what: String, status: u16, reason: String },
    /// The answer violates the protocol, such as bytes with another digest.
    #[error("the registry `{registry}` sent an invalid answer for `{what}`: {reason}")]
    Wrong { registry: String, what: String, reason: String },
    /// The registry has a newer publication, and tags never move back.
    #[error("`{what}` already has sequence {there}, newer than this daemon's {here}")]
    Ahead { what: String, there: u64, here: u64 },
    #[error("`{what}` already has another folder under sequence {sequence}")]
    Different { what: String, sequence: u64 },
    #[error("the folder of `{cluster}` cannot be an artifact: {reason}")]
    Unfit { cluster: String, reason: String },
    #[error("`{what}` cannot be signed: {reason}")]
    Unsigned { what: String, reason: String },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl RegistryError {
    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            RegistryError::Setting { hint, .. } => return hint.clone(),
            RegistryError::Git(error) => return error.hint(),
            RegistryError::Denied { .. } => {
                "log in with `docker login`, or name the file with the credentials with `--registry-auth`; check that the \
                 account may read, and for `berth run` write"
            }
            RegistryError::NotFound { .. } => {
                "check the address and the cluster's name, and whether `berth run --publish` has published it"
            }
            RegistryError::Ahead { .. } | RegistryError::Different { .. } => {
                "stop the other daemon that publishes there; if the branch was set back on purpose, delete the \
                 repository's tags"
            }
            RegistryError::Unreachable { .. }
            | RegistryError::Busy { .. }
            | RegistryError::Refused { .. }
            | RegistryError::Wrong { .. }
            | RegistryError::Unsigned { .. }
            | RegistryError::Unfit { .. } => return None,
        };
        Some(hint.to_owned())
    }

    /// Reports whether the same request may succeed later without anyone's intervention.
    pub fn is_passing(&self) -> bool {
        matches!(self, RegistryError::Unreachable { .. } | RegistryError::Busy { .. })
    }

    /// Reports whether the requested thing is missing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, RegistryError::NotFound { .. })
    }
}
