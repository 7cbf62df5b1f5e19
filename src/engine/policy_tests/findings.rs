//! Tests, and the fleet before and after a change → findings, and the workloads that `berth run` holds for
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::policy_test::{Expression, Match, Over, PolicyTest};
use super::view::{Side, View};
use berth_base::diag::{Diagnostic, Pos, Severity, harmless_line};
use berth_base::model::selector::Labels;
use berth_base::model::{Cluster, Decision, Key, Map, Workload};
use berth_cel::{Fault, Steps, Value};

/// The work that one test may do for all of its items: hundreds of times the need of a sensible test.
const STEPS: u64 = 10_000_000;

/// The longest message of a finding, in characters.
const LONGEST: usize = 500;

/// An item for which a test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFinding {
    pub test: String,
    pub severity: Severity,
    pub item: Item,
    pub message: String,
    /// The place of the test, or of the fault in its rule.
    pub at: Pos,
    /// `berth run` holds the workloads that make the test fail.
    pub holds: bool,
}

/// The subject of a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Workload(Key),
    Cluster(String),
    Fleet,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Workload(key) => write!(f, "{key}"),
            Item::Cluster(name) => write!(f, "cluster {name}"),
            Item::Fleet => f.write_str("the fleet"),
        }
    }
}

impl PolicyFinding {
    /// Returns the finding in one line: `policy pci-stays: FederatedDeployment shop/web: it leaves pci
    /// clusters`.
    pub fn words(&self) -> String {
        format!("policy {}: {}: {}", self.test, self.item, self.message)
    }

    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::new(self.severity, self.at.clone(), self.words())
    }
}

/// Runs every test on each of its items.
pub fn judge<'t>(
    tests: impl IntoIterator<Item = &'t Arc<PolicyTest>>,
    before: &Side<'_>,
    after: &Side<'_>,
) -> Vec<PolicyFinding> {
    let mut views = Views { before: View::of(before), after: View::of(after) };
    let (mut found, sides) = (Vec::new(), [before, after]);
    for test in tests {
        ask(test, sides, &mut views, &mut found);
    }
    found
}

impl PolicyTest {
    /// Reports whether a rule or message reads anything of the earlier fleet.
    pub fn reads_earlier(&self) -> bool {
        self.expressions().any(|one| one.reads_before() || one.reads_old_item())
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        [Some(&self.rule), self.message_expression.as_ref()].into_iter().flatten()
    }
}

struct Views<'a> {
    before: View<'a>,
    after: View<'a>,
}

/// An item with the names and labels that select it.
struct Candidate<'a> {
    item: Item,
    labels: Option<&'a Labels>,
    described: CandidateValue<'a>,
}

enum CandidateValue<'a> {
    Workload(&'a Side<'a>, &'a Workload),
    Cluster(&'a Cluster, &'a Cluster),
    Fleet,
}

