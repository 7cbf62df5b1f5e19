//! The reasons why nothing was published, with their hints.

use berth_engine::state::layout;
use berth_git::{CommitId, GitError};

/// A refusal or a failure. The rendered branch stays unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("`{name}` exists, but was not made by berth: it has no usable `{}`", layout::MARKER)]
    Unowned { name: String },
    #[error("`{name}` has format {format}, which is newer than this berth writes ({})", layout::FORMAT)]
    NewerFormat { name: String, format: u64 },
    #[error("`{name}` is gone, although `{witness}` shows that there was one")]
    Gone { name: String, witness: String, last: Option<String> },
    #[error("`{name}` is at {tip}, which does not come after {last}, the state that was in force last")]
    Rewritten { name: String, tip: CommitId, last: CommitId },
    #[error("the source gives no objects at all, where {objects} in {clusters} clusters are published")]
    Empty { objects: usize, clusters: usize },
    #[error("this repository has no `{name}`, but the remote `{remote}` has one: `{tracking}`")]
    Second { name: String, tracking: String, remote: String },
    #[error("`{name}` is there already, and an import begins one")]
    Begun { name: String },
    #[error(
        "the rendered branch has the last sequence number that there is, which no daemon comes to by counting"
    )]
    LastNumber,
    /// Somebody else published first: fetch, recompute, try again.
    #[error("`{name}` was changed by somebody else in the meantime")]
    Raced { name: String, hint: Option<String> },
    #[error("the kept form of `{path}` is not in the repository")]
    KeptIsMissing { path: String },
    #[error("writing the report failed: {message}")]
    Report { message: String },
    #[error(transparent)]
    Git(GitError),
}

impl From<GitError> for PublishError {
    fn from(error: GitError) -> PublishError {
        let hint = error.hint();
        match error {
            GitError::Raced { name } => PublishError::Raced { name, hint },
            error => PublishError::Git(error),
        }
    }
}

impl PublishError {
    /// Reports whether a person must decide: neither a race nor a failure of Git.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, PublishError::Raced { .. } | PublishError::Git(_) | PublishError::Report { .. })
    }

    /// Returns the hint for a person.
    pub fn hint(&self) -> Option<String> {
        match self {
            PublishError::Unowned { name } => Some(format!(
                "berth needs this name for the rendered state; give the branch another: git branch -m {} NAME",
                name.strip_prefix("refs/heads/").unwrap_or(name)
            )),
            PublishError::NewerFormat { .. } => {
                Some("use the berth that wrote it, or a newer one; going back is not supported".to_owned())
            }
            PublishError::Gone { name, witness, last } => Some(match last {
                Some(commit) => format!(
                    "bring it back: git update-ref {name} {commit}; only to start over, delete `{witness}` and \
                     all `refs/berth/clusters/`"
                ),
                None => format!(
                    "bring it back from a clone or a reflog; only to start over, delete `{witness}` and all \
                     `refs/berth/clusters/`"
                ),
            }),
            PublishError::Rewritten { name, last, .. } => Some(format!(
                "somebody force-pushed it, or put an old copy back; look at what differs, then bring back {last} \
                 (git update-ref {name} {last}), or go on from what is there for one run with --allow-rewritten"
            )),
            PublishError::Empty { .. } => Some(
                "check the source branch and its files; if every object shall go, allow it for one run with \
                 `--allow-empty` and approve each removal"
                    .to_owned(),
            ),
            PublishError::Second { name, tracking, .. } => Some(format!(
                "another history would begin here; go on from that one (git update-ref {name} {tracking}), or run \
                 at the remote with `--remote URL`"
            )),
            PublishError::Begun { name } => Some(format!(
                "import into a repository without one; to begin again, delete it and all of `refs/berth/`: git \
                 update-ref -d {name}"
            )),
            PublishError::LastNumber => Some(
                "somebody wrote that number; find the last commit of berth's own with `berth verify`, and bring it \
                 back"
                    .to_owned(),
            ),
            PublishError::Raced { hint, .. } => hint.clone(),
            PublishError::KeptIsMissing { .. } => {
                Some("fetch the source commits that had the file".to_owned())
            }
            PublishError::Report { .. } => None,
            PublishError::Git(error) => error.hint(),
        }
    }
}
