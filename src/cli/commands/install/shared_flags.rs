//! The flags that both roles share, and their parameters.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::install::{Collector, Install, Network, Registry, Remote, Role, own_environment};
use crate::process::exit::{CommandError, refuse_flags};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain};
use berth_git::transport::RemoteUrl;
use berth_git::transport::remote::shows_password;
use berth_member::sync::commit_trust::read_allowed_signers;
use berth_registry::RegistryUrl;

/// The largest file for a ConfigMap, whose limit is a megabyte.
const LARGEST: usize = 256 << 10;

const SCAN: &str =
    "write it with `ssh-keyscan HOST > FILE`, and compare the keys with those that the forge publishes";

/// Variables that contain credentials.
const CREDENTIALS: [&str; 2] = ["BERTH_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS"];

/// The flags of both roles.
#[derive(Debug, clap::Args)]
pub(crate) struct CommonArgs {
    /// Address of the fleet's repository, as the pods reach it: `https://host/path`, `ssh://user@host/path` or `user@host:path`;
    /// of a member also that of a container registry, `oci://host/path`
    #[arg(long, value_name = "URL")]
    remote: Option<String>,
    /// Image with berth in it, such as `registry.example.com/berth:0.1.0`
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Secret with the credentials for the image's registry
    #[arg(long, value_name = "NAME")]
    image_pull_secret: Option<String>,
    /// Secret with the credentials for the repository: `token`, or `key` and `known_hosts` for ssh; empty for none
    #[arg(long, value_name = "NAME", default_value = "berth-git", help_heading = "Credentials")]
    git_secret: String,
    /// Say that this Secret also holds `ca.crt`, the authority of the Git server
    #[arg(long, help_heading = "Credentials")]
    git_ca: bool,
    /// Make an ssh key as that Secret, and print what to add to the forge. A Secret that exists keeps its key
    #[arg(long, help_heading = "Credentials")]
    deploy_key: bool,
    /// File of known hosts for ssh, which goes into a ConfigMap; without it, the Secret holds `known_hosts`
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    known_hosts: Option<PathBuf>,
    /// Trust commits that one of these keys signed: a file in the format of `ssh-keygen -Y verify`, for a ConfigMap
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    allowed_signers: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
    /// Send traces and numbers to this collector of OpenTelemetry, as `berth run --otlp-endpoint` takes it
    #[arg(long, value_name = "URL", help_heading = "Pods")]
    otlp_endpoint: Option<String>,
    /// Secret with `headers`, the headers for the collector, `name=value` on each line
    #[arg(long, value_name = "NAME", requires = "otlp_endpoint", help_heading = "Pods")]
    otlp_headers_secret: Option<String>,
    /// Set a further environment variable of the process, such as `BERTH_USERNAME=ann`; repeatable
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Pods")]
    env: Vec<String>,
    /// Limit of the memory, such as `2Gi`
    #[arg(long, value_name = "SIZE", help_heading = "Pods", value_parser = size)]
    memory_limit: Option<String>,
    /// Limit of the volume with the working copy, such as `20Gi`
    #[arg(long, value_name = "SIZE", help_heading = "Pods", value_parser = size)]
    cache_limit: Option<String>,
    /// Further TCP port that pods may connect to, such as that of a proxy or an unusual API server; repeatable
    #[arg(long, value_name = "PORT", help_heading = "Pods", value_parser = clap::value_parser!(u16).range(1..))]
    egress_port: Vec<u16>,
    /// Write no NetworkPolicy
    #[arg(long, help_heading = "Pods", conflicts_with = "egress_port")]
    no_network_policy: bool,
}

