//! One request to a registry and its answer, with a login if the registry requires one, within limits of time and
//! size.
//!
//! Credentials are sent only to the registry itself and to the token server that it names. They are not sent after a
//! redirect, nor to an upload address on another host.

use std::sync::Mutex;
use std::time::Duration;

use serde::Deserialize;

use super::Access;
use super::login::{Logins, Rights};
use crate::credentials::Credentials;
use crate::error::RegistryError;
use berth_http::Secret;
use berth_http::client::{
    self, Body, Builder, Client, ClientError, HeaderMap, Request, Response, StatusCode, Uri, header,
    is_local, retry_after, short_line,
};

/// The time limit for a short answer.
const SHORT_PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer other than a blob: distribution takes manifests of 4 MiB.
pub(super) const LONGEST_ANSWER: u64 = 5 << 20;
const MOST_REDIRECTS: usize = 5;
/// The characters of a registry's message that are shown.
const LONGEST_MESSAGE: usize = 200;

pub(super) struct Http {
    client: Client,
    host: String,
    /// `https://host`, without a path.
    origin: String,
    pub(super) credentials: Credentials,
    pub(super) logins: Mutex<Logins>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// A request to a repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub method: &'static str,
    /// A path below `/v2/`, or an address from an answer.
    pub path: &'a str,
    pub headers: &'a [(&'static str, &'a str)],
    pub body: Option<&'a [u8]>,
    pub repository: &'a str,
    pub rights: Rights,
}

