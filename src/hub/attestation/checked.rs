//! Compares a signed statement with the commit that it names.

use std::fmt;

use serde_json::Value as Json;

use super::provenance::{Origin, predicate};
use super::publication::Publication;
use berth_git::CommitId;
use berth_registry::signing::Statement;

/// A claim of a statement that the commit does not confirm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The statement names no commit.
    NoPublication,
    /// The place in the predicate of a claim that the commit does not confirm.
    Claim(String),
    /// The statement names a folder that the commit did not change.
    Subject(String),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::NoPublication => f.write_str("the statement names no commit of a rendered branch"),
            Mismatch::Claim(place) => write!(f, "the statement's `{place}` differs from the commit"),
            Mismatch::Subject(name) => {
                write!(f, "the statement is about `{name}`, which the commit did not change")
            }
        }
    }
}

/// Returns the commit that a statement names as the origin of its artifacts.
pub fn publication_of(statement: &Statement) -> Result<CommitId, Mismatch> {
    let byproducts = &statement.predicate["runDetails"]["byproducts"];
    let published =
        byproducts.as_array().into_iter().flatten().find(|product| product["name"] == "publication");
    let commit = published.and_then(|product| product["digest"]["gitCommit"].as_str());
    commit.and_then(|commit| commit.parse().ok()).ok_or(Mismatch::NoPublication)
}

/// Compares a statement with its commit. The commit cannot confirm the program and the source's address.
pub fn check(statement: &Statement, publication: &Publication) -> Vec<Mismatch> {
    let said = &statement.predicate;
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let parameters = &said["buildDefinition"]["externalParameters"];
    let builder = &said["runDetails"]["builder"];
    let origin = Origin {
        repository: text(&parameters["repository"]),
        version: text(&builder["version"]["berth"]).unwrap_or_default(),
        program: text(&builder["builderDependencies"][0]["digest"]["sha256"]),
    };
    let mut found = Vec::new();
    differences(said, &predicate(publication, &origin), "predicate", &mut found);
    let names = statement.subjects().iter().map(|subject| &subject.name);
    let unknown = names.filter(|name| !publication.folders.contains_key(*name));
    found.extend(unknown.map(|name| Mismatch::Subject(shown(name))));
    found
}

/// Lists the places at which two values differ.
fn differences(said: &Json, given: &Json, place: &str, found: &mut Vec<Mismatch>) {
    match (said, given) {
        (Json::Object(one), Json::Object(other)) => {
            for name in one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))) {
                let none = &Json::Null;
                let (one, other) = (one.get(name).unwrap_or(none), other.get(name).unwrap_or(none));
                differences(one, other, &format!("{place}.{}", shown(name)), found);
            }
        }
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(one, other, &format!("{place}[{index}]"), found);
            }
        }
        (one, other) if one == other => {}
        _ => found.push(Mismatch::Claim(place.to_owned())),
    }
}

fn shown(name: &str) -> String {
    berth_base::diag::harmless_line(&berth_base::text::cut(name, 100)).into_owned()
}
