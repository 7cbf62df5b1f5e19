//! A write to an object of a cluster.

use serde_json::Value as Json;

/// One write. Objects have their `apiVersion` and `kind`.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectWrite {
    Create(Json),
    /// Replaces the object, unless it changed since it was read.
    Replace(Json),
    /// Replaces only the object's status.
    ReplaceStatus(Json),
    /// Deletes the object, unless it changed since it was read.
    Delete(Json),
}

impl ObjectWrite {
    /// Returns the written object, or the object as read before its deletion.
    pub fn object(&self) -> &Json {
        match self {
            ObjectWrite::Create(object)
            | ObjectWrite::Replace(object)
            | ObjectWrite::ReplaceStatus(object)
            | ObjectWrite::Delete(object) => object,
        }
    }

    /// Returns the verb, for messages.
    pub fn verb(&self) -> &'static str {
        match self {
            ObjectWrite::Create(_) => "create",
            ObjectWrite::Replace(_) => "change",
            ObjectWrite::ReplaceStatus(_) => "change the status of",
            ObjectWrite::Delete(_) => "delete",
        }
    }
}

/// Writes in sequence. The first one that fails ends the chain.
pub type WriteChain = Vec<ObjectWrite>;
