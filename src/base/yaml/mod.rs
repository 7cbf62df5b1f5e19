//! YAML as kubectl reads it, with places; and YAML that every reader reads alike.
//!
//! - [`node`]: the value tree. [`fields`]: reading a mapping and reporting all its faults. [`questions`]: the
//!   questions that a reader asks.
//! - [`emit`]: values to canonical text; or on one line.
//! - [`list_kind`]: the objects of a List.
//! - [`mod@outline`]: the place of each value in its text, for edits in place.
//! - [`reader`]: bytes to documents, by way of [`split`], [`scalar`] and the builder.
//!
//! One reader serves all files of people: two parsers for one file would be a security hole.

mod builder;
pub mod emit;
mod fault;
pub mod fields;
pub mod list_kind;
pub mod node;
pub mod outline;
pub mod questions;
mod quote;
pub mod reader;
pub(crate) mod scalar;
pub mod split;
#[cfg(test)]
mod tests;

pub use emit::{emit, emit_documents, emit_flow};
pub use fault::Fault;
pub use fields::{Fields, Scope};
pub use node::{Mark, Node, Value};
pub use outline::outline;
pub use questions::{Form, Question, Questions};
pub use reader::{HONEST_REPEATS, Limits, Read, ReadDocument, read, read_stored};
