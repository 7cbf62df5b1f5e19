//! Work trees: creating one and committing all of it, for `init` and `demo`; uncommitted changes.

use std::path::Path;

use super::error::GitError;
use super::id::{CommitId, TreeId};
use super::repo::Repo;
use super::write::{Identity, Writer};
use berth_base::source::{MARKER, wanted};

impl Repo {
    /// Creates a repository in a folder, on the branch `main`.
    pub fn init(path: &Path) -> Result<Repo, GitError> {
        let mut options = git2::RepositoryInitOptions::new();
        options.initial_head("main").external_template(false);
        let doing = format!("starting a repository in `{}`", path.display());
        git2::Repository::init_opts(path, &options).map_err(GitError::failed(doing))?;
        Repo::open(path)
    }

    /// Sets the author of the repository's commits, in its own settings.
    pub fn set_author(&self, name: &str, email: &str) -> Result<(), GitError> {
        let doing = "setting the author of commits";
        let config = self.inner.config().map_err(GitError::failed(doing))?;
        let mut own = config.open_level(git2::ConfigLevel::Local).map_err(GitError::failed(doing))?;
        own.set_str("user.name", name).map_err(GitError::failed(doing))?;
        own.set_str("user.email", email).map_err(GitError::failed(doing))
    }

    /// Commits every file of the work tree to the branch that HEAD names.
    pub fn commit_all(&self, message: &str, identity: &Identity, seconds: i64) -> Result<CommitId, GitError> {
        let doing = "committing the work tree";
        let mut index = self.inner.index().map_err(GitError::failed(doing))?;
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).map_err(GitError::failed(doing))?;
        index.update_all(["*"], None).map_err(GitError::failed(doing))?;
        index.write().map_err(GitError::failed(doing))?;
        let tree = TreeId::of(index.write_tree().map_err(GitError::failed(doing))?);
        let parent = self.resolve("HEAD")?;
        let parents: Vec<CommitId> = parent.into_iter().collect();
        let commit = Writer::new(self)?.commit(tree, &parents, message, identity, seconds)?;
        let branch = self.head_branch()?.unwrap_or_else(|| "HEAD".to_owned());
        self.move_ref(&branch, parent, commit)?;
        Ok(commit)
    }

    /// Lists the files that berth reads and that differ from HEAD in the work tree, in order.
    pub fn uncommitted(&self) -> Result<Vec<String>, GitError> {
        if self.inner.is_bare() {
            return Ok(Vec::new());
        }
        let doing = "comparing the work tree with HEAD";
        let mut options = git2::StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
        let found = self.inner.statuses(Some(&mut options)).map_err(GitError::failed(doing))?;
        let path = |entry: git2::StatusEntry<'_>| String::from_utf8_lossy(entry.path_bytes()).into_owned();
        let root = self.inner.workdir().unwrap_or(self.inner.path());
        let is_output = |path: &str| {
            let folders = Path::new(path).ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
            folders.into_iter().any(|folder| root.join(folder).join(MARKER).is_file())
        };
        let is_read = |path: &String| wanted(path) && !is_output(path);
        let mut paths: Vec<String> = found.iter().map(path).filter(is_read).collect();
        paths.sort();
        Ok(paths)
    }
}
