//! Statements of in-toto about artifacts, with the provenance that SLSA describes.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

use super::SigningError;
use super::bundle::LONGEST_PAYLOAD;

/// The type of a statement's bytes in an envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The kind of statement that berth makes.
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// The number of artifacts in one statement. Each artifact carries its statement, so short ones save traffic, and one
/// signature still covers many artifacts. Sigstore's tools refuse more than 1,024.
pub const MOST_SUBJECTS: usize = 100;
/// The number of artifacts in a foreign statement.
const MOST_READ: usize = 1024;

const TYPE: &str = "https://in-toto.io/Statement/v1";

/// A statement about artifacts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
    pub predicate: Json,
}

/// An artifact that a statement covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// The folder, such as `clusters/oslo`.
    pub name: String,
    digest: BTreeMap<String, String>,
}

impl Subject {
    /// Names an artifact by the digest of its manifest, such as `sha256:...`.
    pub fn new(name: &str, digest: &str) -> Subject {
        let (algorithm, value) = digest.split_once(':').unwrap_or(("sha256", digest));
        let digest = BTreeMap::from([(algorithm.to_owned(), value.to_owned())]);
        Subject { name: name.to_owned(), digest }
    }

    fn has(&self, digest: &str) -> bool {
        digest
            .split_once(':')
            .is_some_and(|(algorithm, value)| self.digest.get(algorithm).is_some_and(|found| found == value))
    }

    /// Returns the SHA-256 of the artifact's manifest, such as `sha256:…`.
    pub fn digest(&self) -> Option<String> {
        self.digest.get("sha256").map(|value| format!("sha256:{value}"))
    }
}

impl Statement {
    /// Makes a statement about the origin of artifacts.
    pub fn provenance(subjects: Vec<Subject>, predicate: Json) -> Statement {
        Statement {
            kind: TYPE.to_owned(),
            subject: subjects,
            predicate_type: PROVENANCE.to_owned(),
            predicate,
        }
    }

    /// Reads a statement whose signature is verified.
    pub fn read(bytes: &[u8]) -> Result<Statement, SigningError> {
        const WHAT: &str = "the statement";
        SigningError::limit(bytes, LONGEST_PAYLOAD)?;
        let read: Statement =
            serde_json::from_slice(bytes).map_err(|error| SigningError::unreadable(WHAT, error))?;
        if read.kind != TYPE {
            return Err(SigningError::unreadable(WHAT, format!("its type is `{}`", read.kind)));
        }
        match read.subject.len() {
            0 => Err(SigningError::unreadable(WHAT, "it has no subject")),
            many if many > MOST_READ => {
                Err(SigningError::unreadable(WHAT, format!("it has {many} subjects")))
            }
            _ => Ok(read),
        }
    }

    /// Returns the statement's bytes. Equal statements have equal bytes.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn subjects(&self) -> &[Subject] {
        &self.subject
    }

    /// Checks that the statement is a provenance of this artifact. Returns the artifact's names in it.
    pub fn names_of(&self, digest: &str) -> Result<Vec<&str>, SigningError> {
        if self.predicate_type != PROVENANCE {
            let other = berth_base::text::cut(&self.predicate_type, 100);
            return Err(SigningError::NoProvenance(berth_base::diag::harmless_line(&other).into_owned()));
        }
        let names: Vec<&str> =
            self.subject.iter().filter(|one| one.has(digest)).map(|one| one.name.as_str()).collect();
        if names.is_empty() { Err(SigningError::OtherSubjects) } else { Ok(names) }
    }
}
