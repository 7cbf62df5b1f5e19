//! The name of an object of the fleet repository: kind, namespace, name and API group; and a reference to
//! a placement from another object.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::diag::Pos;

/// The identity of an object in the fleet repository. Keys are ordered by kind, namespace and name, the order in
/// which ties are broken. The version is not part of the key: `v1` and `v1beta1` of an object are the same object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    pub kind: Arc<str>,
    /// Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Empty for the core group.
    pub group: Arc<str>,
}

impl Key {
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Key {
        Key { kind: kind.into(), namespace: namespace.into(), name: name.into(), group: group.into() }
    }

    /// Returns the key before all others.
    pub fn lowest() -> Key {
        Key::new("", "", "", "")
    }

    /// Returns `Kind.group`, or `Kind` for the core group.
    pub fn kind_and_group(&self) -> String {
        if self.group.is_empty() { self.kind.to_string() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// Returns `namespace/name`, or `name`.
    pub fn full_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        // Most keys share their kinds, namespaces and groups, so comparing need not read them.
        let order = |a: &Arc<str>, b: &Arc<str>| if Arc::ptr_eq(a, b) { Ordering::Equal } else { a.cmp(b) };
        order(&self.kind, &other.kind)
            .then_with(|| order(&self.namespace, &other.namespace))
            .then_with(|| order(&self.name, &other.name))
            .then_with(|| order(&self.group, &other.group))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.full_name())
    }
}

/// The name of a placement of any dialect, by kind and name, without the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRef {
    pub kind: String,
    /// Empty for cluster-scoped placements.
    pub namespace: String,
    pub name: String,
    pub at: Pos,
}

impl PlacementRef {
    /// Returns `Kind namespace/name`, in the form of a key.
    pub fn describe(&self) -> String {
        Key::new("", &self.kind, &self.namespace, &self.name).to_string()
    }
}
