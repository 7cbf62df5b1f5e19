//! Errors of a repository, and their hints.

use berth_base::source::budget::TOO_LARGE_HINT;

/// A failed Git operation.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("`{path}` does not exist")]
    NoSuchFolder { path: String },
    #[error("`{path}` is not a Git repository")]
    NotARepository { path: String },
    #[error("`{path}` is a folder inside a Git repository, not its root")]
    BelowTheRoot { path: String, root: String },
    #[error("the repository `{path}` belongs to another user, so Git does not trust it")]
    ForeignOwner { path: String },
    #[error("the repository `{path}` uses `{extension}`, which berth cannot read")]
    Unsupported { path: String, extension: String },
    #[error("`{wanted}` names no commit")]
    NoSuchRevision { wanted: String, hint: String },
    #[error("`{name}` is not a valid ref name")]
    InvalidRef { name: String },
    /// Another process moved the ref first. The caller reads again, computes again and tries again.
    #[error("another process changed `{name}` first")]
    Raced { name: String },
    /// Another process is moving the ref right now, or died while moving it.
    #[error("`{name}` is locked by another process")]
    Locked { name: String },
    /// Signing failed, and nothing is published unsigned.
    #[error("the commit is not signed by the key {key}: {why}")]
    Unsigned { key: String, why: String },
    /// The tree unfolds to more entries or bytes than any fleet has.
    #[error("`{path}`: the tree is too large")]
    TooLarge { path: String },
    #[error("{doing} failed: {message}")]
    Failed { doing: String, message: String },
}

impl GitError {
    /// Makes an unforeseen error from the failed operation and libgit2's message.
    pub(super) fn failed(doing: impl Into<String>) -> impl FnOnce(git2::Error) -> GitError {
        let doing = doing.into();
        move |error| GitError::Failed { doing, message: error.message().to_owned() }
    }

    /// Reports whether trying again from the start may succeed.
    pub fn is_race(&self) -> bool {
        matches!(self, GitError::Raced { .. } | GitError::Locked { .. })
    }

    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        match self {
            GitError::NoSuchFolder { .. } => Some("name the folder of a Git repository".to_owned()),
            GitError::NotARepository { path } => {
                Some(format!("`git init {path}` makes one; a folder without Git can only be read"))
            }
            GitError::BelowTheRoot { root, .. } => Some(format!("name its root: `--repo {root}`")),
            GitError::ForeignOwner { path } => Some(format!(
                "run as its owner, change the owner, or trust it: git config --global --add safe.directory {path}"
            )),
            GitError::Unsupported { extension, .. } if is_reftable(extension) => {
                Some("convert it: git refs migrate --ref-format=files".to_owned())
            }
            GitError::Unsupported { .. } => Some(
                "use a repository with SHA-1 objects, the `files` ref format and no extensions".to_owned(),
            ),
            GitError::NoSuchRevision { hint, .. } => Some(hint.clone()),
            GitError::InvalidRef { .. } => Some("a full name such as `refs/heads/main`".to_owned()),
            GitError::Raced { .. } => Some("try again".to_owned()),
            GitError::Locked { name } => {
                Some(format!("try again; if no process uses the repository, remove `{name}.lock` in it"))
            }
            GitError::Unsigned { .. } => {
                Some("see the agent of `--signing-agent`, or the program of `--signer-command`".to_owned())
            }
            GitError::TooLarge { .. } => Some(TOO_LARGE_HINT.to_owned()),
            GitError::Failed { .. } => None,
        }
    }
}

pub(super) fn is_reftable(extension: &str) -> bool {
    extension.eq_ignore_ascii_case("extensions.refstorage")
}