/// An answer with its whole body.
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Http {
    pub fn new(host: &str, access: &Access) -> Http {
        let name = match host.rsplit_once(':') {
            Some((name, _)) if !host.ends_with(']') => name,
            _ => host,
        };
        let scheme = if access.plain || is_local(name) { "http" } else { "https" };
        // Docker's own registry has its API on another host.
        let at = if host == "docker.io" { "registry-1.docker.io" } else { host };
        let origin = format!("{scheme}://{at}");
        Http {
            client: Client::new(&origin, &access.roots),
            host: host.to_owned(),
            origin,
            credentials: access.credentials.clone(),
            logins: Mutex::default(),
        }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// Sends a request, and reads the complete answer, with any status.
    pub fn send(&self, ask: &Ask<'_>) -> Result<Answer, RegistryError> {
        let answer = self.open(ask, SHORT_PATIENCE)?;
        self.finish(answer)
    }

    /// Reads an answer to its end.
    pub fn finish(&self, answer: Response<Body>) -> Result<Answer, RegistryError> {
        let (parts, body) = answer.into_parts();
        let body = client::read(body, LONGEST_ANSWER).map_err(|error| match error {
            ClientError::TooLong(_) => self.wrong("an answer", &format!("it has {error}")),
            error => self.unreachable(&error.to_string()),
        })?;
        Ok(Answer { status: parts.status, headers: parts.headers, body })
    }

    /// Sends a request, with a login if the registry requires one.
    pub fn open(&self, ask: &Ask<'_>, patience: Duration) -> Result<Response<Body>, RegistryError> {
        let url = self.resolve(ask.path)?;
        let login = if self.is_own(&url) { self.authorization(ask.repository, ask.rights)? } else { None };
        let answer = self.run(ask, &url, login.as_ref(), patience)?;
        if answer.status() != StatusCode::UNAUTHORIZED || !self.is_own(&url) {
            return Ok(answer);
        }
        // The registry requires a login, or another one than the last. Its challenge names the kind.
        let challenges: Vec<&str> = answer
            .headers()
            .get_all(header::WWW_AUTHENTICATE)
            .iter()
            .filter_map(|it| it.to_str().ok())
            .collect();
        let is_new = self.challenged(&challenges, ask.repository, ask.rights, login.is_some());
        let Some(login) =
            is_new.then(|| self.authorization(ask.repository, ask.rights)).transpose()?.flatten()
        else {
            return Ok(answer);
        };
        drop(answer);
        self.run(ask, &url, Some(&login), patience)
    }

    /// Sends a request without a login, and follows redirects.
    fn run(
        &self,
        ask: &Ask<'_>,
        url: &str,
        login: Option<&Secret>,
        patience: Duration,
    ) -> Result<Response<Body>, RegistryError> {
        let mut url = url.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            let mut request = Request::builder().method(ask.method).uri(&url);
            for (name, value) in ask.headers {
                request = request.header(*name, *value);
            }
            if let Some(login) = login.filter(|_| self.is_own(&url)) {
                request = request.header(header::AUTHORIZATION, login.reveal());
            }
            let answer = self.exchange(request, ask.body, patience)?;
            let is_read = matches!(ask.method, "GET" | "HEAD");
            if !is_read || !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            let place = answer.headers().get(header::LOCATION).and_then(|place| place.to_str().ok());
            let place = place.ok_or_else(|| self.wrong(ask.path, "it redirects to no place"))?;
            url = self.resolve_from(&url, place)?;
        }
        Err(self.wrong(ask.path, "it redirects too often"))
    }

    /// Sends one request to any server.
    pub fn exchange(
        &self,
        request: Builder,
        body: Option<&[u8]>,
        patience: Duration,
    ) -> Result<Response<Body>, RegistryError> {
        self.client.send(request, body, patience).map_err(|error| match error {
            ClientError::Malformed(why) => self.wrong("a request", &why),
            error => self.unreachable(&error.to_string()),
        })
    }

    /// Returns the full address of a path below `/v2/`, or of an address from an answer.
    fn resolve(&self, path: &str) -> Result<String, RegistryError> {
        if path.contains("://") || path.starts_with('/') {
            return self.resolve_from(&self.origin, path);
        }
        Ok(format!("{}/v2/{path}", self.origin))
    }

    /// Returns the full address of a place in an answer.
    fn resolve_from(&self, base: &str, place: &str) -> Result<String, RegistryError> {
        let refuse = |why: &str| Err(self.wrong("an address that it names", why));
        let url = if place.contains("://") {
            place.to_owned()
        } else if place.starts_with('/') && !place.starts_with("//") {
            format!("{}{place}", origin_of(base).unwrap_or_else(|| self.origin.clone()))
        } else {
            return refuse("it is no address");
        };
        let Ok(uri) = url.parse::<Uri>() else { return refuse("it is no address") };
        let is_allowed = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => self.origin.starts_with("http://"),
            _ => false,
        };
        let has_login = uri.authority().is_none_or(|authority| authority.as_str().contains('@'));
        if !is_allowed || has_login {
            return refuse("its protocol is not allowed");
        }
        Ok(url)
    }

    /// Reports whether an address is on the registry itself.
    fn is_own(&self, url: &str) -> bool {
        origin_of(url).is_some_and(|origin| origin == self.origin)
    }

    /// Reports whether credentials may be sent to a token server.
    pub(super) fn may_log_in_at(&self, realm: &str) -> bool {
        may_log_in(&self.origin, realm)
    }

    /// Makes the error for an answer. `what` names the requested thing.
    pub fn refusal(&self, answer: &Answer, what: &str) -> RegistryError {
        let (registry, what, reason) = (self.host.clone(), what.to_owned(), self.reason(answer));
        let status = answer.status.as_u16();
        match status {
            401 | 403 => RegistryError::Denied { registry, what, reason },
            404 => RegistryError::NotFound { registry, what },
            408 | 429 | 500..=599 => {
                RegistryError::Busy { registry, reason, retry_after: retry_after(&answer.headers) }
            }
            _ => RegistryError::Refused { registry, what, status, reason },
        }
    }

    /// Returns the registry's own message.
    fn reason(&self, answer: &Answer) -> String {
        #[derive(Deserialize)]
        struct Errors {
            errors: Vec<Fault>,
        }
        #[derive(Deserialize)]
        struct Fault {
            #[serde(default)]
            code: String,
            #[serde(default)]
            message: String,
        }
        let said: Option<Errors> = serde_json::from_slice(&answer.body).ok();
        match said.as_ref().and_then(|said| said.errors.first()) {
            Some(Fault { code, message }) => {
                self.harmless(&format!("{message} ({code}, {})", answer.status.as_u16()))
            }
            None => answer.status.to_string(),
        }
    }

    pub fn unreachable(&self, reason: &str) -> RegistryError {
        RegistryError::Unreachable { registry: self.host.clone(), reason: self.harmless(reason) }
    }

    pub fn wrong(&self, what: &str, reason: &str) -> RegistryError {
        let (registry, what) = (self.host.clone(), self.harmless(what));
        RegistryError::Wrong { registry, what, reason: self.harmless(reason) }
    }

    /// Makes one short line without credentials from a foreign text.
    fn harmless(&self, text: &str) -> String {
        let hidden = self.logins.lock().map_or_else(|_| String::new(), |logins| logins.hide_in(text));
        short_line(&hidden, LONGEST_MESSAGE)
    }
}

