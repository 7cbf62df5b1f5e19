//! A source tree as values: the files that berth may read, from any origin.
//!
//! [`dir`] reads a folder; `git` has the reader for a Git commit. Both read the files that [`wanted`]
//! selects.

pub mod budget;
pub mod dir;
mod tree;

pub use budget::TreeSize;
pub use dir::{SourceError, read_dir};
pub use tree::{
    MARKER, RulesFrom, SourceFile, SourceFiles, SourceTree, fault_of_entry, output_note, wanted,
    wanted_folder,
};
