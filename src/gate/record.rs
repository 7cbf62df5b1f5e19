//! What was held, as one line: in a rendered commit's trailers, and in what was processed last.

use std::fmt;
use std::str::FromStr;

use super::Cause;
use crate::model::{Digest, Key};

/// A workload that was held, and the removals it was held for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRecord {
    pub key: Key,
    pub digest: Digest,
    pub cause: Cause,
    /// Whether it was held for what it took together with others.
    pub together: bool,
}

/// An edit of the source that takes too much together with others.
const TOGETHER: &str = "together";

impl Cause {
    fn word(self) -> &'static str {
        match self {
            Cause::Source => "source",
            Cause::Itself => "status",
        }
    }
}

impl fmt::Display for HeldRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (self.key.kind_and_group(), self.key.full_name());
        let cause = if self.together { TOGETHER } else { self.cause.word() };
        write!(f, "{} {cause} {kind} {name}", self.digest)
    }
}

impl FromStr for HeldRecord {
    type Err = ();

    fn from_str(text: &str) -> Result<HeldRecord, ()> {
        let [digest, cause, kind, name] = text.split(' ').collect::<Vec<_>>().try_into().map_err(|_| ())?;
        let together = cause == TOGETHER;
        let cause = [Cause::Source, Cause::Itself].into_iter().find(|one| one.word() == cause);
        let cause = cause.or(together.then_some(Cause::Source)).ok_or(())?;
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        Ok(HeldRecord {
            key: Key::new(group, kind, namespace, name),
            digest: digest.parse()?,
            cause,
            together,
        })
    }
}
