//! Held workloads as lines: in a rendered commit's trailers, and in the record of the commit processed last.

use std::fmt;
use std::str::FromStr;

use super::removal::Cause;
use berth_base::model::{Digest, Key, Timestamp};

/// A workload that was held, and the removals it was held for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRecord {
    pub key: Key,
    pub digest: Digest,
    pub cause: Cause,
    /// The workload was held for removals together with others.
    pub together: bool,
    /// The end of the time searched for deadlines, where it was held for deadlines of the change.
    pub until: Option<Timestamp>,
}

/// An edit of the source that takes too much together with others.
const TOGETHER: &str = "together";

/// A key as two words: its kind with the group, and its name with the namespace.
pub(super) fn words_of_key(key: &Key) -> String {
    format!("{} {}", key.kind_and_group(), key.full_name())
}

pub(super) fn key_of_words(words: &str) -> Option<Key> {
    let (kind, name) = words.split_once(' ')?;
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    (!name.contains(' ')).then(|| Key::new(group, kind, namespace, name))
}

impl fmt::Display for HeldRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match (self.together, self.cause) {
            (false, cause) => cause.word().to_owned(),
            (true, Cause::Source) => TOGETHER.to_owned(),
            (true, cause) => format!("{TOGETHER}-{}", cause.word()),
        };
        let until = self.until.map_or_else(String::new, |until| format!("@{until}"));
        write!(f, "{} {cause}{until} {}", self.digest, words_of_key(&self.key))
    }
}

impl FromStr for HeldRecord {
    type Err = ();

    fn from_str(text: &str) -> Result<HeldRecord, ()> {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().ok_or(());
        let (digest, cause, key) = (word()?, word()?, word()?);
        let (cause, until) = match cause.split_once('@') {
            Some((cause, until)) => (cause, Some(until.parse().map_err(|_| ())?)),
            None => (cause, None),
        };
        let (together, cause) = match cause.strip_prefix(TOGETHER) {
            Some("") => (true, Cause::Source.word()),
            Some(rest) => (true, rest.strip_prefix('-').ok_or(())?),
            None => (false, cause),
        };
        Ok(HeldRecord {
            key: key_of_words(key).ok_or(())?,
            digest: digest.parse()?,
            cause: Cause::of_word(cause).ok_or(())?,
            together,
            until,
        })
    }
}
