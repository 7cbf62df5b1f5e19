//! The reasons why nothing was published, with their hints.

use berth_base::source::budget::MOST_OF_A_STATE;
use berth_base::text::counted;
use berth_engine::state::layout;
use berth_git::{CommitId, GitError};

/// A refusal or a failure. The rendered branch stays unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("`{name}` exists, but was not made by berth: it has no usable `{}`", layout::MARKER)]
    Unowned { name: String },
    #[error(
        "`{name}` has format {format}, which is newer than this berth writes ({})",
        layout::BRANCH_FORMAT
    )]
    NewerFormat { name: String, format: u64 },
    #[error("`{name}` is missing, although `{witness}` shows that it existed")]
    Gone { name: String, witness: String, last: Option<String> },
    #[error("`{name}` is at {tip}, which does not come after {last}, the current state")]
    Rewritten { name: String, tip: CommitId, last: CommitId },
    #[error(
        "the next state has no objects, but the current state has {} in {}",
        counted(*objects, "object"),
        counted(*clusters, "cluster")
    )]
    Empty { objects: usize, clusters: usize },
    #[error("this repository has no `{name}`, but the remote `{remote}` has one: `{tracking}`")]
    Second { name: String, tracking: String, remote: String },
    #[error("`{name}` already exists, and an import starts a new branch")]
    Begun { name: String },
    #[error("the rendered branch has the highest possible sequence number, which berth never wrote")]
    LastNumber,
    /// Another process published first. The caller fetches, computes again and tries again.
    #[error("another process changed `{name}` first")]
    Raced { name: String, hint: Option<String> },
    #[error("the state of commit {} has more than {MOST_OF_A_STATE} files and folders", .commit.short())]
    TooLarge { commit: CommitId },
    #[error("the last good form of `{path}` is not in the repository")]
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
    /// Reports whether a person must decide, unlike for a race or a failure of Git.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, PublishError::Raced { .. } | PublishError::Git(_) | PublishError::Report { .. })
    }

    /// Returns the hint, if the error has one.
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
                    "restore it: git update-ref {name} {commit}; only to start over, delete `{witness}` \
                     and all `refs/berth/clusters/`"
                ),
                None => format!(
                    "restore it from a clone or a reflog; only to start over, delete `{witness}` and all \
                     `refs/berth/clusters/`"
                ),
            }),
            PublishError::Rewritten { name, last, .. } => Some(format!(
                "look at the difference, then restore {last} (git update-ref {name} {last}), or accept \
                 the branch as it is for one run with --allow-rewritten; it was force-pushed, or an old \
                 copy was restored"
            )),
            PublishError::Empty { .. } => Some(
                "check the source branch and its files; to remove every object, allow it for one run with \
                 `--allow-empty` and approve each removal"
                    .to_owned(),
            ),
            PublishError::Second { name, tracking, .. } => Some(format!(
                "continue the remote's branch (git update-ref {name} {tracking}), or run at the remote \
                 with `--remote URL`; otherwise a second history starts here"
            )),
            PublishError::Begun { name } => Some(format!(
                "import into a repository without one; to start over, delete it and all of `refs/berth/`: \
                 git update-ref -d {name}"
            )),
            PublishError::LastNumber => {
                Some("find the last commit that berth made with `berth verify`, and restore it".to_owned())
            }
            PublishError::Raced { hint, .. } => hint.clone(),
            PublishError::KeptIsMissing { .. } => {
                Some("fetch the source commits that had the file".to_owned())
            }
            PublishError::Report { .. } => None,
            PublishError::TooLarge { .. } => Some("split the fleet into several".to_owned()),
            PublishError::Git(error) => error.hint(),
        }
    }
}
