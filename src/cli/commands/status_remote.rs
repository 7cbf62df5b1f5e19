//! The flags of a repository for members' reports alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::flags::remote::RemoteArgs;
use crate::process::exit::CommandError;
use berth_git::transport::{Access, Cancel, GitTransport, Transport, WorkingCopy};

/// A remote for reports, with its own credentials.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusRemoteArgs {
    /// Keep members' reports in this repository instead of the remote's, with separate credentials: members write
    /// them there, and the daemon reads them
    #[arg(
        long,
        value_name = "URL",
        env = "BERTH_STATUS_REMOTE",
        hide_env_values = true,
        help_heading = "Remote",
        requires = "remote"
    )]
    status_remote: Option<String>,
    /// A file with the token or password for the status remote
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_TOKEN_FILE", help_heading = "Remote")]
    status_token_file: Option<PathBuf>,
    /// The private key for the status remote
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_SSH_KEY", help_heading = "Remote")]
    status_ssh_key: Option<PathBuf>,
}

impl StatusRemoteArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.status_remote.is_some()
    }

    /// The files with credentials.
    pub(crate) fn secret_files(&self) -> impl Iterator<Item = &Path> {
        [&self.status_token_file, &self.status_ssh_key].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Opens it in a working copy of its own, if it is named.
    pub(crate) fn open_apart(
        &self,
        remote: &RemoteArgs,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Option<(GitTransport, WorkingCopy)>, CommandError> {
        let Some(url) = &self.status_remote else { return Ok(None) };
        let (token, key) = (self.status_token_file.as_deref(), self.status_ssh_key.as_deref());
        remote.open_other(url, token, key, folder, cancel).map(Some)
    }

    /// Opens it in the working copy of the remote itself, where one is named.
    pub(crate) fn open(
        &self,
        remote: &RemoteArgs,
        copy: &WorkingCopy,
        cancel: &Cancel,
    ) -> Result<Option<Box<dyn Transport>>, CommandError> {
        let Some(access) = self.access(remote)? else { return Ok(None) };
        Ok(Some(Box::new(RemoteArgs::transport_in(copy, access, cancel)?)))
    }

    /// Opens it, or the remote itself, with a small working copy of its own inside of `copy`.
    pub(crate) fn open_beside(
        &self,
        remote: &RemoteArgs,
        copy: &Path,
        usage: &str,
        patience: Duration,
    ) -> Result<(GitTransport, WorkingCopy), CommandError> {
        match self.access(remote)? {
            Some(access) => RemoteArgs::beside(copy, usage, access, patience),
            None => remote.open_beside(copy, usage, patience),
        }
    }

    fn access(&self, remote: &RemoteArgs) -> Result<Option<Access>, CommandError> {
        let Some(url) = &self.status_remote else { return Ok(None) };
        let (token, key) = (self.status_token_file.as_deref(), self.status_ssh_key.as_deref());
        remote.access_to_other(url, token, key).map(Some)
    }
}
