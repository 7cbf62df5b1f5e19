//! The flags of a container registry, for the pods that read or write it.

use super::common::{fits, has_reference, port_of};
use crate::install::{Registry, Role};
use crate::process::exit::{CommandError, refuse_flags};
use berth_base::meta::names::is_dns_subdomain;
use berth_registry::RegistryUrl;

/// The flags of a registry.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Registry")]
pub(super) struct RegistryFlags {
    /// Secret of type `kubernetes.io/dockerconfigjson` with the credentials for the container registry; default: none are needed
    #[arg(long, value_name = "NAME")]
    registry_secret: Option<String>,
    /// Say that this Secret also holds `ca.crt`, the authority of the registry
    #[arg(long, requires = "registry_secret")]
    registry_ca: bool,
    /// Speak http with the registry, which others on the network can read and change
    #[arg(long, conflicts_with = "registry_ca")]
    registry_http: bool,
}

impl RegistryFlags {
    /// Returns the registry of a process: the one that a daemon publishes to, or the remote of a member.
    pub fn of(&self, role: &Role, remote: &str) -> Result<Option<Registry>, CommandError> {
        let url = match role {
            Role::Hub(hub) => hub.publish.as_deref(),
            Role::Member(_) => Some(remote).filter(|url| RegistryUrl::is_one(url)),
        };
        let Some(url) = url else {
            let given = [
                ("--registry-secret", self.registry_secret.is_some()),
                ("--registry-http", self.registry_http),
            ];
            let hint = "name one: `--publish oci://…` for a hub, `--remote oci://…` for a member";
            refuse_flags(&given, "where no registry is named", hint)?;
            return Ok(None);
        };
        if let Some(secret) = &self.registry_secret {
            fits("--registry-secret", secret, is_dns_subdomain(secret))?;
        }
        RegistryUrl::parse(url)?;
        let usual = if self.registry_http { 80 } else { 443 };
        let port = url.split_once("://").and_then(|(_, rest)| port_of(rest, usual));
        let Some(port) = port.filter(|_| !has_reference(url)) else {
            return Err(CommandError::usage(format!("`{url}` is not an address that a pod can reach"))
                .hint("write it as `oci://registry.example.com/fleet`"));
        };
        Ok(Some(Registry {
            port,
            secret: self.registry_secret.clone(),
            own_authority: self.registry_ca,
            plain: self.registry_http,
        }))
    }
}
