//! A request to a cluster: a resource in all namespaces, in one, or by name.

use std::fmt;

use berth_base::meta::names::{is_dns_1035_label, is_dns_label, is_dns_subdomain};

/// A kind of objects, with the server's names for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    pub version: String,
    /// The plural, as in paths.
    pub plural: String,
    pub kind: String,
    pub namespaced: bool,
    /// Other words for the resource: its singular, and short names that people type.
    pub short: Vec<String>,
}

impl Resource {
    pub fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Resource {
        let [group, version, plural, kind] = [group, version, plural, kind].map(str::to_owned);
        Resource { group, version, plural, kind, namespaced, short: Vec::new() }
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the reason not to send this resource's name. Its parts come from others and become parts of a path,
    /// where a slash or dots would request something else.
    pub fn fault(&self) -> Option<String> {
        let Resource { group, version, plural, .. } = self;
        if !group.is_empty() && !is_dns_subdomain(group) {
            return Some(format!("`{group}` is not an API group"));
        }
        if !is_dns_1035_label(version) {
            return Some(format!("`{version}` is not an API version"));
        }
        (!is_dns_1035_label(plural)).then(|| format!("`{plural}` is not a resource's plural name"))
    }

    /// Reports whether this word names the resource: `deploy`, `deployments.apps`, `Deployment`.
    pub fn is_called(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let (name, group) = word.split_once('.').map_or((word.as_str(), None), |(n, g)| (n, Some(g)));
        let named = name == self.plural
            || name == self.kind.to_lowercase()
            || self.short.iter().any(|short| short.to_lowercase() == name);
        // A version may precede the group: `deployments.v1.apps`.
        let group_fits = |group: &str| {
            group == self.group || group.strip_prefix(&format!("{}.", self.version)) == Some(&*self.group)
        };
        named && group.is_none_or(group_fits)
    }
}

impl fmt::Display for Resource {
    /// Writes the resource as `kubectl auth can-i list` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

/// A request for objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub resource: Resource,
    /// `None`: all namespaces, or none for a resource without namespaces.
    pub namespace: Option<String>,
    /// The name of the only object to read.
    pub name: Option<String>,
}

impl Query {
    pub fn all(resource: Resource) -> Query {
        Query { resource, namespace: None, name: None }
    }

    #[must_use]
    pub fn within(mut self, namespace: Option<&str>) -> Query {
        self.namespace = namespace.filter(|_| self.resource.namespaced).map(str::to_owned);
        self
    }

    #[must_use]
    pub fn named(mut self, name: &str) -> Query {
        self.name = Some(name.to_owned());
        self
    }

    /// Returns the reason not to send this query.
    pub(super) fn fault(&self) -> Option<String> {
        let namespace = self.namespace.as_deref().filter(|namespace| !is_dns_label(namespace));
        let namespace = namespace.map(|namespace| format!("`{namespace}` is not a namespace's name"));
        self.resource.fault().or(namespace)
    }

    /// Returns the field selector for the only object to read, if there is one.
    pub(super) fn fields(&self) -> Option<String> {
        let name = self.name.as_ref()?;
        let escape = |c: char| if ['\\', ',', '='].contains(&c) { format!("\\{c}") } else { c.to_string() };
        Some(format!("metadata.name={}", name.chars().map(escape).collect::<String>()))
    }

    /// Returns the path of the collection. The caller has checked that [`Query::fault`] is `None`.
    pub(super) fn path(&self) -> String {
        let Resource { group, version, plural, .. } = &self.resource;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match &self.namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} `{name}`", self.resource)?,
            None => write!(f, "{}", self.resource)?,
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace `{namespace}`"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_known_by_every_word_that_kubectl_knows() {
        let mut deployments = Resource::new("apps", "v1", "deployments", "Deployment", true);
        deployments.short = vec!["deployment".to_owned(), "deploy".to_owned()];
        for word in ["deploy", "Deployment", "deployments", "deployments.apps", "deploy.v1.apps"] {
            assert!(deployments.is_called(word), "{word}");
        }
        for word in ["deployments.extensions", "dep", "deployments.v2.apps", ""] {
            assert!(!deployments.is_called(word), "{word}");
        }
    }

    #[test]
    fn nothing_that_could_lead_elsewhere_becomes_a_path() {
        for (group, version, plural) in [
            ("../api", "v1", "secrets"),
            ("x.com", "v1/namespaces", "foos"),
            ("x.com", "..", "foos"),
            ("x.com", "v1", "foos/x"),
            ("x.com", "v1", "foos?limit=1"),
            ("x.com", "v1", ""),
            ("X.com", "v1", "foos"),
        ] {
            let query = Query::all(Resource::new(group, version, plural, "Foo", true));
            assert!(query.fault().is_some(), "{group} {version} {plural}");
        }
        let pods = Query::all(Resource::new("", "v1", "pods", "Pod", true));
        assert_eq!(pods.fault(), None);
        assert!(pods.clone().within(Some("a/../b")).fault().is_some());
        let odd = pods.named("a,metadata.namespace=b");
        assert_eq!(odd.fields().as_deref(), Some("metadata.name=a\\,metadata.namespace\\=b"));
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let pods = Query::all(Resource::new("", "v1", "pods", "Pod", true));
        assert_eq!(pods.path(), "/api/v1/pods");
        assert_eq!(pods.within(Some("shop")).path(), "/api/v1/namespaces/shop/pods");
        let roles = Query::all(Resource::new(
            "rbac.authorization.k8s.io",
            "v1",
            "clusterroles",
            "ClusterRole",
            false,
        ));
        assert_eq!(roles.within(Some("shop")).path(), "/apis/rbac.authorization.k8s.io/v1/clusterroles");
    }
}
