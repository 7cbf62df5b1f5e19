//! A repository to throw away: it has every object of another one, and what is written to it goes with it.
//!
//! Lets the same code that publishes compute a commit again without leaving a trace in the repository.

use std::path::{Path, PathBuf};

use super::error::GitError;
use super::repo::Repo;

/// Removes its folder when dropped.
#[derive(Debug)]
pub struct Scratch {
    repo: Repo,
    folder: PathBuf,
}

/// Names are tried in turn; so many left-overs of killed processes with this one's id there never are.
const MOST_TRIES: u32 = 1_000;

impl Repo {
    /// An empty bare repository beside this one that borrows its objects.
    pub fn scratch(&self) -> Result<Scratch, GitError> {
        let doing = "making a scratch repository";
        let io = |error: std::io::Error| GitError::Failed { doing: doing.into(), message: error.to_string() };
        let folder = own_folder().map_err(io)?;
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main").external_template(false);
        let made = git2::Repository::init_opts(&folder, &options).map_err(GitError::failed(doing));
        let lent = std::path::absolute(self.inner.commondir()).map(|common| common.join("objects"));
        let made = made.and_then(|_| {
            let line = format!("{}\n", lent.map_err(io)?.display());
            std::fs::write(folder.join("objects/info/alternates"), line).map_err(io)
        });
        let repo = made.and_then(|()| Repo::open(&folder));
        match repo {
            Ok(repo) => Ok(Scratch { repo, folder }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&folder);
                Err(error)
            }
        }
    }
}

impl Scratch {
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A new folder that nobody else may look into: rendered Secrets may pass through it.
fn own_folder() -> std::io::Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let base = std::env::temp_dir();
    let mut tried = 0;
    loop {
        let folder = base.join(format!("berth-scratch-{}-{tried}", std::process::id()));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tried < MOST_TRIES => {
                tried += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
