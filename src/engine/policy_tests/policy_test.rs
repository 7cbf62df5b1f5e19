//! A policy test as its document describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::example::Example;
use super::expression::Expression;
use berth_base::diag::{Pos, Severity};
use berth_base::model::Selector;

/// A rule over the fleet before and after a change.
#[derive(Debug)]
pub struct PolicyTest {
    pub name: String,
    pub at: Pos,
    pub severity: Severity,
    pub over: Over,
    pub(super) matching: Match,
    pub(super) rule: Expression,
    pub(super) message: Option<String>,
    pub(super) message_expression: Option<Expression>,
    /// `berth run` holds the workloads that make the test fail.
    pub holds: bool,
    pub examples: Vec<Example>,
    /// The specification without its examples, to compare tests.
    pub(super) text: Json,
}

/// The items of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Workloads,
    Clusters,
    /// One item: the fleet as a whole.
    Fleet,
}

impl Over {
    pub(super) const WORDS: [&'static str; 3] = ["workloads", "clusters", "fleet"];

    pub(super) fn of_word(word: &str) -> Over {
        match word {
            "workloads" => Over::Workloads,
            "clusters" => Over::Clusters,
            _ => Over::Fleet,
        }
    }
}

/// The items that a test selects. An empty set matches everything.
#[derive(Debug, Default)]
pub(super) struct Match {
    pub(super) kinds: BTreeSet<String>,
    pub(super) namespaces: BTreeSet<String>,
    pub(super) names: BTreeSet<String>,
    pub(super) labels: Selector,
}

/// Returns the tests that are new or changed, compared with earlier ones, and the names of the removed tests.
pub fn changes<'t>(
    earlier: &[Arc<PolicyTest>],
    now: &'t [Arc<PolicyTest>],
) -> (Vec<&'t Arc<PolicyTest>>, Vec<String>) {
    let before: BTreeMap<&str, &PolicyTest> = earlier.iter().map(|test| (&*test.name, &**test)).collect();
    let names: BTreeSet<&str> = now.iter().map(|test| &*test.name).collect();
    let differs = |test: &&Arc<PolicyTest>| before.get(&*test.name).is_none_or(|one| one.text != test.text);
    let removed = before.keys().filter(|name| !names.contains(*name)).map(|name| (*name).to_owned());
    (now.iter().filter(differs).collect(), removed.collect())
}
