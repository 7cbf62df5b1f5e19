//! The reasons why a sync did nothing.

use super::backends::{BackendError, NotAdmitted};
use super::cluster_folder::FolderError;

/// The reason why a folder must not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("the target belongs to cluster `{cluster}` of fleet `{fleet}`, not to this one")]
    Foreign { fleet: String, cluster: String },
    #[error("the folder has sequence {offered}, but the later {applied} was already applied")]
    Rewound { offered: u64, applied: u64 },
    #[error("the folder is empty, but at the same sequence {0} it held objects")]
    Emptied(u64),
    #[error("`{wanted}` applies the folder of `{cluster}`, not `{here}`")]
    OtherApplier { cluster: String, wanted: String, here: &'static str },
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl ApplyError {
    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ApplyError::Foreign { .. } => Some(
                "check `--cluster`, `--fleet` and `--target`: a target belongs to one cluster of one fleet",
            ),
            ApplyError::Rewound { .. } => Some("use `--allow-rewind` to go back on purpose"),
            ApplyError::Emptied(_) => Some(
                "publish the rendered branch again, which gives a higher \
                sequence",
            ),
            ApplyError::OtherApplier { .. } => Some(
                "change `--applier`, or the annotation `berth.dev/applier` of the cluster in the fleet's source",
            ),
            ApplyError::Backend(_) => None,
        }
    }
}

/// The reason why a sync did nothing.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// Another syncer has the lease, or the lease failed.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// A folder exists, and must not be applied.
    #[error("no folder may be applied: {0}")]
    Refused(String),
    #[error("there is no folder yet: {0}")]
    Refresh(String),
    #[error("the local overrides cannot be read: {0}")]
    Overrides(String),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}
