//! Logs in with a password, or with tokens that a token server issues for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::http::Http;
use crate::credentials::Login;
use crate::error::RegistryError;
use berth_base::text::base64;
use berth_http::Secret;
use berth_http::client::{Request, StatusCode, header};

const PATIENCE: Duration = Duration::from_secs(30);
/// The lifetime of a token without a stated one, by the specification.
const LIFE: Duration = Duration::from_secs(60);
/// The time before its end at which a token is renewed.
const MARGIN: Duration = Duration::from_secs(10);
/// The number of stored tokens: one for each repository and right.
const MOST_TOKENS: usize = 20_000;
/// The number of secrets that are removed from texts.
const MOST_SECRETS: usize = 64;

/// The rights on a repository that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rights {
    Pull,
    Push,
    Delete,
}

impl Rights {
    fn actions(self) -> &'static str {
        match self {
            Rights::Pull => "pull",
            Rights::Push => "pull,push",
            Rights::Delete => "pull,push,delete",
        }
    }
}

/// The login that the registry requires, and the tokens that are still valid.
#[derive(Debug, Default)]
pub(super) struct Logins {
    challenge: Option<Challenge>,
    tokens: BTreeMap<(String, Rights), (Secret, Instant)>,
    /// The secrets that no text may contain.
    secrets: Vec<Secret>,
}

impl Logins {
    /// Replaces credentials wherever a text contains them.
    pub fn hide_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.secrets.iter().filter(|secret| !secret.reveal().is_empty()) {
            text = text.replace(secret.reveal(), "***");
        }
        text
    }

    fn keep_secret(&mut self, secret: &Secret) {
        self.secrets.retain(|kept| kept != secret);
        // Old tokens are useless to anyone. A password is stored again with each token obtained for it.
        if self.secrets.len() >= MOST_SECRETS {
            self.secrets.remove(0);
        }
        self.secrets.push(secret.clone());
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer { realm: String, service: String },
}

impl Http {
    /// Returns the login header, if the registry has required a login before.
    pub(super) fn authorization(
        &self,
        repository: &str,
        rights: Rights,
    ) -> Result<Option<Secret>, RegistryError> {
        let key = (repository.to_owned(), rights);
        let challenge = {
            let logins = self.logins.lock().unwrap_or_else(|broken| broken.into_inner());
            let Some(challenge) = &logins.challenge else { return Ok(None) };
            if let Some((token, until)) = logins.tokens.get(&key)
                && Instant::now() < *until
            {
                return Ok(Some(Secret::new(format!("Bearer {}", token.reveal()))));
            }
            challenge.clone()
        };
        let login = self.credentials.login(self.host(), repository)?;
        let (realm, service) = match challenge {
            Challenge::Basic => return Ok(self.basic(&login)),
            Challenge::Bearer { realm, service } => (realm, service),
        };
        let (token, life) = match &login {
            Login::Bearer(token) => (token.clone(), LIFE),
            login => self.fetch_token(&realm, &service, repository, rights, login)?,
        };
        let mut logins = self.logins.lock().unwrap_or_else(|broken| broken.into_inner());
        logins.keep_secret(&token);
        let now = Instant::now();
        if logins.tokens.len() >= MOST_TOKENS {
            logins.tokens.retain(|_, (_, until)| now < *until);
        }
        if logins.tokens.len() < MOST_TOKENS {
            logins.tokens.insert(key, (token.clone(), now + life.saturating_sub(MARGIN)));
        }
        Ok(Some(Secret::new(format!("Bearer {}", token.reveal()))))
    }

    /// Stores the registry's challenge. Returns true if a login is worth another attempt.
    pub(super) fn challenged(
        &self,
        headers: &[&str],
        repository: &str,
        rights: Rights,
        was_logged_in: bool,
    ) -> bool {
        let Some(wanted) = headers.iter().find_map(|header| read_challenge(header)) else { return false };
        let mut logins = self.logins.lock().unwrap_or_else(|broken| broken.into_inner());
        let had_token = logins.tokens.remove(&(repository.to_owned(), rights)).is_some();
        let is_other = logins.challenge.as_ref() != Some(&wanted);
        logins.challenge = Some(wanted);
        // A token may have expired early. A refused password would be refused again.
        is_other || !was_logged_in || had_token
    }

