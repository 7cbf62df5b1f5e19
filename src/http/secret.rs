//! Text that no output may show: tokens, passwords, addresses that grant access.

use std::fmt;

use berth_base::text::hex;

/// Text that no output may show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Makes a secret that nobody can guess, of letters and digits.
    pub fn random() -> std::io::Result<Secret> {
        let mut bytes = [0; 16];
        let provider = rustls::crypto::ring::default_provider();
        let filled = provider.secure_random.fill(&mut bytes);
        filled.map_err(|_| std::io::Error::other("the system gives no randomness"))?;
        Ok(Secret(hex(&bytes)))
    }

    /// Returns the text, for the request that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces the secret wherever a text contains it.
    pub fn hide_in(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "…") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_printed() {
        let secret = Secret::new("s3cret");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(secret.hide_in("Bad credentials: s3cret"), "Bad credentials: …");
        assert_eq!(Secret::new("").hide_in("ab"), "ab");
        assert_ne!(Secret::random().expect("randomness"), Secret::random().expect("randomness"));
    }
}
