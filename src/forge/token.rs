//! A credential for a forge. Nothing prints it.

use std::fmt;

/// A credential for a forge's API. `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    secret: String,
    is_of_job: bool,
}

impl Token {
    /// A token of a person, a project or a GitHub App. White space around it is dropped.
    pub fn new(secret: &str) -> Token {
        Token { secret: secret.trim().to_owned(), is_of_job: false }
    }

    /// The token that GitLab gives each job (`CI_JOB_TOKEN`), which has few rights.
    pub fn of_job(secret: &str) -> Token {
        Token { is_of_job: true, ..Token::new(secret) }
    }

    pub(crate) fn is_of_job(&self) -> bool {
        self.is_of_job
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Replaces the token wherever a text repeats it.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        if self.secret.is_empty() { text.to_owned() } else { text.replace(&self.secret, "…") }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_printed() {
        let token = Token::new(" s3cret\n");
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert_eq!(token.secret(), "s3cret");
        assert_eq!(token.hide_in("Bad credentials: s3cret"), "Bad credentials: …");
        assert_eq!(Token::new("").hide_in("ab"), "ab");
    }
}
