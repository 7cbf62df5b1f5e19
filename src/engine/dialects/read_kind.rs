//! A kind that people write and a reader reads: all that a JSON Schema of it needs beside the reader.

/// A kind that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// The versions whose fields the reader knows, the preferred one first.
    pub versions: &'static [&'static str],
    /// Its objects are in a namespace.
    pub namespaced: bool,
    /// The name of a sample: some kinds are read under one name only.
    pub sample: &'static str,
}

impl ReadKind {
    /// A kind whose objects may have any name.
    pub const fn new(
        group: &'static str,
        kind: &'static str,
        versions: &'static [&'static str],
        namespaced: bool,
    ) -> ReadKind {
        ReadKind { group, kind, versions, namespaced, sample: "sample" }
    }
}
