//! Access rules: the rights of each folder, read from `AccessRule` documents.
//!
//! Rules only grant, and grants add up: a path has the grants of every rule for a folder above it. A single rule
//! must allow an object as a whole: the namespace of one rule and the kind of another do not combine. A faulty
//! rule is reported, and grants nothing.

use super::patterns::{Folder, Kinds, Names};
use crate::dialects::Dialects;
use berth_base::meta;
use berth_base::yaml::{Fields, Node, Scope};

/// A subject of a hub's roles: kind and name as in a binding's `subjects`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    pub kind: String,
    /// The namespace of a service account; else empty.
    pub namespace: String,
    pub name: String,
}

/// The rights that a rule grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Sets into whose clusters objects may be placed.
    pub bind: Names,
    /// Sets that clusters may join and leave.
    pub join: Names,
    /// Sets that may be created, changed and deleted.
    pub define: Names,
    /// Sets with all of the above rights, and the right to change their clusters.
    pub admin: Names,
    /// Clusters into which objects may be placed by name, whatever their sets.
    pub place: Names,
    /// Clusters whose files may be changed.
    pub edit: Names,
    /// Namespaces into which objects may be placed.
    pub namespaces: Names,
    /// The kinds that may be placed into these namespaces; `None` for all kinds that grant no rights.
    pub kinds: Option<Kinds>,
    /// Cluster-scoped kinds that may be placed.
    pub cluster_kinds: Kinds,
}

/// Grants for some folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule's name, for hints.
    pub name: String,
    pub folders: Vec<Folder>,
    /// Subjects whose roles apply to these folders.
    pub subjects: Vec<Subject>,
    pub grants: Grants,
}

/// An object as rules see it, see [`Rules::what`].
#[derive(Clone, Copy, Debug)]
pub struct What<'a> {
    /// `None` if unknown.
    pub group: Option<&'a str>,
    pub kind: &'a str,
    /// Empty for cluster-scoped objects.
    pub namespace: &'a str,
    pub name: &'a str,
}

impl What<'_> {
    /// Returns the object's namespace. A Namespace object is in itself.
    pub fn home(&self) -> &str {
        if self.kind == "Namespace" && self.group.is_none_or(str::is_empty) {
            self.name
        } else {
            self.namespace
        }
    }

    /// Reports whether the object is cluster-scoped.
    pub(crate) fn is_of_the_cluster(&self) -> bool {
        self.namespace.is_empty()
    }
}

/// Kubernetes' kinds without a namespace.
const WITHOUT_NAMESPACE: [(&str, &str); 31] = [
    ("", "ComponentStatus"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
];

/// The access rules of a repository.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Forbids everything that is not granted. True as soon as any document is a rule, even a faulty one.
    pub enforced: bool,
    pub rules: Vec<Rule>,
    /// The systems whose kinds are known.
    pub dialects: Dialects,
}

impl Rules {
    /// Returns an object as rules see it. The namespace of a cluster-scoped object is ignored. `group` is
    /// `None` if unknown.
    pub fn what<'a>(
        &self,
        group: Option<&'a str>,
        kind: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> What<'a> {
        let is_it = |(of, known): &(&str, &str)| *known == kind && group.is_none_or(|group| group == *of);
        let mut known = self.dialects.iter().flat_map(|dialect| dialect.cluster_scoped);
        let is_cluster_scoped = WITHOUT_NAMESPACE.iter().any(is_it) || known.any(is_it);
        What { group, kind, namespace: if is_cluster_scoped { "" } else { namespace }, name }
    }

    fn any(&self, path: &str, grants: impl Fn(&Grants) -> bool) -> bool {
        !self.enforced || self.of(path).any(|rule| grants(&rule.grants))
    }

    /// Returns the rules that name a folder above a file.
    pub fn of(&self, path: &str) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.folders.iter().any(|folder| folder.covers(path)))
    }

    /// Returns the numbers of those rules: files with equal numbers have equal rights.
    pub(crate) fn numbers_of(&self, path: &str) -> Vec<usize> {
        let names = |rule: &Rule| rule.folders.iter().any(|folder| folder.covers(path));
        self.rules.iter().enumerate().filter(|(_, rule)| names(rule)).map(|(number, _)| number).collect()
    }

    pub(crate) fn may_bind(&self, path: &str, set: &str) -> bool {
        self.any(path, |grants| grants.bind.hold(set) || grants.admin.hold(set))
    }

    pub(crate) fn may_join(&self, path: &str, set: &str) -> bool {
        self.any(path, |grants| grants.join.hold(set) || grants.admin.hold(set))
    }

    pub(crate) fn may_define(&self, path: &str, set: &str) -> bool {
        self.any(path, |grants| grants.define.hold(set) || grants.admin.hold(set))
    }

    /// Reports whether the file may define sets of every name. A set that selects clusters by labels requires
    /// this.
    pub(crate) fn may_define_every(&self, path: &str) -> bool {
        self.any(path, |grants| grants.define.hold_every() || grants.admin.hold_every())
    }

    /// Reports whether the document of a cluster in these sets may be changed.
    pub(crate) fn may_edit<'a>(
        &self,
        path: &str,
        cluster: &str,
        sets: impl IntoIterator<Item = &'a String>,
    ) -> bool {
        self.any(path, |grants| grants.edit.hold(cluster))
            || sets.into_iter().all(|set| self.any(path, |grants| grants.admin.hold(set)))
    }

    /// Reports whether placements may reach a cluster, by its name or one of its sets.
    pub(crate) fn may_reach<'a>(
        &self,
        path: &str,
        cluster: &str,
        sets: impl IntoIterator<Item = &'a String>,
    ) -> bool {
        self.any(path, |grants| grants.place.hold(cluster))
            || sets.into_iter().any(|set| self.may_bind(path, set))
    }

    pub(crate) fn may_use(&self, path: &str, namespace: &str) -> bool {
        self.any(path, |grants| grants.namespaces.hold(namespace))
    }

    pub(crate) fn may_place_cluster_kind(&self, path: &str, group: Option<&str>, kind: &str) -> bool {
        self.any(path, |grants| grants.cluster_kinds.hold(group, kind))
    }

    /// Reports whether an object may be written and placed.
    pub(crate) fn may_place(&self, path: &str, what: What<'_>) -> bool {
        let in_namespace = |grants: &Grants| {
            let kinds = grants.kinds.as_ref();
            grants.namespaces.hold(what.home())
                && kinds.map_or_else(
                    || Kinds::every().hold(what.group, what.kind),
                    |kinds| kinds.hold(what.group, what.kind),
                )
        };
        let is_homeless = what.home().is_empty();
        // A namespace is also a cluster-scoped object.
        (!is_homeless && self.any(path, in_namespace))
            || (what.is_of_the_cluster() && self.may_place_cluster_kind(path, what.group, what.kind))
    }
}

