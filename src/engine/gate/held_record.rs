//! A held workload as a line: in a rendered commit's trailers, and in the record of the last processed
//! commit.

use std::fmt;
use std::str::FromStr;

use super::verdict::Held;
use berth_base::model::{Digest, Key};

/// A workload that was held, and the digest that approves its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRecord {
    pub key: Key,
    pub digest: Digest,
}

impl HeldRecord {
    pub fn of(held: &Held) -> HeldRecord {
        HeldRecord { key: held.key.clone(), digest: held.digest }
    }
}

impl fmt::Display for HeldRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.digest, self.key.kind_and_group(), self.key.full_name())
    }
}

impl FromStr for HeldRecord {
    type Err = ();

    fn from_str(text: &str) -> Result<HeldRecord, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let [digest, kind, name] = words.as_slice() else { return Err(()) };
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        Ok(HeldRecord { key: Key::new(group, kind, namespace, name), digest: digest.parse()? })
    }
}
