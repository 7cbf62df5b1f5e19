//! The process of a command: its environment, files, exit code and errors.

pub mod errors;
pub mod exit;
pub mod files;
pub mod shell;
