//! The remotes of a clone, and its tracking refs. No network here.

use git2::{Direction, ErrorCode};

use super::error::GitError;
use super::id::CommitId;
use super::repo::Repo;

const BRANCHES: &str = "refs/heads/";
const HABITUAL: &str = "origin";

impl Repo {
    /// Returns the remote that the branch tracks; else the only remote, else `origin`.
    pub fn remote_for(&self, branch: Option<&str>) -> Result<Option<String>, GitError> {
        let names = self.remotes()?;
        let followed = match branch.and_then(|branch| branch.strip_prefix(BRANCHES)) {
            Some(branch) => self.setting(&format!("branch.{branch}.remote"))?,
            None => None,
        };
        // A branch that tracks a branch of the same repository has the remote `.`.
        if let Some(followed) = followed.filter(|followed| names.contains(followed)) {
            return Ok(Some(followed));
        }
        Ok(match names.as_slice() {
            [only] => Some(only.clone()),
            several => several.iter().find(|name| *name == HABITUAL).cloned(),
        })
    }

    /// Lists the names of all remotes.
    pub fn remotes(&self) -> Result<Vec<String>, GitError> {
        let doing = "listing the remotes";
        let names = self.inner.remotes().map_err(GitError::failed(doing))?;
        Ok(names.iter().flatten().flatten().map(str::to_owned).collect())
    }

    /// Returns the address of a remote, if its settings have one. It may contain credentials.
    pub fn remote_url(&self, remote: &str) -> Result<Option<String>, GitError> {
        self.setting(&format!("remote.{remote}.url"))
    }

    /// Returns the tracking ref in this clone for a ref of the remote.
    pub fn tracking_ref(&self, remote: &str, name: &str) -> Result<String, GitError> {
        let doing = || format!("reading the settings of the remote `{remote}`");
        let found = self.inner.find_remote(remote).map_err(GitError::failed(doing()))?;
        let fetching = || found.refspecs().filter(|spec| spec.direction() == Direction::Fetch);
        for spec in fetching().filter(|spec| spec.src_matches(name)) {
            let kept = spec.transform(name).map_err(GitError::failed(doing()))?;
            if let Ok(kept) = std::str::from_utf8(&kept) {
                return Ok(kept.to_owned());
            }
        }
        // A bare clone keeps branches under their own names. A clone of a single branch has no tracking refs for
        // others.
        if self.inner.is_bare() && fetching().next().is_none() {
            return Ok(name.to_owned());
        }
        let short = name.strip_prefix(BRANCHES).unwrap_or(name);
        Ok(format!("refs/remotes/{remote}/{short}"))
    }

    /// Returns the full name of the branch that the remote's HEAD names, if this clone knows it.
    pub fn remote_head(&self, remote: &str) -> Result<Option<String>, GitError> {
        let prefix = format!("refs/remotes/{remote}/");
        let direct = self.direct_ref(&format!("{prefix}HEAD"))?;
        Ok(direct.and_then(|name| name.strip_prefix(&prefix).map(|short| format!("{BRANCHES}{short}"))))
    }

    /// Reports whether a shallow fetch cut off history that leads to `to` and not to `since`.
    pub fn is_cut_between(&self, since: Option<CommitId>, to: CommitId) -> Result<bool, GitError> {
        if !self.is_shallow() {
            return Ok(false);
        }
        if !self.has_commit(to) || since.is_some_and(|since| !self.has_commit(since)) {
            return Ok(true);
        }
        let doing = || format!("looking for the end of the history of {to}");
        let mut walk = self.inner.revwalk().map_err(GitError::failed(doing()))?;
        walk.push(to.oid()).map_err(GitError::failed(doing()))?;
        if let Some(since) = since {
            walk.hide(since.oid()).map_err(GitError::failed(doing()))?;
        }
        for id in walk {
            let commit = CommitId::of(id.map_err(GitError::failed(doing()))?);
            if self.written_parents(commit)?.iter().any(|parent| !self.has_commit(*parent)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the parents written in the commit. libgit2 shows none for a commit at the end of a shallow clone.
    pub(crate) fn written_parents(&self, id: CommitId) -> Result<Vec<CommitId>, GitError> {
        let commit = self.find_commit(id)?;
        let header = String::from_utf8_lossy(commit.raw_header_bytes()).into_owned();
        let parents =
            header.lines().map_while(|line| line.strip_prefix("parent ").or(line.strip_prefix("tree ")));
        Ok(parents.skip(1).filter_map(|id| id.parse().ok()).collect())
    }

    /// Returns a string from the repository's settings.
    fn setting(&self, name: &str) -> Result<Option<String>, GitError> {
        let doing = || format!("reading the setting `{name}`");
        let settings = self.inner.config().map_err(GitError::failed(doing()))?;
        match settings.get_string(name) {
            Ok(text) => Ok(Some(text)),
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::InvalidSpec) => Ok(None),
            Err(error) => Err(GitError::failed(doing())(error)),
        }
    }
}
