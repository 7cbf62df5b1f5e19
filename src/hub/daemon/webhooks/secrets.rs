//! The file of the secrets with which forges sign, one per line, so that they can be replaced one after another.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use berth_base::text::base64;
use ring::hmac;
use tracing::warn;

/// The least bytes of a secret. Shorter ones can be guessed from one signed delivery.
const SHORTEST: usize = 16;
const MOST: usize = 8;

/// The prefix of a base64 key in the secrets of Standard Webhooks and of GitLab's signing tokens.
const ENCODED: &str = "whsec_";

/// The reasons why secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error("it has no secret")]
    None,
    #[error("it has more than {MOST} secrets")]
    TooMany,
    #[error("its line {0} is shorter than {SHORTEST} characters")]
    TooShort(usize),
    #[error("its line {0} has no base64 after `{ENCODED}`, or a key of fewer than {SHORTEST} bytes")]
    Encoding(usize),
}

/// A secret, prepared for each of its uses.
pub(super) struct Secret {
    text: Vec<u8>,
    /// Signs a body.
    pub of_body: hmac::Key,
    /// Signs an id, a moment and a body.
    pub of_dated: hmac::Key,
}

impl Secret {
    fn new(number: usize, text: &str) -> Result<Secret, SecretError> {
        if text.len() < SHORTEST {
            return Err(SecretError::TooShort(number));
        }
        let key = |bytes: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let of_dated = match text.strip_prefix(ENCODED) {
            None => key(text.as_bytes()),
            Some(encoded) => {
                let bytes = base64::decode_exactly(encoded).filter(|bytes| bytes.len() >= SHORTEST);
                key(&bytes.ok_or(SecretError::Encoding(number))?)
            }
        };
        Ok(Secret { text: text.as_bytes().to_vec(), of_body: key(text.as_bytes()), of_dated })
    }

    /// Compares a token with the secret in constant time.
    pub fn is(&self, token: &[u8]) -> bool {
        let digest = hmac::sign(&self.of_body, &self.text);
        hmac::verify(&self.of_body, token, digest.as_ref()).is_ok()
    }
}

fn parse(text: &str) -> Result<Vec<Secret>, SecretError> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let secrets: Vec<Secret> =
        lines.map(|(number, line)| Secret::new(number, line)).collect::<Result<_, _>>()?;
    match secrets.len() {
        0 => Err(SecretError::None),
        count if count > MOST => Err(SecretError::TooMany),
        _ => Ok(secrets),
    }
}

/// A file of secrets. Read for each delivery.
#[derive(Debug)]
pub struct SecretFile {
    path: PathBuf,
    /// True if the log already contains its fault.
    is_told: Cell<bool>,
}

impl SecretFile {
    /// Opens the file, which must contain valid secrets now.
    pub fn new(path: &Path) -> Result<SecretFile, SecretError> {
        let file = SecretFile { path: path.to_owned(), is_told: Cell::new(false) };
        file.secrets()?;
        Ok(file)
    }

    fn secrets(&self) -> Result<Vec<Secret>, SecretError> {
        parse(&std::fs::read_to_string(&self.path)?)
    }

    /// Reads the secrets. A failure is logged only once, because a stranger may send any number of requests.
    pub(super) fn read(&self) -> Option<Vec<Secret>> {
        match self.secrets() {
            Ok(secrets) => {
                self.is_told.set(false);
                Some(secrets)
            }
            Err(error) => {
                if !self.is_told.replace(true) {
                    let file = self.path.display();
                    warn!(%file, %error, "webhooks are refused: their secrets cannot be used");
                }
                None
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn secrets(lines: &[&str]) -> Vec<Secret> {
        parse(&lines.join("\n")).expect("secrets")
    }

    #[test]
    fn a_line_is_a_secret_and_a_short_one_is_refused() {
        let secrets = secrets(&["", "0123456789abcdef\r", "  another secret here ", ""]);
        assert_eq!(secrets.len(), 2);
        assert!(secrets[0].is(b"0123456789abcdef") && secrets[1].is(b"another secret here"));
        for other in [&b""[..], b"0123456789abcde", b"0123456789abcdef\n", b"0123456789ABCDEF"] {
            assert!(!secrets.iter().any(|secret| secret.is(other)), "{other:?}");
        }
        let nine = "0123456789abcdef\n".repeat(9);
        for (text, why) in [
            ("", "it has no secret"),
            (" \n\n", "it has no secret"),
            ("0123456789abcdef\n\nshort", "its line 3 is shorter than 16 characters"),
            (nine.as_str(), "it has more than 8 secrets"),
            (
                "whsec_not base64!!",
                "its line 1 has no base64 after `whsec_`, or a key of fewer than 16 bytes",
            ),
            (
                "whsec_AAAAAAAAAAAAAA==",
                "its line 1 has no base64 after `whsec_`, or a key of fewer than 16 bytes",
            ),
        ] {
            let error = parse(text).map(drop).expect_err("refused");
            assert_eq!(error.to_string(), why);
        }
    }
}
