//! Registry credentials: docker's `config.json`, the helper programs that it names, a Secret of Kubernetes.
//!
//! The file is read for each login, since tokens are renewed while berth runs.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::error::RegistryError;
use berth_base::text::base64;
use berth_http::Secret;

/// A larger file is not a credentials file.
const LONGEST: u64 = 4 << 20;
/// The name under which docker keeps the credentials of its own registry.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The source of credentials.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    file: Option<PathBuf>,
    /// True if a missing file is an error.
    is_required: bool,
}

/// A way to log in to one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    Anonymous,
    Password {
        name: String,
        password: Secret,
    },
    /// A token that is exchanged for other tokens.
    Identity(Secret),
    /// A token that is sent unchanged.
    Bearer(Secret),
}

impl Credentials {
    /// Uses this file; without one, the file that other registry programs read.
    pub fn of(file: Option<PathBuf>) -> Credentials {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(file) = file.or_else(|| set("REGISTRY_AUTH_FILE")) {
            return Credentials { file: Some(file), is_required: true };
        }
        let docker = set("DOCKER_CONFIG").or_else(|| set("HOME").map(|home| home.join(".docker")));
        let podman = set("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json"));
        let candidates = [docker.map(|folder| folder.join("config.json")), podman];
        let file = candidates.into_iter().flatten().find(|file| file.is_file());
        Credentials { file, is_required: false }
    }

    /// Returns the file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the login for a repository of a registry.
    pub fn login(&self, host: &str, repository: &str) -> Result<Login, RegistryError> {
        let Some(path) = &self.file else { return Ok(Login::Anonymous) };
        let unusable = |why: String| RegistryError::Setting {
            message: format!("the credentials in `{}` cannot be used: {why}", path.display()),
            hint: Some(
                "name a file in the format of docker's `config.json` with `--registry-auth`".to_owned(),
            ),
        };
        let about = match std::fs::metadata(path) {
            Ok(about) => about,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !self.is_required => {
                return Ok(Login::Anonymous);
            }
            Err(error) => return Err(unusable(error.to_string())),
        };
        if about.len() > LONGEST {
            return Err(unusable("it is too long".to_owned()));
        }
        let text = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        // The parser's message could contain a secret.
        let config: DockerConfig = serde_json::from_slice(&text)
            .map_err(|error| unusable(format!("it is not as expected at line {}", error.line())))?;
        match config.helper(host) {
            Some(helper) => ask(helper, config.name_for(host)).map_err(unusable),
            None => config.login(host, repository).map_err(unusable),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DockerConfig {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

impl DockerConfig {
    fn name_for<'h>(&self, host: &'h str) -> &'h str {
        if is_docker_hub(host) { DOCKER_HUB } else { host }
    }

    fn helper(&self, host: &str) -> Option<&str> {
        let named = self.cred_helpers.get(host).or_else(|| self.cred_helpers.get(self.name_for(host)));
        let store = || {
            // Credentials in the file override the default store.
            let stands_here = self.entry(host, "").is_some_and(|entry| !entry.is_empty());
            (!self.creds_store.is_empty() && !stands_here).then_some(&self.creds_store)
        };
        named.filter(|name| !name.is_empty()).or_else(store).map(String::as_str)
    }

    /// Returns the most specific entry: `host/a/b` applies to repositories below it, before `host`.
    fn entry(&self, host: &str, repository: &str) -> Option<&Entry> {
        let whole = format!("{host}/{repository}");
        let mut longest: Option<(usize, &Entry)> = None;
        for (name, entry) in &self.auths {
            let bare =
                name.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('/');
            let bare = bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare);
            let is_hub = is_docker_hub(host) && is_docker_hub(bare);
            let rest = whole.strip_prefix(bare);
            let fits = is_hub || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            if fits && longest.is_none_or(|(length, _)| bare.len() > length) {
                longest = Some((bare.len(), entry));
            }
        }
        longest.map(|(_, entry)| entry)
    }

    fn login(&self, host: &str, repository: &str) -> Result<Login, String> {
        let Some(entry) = self.entry(host, repository).filter(|entry| !entry.is_empty()) else {
            return Ok(Login::Anonymous);
        };
        if !entry.registrytoken.is_empty() {
            return Ok(Login::Bearer(Secret::new(&entry.registrytoken)));
        }
        if !entry.identitytoken.is_empty() {
            return Ok(Login::Identity(Secret::new(&entry.identitytoken)));
        }
        let (name, password) = if entry.auth.is_empty() {
            (entry.username.clone(), entry.password.clone())
        } else {
            let decoded = base64::decode(&entry.auth).and_then(|bytes| String::from_utf8(bytes).ok());
            let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
            // Docker pads the password with zeros.
            let pair =
                pair.map(|(name, password)| (name.to_owned(), password.trim_end_matches('\0').to_owned()));
            pair.ok_or_else(|| format!("the `auth` of `{host}` is not a name and a password in base64"))?
        };
        Ok(Login::Password { name, password: Secret::new(password) })
    }
}

