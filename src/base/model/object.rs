//! A Kubernetes object: its identity, and the identity with its content.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::diag::Pos;
use crate::packed::Packed;

/// The identity of an object in a cluster. Versions of one group are one identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    pub group: Arc<str>,
    pub kind: Arc<str>,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl ObjectId {
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectId {
        ObjectId { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// Reads the identity off an object. `None` where apiVersion, kind or name are missing.
    pub fn of(object: &Json) -> Option<ObjectId> {
        let text = |value: Option<&Json>| value.and_then(Json::as_str).map(str::to_owned);
        let api_version = text(object.get("apiVersion"))?;
        let metadata = object.get("metadata")?;
        Some(ObjectId::new(
            group_of(&api_version),
            &text(object.get("kind"))?,
            &text(metadata.get("namespace")).unwrap_or_default(),
            &text(metadata.get("name"))?,
        ))
    }

    /// Reports whether removing the object also removes objects or data that it contains, made or stores.
    pub fn takes_more_along(&self) -> bool {
        matches!(
            (&*self.group, &*self.kind),
            ("", "Namespace" | "PersistentVolumeClaim")
                | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }

    /// Reports whether the object's content must never be shown.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && &*self.kind == "Secret"
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        let (namespace, name) = (&self.namespace, &self.name);
        if namespace.is_empty() { write!(f, " {name}") } else { write!(f, " {namespace}/{name}") }
    }
}

/// A plain Kubernetes object of the source tree or of a template.
#[derive(Clone, PartialEq)]
pub struct Object {
    pub id: ObjectId,
    pub origin: Pos,
    pub content: Packed,
}

// The content may be a Secret's.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Object");
        shown.field("id", &self.id).field("origin", &self.origin);
        if self.id.is_secret() {
            shown.finish_non_exhaustive()
        } else {
            shown.field("content", &self.content).finish()
        }
    }
}

/// The field that makes readers take an object for a list, so that what is in it would be applied unseen.
/// Some readers do not mind its case.
pub fn list_field(object: &Json) -> Option<&str> {
    object.as_object()?.keys().map(String::as_str).find(|key| key.eq_ignore_ascii_case("items"))
}

/// The group of an apiVersion: `apps/v1` → `apps`, `v1` → the core group, which is empty.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The version of an apiVersion: `apps/v1` → `v1`.
pub fn version_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
}
