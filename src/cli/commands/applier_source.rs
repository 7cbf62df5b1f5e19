//! The address from which another program takes the folders of clusters.

use crate::process::exit::CommandError;
use berth_registry::RegistryUrl;

/// Where the folders of all clusters are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The start of all repositories at a registry.
    Registry(RegistryUrl),
    /// A Git repository.
    Git(String),
}

/// Reads the value of a flag.
pub(super) fn address(flag: &str, url: &str) -> Result<Address, CommandError> {
    if url.contains('@') && !url.starts_with("ssh://") || url.contains("://") && has_password(url) {
        let error = CommandError::usage(format!("{flag} must not hold a name or a password"));
        return Err(error.hint("put them into a Secret of that cluster"));
    }
    if RegistryUrl::is_one(url) {
        return Ok(Address::Registry(RegistryUrl::parse(url)?));
    }
    if !["https://", "http://", "ssh://"].iter().any(|scheme| url.starts_with(scheme)) {
        let error =
            CommandError::usage(format!("{flag} `{url}` is no address that another program can read"));
        return Err(error.hint("begin it with oci://, https://, http:// or ssh://"));
    }
    Ok(Address::Git(url.to_owned()))
}

/// Reports whether an address has a password before its host.
fn has_password(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}
