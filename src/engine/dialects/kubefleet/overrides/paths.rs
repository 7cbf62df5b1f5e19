//! Paths that a KubeFleet override may change in an object.

use berth_base::model::Operation;

/// Returns the fault of an operation's path.
pub fn fault(operation: &Operation) -> Option<String> {
    let mut parts = operation.path.parts().iter().map(String::as_str);
    let refused = match (parts.next(), parts.next()) {
        (None, _) => "must start with `/` and name a part of the object",
        (Some("kind" | "apiVersion" | "status"), _) => "must not touch kind, apiVersion or status",
        (Some("metadata"), Some("labels" | "annotations")) => return None,
        (Some("metadata"), _) => "may touch only labels and annotations of metadata",
        _ => return None,
    };
    Some(format!("`{}` {refused}", operation.path))
}