    fn basic(&self, login: &Login) -> Option<Secret> {
        let Login::Password { name, password } = login else { return None };
        let encoded = Secret::new(base64::encode(format!("{name}:{}", password.reveal()).as_bytes()));
        let mut logins = self.logins.lock().unwrap_or_else(|broken| broken.into_inner());
        logins.keep_secret(password);
        logins.keep_secret(&encoded);
        Some(Secret::new(format!("Basic {}", encoded.reveal())))
    }

    fn fetch_token(
        &self,
        realm: &str,
        service: &str,
        repository: &str,
        rights: Rights,
        login: &Login,
    ) -> Result<(Secret, Duration), RegistryError> {
        #[derive(Deserialize)]
        struct Given {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
            expires_in: Option<u64>,
        }
        if !self.may_log_in_at(realm) {
            return Err(
                self.wrong("a login", "its token server is on another host, and its address is not https")
            );
        }
        let scope = format!("repository:{repository}:{}", rights.actions());
        let answer = match login {
            Login::Identity(token) => {
                let form = format!(
                    "grant_type=refresh_token&service={}&scope={}&client_id=berth&refresh_token={}",
                    encoded(service),
                    encoded(&scope),
                    encoded(token.reveal())
                );
                let kind = "application/x-www-form-urlencoded";
                let request = Request::post(realm).header(header::CONTENT_TYPE, kind);
                self.exchange(request, Some(form.as_bytes()), PATIENCE)?
            }
            login => {
                let separator = if realm.contains('?') { '&' } else { '?' };
                let url = format!("{realm}{separator}service={}&scope={}", encoded(service), encoded(&scope));
                let mut request = Request::get(url);
                if let Some(basic) = self.basic(login) {
                    request = request.header(header::AUTHORIZATION, basic.reveal());
                }
                self.exchange(request, None, PATIENCE)?
            }
        };
        let answer = self.finish(answer)?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(&answer, repository));
        }
        let given: Given = serde_json::from_slice(&answer.body)
            .map_err(|_| self.wrong("a login", "its token is not as expected"))?;
        let token = if given.token.is_empty() { given.access_token } else { given.token };
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(self.wrong("a login", "its token is not as expected"));
        }
        let life = given.expires_in.map_or(LIFE, |seconds| Duration::from_secs(seconds.min(86_400)));
        Ok((Secret::new(token), life.max(MARGIN + Duration::from_secs(1))))
    }
}

/// Reads `Bearer realm="...",service="..."`, or `Basic ...`.
fn read_challenge(text: &str) -> Option<Challenge> {
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut rest) = (None, String::new(), rest);
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',']);
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        match name {
            "realm" => realm = Some(value.to_owned()),
            "service" => value.clone_into(&mut service),
            _ => {}
        }
        rest = after;
    }
    Some(Challenge::Bearer { realm: realm?, service })
}

/// Encodes a value of a query or a form.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_with_its_server() {
        let bearer = |realm: &str, service: &str| {
            Some(Challenge::Bearer { realm: realm.to_owned(), service: service.to_owned() })
        };
        let text =
            r#"Bearer realm="https://auth.example.com/token",service="r",scope="repository:a:pull,push""#;
        assert_eq!(read_challenge(text), bearer("https://auth.example.com/token", "r"));
        assert_eq!(read_challenge(r#"bearer service=r, realm="https://a/""#), bearer("https://a/", "r"));
        assert_eq!(read_challenge(r#"Basic realm="x""#), Some(Challenge::Basic));
        for none in ["", "Digest a=b", r#"Bearer service="x""#, r#"Bearer realm="x"#] {
            assert_eq!(read_challenge(none), None, "{none}");
        }
    }

    #[test]
    fn secrets_are_taken_out_of_texts() {
        let mut logins = Logins::default();
        logins.keep_secret(&Secret::new("s3cret"));
        logins.keep_secret(&Secret::new(""));
        assert_eq!(logins.hide_in("no s3cret here"), "no *** here");
        for number in 0..100 {
            logins.keep_secret(&Secret::new(format!("t{number}")));
        }
        assert_eq!(logins.hide_in("t99"), "***");
    }

    #[test]
    fn a_scope_is_written_as_a_value() {
        assert_eq!(encoded("repository:a/b:pull,push"), "repository%3Aa%2Fb%3Apull%2Cpush");
    }
}
