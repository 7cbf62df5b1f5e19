//! The flags of a repository for the source alone.

use std::path::{Path, PathBuf};

use crate::flags::remote::RemoteArgs;
use crate::process::exit::CommandError;
use berth_git::transport::{Cancel, GitTransport, Transport, WorkingCopy};

/// A remote for the source, with its own credentials.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceRemoteArgs {
    /// Read the source branch and previewed branches from this repository instead of the remote's, with separate
    /// credentials, which need not push: berth writes nothing there
    #[arg(
        long,
        value_name = "URL",
        env = "BERTH_SOURCE_REMOTE",
        hide_env_values = true,
        help_heading = "Remote",
        requires = "remote"
    )]
    source_remote: Option<String>,
    /// A file with the token or password for the source remote
    #[arg(long, value_name = "FILE", env = "BERTH_SOURCE_TOKEN_FILE", help_heading = "Remote")]
    source_token_file: Option<PathBuf>,
    /// The private key for the source remote
    #[arg(long, value_name = "FILE", env = "BERTH_SOURCE_SSH_KEY", help_heading = "Remote")]
    source_ssh_key: Option<PathBuf>,
}

impl SourceRemoteArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.source_remote.is_some()
    }

    /// The files with credentials.
    pub(crate) fn secret_files(&self) -> impl Iterator<Item = &Path> {
        [&self.source_token_file, &self.source_ssh_key].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Opens it in a working copy of its own, if it is named.
    pub(crate) fn open_apart(
        &self,
        remote: &RemoteArgs,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Option<(GitTransport, WorkingCopy)>, CommandError> {
        let Some(url) = &self.source_remote else { return Ok(None) };
        let [token, key] = [&self.source_token_file, &self.source_ssh_key].map(Option::as_deref);
        remote.open_other(url, token, key, folder, cancel).map(Some)
    }

    /// Opens it in the working copy of the remote itself, where one is named.
    pub(crate) fn open(
        &self,
        remote: &RemoteArgs,
        copy: &WorkingCopy,
        cancel: &Cancel,
    ) -> Result<Option<Box<dyn Transport>>, CommandError> {
        let Some(url) = &self.source_remote else { return Ok(None) };
        let [token, key] = [&self.source_token_file, &self.source_ssh_key].map(Option::as_deref);
        let access = remote.access_to_other(url, token, key)?;
        Ok(Some(Box::new(RemoteArgs::transport_in(copy, access, cancel)?)))
    }
}