impl Entry {
    fn is_empty(&self) -> bool {
        let Entry { auth, username, password: _, identitytoken, registrytoken } = self;
        [auth, username, identitytoken, registrytoken].into_iter().all(String::is_empty)
    }
}

fn is_docker_hub(host: &str) -> bool {
    matches!(host, "docker.io" | "index.docker.io" | "registry-1.docker.io")
}

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
const LONGEST_ANSWER: u64 = 1 << 20;
/// The user name with which a helper returns a token to exchange.
const TOKEN: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

/// Asks a helper for a server's credentials.
fn ask(helper: &str, server: &str) -> Result<Login, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !helper.chars().all(is_name) {
        return Err(format!("`{}` is not the name of a credential helper", helper.escape_debug()));
    }
    let program = format!("docker-credential-{helper}");
    let failed = |why: String| format!("`{program}` failed: {why}");
    let mut command = Command::new(&program);
    // Its error output could contain a secret.
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(server.as_bytes());
    }
    let output = child.stdout.take();
    // Read on a thread with a time limit: a process that the helper leaves behind could keep its output open.
    let (answers, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map(|output| output.take(LONGEST_ANSWER).read_to_end(&mut bytes));
        let _ = answers.send(read.is_some_and(|read| read.is_ok()).then_some(bytes));
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < PATIENCE => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("it took longer than {} seconds", PATIENCE.as_secs())));
            }
        }
    };
    let answer = answer.recv_timeout(PATIENCE).ok().flatten();
    let answer = answer.ok_or_else(|| failed("its answer cannot be read".to_owned()))?;
    if !status.success() {
        // A helper without credentials reports this on its standard output.
        let is_unknown = String::from_utf8_lossy(&answer).contains("credentials not found");
        return if is_unknown { Ok(Login::Anonymous) } else { Err(failed(status.to_string())) };
    }
    let answer: HelperAnswer =
        serde_json::from_slice(&answer).map_err(|_| failed("its answer is not as expected".to_owned()))?;
    let secret = Secret::new(answer.secret);
    Ok(match answer.username.as_str() {
        TOKEN => Login::Identity(secret),
        _ => Login::Password { name: answer.username, password: secret },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(config: &str, host: &str, repository: &str) -> Result<Login, String> {
        let config: DockerConfig = serde_json::from_str(config).expect("JSON");
        config.login(host, repository)
    }

    fn of(name: &str, password: &str) -> Login {
        Login::Password { name: name.to_owned(), password: Secret::new(password) }
    }

    #[test]
    fn the_entry_that_fits_best_counts() {
        // `ann:one`, `ben:two`.
        let config = r#"{"auths": {"r.example.com": {"auth": "YW5uOm9uZQ=="}, "r.example.com/fleet": {"auth": "YmVuOnR3bw=="},
            "https://index.docker.io/v1/": {"username": "cat", "password": "three"},
            "id.example.com": {"identitytoken": "four"}, "t.example.com": {"registrytoken": "five"}, "e.example.com": {}}}"#;
        assert_eq!(login(config, "r.example.com", "other"), Ok(of("ann", "one")));
        assert_eq!(login(config, "r.example.com", "fleet/clusters/a"), Ok(of("ben", "two")));
        assert_eq!(login(config, "r.example.com", "fleeting"), Ok(of("ann", "one")));
        assert_eq!(login(config, "docker.io", "a/b"), Ok(of("cat", "three")));
        assert_eq!(login(config, "id.example.com", "a"), Ok(Login::Identity(Secret::new("four"))));
        assert_eq!(login(config, "t.example.com", "a"), Ok(Login::Bearer(Secret::new("five"))));
        for host in ["e.example.com", "r.example.com.evil.org", "r.example.co", "r.example.com:5000"] {
            assert_eq!(login(config, host, "a"), Ok(Login::Anonymous), "{host}");
        }
    }

    #[test]
    fn garbled_credentials_are_named_without_being_shown() {
        let error = login(r#"{"auths": {"r": {"auth": "s3cret"}}}"#, "r", "a").unwrap_err();
        assert!(error.contains("`r`") && !error.contains("s3cret"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, r#"{"auths": {"r": {"auth": s3cret}}}"#).unwrap();
        let error = Credentials::of(Some(file)).login("r", "a").unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("s3cret"), "{error}");
        assert!(Credentials::of(Some(folder.path().join("none"))).login("r", "a").is_err());
    }

    #[test]
    fn helpers_are_named_by_the_host_or_for_all() {
        let config = r#"{"credHelpers": {"r.example.com": "ecr-login"}, "credsStore": "pass",
            "auths": {"a.example.com": {"auth": "YW5uOm9uZQ=="}}}"#;
        let config: DockerConfig = serde_json::from_str(config).unwrap();
        assert_eq!(config.helper("r.example.com"), Some("ecr-login"));
        assert_eq!(config.helper("other.example.com"), Some("pass"));
        assert_eq!(config.helper("a.example.com"), None);
    }
}
