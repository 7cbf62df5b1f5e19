//! The label keys that members may report.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Keys of labels; a key that ends in `*` matches all keys with that prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelKeys(BTreeSet<String>);

/// The word for no keys.
const NONE: &str = "none";

impl LabelKeys {
    /// Reports whether a member may report this label.
    pub fn allow(&self, key: &str) -> bool {
        self.0.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(prefix) => key.starts_with(prefix),
            None => key == allowed,
        })
    }
}

impl LabelKeys {
    /// Reports whether `others` allow everything that these keys allow.
    pub fn is_within(&self, others: &LabelKeys) -> bool {
        self.0.iter().all(|key| {
            let name = key.strip_suffix('*').unwrap_or(key);
            let covers = |other: &String| {
                other == key || other.strip_suffix('*').is_some_and(|prefix| name.starts_with(prefix))
            };
            others.0.iter().any(covers)
        })
    }
}

impl fmt::Display for LabelKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(NONE);
        }
        f.write_str(&self.0.iter().map(String::as_str).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for LabelKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<LabelKeys, String> {
        if text == NONE || text.is_empty() {
            return Ok(LabelKeys::default());
        }
        let keys = text.split(',').map(|key| {
            let name = key.strip_suffix('*').unwrap_or(key);
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
            match !key.is_empty() && name.bytes().all(fits) {
                true => Ok(key.to_owned()),
                false => {
                    Err(format!("`{key}` is not a label key; write KEY or PREFIX*, with commas between"))
                }
            }
        });
        keys.collect::<Result<_, _>>().map(LabelKeys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_prefixes_are_allowed_and_read_back() {
        let keys: LabelKeys = "zone,topology.kubernetes.io/*".parse().expect("keys");
        assert!(keys.allow("zone") && keys.allow("topology.kubernetes.io/region"));
        assert!(!keys.allow("zones") && !keys.allow("env") && !LabelKeys::default().allow("zone"));
        for text in ["none", "zone", "a,b/*", "*"] {
            assert_eq!(text.parse::<LabelKeys>().expect("keys").to_string(), text);
        }
        assert!("a b".parse::<LabelKeys>().is_err() && "a,,b".parse::<LabelKeys>().is_err());
    }
}
