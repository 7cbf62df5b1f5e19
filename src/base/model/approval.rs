//! A word for a removal, kept as a file of the fleet repository.

use jiff::Timestamp;

use super::decision::Digest;
use crate::diag::Pos;

/// Lets exactly the removals that a digest names pass, once, before it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub origin: Pos,
    pub digest: Digest,
    pub expires: Timestamp,
    pub reason: String,
}
