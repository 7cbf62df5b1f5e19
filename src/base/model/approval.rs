//! A person's approval of a removal, as a file of the fleet repository.

use jiff::Timestamp;

use super::decision::Digest;
use crate::diag::Pos;

/// Permits exactly the removals of a digest, once, before it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub origin: Pos,
    pub digest: Digest,
    pub expires: Timestamp,
    pub reason: String,
}
