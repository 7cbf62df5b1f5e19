//! The process around a command: its surroundings, its files, its exit code and its errors.

pub mod errors;
pub mod exit;
pub mod files;
pub mod shell;
