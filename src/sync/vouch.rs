//! Which commit of a cluster's ref is applied: the newest, if it may be followed, and otherwise the last that
//! was.
//!
//! A commit may be followed that this berth can read and, where a file names allowed signers, one of them
//! signed. The file is read anew each time, so that a key that is taken out of it counts no longer.

use std::path::{Path, PathBuf};

use crate::git::{CommitId, GitError, Repo};
use crate::publish::cluster_refs::read_cluster_ref;
use crate::signature::AllowedSigners;
use crate::state::layout;

/// Says which commits may be followed, and remembers the last one that was.
#[derive(Clone, Debug, Default)]
pub struct Vouching {
    allowed: Option<PathBuf>,
    good: Option<CommitId>,
}

impl Vouching {
    /// With the file of allowed signers, if signatures matter.
    pub fn new(allowed: Option<PathBuf>) -> Vouching {
        Vouching { allowed, good: None }
    }

    /// The commit to apply, and why it is not the newest where it is not. An error where there is none.
    pub fn choose(&mut self, repo: &Repo, newest: CommitId) -> Result<(CommitId, Option<String>), String> {
        let why = match self.check(repo, newest) {
            Ok(()) => {
                self.good = Some(newest);
                return Ok((newest, None));
            }
            Err(why) => why,
        };
        match self.good.filter(|good| self.check(repo, *good).is_ok()) {
            Some(good) => Ok((good, Some(why))),
            None => Err(why),
        }
    }

    /// Whether a commit may be followed; otherwise why not.
    pub fn check(&self, repo: &Repo, commit: CommitId) -> Result<(), String> {
        let failed = |error: GitError| error.to_string();
        let short = commit.short();
        if let Ok(Some(said)) = read_cluster_ref(repo, commit)
            && said.format > layout::FORMAT
        {
            return Err(format!(
                "commit {short} has format {}, and this berth reads {} at most: install a newer one",
                said.format,
                layout::FORMAT
            ));
        }
        let Some(file) = &self.allowed else { return Ok(()) };
        let vouched = repo.vouch(commit, &read(file)?).map_err(failed)?;
        vouched.map_err(|why| format!("commit {short} does not count: {why}"))
    }
}

/// The file of allowed signers.
pub fn read(file: &Path) -> Result<AllowedSigners, String> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("the allowed signers `{name}` can not be read: {error}"))?;
    AllowedSigners::read(&name, &text)
}
