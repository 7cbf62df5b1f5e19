//! A source tree as values: the files berth may read, wherever they come from.
//!
//! [`dir`] reads a folder; the reader for a Git commit is in `git`. Both take the files [`wanted`] names.

pub mod budget;
pub mod dir;
mod tree;

pub use budget::TreeSize;
pub use dir::{SourceError, read_dir};
pub use tree::{
    MARKER, RulesFrom, SourceFile, SourceFiles, SourceTree, fault_of_entry, output_note, wanted,
    wanted_folder,
};
