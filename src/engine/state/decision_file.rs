//! Decision files as bytes, both ways.

use super::decision;
use berth_base::model::Decision;
use berth_base::yaml;

/// A decision file's text.
pub fn write_decision(decision: &Decision) -> String {
    yaml::emit(&decision::to_json(decision))
}

/// Reads a decision file; says in one line why not.
pub fn read_decision(bytes: &[u8]) -> Result<Decision, String> {
    decision::from_json(&yaml::read_stored(bytes)?.to_json())
}
