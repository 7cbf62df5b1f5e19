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
mod run;
mod shape;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use value::{MapKey, Value};

use expression::Expression;

/// The names that an expression may use beside the functions of the language.
#[derive(Clone, Copy, Debug)]
pub struct Names<'n> {
    /// The only variable.
    pub variable: &'n str,
    /// Methods that only this variable has, each with one text as its argument.
    pub methods: &'n [&'n str],
}

/// Answers a method of the variable: by its index in [`Names::methods`] and its argument.
pub type Answer<'a> = &'a dyn Fn(usize, &str) -> Result<Value, String>;

/// A text that was found to make sense.
#[derive(Debug)]
pub struct Program {
    root: Expression,
}

impl Program {
    /// Reads and checks a text. The fault says at which character.
    pub fn compile(text: &str, names: Names<'_>) -> Result<Program, Fault> {
        let root = check::check(&parse::parse(text)?, names)?;
        Ok(Program { root })
    }

    /// Evaluates the expression for a value of its variable.
    pub fn run(&self, variable: &Value, answer: Answer<'_>) -> Result<Value, Fault> {
        run::run(&self.root, variable, answer)
    }
}
