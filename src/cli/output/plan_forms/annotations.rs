//! Annotations: problems and causes at their lines in the fleet repository.

use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::PlanReport;
use super::outline::{self, Sign};
use berth_base::diag::{Pos, Severity, harmless_line};
use berth_base::text::hex;
use berth_engine::consequences::folded::ClusterWords;

/// A message on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Annotation {
    pub rule: &'static str,
    pub severity: Severity,
    pub at: Pos,
    pub message: String,
    /// True if the finding existed before the change.
    pub is_standing: bool,
}

/// The number of annotations per rule. Forges show few, and refuse very many.
const MOST: usize = 1_000;

/// Returns the annotations of a plan: its diagnostics, then the edits with their effects.
pub(super) fn of(report: &PlanReport<'_>) -> Vec<Annotation> {
    let mut found = Vec::new();
    let policy = report.policy.diagnostics();
    let of_files = report.diagnostics.iter().map(|one| ("fleet", one));
    for (rule, diagnostic) in of_files.chain(policy.iter().map(|one| ("policy", one))) {
        let Some(at) = &diagnostic.at else { continue };
        let hint = diagnostic.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        let message = format!("{}{hint}", diagnostic.message);
        let severity = diagnostic.severity;
        let is_standing = report.is_standing(diagnostic);
        found.push(Annotation { rule, severity, at: at.clone(), message, is_standing });
    }
    let parts = outline::parts(report.folded, &ClusterWords::of(report.fleet), false);
    for (section, part) in report.folded.sections.iter().zip(&parts) {
        let lines = part.lines.iter().filter(|line| line.depth == 0);
        let is_grave =
            part.lines.iter().any(|line| matches!(line.sign, Sign::Removed | Sign::Held | Sign::Attention));
        let severity = if is_grave { Severity::Warning } else { Severity::Note };
        let lines: Vec<&str> = lines.take(5).map(|line| line.words.as_str()).collect();
        for cause in &section.causes {
            for at in &cause.places {
                let message = format!("{}: {}", cause.words, lines.join("; "));
                let (rule, at, is_standing) = ("effect", at.clone(), false);
                found.push(Annotation { rule, severity, at, message, is_standing });
            }
        }
    }
    found.truncate(MOST);
    found
}

/// Returns lines that a runner turns into annotations. Omits warnings from before the change.
pub(super) fn workflow_commands(annotations: &[Annotation]) -> String {
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    annotations
        .iter()
        .filter(|one| !one.is_standing || one.severity == Severity::Error)
        .map(|one| {
            let command = match one.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "notice",
            };
            let line = one.at.line.max(1);
            let column = one.at.column.max(1);
            let (file, message) = (property(&one.at.file), data(&harmless_line(&one.message)));
            format!("::{command} file={file},line={line},col={column},title=berth::{message}\n")
        })
        .collect()
}

/// Escapes a value in a workflow command, which ends with its line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns the report that GitLab reads from a job's artifacts.
pub(super) fn code_quality(annotations: &[Annotation]) -> Json {
    let one = |one: &Annotation| {
        let severity = match one.severity {
            Severity::Error => "critical",
            Severity::Warning => "major",
            Severity::Note => "info",
        };
        // Equal findings of two commits have the same identity, wherever their line moved.
        let identity = format!("{}\0{}\0{}", one.rule, one.at.file, one.message);
        json!({
            "description": harmless_line(&one.message),
            "check_name": format!("berth/{}", one.rule),
            "fingerprint": hex(&Sha256::digest(identity)),
            "severity": severity,
            "location": {"path": &*one.at.file, "lines": {"begin": one.at.line.max(1)}},
        })
    };
    annotations.iter().map(one).collect()
}

/// Makes a SARIF 2.1.0 log of one run. Code scanning shows it at the changed lines.
pub(super) fn sarif_log(annotations: &[Annotation]) -> Json {
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

/// Encodes a path as a relative reference.
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
