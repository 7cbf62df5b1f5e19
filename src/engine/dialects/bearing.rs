//! The bearing of documents on each other: it determines which documents are read again when one of them
//! changes.

/// The bearing of a document on the reading of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// No other document is read against it; it is itself read against the context at most.
    Alone,
    /// Other documents are read against it.
    Context,
    /// It is read together with other documents.
    Together,
}
