//! The address of a registry, and the repository of each cluster there.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::error::RegistryError;
use berth_base::text::hex;

const SCHEME: &str = "oci://";
const FORM: &str = "write it as `oci://registry.example.com/fleet`";
/// The longest cluster name used as a part of a repository's name; longer names are hashed.
const LONGEST_PART: usize = 100;
/// The longest host and prefix together: with the cluster's part, registries accept 255 characters.
const LONGEST_PREFIX: usize = 140;

/// A place for artifacts: `oci://HOST[:PORT]/PREFIX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryUrl {
    host: String,
    prefix: String,
}

impl fmt::Display for RegistryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.host, self.prefix)
    }
}

impl RegistryUrl {
    /// Reports whether a text has the form of a registry's address.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads an address.
    pub fn parse(text: &str) -> Result<RegistryUrl, RegistryError> {
        let shown = match text.rsplit_once('@') {
            // The part before `@` is a user name and a password, which no message may show.
            Some((_, rest)) => format!("{SCHEME}***@{rest}"),
            None => text.to_owned(),
        };
        let refuse = |why: &str, hint: &str| RegistryError::Setting {
            message: format!("`{}` cannot be a registry: {why}", shown.escape_debug()),
            hint: Some(hint.to_owned()),
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| refuse("it is no such address", FORM))?;
        if rest.contains('@') {
            let hint = "leave out names, passwords and digests: credentials come from docker's `config.json`";
            return Err(refuse("an `@` is in it", hint));
        }
        let (host, prefix) = rest.split_once('/').ok_or_else(|| refuse("it names no repository", FORM))?;
        let prefix = prefix.trim_end_matches('/');
        if !is_host(host) {
            return Err(refuse("it names no host", FORM));
        }
        if !prefix.split('/').all(is_part) {
            let hint = "use lower-case letters and digits, with `.`, `_` and `-` between them, and no tag";
            return Err(refuse("the repository's name is not fit", hint));
        }
        if host.len() + prefix.len() > LONGEST_PREFIX {
            return Err(refuse("it is too long", "shorten the repository's name"));
        }
        Ok(RegistryUrl { host: host.to_owned(), prefix: prefix.to_owned() })
    }

    /// Returns the host with its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the name of a cluster's repository, without the host. Each cluster has its own.
    pub fn repository_of(&self, cluster: &str) -> String {
        self.repository_at(&encode(cluster))
    }

    /// Returns the repository of this name itself.
    pub fn repository(&self) -> &str {
        &self.prefix
    }

    /// Returns the name of the repository with this last part.
    pub(crate) fn repository_at(&self, part: &str) -> String {
        format!("{}/clusters/{part}", self.prefix)
    }
}

/// Encodes a cluster's name as one part of a repository's name. Most names stay as they are; an underscore marks
/// encoded ones.
fn encode(cluster: &str) -> String {
    if is_part(cluster) && !cluster.contains('_') && cluster.len() <= LONGEST_PART {
        return cluster.to_owned();
    }
    if 2 * cluster.len() <= LONGEST_PART {
        return format!("x_{}", hex(cluster.as_bytes()));
    }
    format!("h_{}", hex(&Sha256::digest(cluster.as_bytes())))
}

/// Reports whether a text can be a part of a repository's name: letters and digits, with one separator between them.
pub(crate) fn is_part(text: &str) -> bool {
    let mut separators = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let has_edges = text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_separator = |text: &str| matches!(text, "" | "." | "_" | "__") || text.chars().all(|c| c == '-');
    has_edges && separators.all(is_separator)
}

fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let is_address = |name: &str| {
        name.strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|inner| inner.parse::<core::net::Ipv6Addr>().is_ok())
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(['-', '.'])
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-')
    };
    (is_name(name) || is_address(name)) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_read_or_refused_with_a_hint() {
        for fine in ["oci://r.example.com/fleet", "oci://127.0.0.1:5000/a/b-c/d__e", "oci://[::1]:5000/f"] {
            assert_eq!(RegistryUrl::parse(fine).unwrap().to_string(), fine);
        }
        assert_eq!(RegistryUrl::parse("oci://r/fleet/").unwrap().to_string(), "oci://r/fleet");
        for wrong in [
            "https://r/fleet",
            "oci://",
            "oci://r",
            "oci://r/",
            "oci:///fleet",
            "oci://r/Fleet",
            "oci://r/a//b",
            "oci://r/a:tag",
            "oci://-r/a",
            "oci://r:x/a",
            "oci://r/../a",
            "oci://r/a?b",
            "oci://r/a b",
            "oci://r/-a",
        ] {
            assert!(RegistryUrl::parse(wrong).unwrap_err().hint().is_some(), "{wrong}");
        }
        let error = RegistryUrl::parse("oci://ann:s3cret@r/fleet").unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }

    #[test]
    fn every_cluster_has_a_repository_of_its_own() {
        let url = RegistryUrl::parse("oci://r/fleet").unwrap();
        let long = "x".repeat(250);
        let longer = "x".repeat(251);
        let names =
            ["oslo", "eu-west.1", "Oslo", "a_b", "a..b", ".a", "a/b", "../x", "ø", "a--b", &long, &longer];
        let made: BTreeSet<String> = names.iter().map(|name| url.repository_of(name)).collect();
        assert_eq!(made.len(), names.len());
        assert!(made.contains("fleet/clusters/oslo") && made.contains("fleet/clusters/eu-west.1"));
        assert!(made.contains("fleet/clusters/x_4f736c6f"), "{made:?}");
        assert!(made.iter().all(|name| name.split('/').all(is_part)));
    }

    proptest! {
        #[test]
        fn no_two_names_share_a_repository(one in "[a-zA-Z_.x0-9]{1,8}", other in "[a-zA-Z_.x0-9]{1,8}") {
            prop_assert_eq!(encode(&one) == encode(&other), one == other);
            prop_assert!(is_part(&encode(&one)));
        }
    }
}
