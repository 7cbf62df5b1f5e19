//! The parts of commands that edit the files of a fleet: the documents they read, and checked edits in place.

pub(crate) mod mark;
pub(crate) mod working_tree;
