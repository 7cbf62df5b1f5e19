//! An expression of a policy test, with the place of its text in the file.

use super::policy_test::Over;
use super::view::{AFTER, BEFORE, CLUSTER, OLD_CLUSTER, OLD_WORKLOAD, WORKLOAD};
use berth_base::diag::{Diagnostic, Pos};
use berth_base::yaml::{Mark, Scope};
use berth_cel::{Fault, Names, Program, Steps, Value, Variable};

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
