//! A Kubernetes object: its identity, the identity with its content, and a write to it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::diag::Pos;
use crate::packed::Packed;

/// The identity of an object in a cluster, shared by all users. All versions of one group have the same
/// identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId(Arc<IdParts>);

/// The parts of an identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdParts {
    pub group: Arc<str>,
    pub kind: Arc<str>,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Deref for ObjectId {
    type Target = IdParts;

    fn deref(&self) -> &IdParts {
        &self.0
    }
}

impl From<IdParts> for ObjectId {
    fn from(parts: IdParts) -> ObjectId {
        ObjectId(Arc::new(parts))
    }
}

impl ObjectId {
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectId {
        let (group, kind) = (group.into(), kind.into());
        IdParts { group, kind, namespace: namespace.into(), name: name.into() }.into()
    }

    /// Returns the identity of the same object in another API group.
    #[must_use]
    pub fn in_group(&self, group: &str) -> ObjectId {
        IdParts { group: group.into(), ..IdParts::clone(self) }.into()
    }

    /// Reuses the equal parts of another identity, so that memory holds them once.
    pub fn share_parts(&mut self, other: &ObjectId) {
        let own = Arc::make_mut(&mut self.0);
        let pairs = [
            (&mut own.group, &other.group),
            (&mut own.kind, &other.kind),
            (&mut own.namespace, &other.namespace),
        ];
        for (own, other) in pairs.into_iter().filter(|(own, other)| *own == *other) {
            other.clone_into(own);
        }
    }

    /// Reads the identity of an object. `None` if apiVersion, kind or name are missing.
    pub fn of(object: &Json) -> Option<ObjectId> {
        let metadata = object.get("metadata")?;
        Some(ObjectId::new(
            group_of(object.get("apiVersion")?.as_str()?),
            object.get("kind")?.as_str()?,
            metadata.get("namespace").and_then(Json::as_str).unwrap_or_default(),
            metadata.get("name")?.as_str()?,
        ))
    }

    /// Reports whether removing the object also removes objects or data: its contents, or objects that it
    /// defines or stores.
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

// The content may be a Secret's, so it is not printed.
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

/// Returns the field that makes readers treat an object as a list, whose items would then be applied unseen.
/// Some readers ignore the field's case.
pub fn list_field(object: &Json) -> Option<&str> {
    object.as_object()?.keys().map(String::as_str).find(|key| key.eq_ignore_ascii_case("items"))
}

/// Returns the group of an apiVersion: `apps/v1` → `apps`, `v1` → the core group, which is empty.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the version of an apiVersion: `apps/v1` → `v1`.
pub fn version_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
}

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
