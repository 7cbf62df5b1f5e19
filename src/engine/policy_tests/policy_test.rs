//! A `PolicyTest` document → a [`PolicyTest`], and its expressions, with the places of their texts in the
//! file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::KIND;
use super::example::{self, Example};
use super::view::{AFTER, BEFORE, CLUSTER, OLD_CLUSTER, OLD_WORKLOAD, WORKLOAD};
use berth_base::diag::{Diagnostic, Pos, Severity};
use berth_base::meta::label_selector;
use berth_base::model::Selector;
use berth_base::yaml::{Fields, Mark, Node, Scope};
use berth_cel::{Fault, Names, Program, Steps, Value, Variable};

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

/// Reads one test and reports its faults.
pub fn read(scope: &Scope, root: &Node) -> Option<PolicyTest> {
    let mut fields = scope.fields(root, "")?;
    fields.accept(&["apiVersion", "kind"]);
    let metadata = fields.required_fields("metadata");
    let name = metadata.and_then(|mut metadata| {
        metadata.accept(&["labels", "annotations"]);
        let name = metadata.required_str("name").map(str::to_owned);
        metadata.finish();
        name
    });
    let spec = fields.required_fields("spec");
    fields.finish();
    let mut spec = spec?;
    let over = spec.require("for").then(|| spec.choice("for", &Over::WORDS)).flatten().map(Over::of_word);
    let severity = match spec.choice("severity", &["error", "warning"]) {
        Some("warning") => Severity::Warning,
        _ => Severity::Error,
    };
    // The rules of a test for unknown items are not checked, because they could name anything.
    let named = over.unwrap_or(Over::Workloads);
    let matching = spec.fields("match").map(|fields| read_match(fields, named)).unwrap_or_default();
    spec.require("rule");
    let [rule, message_expression] = ["rule", "messageExpression"].map(|key| {
        let text = spec.str(key)?;
        over.and_then(|over| Expression::read(scope, &spec.path_of(key), text, spec.place_of(key), over))
    });
    let message = spec.str("message").map(str::to_owned);
    let holds = spec.bool("holds").unwrap_or(false);
    let examples = spec.each("examples").into_iter().filter_map(|one| example::read(scope, one)).collect();
    spec.finish();
    Some(PolicyTest {
        name: name?,
        at: scope.pos(root.at),
        severity,
        over: over?,
        matching,
        rule: rule?,
        message,
        message_expression,
        holds,
        examples,
        text: text_of(root),
    })
    .filter(|_| !scope.has_errors())
}

fn read_match(mut fields: Fields<'_>, over: Over) -> Match {
    if over == Over::Fleet {
        let at = fields.at();
        let message = format!("a {KIND} for the fleet as a whole has nothing to match");
        fields.scope().error(at, message);
    }
    let mut names = |key: &'static str| -> BTreeSet<String> {
        fields.strings(key).unwrap_or_default().into_iter().map(str::to_owned).collect()
    };
    let (kinds, namespaces) = match over {
        Over::Workloads => (names("kinds"), names("namespaces")),
        _ => (BTreeSet::new(), BTreeSet::new()),
    };
    let names = names("names");
    let labels = fields.node("labels");
    let labels = labels
        .and_then(|node| label_selector(fields.scope(), node, &fields.path_of("labels")))
        .unwrap_or_default();
    fields.finish();
    Match { kinds, namespaces, names, labels }
}

fn text_of(root: &Node) -> Json {
    let mut text = root.get("spec").map(Node::to_json).unwrap_or_default();
    if let Some(spec) = text.as_object_mut() {
        spec.remove("examples");
    }
    text
}

/// A checked expression.
#[derive(Debug)]
pub(super) struct Expression {
    program: Program,
    text: String,
    at: Pos,
}

/// The indexes of the variables that hold the fleet, see [`names`].
const AFTER_INDEX: usize = 0;
const BEFORE_INDEX: usize = 1;
/// The index of the variable with the item before the change.
const OLD_INDEX: usize = 3;

/// Returns the variables of a rule: the fleet after and before, the item after and before.
fn names(over: Over) -> Names<'static> {
    const ALL: [[Variable<'static>; 4]; 2] =
        [[AFTER, BEFORE, WORKLOAD, OLD_WORKLOAD], [AFTER, BEFORE, CLUSTER, OLD_CLUSTER]];
    let variables: &[Variable<'static>] = match over {
        Over::Workloads => &ALL[0],
        Over::Clusters => &ALL[1],
        Over::Fleet => &ALL[0][..2],
    };
    Names { variables, methods: &[] }
}

impl Expression {
    /// Reads and checks a text. Faults are reported with their line.
    pub(super) fn read(scope: &Scope, path: &str, text: &str, at: Mark, over: Over) -> Option<Expression> {
        match Program::compile(text, names(over)) {
            Ok(program) => Some(Expression { program, text: text.to_owned(), at: scope.pos(at) }),
            Err(fault) => {
                let at = place(text, &scope.pos(at), &fault);
                let message = format!("{path}, {}", within(text, &fault));
                scope.report(Diagnostic::error(at, message).maybe_hint(fault.hint));
                None
            }
        }
    }

    /// Evaluates the expression for the fleet after and before, and the item after and before.
    pub(super) fn run(&self, variables: &[Value], steps: &mut Steps) -> Result<Value, Fault> {
        self.program.run_within(variables, steps)
    }

    pub(super) fn reads_after(&self) -> bool {
        self.program.reads(AFTER_INDEX)
    }

    pub(super) fn reads_before(&self) -> bool {
        self.program.reads(BEFORE_INDEX)
    }

    pub(super) fn reads_old_item(&self) -> bool {
        self.program.reads(OLD_INDEX)
    }

    /// Returns the place of a fault that ended a run.
    pub(super) fn place(&self, fault: &Fault) -> Pos {
        place(&self.text, &self.at, fault)
    }

    /// Describes a fault that ended a run.
    pub(super) fn words(&self, fault: &Fault) -> String {
        within(&self.text, fault)
    }
}

/// Returns the line and column within a text, from 1.
fn line_and_column(text: &str, character: usize) -> (usize, usize) {
    let before: String = text.chars().take(character.saturating_sub(1)).collect();
    let last = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, last.chars().count() + 1)
}

/// Returns the place of a fault in the file. A block begins at its first character, without empty lines.
fn place(text: &str, at: &Pos, fault: &Fault) -> Pos {
    let (line, column) = line_and_column(text, fault.at);
    let empty = text.chars().take_while(|c| *c == '\n').count();
    let moved = |from: u32, by: usize| from.saturating_add(u32::try_from(by).unwrap_or(u32::MAX));
    Pos {
        file: at.file.clone(),
        line: moved(at.line, (line - 1).saturating_sub(empty)),
        column: moved(at.column, column - 1),
    }
}

/// Describes a fault; with its line if the text has several.
fn within(text: &str, fault: &Fault) -> String {
    let (line, column) = line_and_column(text, fault.at);
    match text.trim_end().contains('\n') {
        true => format!("at line {line}, character {column}: {}", fault.message),
        false => fault.to_string(),
    }
}
