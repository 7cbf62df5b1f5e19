//! Credentials: a user name and a token, from a file or from memory; and a remote's address with the
//! credentials for it.
//!
//! No credential is ever shown. A token reaches `git` through the environment, never through arguments.
//! Output of `git` or a server is searched for the token before anybody reads it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::error::TransportError;
use super::remote::RemoteUrl;
use super::sandbox::Limits;
use berth_base::text::base64;

/// The user name that most servers accept with a token.
const ANY_NAME: &str = "git";

/// A larger file is not a token file.
const LONGEST: usize = 64 << 10;

/// Text that no output may show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The source of a token.
#[derive(Clone, Debug, Default)]
pub enum Token {
    #[default]
    None,
    /// Read for every exchange, so that the token can be replaced while berth runs.
    File(PathBuf),
    Text(Secret),
}

impl Token {
    pub(super) fn read(&self) -> Result<Option<Secret>, TransportError> {
        let path = match self {
            Token::None => return Ok(None),
            Token::Text(secret) => return Ok(Some(secret.clone())),
            Token::File(path) => path,
        };
        let unusable = |why: String| TransportError::Setting {
            message: format!("the token file `{}` cannot be used: {why}", path.display()),
            hint: Some("a file with the token or password on its only line".to_owned()),
        };
        let bytes = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is not text".to_owned()))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
            return Err(unusable("it does not hold exactly one line".to_owned()));
        }
        Ok(Some(Secret::new(text)))
    }
}

/// The header of HTTP's basic authentication.
pub(super) fn basic(username: Option<&str>, token: &Secret) -> Secret {
    Secret(format!("Authorization: Basic {}", pair(username, token)))
}

fn pair(username: Option<&str>, token: &Secret) -> String {
    base64::encode(format!("{}:{}", username.unwrap_or(ANY_NAME), token.reveal()).as_bytes())
}

/// Removes secrets from the output of `git` and servers: the known ones, in each encoding in which they are sent, and
/// user names and passwords in addresses.
#[derive(Debug, Default)]
pub(super) struct Scrubber {
    known: Vec<Secret>,
}

impl Scrubber {
    pub(super) fn hide(&mut self, text: &str) {
        if !text.is_empty() {
            self.known.push(Secret::new(text));
            self.known.push(Secret::new(percent_encoded(text)));
            // Longest first, because a secret may be part of another.
            self.known.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
        }
    }

    pub(super) fn hide_token(&mut self, username: Option<&str>, token: &Secret) {
        self.hide(token.reveal());
        self.hide(&pair(username, token));
    }

    pub(super) fn scrub(&self, text: &str) -> String {
        let mut text = without_userinfo(text);
        for secret in &self.known {
            text = text.replace(secret.reveal(), "***");
        }
        text
    }
}

/// Replaces `https://ann:pass@host/` by `https://***@host/` throughout a text. Keeps a user name without a password
/// in addresses such as `ssh://git@host/`, which need it.
pub(crate) fn without_userinfo(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let ends = |c: char| c.is_whitespace() || "/?#'\"`<>".contains(c);
        let end = after.find(ends).unwrap_or(after.len());
        let (authority, beyond) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((info, host)) if info.contains(':') || !before.ends_with("ssh") => {
                shown.push_str("***@");
                shown.push_str(host);
            }
            _ => shown.push_str(authority),
        }
        rest = beyond;
    }
    shown + rest
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_authentication_is_as_the_standard_has_it() {
        let header = basic(Some("Aladdin"), &Secret::new("open sesame"));
        assert_eq!(header.reveal(), "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[test]
    fn no_form_of_a_secret_survives() {
        let mut scrubber = Scrubber::default();
        scrubber.hide_token(Some("ann"), &Secret::new("p@ss/word"));
        let said = "x p@ss/word y p%40ss%2Fword z YW5uOnBAc3Mvd29yZA== https://a:b@h/p 'https://tok@h' ssh://git@h/r";
        assert_eq!(scrubber.scrub(said), "x *** y *** z *** https://***@h/p 'https://***@h' ssh://git@h/r");
        assert_eq!(format!("{:?}", Secret::new("x")), "***");
    }

    #[test]
    fn a_token_file_holds_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Token::File(path.clone()).read()
        };
        assert_eq!(read("abc\n").unwrap(), Some(Secret::new("abc")));
        for bad in ["", "\n", "a\nsecond\n", "a\0"] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains("exactly one line") && !error.contains("second"), "{error}");
        }
        assert!(Token::File(folder.path().join("none")).read().is_err());
    }
}
