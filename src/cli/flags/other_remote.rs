//! The flags of further repositories, each with its own credentials: one for the source, one for members' statuses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::remote::RemoteArgs;
use crate::process::exit::CommandError;
use berth_git::transport::{Access, Cancel, GitTransport, Transport, WorkingCopy};

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
    pub fn named(&self) -> OtherRemote<'_> {
        OtherRemote {
            url: self.source_remote.as_deref(),
            token_file: self.source_token_file.as_deref(),
            ssh_key: self.source_ssh_key.as_deref(),
        }
    }
}

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
    pub fn named(&self) -> OtherRemote<'_> {
        OtherRemote {
            url: self.status_remote.as_deref(),
            token_file: self.status_token_file.as_deref(),
            ssh_key: self.status_ssh_key.as_deref(),
        }
    }
}

/// A further repository, if its flag is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherRemote<'a> {
    url: Option<&'a str>,
    token_file: Option<&'a Path>,
    ssh_key: Option<&'a Path>,
}

impl<'a> OtherRemote<'a> {
    pub fn is_given(self) -> bool {
        self.url.is_some()
    }

    /// Returns the files with credentials.
    pub fn secret_files(self) -> impl Iterator<Item = &'a Path> {
        [self.token_file, self.ssh_key].into_iter().flatten()
    }

    /// Opens the repository in its own working copy, if it is given.
    pub fn open_apart(
        self,
        remote: &RemoteArgs,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Option<(GitTransport, WorkingCopy)>, CommandError> {
        let Some(access) = self.access(remote)? else { return Ok(None) };
        let copy = WorkingCopy::open(folder, &access.url)?;
        Ok(Some((RemoteArgs::transport_in(&copy, access, cancel)?, copy)))
    }

    /// Opens the repository in the working copy of the remote, if it is given.
    pub fn open(
        self,
        remote: &RemoteArgs,
        copy: &WorkingCopy,
        cancel: &Cancel,
    ) -> Result<Option<Box<dyn Transport>>, CommandError> {
        let Some(access) = self.access(remote)? else { return Ok(None) };
        Ok(Some(Box::new(RemoteArgs::transport_in(copy, access, cancel)?)))
    }

    /// Opens the repository, or the remote if none is given, with a small working copy of its own inside of `copy`.
    pub fn open_beside(
        self,
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

    fn access(self, remote: &RemoteArgs) -> Result<Option<Access>, CommandError> {
        let Some(url) = self.url else { return Ok(None) };
        remote.access_to_other(url, self.token_file, self.ssh_key).map(Some)
    }
}