impl CommonArgs {
    /// Makes the parameters, if the flags are valid.
    pub fn parameters(&self, name: &str, namespace: &str, role: Role) -> Result<Install, CommandError> {
        fits("--namespace", namespace, is_dns_label(namespace))?;
        if namespace == "default" || namespace.starts_with("kube-") {
            let error = CommandError::usage(format!("--namespace `{namespace}` belongs to others"));
            return Err(error.hint("name one for berth alone: it is limited to the restricted profile"));
        }
        fits(
            "--git-secret",
            &self.git_secret,
            self.git_secret.is_empty() || is_dns_subdomain(&self.git_secret),
        )?;
        if let Some(secret) = &self.image_pull_secret {
            fits("--image-pull-secret", secret, is_dns_subdomain(secret))?;
        }
        let signers = self.allowed_signers.as_deref();
        if let Some(file) = signers {
            read_allowed_signers(file).map_err(CommandError::usage)?;
        }
        let network = match self.no_network_policy {
            true => Network::Open,
            false => Network::Limited { ports: BTreeSet::from_iter(self.egress_port.iter().copied()) },
        };
        let mut install = Install {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            image: self.image()?,
            pull_secret: self.image_pull_secret.clone(),
            remote: self.remote(&role)?,
            allowed_signers: signers.map(text_of).transpose()?,
            registry: self.registry.of(&role, self.remote.as_deref().unwrap_or_default())?,
            collector: self.collector()?,
            env: BTreeMap::new(),
            memory_limit: self.memory_limit.clone(),
            cache_limit: self.cache_limit.clone(),
            network,
            role,
        };
        install.env = self.more_environment(&install)?;
        Ok(install)
    }

    /// Reports whether a key is used as the repository's credentials.
    pub fn has_key(&self) -> bool {
        self.remote.as_deref().and_then(|url| address(url).ok()).is_some_and(|(ssh, _)| ssh)
    }

