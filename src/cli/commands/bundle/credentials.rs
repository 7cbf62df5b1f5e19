//! The credentials that this machine knows, and texts without them. Nothing that is gathered should hold one: this is for
//! what nobody thought of.

use std::collections::BTreeSet;
use std::path::Path;

use super::settings;

/// Shorter ones would be found in innocent words.
const SHORTEST: usize = 6;

/// Files of credentials are short.
const LONGEST_FILE: u64 = 64 << 10;

const INSTEAD: &str = "(redacted)";

/// The longest first, so that no part of one is left.
#[derive(Debug, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// The values of all variables that berth reads, the passwords of addresses, and the lines of files that variables name.
    pub fn of_this_machine() -> Secrets {
        let mut found = BTreeSet::new();
        for (name, value) in settings() {
            if name.ends_with("TOKEN") {
                found.insert(value.clone());
            }
            found.extend(password(&value).map(str::to_owned));
            found.extend(lines_of(Path::new(&value)));
        }
        let mut found: Vec<String> = found.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(found)
    }

    pub fn redacted(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), INSTEAD))
    }
}

/// The password of an address such as `https://ann:secret@host/`.
fn password(address: &str) -> Option<&str> {
    let (login, _) = address.split_once("://")?.1.split('/').next()?.rsplit_once('@')?;
    Some(login.split_once(':')?.1)
}

/// The lines of a short file, of which any may be a credential.
fn lines_of(path: &Path) -> Vec<String> {
    let is_short = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LONGEST_FILE);
    let text = if is_short { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    text.lines().map(str::trim).filter(|line| !line.starts_with("-----")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use super::password;

    #[test]
    fn passwords_of_addresses_are_found() {
        assert_eq!(password("https://ann:s3cret@host/x@y"), Some("s3cret"));
        assert_eq!(password("https://host/ann:s3cret@"), None);
        assert_eq!(password("git@host:path"), None);
    }

    #[test]
    fn of_two_secrets_the_longer_one_goes_as_a_whole() {
        let secrets = Secrets(vec!["secret-and-more".to_owned(), "secret".to_owned()]);
        assert_eq!(secrets.redacted("a secret-and-more, secret"), "a (redacted), (redacted)");
    }
}
