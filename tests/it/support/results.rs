//! Results for programs: whatever a test runs with `-o json` is held against the schema of its kind.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::{Ran, fixtures};

#[path = "../../../src/cli/schema/tests/verdict.rs"]
mod verdict;

/// The schemas of `docs/schemas`, by kind.
pub static SCHEMAS: LazyLock<BTreeMap<String, Json>> = LazyLock::new(|| {
    let files = std::fs::read_dir(fixtures("../docs/schemas")).expect("a folder");
    let schema = |file: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read(file.expect("an entry").path()).expect("a file");
        let schema: Json = serde_json::from_slice(&text).expect("a schema");
        let kind = schema["properties"]["kind"]["enum"][0].as_str().expect("a kind").to_owned();
        (kind, schema)
    };
    files.map(schema).collect()
});

/// Returns the reason why a schema refuses a value.
pub fn refusal(schema: &Json, value: &Json, path: &str) -> Option<String> {
    verdict::refusal(schema, value, path)
}

/// Insists that a result is what the schema of its kind says.
#[track_caller]
pub fn checked(ran: Ran) -> Ran {
    let result: Option<Json> =
        ran.out.starts_with('{').then(|| serde_json::from_str(&ran.out).ok()).flatten();
    let result = result.filter(|result| result["apiVersion"] == "berth.dev/v1alpha1");
    if let Some(result) = result {
        let kind = result["kind"].as_str().expect("a kind");
        if let Some(schema) = SCHEMAS.get(kind) {
            assert_eq!(verdict::refusal(schema, &result, kind), None);
        }
    }
    ran
}