fn ask(test: &PolicyTest, sides: [&Side<'_>; 2], views: &mut Views<'_>, found: &mut Vec<PolicyFinding>) {
    let mut steps = Steps::new(STEPS);
    for candidate in candidates(test.over, sides) {
        if !test.matching.includes(&candidate) {
            continue;
        }
        let variables = variables(test, &candidate, views);
        let (severity, at, message) = match test.rule.run(&variables, &mut steps) {
            Ok(Value::Bool(true)) => continue,
            Ok(Value::Bool(false)) => (test.severity, test.at.clone(), message(test, &variables, &mut steps)),
            Ok(_) => (Severity::Error, test.at.clone(), "the rule gives no boolean".to_owned()),
            Err(fault) => (Severity::Error, test.rule.place(&fault), failed(test, &fault)),
        };
        let is_over = steps.are_used_up();
        let item = if is_over { Item::Fleet } else { candidate.item };
        let test_name = test.name.clone();
        found.push(PolicyFinding { test: test_name, severity, item, message, at, holds: test.holds });
        if is_over {
            // The remaining items are unknown, so the finding is about all of them.
            return;
        }
    }
}

fn failed(test: &PolicyTest, fault: &Fault) -> String {
    format!("the rule cannot be evaluated {}", test.rule.words(fault))
}

/// Returns the values of a rule's variables. Variables that the rule does not read stay null.
fn variables(test: &PolicyTest, candidate: &Candidate<'_>, views: &mut Views<'_>) -> Vec<Value> {
    let mut values = vec![Value::Null, Value::Null];
    if test.expressions().any(Expression::reads_after) {
        values[0] = views.after.fleet();
    }
    if test.expressions().any(Expression::reads_before) {
        values[1] = views.before.fleet();
    }
    let reads_old = test.expressions().any(Expression::reads_old_item);
    match (&candidate.item, &candidate.described) {
        (Item::Workload(key), CandidateValue::Workload(side, workload)) => {
            values.push(views.after.workload(key, side, workload));
            values.extend(reads_old.then(|| views.before.workload(key, side, workload)));
        }
        (Item::Cluster(name), CandidateValue::Cluster(now, earlier)) => {
            values.push(views.after.cluster(name, now));
            values.extend(reads_old.then(|| views.before.cluster(name, earlier)));
        }
        _ => {}
    }
    values
}

/// Returns all items of a kind: workloads of both sides, or the clusters of the fleet after the change.
fn candidates<'a>(over: Over, [before, after]: [&'a Side<'a>; 2]) -> Vec<Candidate<'a>> {
    match over {
        Over::Workloads => {
            let mut all: BTreeMap<&Key, (&Side<'_>, &Workload)> = BTreeMap::new();
            for side in [before, after] {
                all.extend(side.fleet.workloads.iter().map(|(key, workload)| (key, (side, &**workload))));
            }
            let one = |(key, (side, workload)): (&Key, (&'a Side<'a>, &'a Workload))| Candidate {
                item: Item::Workload(key.clone()),
                labels: side.labels(key),
                described: CandidateValue::Workload(side, workload),
            };
            all.into_iter().map(one).collect()
        }
        Over::Clusters => {
            let one = |cluster: &'a Cluster| Candidate {
                item: Item::Cluster(cluster.name.to_string()),
                labels: Some(&cluster.labels),
                described: CandidateValue::Cluster(cluster, before.cluster(&cluster.name).unwrap_or(cluster)),
            };
            after.clusters.iter().map(|cluster| one(cluster)).collect()
        }
        Over::Fleet => vec![Candidate { item: Item::Fleet, labels: None, described: CandidateValue::Fleet }],
    }
}

impl Match {
    fn includes(&self, candidate: &Candidate<'_>) -> bool {
        let (kind, namespace, name) = match &candidate.item {
            Item::Workload(key) => (&*key.kind, &*key.namespace, &*key.name),
            Item::Cluster(name) => ("", "", name.as_str()),
            Item::Fleet => return true,
        };
        let named = [(&self.kinds, kind), (&self.namespaces, namespace), (&self.names, name)];
        named.into_iter().all(|(wanted, found)| wanted.is_empty() || wanted.contains(found))
            && self.labels.matches(candidate.labels.unwrap_or(&Labels::new()))
    }
}

/// Returns the message of a failed test: from its expression, or else its text.
fn message(test: &PolicyTest, variables: &[Value], steps: &mut Steps) -> String {
    let plain = || test.message.as_deref().map_or_else(|| "its rule does not hold".to_owned(), line);
    let Some(expression) = &test.message_expression else { return plain() };
    match expression.run(variables, steps) {
        Ok(Value::Text(text)) if !text.trim().is_empty() => line(&text),
        Ok(Value::Text(_)) => plain(),
        Ok(_) => format!("{} (messageExpression gives no text)", plain()),
        Err(fault) => format!("{} (messageExpression fails {})", plain(), expression.words(&fault)),
    }
}

/// Returns one line of limited length, because messages appear in commits and on terminals.
fn line(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", harmless_line(&text[..end])),
        None => harmless_line(text).into_owned(),
    }
}

/// The names of failed tests, with their messages.
pub type Failed = BTreeMap<String, String>;

/// Returns the workloads to hold, each with its failed tests: workloads of findings whose placement the
/// change affects. An unchanged placement does not make a test fail.
pub fn failing_workloads(
    findings: &[PolicyFinding],
    before: &Map<Key, Decision>,
    after: &Map<Key, Decision>,
) -> BTreeMap<Key, Failed> {
    let mut failing: BTreeMap<Key, Failed> = BTreeMap::new();
    let holding: Vec<&PolicyFinding> = findings.iter().filter(|finding| finding.holds).collect();
    if holding.is_empty() {
        return failing;
    }
    let keys: BTreeSet<&Key> = before.keys().chain(after.keys()).collect();
    let has_objects = |key: &Key| {
        [before, after].iter().any(|side| side.get(key).is_some_and(|decision| !decision.objects.is_empty()))
    };
    for key in keys {
        let [earlier, later] = [before, after].map(|side| places(side.get(key)));
        if earlier == later || !has_objects(key) {
            continue;
        }
        let concerns = |finding: &&&PolicyFinding| match &finding.item {
            Item::Workload(one) => one == key,
            Item::Cluster(name) => earlier.get(name.as_str()) != later.get(name.as_str()),
            Item::Fleet => true,
        };
        for finding in holding.iter().filter(concerns) {
            let failed = failing.entry(key.clone()).or_default();
            failed.entry(finding.test.clone()).or_insert_with(|| finding.message.clone());
        }
    }
    failing
}

fn places(decision: Option<&Decision>) -> BTreeMap<&str, Option<i64>> {
    let picked = decision.into_iter().flat_map(Decision::picked);
    picked.map(|pick| (&*pick.cluster, pick.replicas)).collect()
}
