//! The environment of `git`: berth sets everything, and nothing comes from the user or the machine.
//!
//! Settings are passed as environment variables (`GIT_CONFIG_KEY_n`), which, unlike arguments, other users cannot
//! read. They override every configuration file.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::credentials::{Access, Scrubber, basic};
use super::error::TransportError;
use super::remote::Scheme;
use super::sandbox::{Bounds, Limits, limited};
use crate::Repo;

/// The variables of this process that `git` inherits.
const KEPT: &[&str] = &[
    "PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "LLVM_PROFILE_FILE",
];

/// The inherited variables that name a proxy.
const PROXIES: &[&str] = &["http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"];

/// Name servers send long answers over TCP.
const DNS: u16 = 53;

const NOWHERE: &str = "/nonexistent";

/// Prepares a `git` command with its environment, its bounds, and the scrubber for its output.
pub(super) fn command(
    access: &Access,
    repository: Option<&Path>,
    pushes: bool,
) -> Result<(Command, Bounds, Scrubber), TransportError> {
    let mut scrubber = Scrubber::default();
    let mut command = hardened(repository.unwrap_or(Path::new("/dev/null")), access.limits, access.timeout);
    command.env("GIT_ALLOW_PROTOCOL", access.url.scheme.word());
    if access.url.scheme == Scheme::Ssh {
        command.env("GIT_SSH_VARIANT", "ssh").env("GIT_SSH_COMMAND", ssh_command(access)?);
    }
    let mut settings = settings(access.stall);
    if access.url.scheme.is_web() {
        web_settings(access, &mut settings, &mut scrubber)?;
    }
    set(&mut command, &settings);
    let mut bounds = bounds(repository, access.limits, access.timeout);
    let named = [&access.ca_file, &access.ssh_key, &access.known_hosts];
    bounds.reads.extend(named.into_iter().flatten().filter_map(|file| std::path::absolute(file).ok()));
    // ssh also reads the key's public half and certificate, if they exist beside it.
    for end in [".pub", "-cert.pub"] {
        let beside =
            access.ssh_key.iter().map(|key| [key.as_os_str(), OsStr::new(end)].into_iter().collect());
        bounds.reads.extend(beside.filter_map(|file: OsString| std::path::absolute(file).ok()));
    }
    bounds
        .reads
        .extend(["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(std::env::var_os).map(Into::into));
    bounds.ports = ports(access);
    if let Some(folder) = access.url.folder().filter(|_| pushes) {
        bounds.runs = with_objects(&folder);
        bounds.runs.extend(Repo::open(&folder).iter().flat_map(|repo| with_objects(repo.shared_path())));
    }
    Ok((command, bounds, scrubber))
}

/// Makes the bounds for work in a repository, or without one.
fn bounds(repository: Option<&Path>, limits: Limits, time: Duration) -> Bounds {
    let writes = repository.map(with_objects).unwrap_or_default();
    Bounds { writes, ..Bounds::nothing(limits, time) }
}

/// Returns a repository's folder and its objects' folder, which may be a link to elsewhere.
fn with_objects(repository: &Path) -> Vec<PathBuf> {
    vec![repository.to_owned(), repository.join("objects")]
}

/// Returns the ports of the remote, of proxies and of DNS.
fn ports(access: &Access) -> BTreeSet<u16> {
    let Some(port) = access.url.port() else { return BTreeSet::new() };
    let mut ports = BTreeSet::from([port, DNS]);
    if access.url.scheme.is_web() {
        ports.extend(access.proxy.as_ref().map(|proxy| proxy_port(proxy.reveal())));
        let variables = PROXIES.iter().filter_map(|name| std::env::var(name).ok());
        ports.extend(variables.filter(|proxy| !proxy.is_empty()).map(|proxy| proxy_port(&proxy)));
    }
    ports
}

/// Returns the port of a proxy's address, or curl's default.
fn proxy_port(proxy: &str) -> u16 {
    let (scheme, rest) = proxy.split_once("://").unwrap_or(("http", proxy));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let other = if scheme.eq_ignore_ascii_case("https") { 443 } else { 1080 };
    host.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(other)
}

/// Prepares a `git` command for upkeep of a repository, without network. It packs with one thread, to leave the other
/// processors free.
pub(super) fn local(repository: &Path, limits: Limits, time: Duration) -> (Command, Bounds) {
    let mut command = hardened(repository, limits, time);
    // A process that waits for its locks finds this `git` by its working directory.
    command.current_dir(repository).env("GIT_ALLOW_PROTOCOL", "");
    let mut settings = settings(Duration::ZERO);
    settings.push(("pack.threads", "1".to_owned()));
    // Unreachable objects wait in one pack until they expire, not in a file each.
    settings.push(("gc.cruftPacks", "true".to_owned()));
    set(&mut command, &settings);
    (command, bounds(Some(repository), limits, time))
}

fn hardened(repository: &Path, limits: Limits, time: Duration) -> Command {
    let mut command = limited("git", limits, time);
    command.env_clear();
    for name in KEPT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    // With a real home, curl would read `.netrc`.
    command.env("HOME", NOWHERE).env("XDG_CONFIG_HOME", NOWHERE).current_dir("/");
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_ATTR_NOSYSTEM", "1");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_CONFIG_SYSTEM", "/dev/null").env("GIT_OPTIONAL_LOCKS", "0");
    command.env("GIT_NO_REPLACE_OBJECTS", "1");
    // `git` needs a temporary folder that its sandbox lets it write.
    command.env("GIT_DIR", repository).env("TMPDIR", repository);
    command
}

fn set(command: &mut Command, settings: &[Setting]) {
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (index, (key, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{index}"), key).env(format!("GIT_CONFIG_VALUE_{index}"), value);
    }
}

type Setting = (&'static str, String);

fn settings(stall: Duration) -> Vec<Setting> {
    let settings = [
        ("protocol.version", "2"),
        ("protocol.allow", "never"),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.askPass", ""),
        ("credential.helper", ""),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("submodule.recurse", "false"),
        ("fetch.recurseSubmodules", "no"),
        ("push.recurseSubmodules", "no"),
        ("push.gpgSign", "false"),
        ("fetch.writeCommitGraph", "false"),
        ("transfer.bundleURI", "false"),
        ("http.followRedirects", "false"),
        ("http.sslVerify", "true"),
        ("http.lowSpeedLimit", "1"),
        ("advice.pushUpdateRejected", "false"),
    ];
    let mut settings: Vec<Setting> =
        settings.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
    settings.push(("http.lowSpeedTime", stall.as_secs().max(1).to_string()));
    settings
}

fn web_settings(
    access: &Access,
    settings: &mut Vec<Setting>,
    scrubber: &mut Scrubber,
) -> Result<(), TransportError> {
    if let Some(file) = &access.ca_file {
        settings.push(("http.sslCAInfo", readable(file, "certificate file")?));
    }
    if let Some(proxy) = &access.proxy {
        scrubber.hide(proxy.reveal());
        settings.push(("http.proxy", proxy.reveal().to_owned()));
    }
    let username = access.username.as_deref().or(access.url.username.as_deref());
    let token = match access.token.read()? {
        Some(token) => Some(token),
        None => access.url.password.clone(),
    };
    if let Some(token) = token {
        scrubber.hide_token(username, &token);
        settings.push(("http.extraHeader", basic(username, &token).reveal().to_owned()));
    }
    Ok(())
}

/// Builds the ssh command: key and known hosts from files; no agent, no user's files, no prompts.
fn ssh_command(access: &Access) -> Result<String, TransportError> {
    let needed = |file: &Option<PathBuf>, what: &str, flag: &str| match file {
        Some(file) => readable(file, what),
        None => Err(TransportError::Setting {
            message: format!("`{}` is reached by ssh, which needs a {what}", access.url),
            hint: Some(format!("name it with `{flag}`")),
        }),
    };
    let key = needed(&access.ssh_key, "key file", "--ssh-key")?;
    let hosts = needed(&access.known_hosts, "file of known hosts", "--known-hosts")?;
    let stall = access.stall.as_secs().max(1);
    let options = [
        "BatchMode=yes".to_owned(),
        "IdentitiesOnly=yes".to_owned(),
        "IdentityAgent=none".to_owned(),
        "PreferredAuthentications=publickey".to_owned(),
        "StrictHostKeyChecking=yes".to_owned(),
        format!("UserKnownHostsFile=\"{hosts}\""),
        "GlobalKnownHostsFile=/dev/null".to_owned(),
        "UpdateHostKeys=no".to_owned(),
        "CheckHostIP=no".to_owned(),
        "ClearAllForwardings=yes".to_owned(),
        "ControlPath=none".to_owned(),
        "PermitLocalCommand=no".to_owned(),
        format!("ConnectTimeout={stall}"),
        format!("ServerAliveInterval={}", (stall / 3).max(1)),
        "ServerAliveCountMax=3".to_owned(),
        "LogLevel=ERROR".to_owned(),
    ];
    let options: String = options.iter().map(|option| format!(" -o {}", quoted(option))).collect();
    Ok(format!("ssh -F /dev/null -i {}{options}", quoted(&key)))
}

/// Returns the absolute path of a readable file, since `git` runs in another folder.
fn readable(file: &Path, what: &str) -> Result<String, TransportError> {
    let unusable = |why: String| TransportError::Setting {
        message: format!("the {what} `{}` cannot be used: {why}", file.display()),
        hint: None,
    };
    std::fs::File::open(file).map_err(|error| unusable(error.to_string()))?;
    let path = std::path::absolute(file).map_err(|error| unusable(error.to_string()))?;
    match path.to_str() {
        Some(text) if !text.contains(['"', '%', '\n', '$']) => Ok(text.to_owned()),
        _ => Err(unusable("its path holds characters that ssh treats specially".to_owned())),
    }
}

/// Quotes a text for the shell through which `git` starts ssh.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
