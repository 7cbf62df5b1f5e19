//! The flags of a container registry.

use std::path::{Path, PathBuf};

use super::remote::{RemoteArgs, default_folder};
use crate::process::exit::{CommandError, Exit};
use berth_git::shared_refs::Refs;
use berth_git::transport::{Cancel, Transport, WorkingCopy};
use berth_registry::{Access, Credentials, Registry, RegistryError, RegistryTransport, RegistryUrl};

/// Access to a cluster's folder, with a working copy.
type Opened = (Box<dyn Transport>, WorkingCopy);

/// The access to a registry
#[derive(Debug, clap::Args)]
pub(crate) struct RegistryArgs {
    /// File with the registry's credentials, in the format of docker's `config.json`, as a pull secret has; default: the
    /// files of docker and podman
    #[arg(long, value_name = "FILE", env = "BERTH_REGISTRY_AUTH", help_heading = "Registry")]
    registry_auth: Option<PathBuf>,
    /// Trust registries whose certificates these authorities signed, and no others
    #[arg(long, value_name = "FILE", env = "BERTH_REGISTRY_CA_FILE", help_heading = "Registry")]
    registry_ca_file: Option<PathBuf>,
    /// Speak http with the registry, which others on the network can read and change. With this machine, berth speaks it
    /// anyway
    #[arg(long, env = "BERTH_REGISTRY_HTTP", help_heading = "Registry")]
    registry_http: bool,
}

impl RegistryArgs {
    /// Returns the registry at an address. Connects to nothing yet.
    pub(crate) fn registry(&self, url: &str) -> Result<Registry, CommandError> {
        Ok(Registry::new(&RegistryUrl::parse(url)?, &self.access()?))
    }

    /// Returns the access to any registry.
    pub(crate) fn access(&self) -> Result<Access, CommandError> {
        let roots = match &self.registry_ca_file {
            Some(file) => berth_http::client::Roots::of_file(file).map_err(|why| {
                CommandError::usage(format!("the registry's authorities cannot be used: {why}"))
            })?,
            None => berth_http::client::Roots::default(),
        };
        let credentials = Credentials::of(self.registry_auth.clone());
        Ok(Access { credentials, roots, plain: self.registry_http })
    }

    /// Returns the access to one cluster's folder with a working copy, if a remote is set: a registry or a Git
    /// server.
    pub(crate) fn open(
        &self,
        remote: &RemoteArgs,
        repo: Option<&Path>,
        cluster: &str,
        usage: &str,
        cancel: &Cancel,
    ) -> Result<Option<Opened>, CommandError> {
        let Some(url) = remote.url().filter(|url| RegistryUrl::is_one(url)) else {
            let opened = remote.open(repo, usage, cancel)?;
            return Ok(opened.map(|(transport, copy)| (Box::new(transport) as Box<dyn Transport>, copy)));
        };
        let registry = self.registry(url)?;
        let folder = match repo {
            Some(folder) => folder.to_owned(),
            None => default_folder(registry.url(), usage)?,
        };
        let copy = WorkingCopy::open(&folder, registry.url())?;
        let limits = remote.git_limits();
        let transport = RegistryTransport::new(&registry, &Refs::default(), cluster, limits, cancel.clone());
        Ok(Some((Box::new(transport), copy)))
    }
}

impl From<RegistryError> for CommandError {
    fn from(error: RegistryError) -> CommandError {
        let exit = match &error {
            RegistryError::Setting { .. } => Exit::Usage,
            _ => Exit::Unreachable,
        };
        let made = CommandError::new(exit, error.to_string());
        match error.hint() {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}
