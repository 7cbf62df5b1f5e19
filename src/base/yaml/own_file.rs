//! Files that berth wrote: one document each. The reader of people's files reads them too, so that untrusted
//! text is at worst an error.

use super::limits::{HONEST_REPEATS, Limits};
use super::node::Node;
use super::reader::read;
use crate::diag::Severity;

/// Inside a decision, a policy may nest as deep as in a source file.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 200, nodes: 4_000_000, repeats: HONEST_REPEATS };

/// Reads the single document of a file; the error is one line.
pub fn read_stored(bytes: &[u8]) -> Result<Node, String> {
    let mut read = read(bytes, &LIMITS);
    if let Some(fault) = read.faults.iter().find(|fault| fault.severity == Severity::Error) {
        return Err(format!("line {}: {}", fault.at.line, fault.message));
    }
    match (read.documents.pop(), read.documents.is_empty()) {
        (Some(document), true) => Ok(document.root),
        (None, _) => Err("it is empty".to_owned()),
        (Some(_), false) => Err("it holds more than one document".to_owned()),
    }
}
