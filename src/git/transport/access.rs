//! A remote's address, and the credentials for it.

use std::path::PathBuf;
use std::time::Duration;

use super::credentials::{Secret, Token};
use super::remote::RemoteUrl;
use super::sandbox::Limits;

/// A remote, and everything needed to log in.
#[derive(Clone, Debug)]
pub struct Access {
    pub url: RemoteUrl,
    pub username: Option<String>,
    pub token: Token,
    /// The trusted certificate authorities, instead of the machine's.
    pub ca_file: Option<PathBuf>,
    pub proxy: Option<Secret>,
    pub ssh_key: Option<PathBuf>,
    pub known_hosts: Option<PathBuf>,
    /// The time limit of one exchange.
    pub timeout: Duration,
    /// The time after which a connection without traffic fails.
    pub stall: Duration,
    pub limits: Limits,
}
