//! Revisions, as people name commits.

use berth_base::diag::did_you_mean;
use berth_base::text::some_quoted;

use super::error::GitError;
use super::id::CommitId;
use super::repo::{Repo, names_nothing};

impl Repo {
    /// Returns the commit that a revision names (`main`, `HEAD~2`, a tag, an id), or `None`.
    pub fn resolve(&self, revision: &str) -> Result<Option<CommitId>, GitError> {
        self.flush()?;
        let found = self.inner.revparse_single(revision).and_then(|object| object.peel_to_commit());
        match found {
            Ok(commit) => Ok(Some(CommitId::of(commit.id()))),
            Err(error) if names_nothing(error.code()) => Ok(None),
            Err(error) => Err(GitError::failed(format!("looking up `{revision}`"))(error)),
        }
    }

    /// Like [`Repo::resolve`], but a missing revision is an error that lists the branches.
    pub fn require(&self, revision: &str) -> Result<CommitId, GitError> {
        if let Some(commit) = self.resolve(revision)? {
            return Ok(commit);
        }
        let (own, fetched) = (self.short_refs("refs/heads/")?, self.short_refs("refs/remotes/")?);
        let of_remote = fetched.iter().find(|name| name.ends_with(&format!("/{revision}")));
        let hint = match of_remote {
            Some(name) => format!("did you mean `{name}`?"),
            None if own.is_empty() => "the repository has no commits yet".to_owned(),
            None => did_you_mean(revision, own.iter().chain(&fetched).map(String::as_str))
                .unwrap_or_else(|| format!("its branches are {}", some_quoted(&own, 5))),
        };
        Err(GitError::NoSuchRevision { wanted: revision.to_owned(), hint })
    }

    /// Lists the names of the refs below `folder`, without that prefix.
    fn short_refs(&self, folder: &str) -> Result<Vec<String>, GitError> {
        let refs = self.list_refs(folder)?.into_iter();
        Ok(refs.filter_map(|(name, _)| name.strip_prefix(folder).map(str::to_owned)).collect())
    }
}
