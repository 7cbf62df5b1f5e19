//! What is not for berth to remove, whoever approves it: namespaces that the cluster itself needs, and
//! objects that another one takes along.

use serde_json::Value as Json;

use crate::model::ObjectId;
use crate::sync::plan::{Why, is_namespace};

/// Names of namespaces; one that ends with `*` means all that begin so.
#[derive(Clone, Debug, Default)]
pub struct Protected(Vec<String>);

impl Protected {
    pub fn new(patterns: &[String], own: &str) -> Protected {
        Protected(patterns.iter().map(|pattern| pattern.trim().to_owned()).chain([own.to_owned()]).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        })
    }

    /// Why an object is not for berth to remove.
    pub fn reason_to_stay(&self, id: &ObjectId, object: &Json) -> Option<Why> {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Json::as_array);
        if is_namespace(id) && self.has(&id.name) {
            Some(Why::Protected)
        } else if owners.is_some_and(|owners| !owners.is_empty()) {
            Some(Why::HasOwner)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_are_protected_by_name_and_by_how_they_begin() {
        let protected = Protected::new(&["default".to_owned(), "kube-*".to_owned()], "berth-system");
        let why =
            |kind: &str, name: &str| protected.reason_to_stay(&ObjectId::new("", kind, "", name), &json!({}));
        for name in ["default", "kube-system", "kube-", "berth-system"] {
            assert_eq!(why("Namespace", name), Some(Why::Protected), "{name}");
            assert_eq!(why("ConfigMap", name), None);
        }
        assert_eq!(why("Namespace", "default-2"), None);
        let owned = json!({"metadata": {"ownerReferences": [{"name": "x"}]}});
        let id = ObjectId::new("", "ConfigMap", "a", "b");
        assert_eq!(protected.reason_to_stay(&id, &owned), Some(Why::HasOwner));
    }
}
