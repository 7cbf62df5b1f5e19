//! The command line: arguments in, exit code out.

pub mod appliers;
pub mod commands;
mod editing;
mod flags;
pub mod import;
pub mod install;
mod output;
mod planning;
pub mod process;
pub mod schema;
pub mod slips;