    fn image(&self) -> Result<String, CommandError> {
        let Some(image) = &self.image else {
            let example = concat!("registry.example.com/berth:", env!("CARGO_PKG_VERSION"));
            let error = CommandError::usage("no image is named");
            return Err(error.hint(format!(
                "push the image of a release to a registry of yours, as docs/install.md says, and name it: --image {example}"
            )));
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        let framed =
            image.starts_with(|c: char| c.is_ascii_alphanumeric()) && !image.ends_with([':', '/', '@']);
        if framed && image.chars().all(plain) {
            return Ok(image.clone());
        }
        let error = CommandError::usage(format!("--image `{image}` is not the name of an image"));
        Err(error.hint(concat!("write it as `registry.example.com/berth:", env!("CARGO_PKG_VERSION"), "`")))
    }

    fn collector(&self) -> Result<Option<Collector>, CommandError> {
        let Some(url) = &self.otlp_endpoint else { return Ok(None) };
        let secret = self.otlp_headers_secret.clone();
        if let Some(secret) = &secret {
            fits("--otlp-headers-secret", secret, is_dns_subdomain(secret))?;
        }
        let wrong = |why: &str, hint: &str| {
            Err(CommandError::usage(format!("--otlp-endpoint {why}")).hint(hint.to_owned()))
        };
        if shows_password(url) {
            return wrong("holds a password", "put it into the Secret that `--otlp-headers-secret` names");
        }
        let port = match url.split_once("://") {
            Some(("https", rest)) => port_of(rest, 443),
            Some(("http", _)) if secret.is_some() => {
                return wrong("needs https where headers go along", "write it as `https://host:4318`");
            }
            Some(("http", rest)) => port_of(rest, 80),
            _ => None,
        };
        let plain = !url.contains(|c: char| c.is_whitespace() || c.is_control()) && !has_reference(url);
        match port.filter(|_| plain) {
            Some(port) => Ok(Some(Collector { url: url.clone(), port, secret })),
            None => wrong(&format!("`{url}` is not an address"), "write it as `https://host:4318`"),
        }
    }

    fn remote(&self, role: &Role) -> Result<Remote, CommandError> {
        let Some(url) = &self.remote else {
            let error = CommandError::usage("no repository is named");
            return Err(error.hint("give its address, as the cluster reaches it: --remote https://host/path"));
        };
        if RegistryUrl::is_one(url) {
            return self.registry_remote(url, role);
        }
        let (ssh, port) = address(url)?;
        let source = if let Role::Hub(hub) = role { hub.source_remote.as_ref() } else { None };
        let source_by_ssh = source.is_some_and(|source| source.ssh);
        let hosts_for_none = self.known_hosts.is_some() && !source_by_ssh;
        let needs_ssh = [("--deploy-key", self.deploy_key), ("--known-hosts", hosts_for_none)];
        if let Some((flag, _)) = needs_ssh.into_iter().find(|(_, given)| *given && !ssh) {
            let error =
                CommandError::usage(format!("{flag} is for ssh, and `{url}` is not an address of ssh"));
            return Err(error.hint("write the address as `ssh://user@host/path` or `user@host:path`"));
        }
        if self.deploy_key && self.known_hosts.is_none() {
            let error = CommandError::usage("--deploy-key needs --known-hosts: the host must be known, too");
            return Err(error.hint(SCAN));
        }
        if ssh && self.git_secret.is_empty() {
            return Err(CommandError::usage("ssh needs a key").hint("name its Secret with --git-secret"));
        }
        if source_by_ssh && !ssh && self.known_hosts.is_none() {
            let error =
                CommandError::usage("a source reached by ssh needs --known-hosts: its host must be known");
            return Err(error.hint(SCAN));
        }
        Ok(Remote {
            url: url.clone(),
            port,
            secret: Some(self.git_secret.clone()).filter(|name| !name.is_empty()),
            ssh,
            own_authority: self.git_ca,
            deploy_key: self.deploy_key,
            known_hosts: self.known_hosts.as_deref().map(known_hosts).transpose()?,
        })
    }

    /// Checks the address of a registry that a member reads. It does not use a repository's credentials.
    fn registry_remote(&self, url: &str, role: &Role) -> Result<Remote, CommandError> {
        if matches!(role, Role::Hub(_)) {
            let error = CommandError::usage("a registry cannot be the remote of a hub, which needs Git");
            return Err(error.hint("name the repository with --remote, and the registry with --publish"));
        }
        let for_git = [
            ("--deploy-key", self.deploy_key),
            ("--known-hosts", self.known_hosts.is_some()),
            ("--git-ca", self.git_ca),
        ];
        if let Some((flag, _)) = for_git.into_iter().find(|(_, is_given)| *is_given) {
            let error =
                CommandError::usage(format!("{flag} is for Git, and `{url}` is a container registry"));
            return Err(error.hint("leave it out; --registry-secret names the credentials for a registry"));
        }
        let registry = self.registry.of(role, url)?;
        Ok(Remote { url: url.to_owned(), port: registry.map(|registry| registry.port), ..Remote::default() })
    }

    /// Returns the additional variables. None may replace a flag, or contain a credential.
    fn more_environment(&self, install: &Install) -> Result<BTreeMap<String, String>, CommandError> {
        let own = own_environment(install);
        let mut more = BTreeMap::new();
        for text in &self.env {
            let wrong = |why: String| CommandError::usage(format!("--env `{}`: {why}", name_of(text)));
            let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_variable(name)) else {
                return Err(wrong("it is not a variable".to_owned()).hint("write it as `NAME=VALUE`"));
            };
            if own.contains_key(name) {
                return Err(wrong("the other flags set it already".to_owned()).hint("leave it out"));
            }
            if CREDENTIALS.contains(&name) || shows_password(value) {
                return Err(wrong("a manifest must not hold a password".to_owned())
                    .hint("put it into the Secret that `--git-secret` names"));
            }
            if value.chars().any(char::is_control) || has_reference(value) {
                return Err(wrong("control characters and `$(` are not allowed".to_owned())
                    .hint("write the value on one line"));
            }
            more.insert(name.to_owned(), value.to_owned());
        }
        Ok(more)
    }
}

