//! Nodes for tests, read from the YAML of a value.

use berth_base::yaml::{self, Limits, Node};
use serde_json::Value as Json;

/// The node tree of a file with this content.
pub fn node(json: &Json) -> Node {
    let mut read = yaml::read(yaml::emit(json).as_bytes(), &Limits::default());
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    read.documents.pop().expect("a document").root
}
