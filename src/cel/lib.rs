//! Common Expression Language: text → a checked [`Program`]; program and a value → a value or a fault.
//!
//! Faults of a text are found before it runs, at their places: unknown names and functions, and operators on
//! wrong types. A run reads only its arguments (there is no clock and no randomness), and stops when its work
//! or nesting exceeds a limit: no text and no value can hang or crash it. The functions are the standard ones
//! and those that Kubernetes adds.

mod check;
mod expression;
mod fault;
mod functions;
mod lex;
mod parse;
mod run;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use types::{Field, Record};
pub use value::{MapKey, Value};

use std::collections::BTreeSet;

use expression::Expression;
use run::Meter;

/// The names that an expression may use in addition to the language's functions.
#[derive(Clone, Copy, Debug)]
pub struct Names<'n> {
    pub variables: &'n [Variable<'n>],
    /// Methods of the first variable, each with one text as its argument.
    pub methods: &'n [&'n str],
}

/// A variable of expressions.
#[derive(Clone, Copy, Debug)]
pub struct Variable<'n> {
    pub name: &'n str,
    /// The variable's fields; `None` if they are not known before a run.
    pub record: Option<&'static Record>,
}

impl<'n> Variable<'n> {
    /// Returns a variable with unknown fields.
    pub const fn any(name: &'n str) -> Variable<'n> {
        Variable { name, record: None }
    }
}

/// Evaluates a method of the variable, by its index in [`Names::methods`] and its argument.
pub type Answer<'a> = &'a dyn Fn(usize, &str) -> Result<Value, String>;

/// A checked expression.
#[derive(Debug)]
pub struct Program {
    root: Expression,
    /// The variables that the expression reads, by index.
    reads: BTreeSet<usize>,
}

impl Program {
    /// Reads and checks a text. A fault has the position of its character.
    pub fn compile(text: &str, names: Names<'_>) -> Result<Program, Fault> {
        let (root, reads) = check::check(&parse::parse(text)?, names)?;
        Ok(Program { root, reads })
    }

    /// Reports whether the text names a variable, by its index in [`Names::variables`].
    pub fn reads(&self, variable: usize) -> bool {
        self.reads.contains(&variable)
    }

    /// Evaluates the expression for a value of its first variable.
    pub fn run(&self, variable: &Value, answer: Answer<'_>) -> Result<Value, Fault> {
        run::run(&self.root, std::slice::from_ref(variable), answer, &mut Meter::full())
    }

    /// Evaluates the expression for the values of its variables, within a budget of steps that several runs
    /// may share.
    pub fn run_within(&self, variables: &[Value], steps: &mut Steps) -> Result<Value, Fault> {
        let no_method = |_: usize, _: &str| Err("there is no such method".to_owned());
        run::run(&self.root, variables, &no_method, &mut steps.0)
    }
}

/// The work budget that several runs may share.
#[derive(Debug)]
pub struct Steps(Meter);

impl Steps {
    pub fn new(steps: u64) -> Steps {
        Steps(Meter::of(steps))
    }

    /// Reports whether the budget is used up.
    pub fn are_used_up(&self) -> bool {
        self.0.is_empty()
    }
}
