//! Files that berth wrote: one document each. They are read by the same reader as people's files, so that
//! text from a stranger is at worst an error.

use super::limits::{HONEST_REPEATS, Limits};
use super::node::Node;
use super::reader::read;
use crate::diag::Severity;

/// A policy may nest as deep as a source file can, inside a decision.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 200, nodes: 4_000_000, repeats: HONEST_REPEATS };

/// Reads the one document of a file, or says in one line why not.
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