/// The kinds of subjects that roles are bound to.
pub(super) const SUBJECT_KINDS: [&str; 3] = ["Group", "User", "ServiceAccount"];

/// Reads one rule and reports its faults.
pub fn read_rule(scope: &Scope, root: &Node) -> Option<Rule> {
    let (mut fields, metadata) = meta::open(scope, root)?;
    let spec = fields.required_fields("spec");
    fields.finish();
    let mut spec = spec?;
    let folders = folders(&mut spec);
    let subjects = spec.each("subjects").into_iter().filter_map(subject).collect();
    let grants = grants(&mut spec);
    spec.finish();
    (!scope.has_errors()).then_some(Rule { name: metadata.name, folders, subjects, grants })
}

fn folders(spec: &mut Fields<'_>) -> Vec<Folder> {
    let at = spec.place_of("folders");
    if !spec.require("folders") {
        return Vec::new();
    }
    let texts = spec.strings("folders").unwrap_or_default();
    if texts.is_empty() {
        spec.scope().error(at, "spec.folders must name a folder; `/` is the whole repository");
    }
    let folder = |text: &str| match Folder::new(text) {
        Ok(folder) => Some(folder),
        Err(reason) => {
            spec.scope().error(at, format!("spec.folders holds `{text}`, which {reason}"));
            None
        }
    };
    texts.into_iter().filter_map(folder).collect()
}

fn subject(mut fields: Fields<'_>) -> Option<Subject> {
    fields.accept(&["apiGroup"]);
    fields.require("kind");
    let kind = fields.choice("kind", &SUBJECT_KINDS);
    let name = fields.required_str("name").map(str::to_owned);
    let namespace = fields.str("namespace").unwrap_or_default().to_owned();
    fields.finish();
    Some(Subject { kind: kind?.to_owned(), namespace, name: name? })
}

fn grants(spec: &mut Fields<'_>) -> Grants {
    let mut grants = Grants::default();
    if let Some(mut sets) = spec.fields("clusterSets") {
        grants.bind = names(&mut sets, "bind");
        grants.join = names(&mut sets, "join");
        grants.admin = names(&mut sets, "admin");
        sets.finish();
    }
    if let Some(mut clusters) = spec.fields("clusters") {
        grants.place = names(&mut clusters, "place");
        grants.edit = names(&mut clusters, "edit");
        clusters.finish();
    }
    grants.namespaces = names(spec, "namespaces");
    let at = spec.place_of("kinds");
    grants.kinds = kinds(spec, "kinds");
    if grants.kinds.is_some() && grants.namespaces.is_empty() {
        spec.scope().warning(at, "spec.kinds has no effect without spec.namespaces");
    }
    grants.cluster_kinds = kinds(spec, "clusterKinds").unwrap_or_default();
    grants
}

fn names(fields: &mut Fields<'_>, key: &'static str) -> Names {
    Names::of(words(fields, key).unwrap_or_default())
}

fn kinds(fields: &mut Fields<'_>, key: &'static str) -> Option<Kinds> {
    words(fields, key).map(Kinds::of)
}

fn words<'a>(fields: &mut Fields<'a>, key: &'static str) -> Option<Vec<&'a str>> {
    let words = fields.strings(key)?;
    if words.iter().any(|word| word.is_empty() || word.contains('/')) {
        let message = format!(
            "{} must list names, without `/` and not empty; `*` stands for any text",
            fields.path_of(key)
        );
        fields.error_at(key, message);
    }
    Some(words)
}
