//! A remote's address, and the credentials for it.

use std::path::PathBuf;
use std::time::Duration;

use super::credentials::{Secret, Token};
use super::remote::RemoteUrl;
use super::sandbox::Limits;

/// A remote and all that is needed to get in.
#[derive(Clone, Debug)]
pub struct Access {
    pub url: RemoteUrl,
    pub username: Option<String>,
    pub token: Token,
    /// The certificates of authorities that are trusted, instead of the machine's.
    pub ca_file: Option<PathBuf>,
    pub proxy: Option<Secret>,
    pub ssh_key: Option<PathBuf>,
    pub known_hosts: Option<PathBuf>,
    /// For one exchange as a whole.
    pub timeout: Duration,
    /// For a connection on which nothing moves.
    pub stall: Duration,
    pub limits: Limits,
}
