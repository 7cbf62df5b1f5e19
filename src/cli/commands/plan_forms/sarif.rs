//! Annotations as a SARIF 2.1.0 log, which code scanning shows on the changed lines.

use serde_json::{Value as Json, json};

use super::annotations::Annotation;
use berth_base::diag::{Severity, harmless_line};

/// Makes a log of one run.
pub(super) fn log(annotations: &[Annotation]) -> Json {
    let result = |one: &Annotation| {
        let level = match one.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let mut place = json!({"artifactLocation": {"uri": uri(&one.at.file)}});
        if one.at.line > 0 {
            place["region"] = json!({"startLine": one.at.line, "startColumn": one.at.column.max(1)});
        }
        json!({
            "ruleId": one.rule,
            "level": level,
            "baselineState": if one.is_standing { "unchanged" } else { "new" },
            "message": {"text": harmless_line(&one.message)},
            "locations": [{"physicalLocation": place}],
        })
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "berth",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [
                    {"id": "fleet", "shortDescription": {"text": "A fault of the fleet's files"}},
                    {"id": "effect", "shortDescription": {"text": "What an edit does to clusters"}},
                ],
            }},
            "columnKind": "unicodeCodePoints",
            "results": annotations.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(byte.into());
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_is_a_reference() {
        assert_eq!(super::uri("a b/ö#?.yaml"), "a%20b/%C3%B6%23%3F.yaml");
    }
}
