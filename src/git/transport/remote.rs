//! Addresses of remotes: which are allowed, and which part of an address messages may show.
//!
//! A user name and password are removed from the address, so that neither a process list nor a message shows them. An
//! address that would make `git` run a program (`ext::`, a host that looks like an option) is refused.

use std::fmt;
use std::path::{Path, PathBuf};

use super::credentials::{Secret, without_userinfo};
use super::error::TransportError;

/// The protocol of a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Https,
    Http,
    Ssh,
    Git,
    File,
}

impl Scheme {
    /// Returns the name in `GIT_ALLOW_PROTOCOL`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
            Scheme::Ssh => "ssh",
            Scheme::Git => "git",
            Scheme::File => "file",
        }
    }

    /// Reports whether the protocol is unprotected: others on the network can read and change the data.
    fn is_plain(self) -> bool {
        matches!(self, Scheme::Http | Scheme::Git)
    }

    pub(super) fn is_web(self) -> bool {
        matches!(self, Scheme::Https | Scheme::Http)
    }
}

/// A remote repository's address.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    pub(super) scheme: Scheme,
    /// The address that `git` gets and messages show: without a password, and over HTTP without a user name.
    pub(super) clean: String,
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clean)
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clean)
    }
}

impl RemoteUrl {
    /// Returns the repository's folder, if it is on this machine.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let path = || self.clean.strip_prefix("file://").map_or_else(|| self.clean.clone(), decode);
        (self.scheme == Scheme::File).then(|| PathBuf::from(path()))
    }

    /// Returns the TCP port, if the repository is on another machine.
    pub(super) fn port(&self) -> Option<u16> {
        let usual = match self.scheme {
            Scheme::Https => 443,
            Scheme::Http => 80,
            Scheme::Ssh => 22,
            Scheme::Git => 9418,
            Scheme::File => return None,
        };
        // In `user@host:path` the text after the colon is not a port.
        let authority = self.clean.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        let named = authority.and_then(|authority| authority.rsplit_once(':')?.1.parse().ok());
        Some(named.unwrap_or(usual))
    }

    /// Reads `https://…`, `ssh://…`, `user@host:path`, `file://…` or a path, and with `plain` also
    /// `http://…` and `git://…`.
    pub fn parse(text: &str, plain: bool) -> Result<RemoteUrl, TransportError> {
        let refuse = |why: &str, hint: &str| TransportError::Setting {
            message: format!("`{}` cannot be a remote: {why}", without_userinfo(text).escape_debug()),
            hint: Some(hint.to_owned()),
        };
        const FORMS: &str = "write it as `https://host/path`, `ssh://user@host/path`, `user@host:path`, `file:///path` or a path";
        if text.is_empty() || text.starts_with('-') || text.chars().any(|c| c.is_control() || c == ' ') {
            return Err(refuse("it is not an address", FORMS));
        }
        if text.contains("::") && !text.contains("://[") && !text.starts_with('/') {
            return Err(refuse("helpers of Git are not allowed", FORMS));
        }
        let Some((scheme, rest)) = text.split_once("://") else { return without_scheme(text) };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            "ssh" => Scheme::Ssh,
            "git" => Scheme::Git,
            "file" => Scheme::File,
            other => return Err(refuse(&format!("the protocol `{other}` is not allowed"), FORMS)),
        };
        if scheme.is_plain() && !plain {
            let why = "its traffic is not encrypted, so others could read and change it";
            return Err(refuse(why, "use https or ssh; or allow it with `--allow-plain`"));
        }
        if scheme == Scheme::File {
            let (username, password) = (None, None);
            let absolute = rest.starts_with('/');
            let clean = format!("file://{rest}");
            return if absolute {
                Ok(RemoteUrl { scheme, clean, username, password })
            } else {
                Err(refuse("a path in it must be absolute", FORMS))
            };
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (info, host) = match authority.rsplit_once('@') {
            Some((info, host)) => (Some(info), host),
            None => (None, authority),
        };
        if host.is_empty() || host.starts_with(['-', ':']) || info.is_some_and(|info| info.starts_with('-')) {
            return Err(refuse("it names no host", FORMS));
        }
        let (username, password) = match info.map(|info| info.split_once(':').unwrap_or((info, ""))) {
            Some((name, password)) => (some(decode(name)), some(decode(password)).map(Secret::new)),
            None => (None, None),
        };
        let clean = match (&username, scheme) {
            (Some(name), Scheme::Ssh) => format!("ssh://{name}@{host}{path}"),
            _ => format!("{}://{host}{path}", scheme.word()),
        };
        Ok(RemoteUrl { scheme, clean, username, password })
    }
}

/// Reads `user@host:path`, or a path on this machine.
fn without_scheme(text: &str) -> Result<RemoteUrl, TransportError> {
    let (username, password) = (None, None);
    let colon = text.find(':').filter(|colon| !text[..*colon].contains('/'));
    if let Some(colon) = colon.filter(|colon| *colon > 0) {
        let host = text[..colon].rsplit('@').next().unwrap_or_default();
        if host.is_empty() || host.starts_with('-') {
            let message = format!("`{text}` cannot be a remote: it names no host");
            return Err(TransportError::Setting { message, hint: None });
        }
        return Ok(RemoteUrl { scheme: Scheme::Ssh, clean: text.to_owned(), username, password });
    }
    let path = std::path::absolute(Path::new(text)).map_err(|error| TransportError::Setting {
        message: format!("`{text}` cannot be a remote: {error}"),
        hint: None,
    })?;
    Ok(RemoteUrl { scheme: Scheme::File, clean: path.display().to_string(), username, password })
}

/// Reports whether an argument contains an address with a password, which every user of the machine could read.
pub fn shows_password(argument: &str) -> bool {
    without_userinfo(argument).contains("://***@")
        && argument.split("://").skip(1).any(|rest| {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            authority.rsplit_once('@').is_some_and(|(info, _)| info.contains(':'))
        })
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
