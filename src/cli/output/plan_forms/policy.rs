//! Findings of policy tests, under their own heading.

use serde::Serialize;

use super::outline::{Line, Sign};
use berth_base::diag::harmless_line;
use berth_base::text::counted;
use berth_engine::policy_tests::{Item, PolicyFinding};
use berth_hub::inputs::PolicyReport;

/// The number of findings in a text.
const MOST: usize = 40;

/// Returns the heading: the number of tests, and of failed ones. `None` if there is nothing to report.
pub(super) fn title(report: &PolicyReport) -> Option<String> {
    let PolicyReport { counting, findings, foreseen, .. } = report;
    let mut failed: Vec<&str> = findings.iter().map(|finding| &*finding.test).collect();
    failed.dedup();
    let verdict = match failed.len() {
        0 => "none failed".to_owned(),
        some => format!("{some} failed"),
    };
    let is_told = *counting > 0 || !foreseen.is_empty();
    is_told.then(|| format!("policy tests: {} ran, {verdict}", counted(*counting, "test")))
}

/// Lists the findings, each with its place.
pub(super) fn lines(report: &PolicyReport) -> Vec<Line> {
    let counting = report.findings.iter().map(|one| (one, ""));
    let all = counting.chain(report.foreseen.iter().map(|one| (one, " (after the merge)")));
    let mut lines = Vec::new();
    for (finding, when) in all.clone().take(MOST) {
        let sign = Sign::Attention;
        let said = [
            (sign, 0, finding.words()),
            (Sign::More, 1, format!("{} at {}{when}", finding.severity.word(), finding.at)),
        ];
        lines.extend(said.map(|(sign, depth, words)| Line {
            sign,
            depth,
            words: harmless_line(&words).into_owned(),
        }));
    }
    let more = all.count().saturating_sub(MOST);
    if more > 0 {
        let words = format!("and {}: `-o json` has them all", counted(more, "other finding"));
        lines.push(Line { sign: Sign::More, depth: 0, words });
    }
    lines
}

/// A finding of a policy test as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct FindingForm<'a> {
    test: &'a str,
    severity: &'static str,
    item: String,
    kind: Option<&'a str>,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    message: &'a str,
    file: &'a str,
    line: u32,
    column: u32,
    holds: bool,
    /// True if the test is in force, and not only foreseen.
    counts: bool,
}

impl<'a> FindingForm<'a> {
    pub(crate) fn all(report: &'a PolicyReport) -> Vec<FindingForm<'a>> {
        let counting = report.findings.iter().map(|finding| FindingForm::of(finding, true));
        let foreseen = report.foreseen.iter().map(|finding| FindingForm::of(finding, false));
        counting.chain(foreseen).collect()
    }

    fn of(finding: &'a PolicyFinding, counts: bool) -> FindingForm<'a> {
        let (kind, namespace, name) = match &finding.item {
            Item::Workload(key) => (Some(&*key.kind), Some(&*key.namespace), Some(&*key.name)),
            Item::Cluster(name) => (Some("Cluster"), None, Some(name.as_str())),
            Item::Fleet => (None, None, None),
        };
        FindingForm {
            test: &finding.test,
            severity: finding.severity.word(),
            item: finding.item.to_string(),
            kind,
            namespace,
            name,
            message: &finding.message,
            file: &finding.at.file,
            line: finding.at.line,
            column: finding.at.column,
            holds: finding.holds,
            counts,
        }
    }
}
