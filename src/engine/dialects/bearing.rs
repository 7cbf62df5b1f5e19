//! The bearing of documents on each other: it tells which of them are read again when one of them changes.

/// How a document bears on the reading of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// It bears on none: it is read by itself, at most against documents of the context.
    Alone,
    /// Others are read against it.
    Context,
    /// It is read together with others.
    Together,
}
