//! Runs policy tests over a change: the fleet before it, and as it will be in the end.

use std::borrow::Cow;
use std::sync::Arc;

use super::PassInputs;
use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::Fleet;
use berth_base::source::{RulesFrom, SourceTree};
use berth_base::text::{counted, some_quoted};
use berth_engine::load::{self, History};
use berth_engine::pipeline::{self, Built};
use berth_engine::policy_tests::{self, PolicyFinding, PolicyTest, judge};

/// The findings of all policy tests that have to do with a change.
#[derive(Clone, Debug, Default)]
pub struct PolicyReport {
    /// The number of tests that count for the change.
    pub counting: usize,
    /// The tests in force that the change breaks.
    pub findings: Vec<PolicyFinding>,
    /// The tests that it brings or changes itself, and breaks. They count once it is merged.
    pub foreseen: Vec<PolicyFinding>,
    /// The tests that the change brings, changes or removes.
    pub note: Option<Diagnostic>,
}

/// The longest list of tests in a note.
const LONGEST_LIST: usize = 5;

impl PassInputs {
    /// Runs the tests that hold what makes them fail. `edited` says that the source is not the one processed last.
    pub(crate) fn holding_findings(&self, built: &Built, edited: bool) -> Vec<PolicyFinding> {
        let tests = self.source.loaded.tests.counting.iter().filter(|test| test.holds);
        self.findings_of(&tests.collect::<Vec<_>>(), built, edited)
    }

    /// Runs all tests, and those that the change brings itself.
    pub fn policy_report(&self, built: &Built, edited: bool) -> PolicyReport {
        let tests = &self.source.loaded.tests;
        let (new, removed) = policy_tests::changes(&tests.counting, &tests.own);
        let findings = self.findings_of(&tests.counting.iter().collect::<Vec<_>>(), built, edited);
        let mut foreseen = self.findings_of(&new, built, edited);
        for finding in &mut foreseen {
            finding.severity = Severity::Warning;
            finding.holds = false;
        }
        let names: Vec<&str> =
            new.iter().map(|test| &*test.name).chain(removed.iter().map(String::as_str)).collect();
        let note = (!names.is_empty()).then(|| {
            let tests = counted(names.len(), "policy test");
            let message = format!(
                "this adds, changes or removes {tests} ({}), with effect after the merge: the tests before it \
                 judge this change",
                some_quoted(&names, LONGEST_LIST)
            );
            Diagnostic::note(message)
        });
        PolicyReport { counting: tests.counting.len(), findings, foreseen, note }
    }

    fn findings_of(&self, tests: &[&Arc<PolicyTest>], built: &Built, edited: bool) -> Vec<PolicyFinding> {
        if tests.is_empty() {
            return Vec::new();
        }
        let before = match &self.source.tree.rules_from {
            RulesFrom::Earlier(base) if edited && self.needs_earlier(tests, built) => {
                Cow::Owned(fleet_of(base))
            }
            _ => Cow::Borrowed(&*built.fleet),
        };
        let before = pipeline::side(&before, &self.current);
        judge(tests.iter().copied(), &before, &pipeline::side(&built.fleet, &built.desired))
    }

    /// Reports whether tests look at the fleet before the change, which is to be read: for its clusters and labels,
    /// and for workloads that the change removes.
    fn needs_earlier(&self, tests: &[&Arc<PolicyTest>], built: &Built) -> bool {
        let published = self.current.decisions.values().filter(|decision| !decision.objects.is_empty());
        tests.iter().any(|test| test.reads_earlier())
            || published.into_iter().any(|decision| !built.fleet.workloads.contains_key(&decision.key))
    }
}

/// The fleet of an earlier tree, in which last good forms stand in place of broken files.
fn fleet_of(base: &SourceTree) -> Fleet {
    let tree = SourceTree { rules_from: RulesFrom::Nowhere, ..base.clone() };
    (*load::load(&tree, History::None).fleet).clone()
}

impl PolicyReport {
    /// All findings, and the note, as diagnostics.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(self.findings.iter().map(PolicyFinding::diagnostic));
        diagnostics.extend(self.foreseen.iter().map(|finding| {
            let after = "the test counts once this is merged";
            finding.diagnostic().hint(after)
        }));
        diagnostics.extend(self.note.clone());
        diagnostics
    }
}
