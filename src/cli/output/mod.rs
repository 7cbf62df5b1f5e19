//! The results of commands: their streams, and their forms for people and programs.

pub(crate) mod changes;
pub(crate) mod held;
pub(crate) mod plan_forms;
pub(crate) mod results;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod ui;
