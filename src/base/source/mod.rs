//! A source tree as values: the files that berth may read, from any origin, and the entries that belong to
//! it.
//!
//! [`dir`] reads a folder; `git` has the reader for a Git commit. Both read the files that [`wanted`]
//! selects.

pub mod budget;
pub mod dir;
pub mod rendered;

use std::sync::Arc;

use crate::diag::{Diagnostic, Diagnostics, Pos, Severity, is_visible};
use crate::model::ContentId;
use crate::model::map::{EntryMap, MapEntry};

pub use budget::TreeSize;
pub use dir::{SourceError, read_dir};
pub use rendered::Rendered;

/// The files of a fleet repository, by path.
#[derive(Clone, Debug, Default)]
pub struct SourceTree {
    pub files: SourceFiles,
    /// Entries that were found but not read: symbolic links, submodules, oversized files.
    pub found: Diagnostics,
    pub rules_from: RulesFrom,
    /// The files that charts and bases render, which are among the files.
    pub rendered: Arc<Rendered>,
}

/// The origin of a tree's access rules and policy tests.
#[derive(Clone, Debug, Default)]
pub enum RulesFrom {
    /// Its own rules: the tree has no predecessor.
    #[default]
    Own,
    /// The rules of the earlier tree that it is compared with.
    Earlier(Arc<SourceTree>),
    /// No rules: the tree was published already, the earlier tree has none, or this first tree has none.
    Nowhere,
}

impl SourceTree {
    /// Reports whether both trees share the same files, without reading any of them.
    pub fn is_same(&self, other: &SourceTree) -> bool {
        let rules_are_same = match (&self.rules_from, &other.rules_from) {
            (RulesFrom::Own, RulesFrom::Own) | (RulesFrom::Nowhere, RulesFrom::Nowhere) => true,
            (RulesFrom::Earlier(rules), RulesFrom::Earlier(others)) => rules.is_same(others),
            _ => false,
        };
        rules_are_same
            && self.files.is_same(&other.files)
            && self.found == other.found
            && self.rendered == other.rendered
    }
}

/// Files by path. Two versions share their common parts.
pub type SourceFiles = EntryMap<SourceFile>;

/// A file, with its path relative to the root, `/` between parts.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub path: Arc<str>,
    /// The id of the bytes: the blob's, if they come from Git.
    pub id: ContentId,
    pub bytes: Arc<[u8]>,
}

impl MapEntry for SourceFile {
    type Key = Arc<str>;
    type Value = SourceFile;

    fn key(&self) -> &Arc<str> {
        &self.path
    }

    fn value(&self) -> &SourceFile {
        self
    }
}

impl SourceFile {
    /// Returns a file that does not come from Git.
    pub fn new(path: impl Into<Arc<str>>, bytes: impl Into<Arc<[u8]>>) -> SourceFile {
        let bytes = bytes.into();
        SourceFile { path: path.into(), id: ContentId::of(&bytes), bytes }
    }
}

/// The file that marks a folder as berth's own output. Such folders below the root are not read.
pub const MARKER: &str = "berth.json";

/// Returns the note that a folder is berth's own output.
pub fn output_note(path: impl Into<Arc<str>>) -> Diagnostic {
    Diagnostic::new(Severity::Note, Pos::file(path), "the output of `berth render` is not read")
}

/// Reports whether a file is read: it has a YAML file's name, and no part of its path begins with a dot.
pub fn wanted(path: &str) -> bool {
    wanted_folder(path) && [".yaml", ".yml"].iter().any(|end| path.ends_with(end))
}

/// Reports whether a folder is searched.
pub fn wanted_folder(path: &str) -> bool {
    path.split('/').all(|part| !part.starts_with('.'))
}

/// Returns the fault of a file's or folder's name, for which it is not read: names that no checkout would
/// create, and names with invisible characters.
pub fn fault_of_entry(name: &str) -> Option<&'static str> {
    if name.contains('/') {
        return Some("the name holds a slash, so the entry is not read");
    }
    (!name.chars().all(is_visible)).then_some("the name holds invisible characters, so the file is not read")
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn yaml_files_outside_dot_folders_are_wanted() {
        for path in ["a.yaml", "x/y/b.yml", "berth.yaml", "a.b/c.yaml"] {
            assert!(wanted(path), "{path}");
        }
        for path in [".github/ci.yaml", "a/.x/b.yml", ".yaml", "a/.yaml", "a.json", "yaml", "a.yaml/b"] {
            assert!(!wanted(path), "{path}");
        }
    }
}
