//! Objects that berth must not remove even with an approval: namespaces that the cluster needs, and objects with an
//! owner.

use serde_json::Value as Json;

use crate::sync::plan::{HoldReason, is_namespace};
use berth_base::model::ObjectId;

/// Names of namespaces; a name that ends with `*` is a prefix.
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

    /// Returns the reason why berth must not remove an object.
    pub(crate) fn reason_to_stay(&self, id: &ObjectId, has_owner: bool) -> Option<HoldReason> {
        if is_namespace(id) && self.has(&id.name) {
            Some(HoldReason::Protected)
        } else if has_owner {
            Some(HoldReason::HasOwner)
        } else {
            None
        }
    }
}

/// Reports whether the object has an owner, whose removal also removes the object.
pub(crate) fn has_owner(object: &Json) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Json::as_array);
    owners.is_some_and(|owners| !owners.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_are_protected_by_name_and_by_how_they_begin() {
        let protected = Protected::new(&["default".to_owned(), "kube-*".to_owned()], "berth-system");
        let why =
            |kind: &str, name: &str| protected.reason_to_stay(&ObjectId::new("", kind, "", name), false);
        for name in ["default", "kube-system", "kube-", "berth-system"] {
            assert_eq!(why("Namespace", name), Some(HoldReason::Protected), "{name}");
            assert_eq!(why("ConfigMap", name), None);
        }
        assert_eq!(why("Namespace", "default-2"), None);
        let owned = has_owner(&json!({"metadata": {"ownerReferences": [{"name": "x"}]}}));
        let id = ObjectId::new("", "ConfigMap", "a", "b");
        assert_eq!(protected.reason_to_stay(&id, owned), Some(HoldReason::HasOwner));
    }
}
