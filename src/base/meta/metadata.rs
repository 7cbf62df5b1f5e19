//! Opens a document: returns its metadata as values, and its other fields for the reader.
//!
//! Fields that a server adds to a live object (uid, managedFields, status …) are accepted and ignored, so
//! that the output of `kubectl get -o yaml` can be committed unchanged.

use std::collections::BTreeMap;

use crate::model::selector::Labels;
use crate::yaml::Node;
use crate::yaml::fields::{Fields, Scope};
use crate::yaml::node::Mark;

/// The metadata fields that the server sets.
pub const SERVER_FIELDS: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// An object's metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The start of the mapping, or of the document if it has none.
    pub at: Mark,
    pub name: String,
    pub name_at: Mark,
    /// Empty if missing.
    pub namespace: String,
    pub namespace_at: Mark,
    pub labels: Labels,
    pub annotations: BTreeMap<String, String>,
    /// The object is being deleted, and waits for finalizers.
    pub deleting: bool,
}

/// Opens a document of a known kind. apiVersion, kind, metadata and status count as known fields.
pub fn open<'a>(scope: &'a Scope, root: &'a Node) -> Option<(Fields<'a>, Metadata)> {
    let mut fields = scope.fields(root, "")?;
    fields.accept(&["apiVersion", "kind", "status"]);
    let metadata = read(&mut fields)?;
    Some((fields, metadata))
}

/// Reads the `metadata` field of an object. `None` if it is missing or not a mapping.
pub fn read(fields: &mut Fields<'_>) -> Option<Metadata> {
    let mut inner = fields.required_fields("metadata")?;
    inner.accept(&SERVER_FIELDS);
    inner.accept(&["finalizers"]);
    let metadata = Metadata {
        at: inner.at(),
        name: inner.required_str("name").unwrap_or_default().to_owned(),
        name_at: inner.place_of("name"),
        namespace: inner.str("namespace").unwrap_or_default().to_owned(),
        namespace_at: inner.place_of("namespace"),
        labels: inner.string_map("labels").unwrap_or_default(),
        annotations: inner.string_map("annotations").unwrap_or_default(),
        deleting: inner.node("deletionTimestamp").is_some(),
    };
    inner.finish();
    Some(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Diagnostics, Severity};
    use crate::meta::testing::node;

    fn metadata_of(json: serde_json::Value) -> (Option<Metadata>, Diagnostics) {
        let (scope, root) = (Scope::new("a.yaml".into(), Severity::Error), node(&json));
        let metadata = open(&scope, &root).map(|(_, metadata)| metadata);
        (metadata, scope.into_diagnostics())
    }

    #[test]
    fn what_a_server_adds_is_accepted() {
        let (metadata, found) = metadata_of(serde_json::json!({"metadata": {
            "name": "web", "namespace": "shop", "labels": {"a": "b"}, "uid": "1", "resourceVersion": "7",
            "managedFields": [{}], "creationTimestamp": null, "generation": 3, "finalizers": ["x"],
        }}));
        let metadata = metadata.expect("there is metadata");
        assert_eq!((metadata.name.as_str(), metadata.namespace.as_str()), ("web", "shop"));
        assert_eq!(metadata.labels.get("a").map(String::as_str), Some("b"));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_misspelt_field_and_a_missing_name_are_both_reported() {
        let (_, found) = metadata_of(serde_json::json!({"metadata": {"lables": {"a": "b"}}}));
        let messages: Vec<_> = found.iter().map(|one| (one.message.as_str(), one.hint.as_deref())).collect();
        assert!(messages.contains(&("metadata.name is required", None)));
        assert!(messages.contains(&("unknown field `metadata.lables`", Some("did you mean `labels`?"))));
    }
}
