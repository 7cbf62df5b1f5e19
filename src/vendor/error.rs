//! Why something cannot be vendored.

use std::io;
use std::path::Path;

use berth_git::GitError;
use berth_git::transport::TransportError;
use berth_registry::RegistryError;

#[derive(Debug, thiserror::Error)]
pub enum VendorError {
    /// An address, a version or a folder that people wrote.
    #[error("{message}")]
    Wrong { message: String, hint: Option<String> },
    /// A server does not answer, or not with a chart.
    #[error("{message}")]
    Server { message: String, hint: Option<String> },
    #[error("{doing}: {error}")]
    Io { doing: String, error: io::Error },
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Transport(#[from] TransportError),
}

impl VendorError {
    pub(crate) fn wrong(message: impl Into<String>) -> VendorError {
        VendorError::Wrong { message: message.into(), hint: None }
    }

    pub(crate) fn server(message: impl Into<String>) -> VendorError {
        VendorError::Server { message: message.into(), hint: None }
    }

    pub(crate) fn io(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> VendorError {
        let doing = format!("{doing} {}", path.display());
        move |error| VendorError::Io { doing, error }
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn or(self, advice: impl Into<String>) -> VendorError {
        let advice = Some(advice.into());
        match self {
            VendorError::Wrong { message, .. } => VendorError::Wrong { message, hint: advice },
            VendorError::Server { message, .. } => VendorError::Server { message, hint: advice },
            other => other,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            VendorError::Wrong { hint, .. } | VendorError::Server { hint, .. } => hint.clone(),
            VendorError::Io { .. } => None,
            VendorError::Registry(error) => error.hint(),
            VendorError::Git(error) => error.hint(),
            VendorError::Transport(error) => error.hint(),
        }
    }
}
