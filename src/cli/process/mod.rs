//! The process of a command: its environment, files, exit code and errors.

pub mod exit;
pub mod exit_codes;
pub mod files;
pub mod shell;
