//! Common Expression Language: text → a checked [`Program`]; program and a value → a value, or why not.
//!
//! What is wrong with a text is found before it runs, at its place: unknown names and functions, operators
//! on types they are not for. Running reads nothing but its arguments (there is no clock, nothing
//! random), and stops when its work or nesting passes a limit: no text and no value can hang or crash it.
//! Beside the standard functions there are those that Kubernetes adds.

mod check;
mod expression;
mod fault;
mod functions;
mod lex;
mod literal;
mod meter;
mod parse;
mod record;
mod run;
mod shape;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use record::{Field, Record};
pub use value::{MapKey, Value};

use std::collections::BTreeSet;

use expression::Expression;
use meter::Meter;

/// The names that an expression may use beside the functions of the language.
#[derive(Clone, Copy, Debug)]
pub struct Names<'n> {
    pub variables: &'n [Variable<'n>],
    /// Methods that only the first variable has, each with one text as its argument.
    pub methods: &'n [&'n str],
}

/// A variable of expressions.
#[derive(Clone, Copy, Debug)]
pub struct Variable<'n> {
    pub name: &'n str,
    /// The fields it has; `None` where they are not known before a run.
    pub record: Option<&'static Record>,
}

impl<'n> Variable<'n> {
    /// A variable whose fields are not known.
    pub const fn any(name: &'n str) -> Variable<'n> {
        Variable { name, record: None }
    }
}

/// Answers a method of the variable: by its index in [`Names::methods`] and its argument.
pub type Answer<'a> = &'a dyn Fn(usize, &str) -> Result<Value, String>;

/// A text that was found to make sense.
#[derive(Debug)]
pub struct Program {
    root: Expression,
    /// The variables that it reads, by index.
    reads: BTreeSet<usize>,
}

impl Program {
    /// Reads and checks a text. The fault says at which character.
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

    /// Evaluates the expression for the values of its variables, within steps that several runs may share.
    pub fn run_within(&self, variables: &[Value], steps: &mut Steps) -> Result<Value, Fault> {
        let no_method = |_: usize, _: &str| Err("there is no such method".to_owned());
        run::run(&self.root, variables, &no_method, &mut steps.0)
    }
}

/// The work that several runs may do together.
#[derive(Debug)]
pub struct Steps(Meter);

impl Steps {
    pub fn new(steps: u64) -> Steps {
        Steps(Meter::of(steps))
    }

    /// Reports whether all of it is done.
    pub fn are_used_up(&self) -> bool {
        self.0.is_empty()
    }
}
