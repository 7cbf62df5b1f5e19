//! The JSON Schemas of the kinds that berth reads, for editors.
//!
//! No field is listed here. Each kind's reader reads samples, and what it asks for ([`berth_base::yaml::asked`])
//! says which fields there are and what each must be: a field that a reader learns is in the schema, and one that
//! it forgets is not. Only the descriptions are written by hand, and a test holds that each field has one.

mod described;
mod explore;
mod field;
mod json_schema;
mod kinds;
#[cfg(test)]
mod tests;

use serde_json::Value as Json;

pub use kinds::{Kind, kinds};

/// The file that tells by a document's apiVersion and kind which schema is its own.
pub const ALL: &str = "all.json";

impl Kind {
    /// Returns the kind's JSON Schema.
    pub fn schema(&self) -> Json {
        json_schema::of_kind(&self.kind, &explore::fields(self))
    }

    /// The file of its schema: `cluster.open-cluster-management.io/Placement.json`.
    pub fn file(&self) -> String {
        format!("{}/{}.json", self.kind.group, self.kind.kind)
    }
}

/// Returns the schema that chooses among the files of these kinds.
pub fn all(kinds: &[Kind]) -> Json {
    json_schema::choice(kinds.iter().map(|kind| (&kind.kind, kind.file())))
}
