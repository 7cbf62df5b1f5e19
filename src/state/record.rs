//! Stored files as bytes, both ways: decisions, facts and statuses.
//!
//! They are read by the same reader as everything else, so what a stranger put into the branch can
//! at worst be reported.

use std::sync::Arc;

use super::decision;
use crate::diag::{Diagnostic, Severity};
use crate::model::{ClusterStatus, Decision};
use crate::report;
use crate::yaml::{self, HONEST_REPEATS, Limits, Node, Scope};

/// A policy may nest as deep as a source file can, inside a decision.
const LIMITS: Limits = Limits { bytes: 64 << 20, depth: 200, nodes: 4_000_000, repeats: HONEST_REPEATS };

/// A decision file's text.
pub fn write_decision(decision: &Decision) -> String {
    yaml::emit(&decision::to_json(decision))
}

/// Reads a decision file; says in one line why not.
pub fn read_decision(bytes: &[u8]) -> Result<Decision, String> {
    decision::from_json(&document(bytes)?.to_json())
}

/// The text of facts and of a status.
pub fn write_status(status: &ClusterStatus) -> String {
    yaml::emit(&report::to_json(status))
}

/// Reads facts or a status. A field that a newer member added is passed over.
pub fn read_status(bytes: &[u8]) -> Result<ClusterStatus, String> {
    let scope = Scope::new(Arc::from("status"), Severity::Note);
    let root = document(bytes)?;
    if root.get("kind").and_then(Node::as_str) != Some(report::form::KIND) {
        return Err(format!("its kind is not `{}`", report::form::KIND));
    }
    let status = report::from_node(&scope, &root);
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

fn document(bytes: &[u8]) -> Result<Node, String> {
    let mut read = yaml::read(bytes, &LIMITS);
    if let Some(fault) = read.faults.iter().find(|fault| fault.severity == Severity::Error) {
        return Err(format!("line {}: {}", fault.at.line, fault.message));
    }
    match (read.documents.pop(), read.documents.is_empty()) {
        (Some(document), true) => Ok(document.root),
        (None, _) => Err("it is empty".to_owned()),
        (Some(_), false) => Err("it holds more than one document".to_owned()),
    }
}