/// Reports whether a registry's credentials may be sent to an address: over https, or to the registry's own host,
/// which gets them anyway.
fn may_log_in(origin: &str, realm: &str) -> bool {
    let host = |url: &str| Some(url.parse::<Uri>().ok()?.host()?.to_ascii_lowercase());
    let is_own = || host(realm).is_some_and(|realm| Some(realm) == host(origin));
    realm.starts_with("https://") || origin.starts_with("http://") && realm.starts_with("http://") && is_own()
}

/// Returns `scheme://host:port` of an address.
fn origin_of(url: &str) -> Option<String> {
    let uri = url.parse::<Uri>().ok()?;
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_goes_by_https_or_to_the_registrys_own_host() {
        let (open, closed) = ("http://registry.example.com:5000", "https://registry.example.com");
        for (origin, realm, may) in [
            (closed, "https://auth.example.com/token", true),
            (closed, "http://registry.example.com/token", false),
            (open, "https://auth.example.com/token", true),
            (open, "http://registry.example.com:5001/token", true),
            (open, "http://Registry.example.com/token", true),
            (open, "http://auth.example.com/token", false),
            (open, "http://registry.example.com@auth.example.com/token", false),
            (open, "ftp://registry.example.com/token", false),
            (open, "token", false),
        ] {
            assert_eq!(may_log_in(origin, realm), may, "{origin} {realm}");
        }
    }

    fn http(host: &str) -> Http {
        Http::new(host, &Access::default())
    }

    #[test]
    fn plain_text_is_for_this_machine_only() {
        assert_eq!(http("127.0.0.1:5000").origin, "http://127.0.0.1:5000");
        assert_eq!(http("[::1]:5000").origin, "http://[::1]:5000");
        assert_eq!(http("r.example.com").origin, "https://r.example.com");
        assert_eq!(http("docker.io").origin, "https://registry-1.docker.io");
        let plain = Access { plain: true, ..Access::default() };
        assert_eq!(Http::new("r.example.com", &plain).origin, "http://r.example.com");
    }

    #[test]
    fn a_place_is_taken_only_where_it_is_safe() {
        let http = http("r.example.com");
        let resolve = |place: &str| http.resolve_from("https://r.example.com/v2/a", place).ok();
        assert_eq!(resolve("/v2/a/b?c=d").as_deref(), Some("https://r.example.com/v2/a/b?c=d"));
        assert_eq!(resolve("https://cdn.example.com/x").as_deref(), Some("https://cdn.example.com/x"));
        for wrong in [
            "http://r.example.com/x",
            "//evil/x",
            "file:///etc/passwd",
            "x",
            "",
            "https://a:b@evil/x",
            "https://",
        ] {
            assert_eq!(resolve(wrong), None, "{wrong}");
        }
        assert!(http.is_own("https://r.example.com/v2/a"));
        for other in ["https://r.example.com.evil/", "https://r.example.com:444/", "http://r.example.com/"] {
            assert!(!http.is_own(other), "{other}");
        }
    }
}
