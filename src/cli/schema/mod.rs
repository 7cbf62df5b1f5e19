//! The JSON Schemas of the kinds that berth reads, for editors.
//!
//! No field is listed here. Each kind's reader reads samples, and its questions ([`berth_base::yaml::asked`]) show
//! the fields and their requirements. So a new field of a reader is also in the schema, and a removed one is not.
//! Only the descriptions are written by hand, and a test checks that each field has one.

mod described;
mod explore;
mod field;
mod json_schema;
mod kinds;
#[cfg(test)]
mod tests;

use serde_json::Value as Json;

pub use kinds::{Kind, kinds};

/// The file with the schema that selects a document's schema by its apiVersion and kind.
pub const ALL: &str = "all.json";

impl Kind {
    /// Returns the kind's JSON Schema.
    pub fn schema(&self) -> Json {
        json_schema::of_kind(&self.kind, &explore::fields(self))
    }

    /// Returns the file of its schema: `cluster.open-cluster-management.io/Placement.json`.
    pub fn file(&self) -> String {
        format!("{}/{}.json", self.kind.group, self.kind.kind)
    }
}

/// Returns the schema that selects among the files of these kinds.
pub fn all(kinds: &[Kind]) -> Json {
    json_schema::choice(kinds.iter().map(|kind| (&kind.kind, kind.file())))
}
