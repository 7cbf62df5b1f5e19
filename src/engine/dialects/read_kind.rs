//! A kind that people write and berth reads: everything that its JSON Schema needs beside the reader.

/// A kind that berth reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// The versions whose fields the reader knows, the preferred one first.
    pub versions: &'static [&'static str],
    /// Its objects are in a namespace.
    pub namespaced: bool,
    /// The name of a sample: some kinds are read under a single name.
    pub sample: &'static str,
}

impl ReadKind {
    /// Returns a kind whose objects may have any name.
    pub const fn new(
        group: &'static str,
        kind: &'static str,
        versions: &'static [&'static str],
        namespaced: bool,
    ) -> ReadKind {
        ReadKind { group, kind, versions, namespaced, sample: "sample" }
    }
}