/// Checks the address of a repository. Returns true for ssh, and the port if the address has one.
pub(super) fn address(url: &str) -> Result<(bool, Option<u16>), CommandError> {
    if shows_password(url) {
        return Err(CommandError::usage("a manifest must not hold a password")
            .hint("put it into the Secret that `--git-secret` names"));
    }
    RemoteUrl::parse(url, false)?;
    let ssh = !url.contains("://") && !url.starts_with('/') || url.starts_with("ssh://");
    if !ssh && !url.starts_with("https://") || has_reference(url) {
        let error = CommandError::usage(format!("`{url}` is not an address that a pod can reach"));
        return Err(error.hint("write it as `https://host/path`, `ssh://user@host/path` or `user@host:path`"));
    }
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    Ok((ssh, authority.and_then(|it| it.rsplit_once(':')?.1.parse().ok())))
}

/// Returns the port of an address without its scheme. `None` if the host is missing or the port is invalid.
pub(super) fn port_of(rest: &str, usual: u16) -> Option<u16> {
    let authority = rest.split('/').next().filter(|it| !it.is_empty())?;
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let is_host = !host.is_empty() && (host.ends_with(']') || !host.contains(':'));
            port.parse().ok().filter(|port| *port > 0 && is_host)
        }
        _ => Some(usual),
    }
}

/// Refuses a name that an API server would refuse.
pub(super) fn fits(flag: &str, name: &str, fits: bool) -> Result<(), CommandError> {
    if fits {
        return Ok(());
    }
    let error = CommandError::usage(format!("{flag} `{name}` is not a valid name"));
    Err(error.hint("use lower-case letters, digits and dashes"))
}

/// Reports whether the kubelet would insert another variable's value into a text.
pub(super) fn has_reference(text: &str) -> bool {
    text.contains("$(")
}

fn is_variable(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    first && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        || ["http_proxy", "https_proxy", "no_proxy"].contains(&name)
}

/// Returns the part of a variable that can be shown.
fn name_of(text: &str) -> &str {
    text.split('=').next().unwrap_or_default()
}

fn size(text: &str) -> Result<String, String> {
    let number = text.strip_suffix("Mi").or_else(|| text.strip_suffix("Gi"));
    let is_whole = |number: &str| number.len() <= 6 && number.parse::<u32>().is_ok_and(|number| number > 0);
    match number.filter(|number| is_whole(number) && !number.starts_with(['+', '0'])) {
        Some(_) => Ok(text.to_owned()),
        None => Err("write it as `512Mi` or `2Gi`".to_owned()),
    }
}

fn known_hosts(file: &Path) -> Result<String, CommandError> {
    let text = text_of(file)?;
    let is_host = |line: &str| !line.starts_with('#') && line.split_whitespace().count() >= 3;
    if text.lines().any(is_host) && !text.contains("PRIVATE KEY") {
        return Ok(text);
    }
    let error = CommandError::usage(format!("{} names no host", file.display()));
    Err(error.hint(SCAN))
}

/// Reads a file for a ConfigMap.
fn text_of(file: &Path) -> Result<String, CommandError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CommandError::io(format!("reading {}", file.display()), &error))?;
    if text.len() > LARGEST {
        let error = CommandError::usage(format!("{} is too large for a ConfigMap", file.display()));
        return Err(error.hint(format!("keep it below {} KiB", LARGEST >> 10)));
    }
    Ok(text)
}

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
    /// Returns the registry of a process: a daemon publishes to it, a member reads from it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_whole_number_of_mebibytes_or_gibibytes() {
        for good in ["1Mi", "512Mi", "20Gi"] {
            assert_eq!(size(good).as_deref(), Ok(good));
        }
        for bad in ["", "Mi", "0Gi", "-1Gi", "+1Gi", "1G", "1.5Gi", "1 Gi", "9999999Gi", "1Gi\nx: y"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
