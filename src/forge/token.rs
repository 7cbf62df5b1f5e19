//! A credential for a forge. It is never printed.

use berth_http::Secret;

/// A credential for a forge's API. `Debug` does not show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub(crate) secret: Secret,
    pub(crate) is_of_job: bool,
}

impl Token {
    /// Makes a token of a person, a project or a GitHub App. Trims white space.
    pub fn new(secret: &str) -> Token {
        Token { secret: Secret::new(secret.trim()), is_of_job: false }
    }

    /// Makes a token that GitLab gives to each job (`CI_JOB_TOKEN`), which has few rights.
    pub fn of_job(secret: &str) -> Token {
        Token { is_of_job: true, ..Token::new(secret) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_printed() {
        let token = Token::new(" s3cret\n");
        assert!(!format!("{token:?}").contains("s3cret"));
        assert_eq!(token.secret.reveal(), "s3cret");
    }
}
