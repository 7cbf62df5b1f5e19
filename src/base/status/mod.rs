//! The stored form of members' statuses, and of the facts that decisions read from them.

mod form;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::diag::{Diagnostic, Severity};
use crate::model::ClusterStatus;
use crate::yaml::{self, Node, Scope};

pub use form::{KIND, from_node};

/// Returns the text of a status.
pub fn write_status(status: &ClusterStatus) -> String {
    yaml::emit(&form::to_json(status))
}

/// Reads a status. Fields that a newer member added are ignored.
pub fn read_status(bytes: &[u8]) -> Result<ClusterStatus, String> {
    let scope = Scope::new(Arc::from("status"), Severity::Note);
    let root = yaml::read_stored(bytes)?;
    if root.get("kind").and_then(Node::as_str) != Some(KIND) {
        return Err(format!("its kind is not `{KIND}`"));
    }
    let status = from_node(&scope, &root);
    let found = scope.into_diagnostics();
    match (status, found.errors().next()) {
        (Some(status), None) => Ok(status),
        (_, fault) => Err(fault.map_or_else(|| "it names no cluster".to_owned(), said)),
    }
}

fn said(fault: &Diagnostic) -> String {
    match &fault.at {
        Some(at) if at.line > 0 => format!("line {}: {}", at.line, fault.message),
        _ => fault.message.clone(),
    }
}
