//! FederatedTypeConfig → the target type of a Federated kind. The types in KubeFed's chart (and
//! ClusterRoleBinding, from its samples) need no config; an existing config overrides them.

use std::collections::BTreeMap;

use crate::dialects::Document;
use berth_base::diag::{Diagnostic, Pos, did_you_mean};
use berth_base::meta::names::{is_dns_1035_label, is_dns_subdomain};
use berth_base::meta::{Metadata, open};
use berth_base::yaml::{Fields, Scope};

use super::kinds::TYPES;

/// The type of the member objects of one Federated kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberType {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
}

/// A federated type: its target, and whether it is currently propagated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FederatedType {
    pub(super) target: MemberType,
    pub(super) propagates: bool,
    /// The namespace of its config.
    namespace: String,
    at: Option<Pos>,
}

/// The configured types by group and kind, without shipped types that have no config.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Types(BTreeMap<(String, String), Vec<FederatedType>>);

pub(super) const SHIPPED: [(&str, &str, &str, bool); 11] = [
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", false),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", false),
    ("", "v1", "ConfigMap", true),
    ("apps", "v1", "Deployment", true),
    ("networking.k8s.io", "v1", "Ingress", true),
    ("batch", "v1", "Job", true),
    ("", "v1", "Namespace", false),
    ("apps", "v1", "ReplicaSet", true),
    ("", "v1", "Secret", true),
    ("", "v1", "Service", true),
    ("", "v1", "ServiceAccount", true),
];

impl MemberType {
    pub(super) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Reports whether objects of the kind may have `spec.replicas`. Kinds outside KubeFed's chart may have
    /// any field.
    pub(super) fn may_have_replicas(&self) -> bool {
        let shipped = SHIPPED.iter().any(|(group, _, kind, _)| self.group == *group && self.kind == *kind);
        !shipped || ["Deployment", "ReplicaSet"].contains(&self.kind.as_str())
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl Types {
    /// Returns the target kinds whose names end in `List`, each with its group.
    pub(super) fn list_kinds(&self) -> impl Iterator<Item = (String, String)> {
        let targets = self.0.values().flatten().map(|one| &one.target);
        targets.filter(|one| one.kind.ends_with("List")).map(|one| (one.group.clone(), one.kind.clone()))
    }

    /// Returns the type of a Federated object. A control plane's own config precedes others.
    pub(super) fn find(&self, group: &str, kind: &str, namespace: &str) -> Option<FederatedType> {
        let configured = self.0.get(&(group.to_owned(), kind.to_owned()));
        let configured = configured
            .and_then(|all| all.iter().find(|one| one.namespace == namespace).or_else(|| all.first()));
        configured.cloned().or_else(|| shipped(group, kind))
    }

    /// Returns a hint for a Federated kind without a config: the nearest known kind, or how to add a config.
    pub(super) fn hint_for(&self, group: &str, kind: &str) -> String {
        let configured = self.0.keys().filter(|(of, _)| of == group).map(|(_, kind)| kind.clone());
        let known: Vec<String> =
            SHIPPED.iter().map(|(_, _, kind, _)| format!("Federated{kind}")).chain(configured).collect();
        let add = format!("add a FederatedTypeConfig whose federatedType is {kind} in group `{group}`");
        match did_you_mean(kind, known.iter().map(String::as_str)) {
            Some(near) => format!("{near} Otherwise {add}"),
            None => add,
        }
    }
}

fn shipped(group: &str, kind: &str) -> Option<FederatedType> {
    let target = kind.strip_prefix("Federated").filter(|_| group == TYPES)?;
    let (group, version, kind, namespaced) = SHIPPED.iter().find(|(_, _, kind, _)| *kind == target)?;
    let owned = |text: &&str| (*text).to_owned();
    let target = MemberType {
        group: owned(group),
        version: owned(version),
        kind: owned(kind),
        namespaced: *namespaced,
    };
    Some(FederatedType { target, propagates: true, namespace: String::new(), at: None })
}

/// A `targetType`, `federatedType` or `statusType`.
struct NamedType {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// Defaults for missing fields of a type.
#[derive(Clone, Copy, Debug, Default)]
struct Defaults<'a> {
    plural: &'a str,
    group: &'a str,
    /// Empty if the version is required.
    version: &'a str,
    /// Only a target may belong to the core group.
    may_be_core: bool,
}

pub(super) fn read(scope: &Scope, document: &Document, types: &mut Types) {
    let root = document.open();
    let Some((mut fields, metadata)) = open(scope, &root) else { return };
    let spec = fields.required_fields("spec");
    fields.finish();
    let Some(mut spec) = spec else { return };
    let (plural, group) = metadata.name.split_once('.').unwrap_or((&metadata.name, ""));
    let of_name = Defaults { plural, group, version: "", may_be_core: true };
    let target = spec.required_fields("targetType").and_then(|fields| read_type(fields, &of_name));
    let federated =
        spec.required_fields("federatedType").and_then(|fields| read_type(fields, &Defaults::default()));
    if let Some(fields) = spec.fields("statusType") {
        // With a faulty federated type, its values are unknown: use the defaults without further reports.
        let (group, version) =
            federated.as_ref().map_or((TYPES, "v1beta1"), |one| (one.group.as_str(), one.version.as_str()));
        read_type(fields, &Defaults { group, version, ..Defaults::default() });
    }
    spec.choice("statusCollection", &["Enabled", "Disabled"]);
    spec.require("propagation");
    let propagation = spec.choice("propagation", &["Enabled", "Disabled"]);
    spec.finish();
    let (Some(target), Some(federated)) = (target, federated) else { return };
    check_name(scope, &metadata, &target);
    let target = MemberType {
        group: target.group,
        version: target.version,
        kind: target.kind,
        namespaced: target.namespaced,
    };
    let made = FederatedType {
        target,
        // A faulty config must not stop or move anything.
        propagates: propagation == Some("Enabled"),
        namespace: metadata.namespace,
        at: Some(document.at.clone()),
    };
    let all = types.0.entry((federated.group.clone(), federated.kind.clone())).or_default();
    let other = all.iter().find(|one| one.namespace == made.namespace && one.target != made.target);
    if let Some(other) = other.and_then(|other| other.at.as_ref()) {
        let message = format!(
            "spec.federatedType: {}.{} already has another target, in {other}",
            federated.kind, federated.group
        );
        return scope.error(root.at, message);
    }
    all.push(made);
}

fn read_type(mut fields: Fields<'_>, defaults: &Defaults<'_>) -> Option<NamedType> {
    let given = |text: &&str| !text.is_empty();
    let group = fields.str("group").filter(given).unwrap_or(defaults.group);
    if !group.is_empty() && !is_dns_subdomain(group) {
        fields.error_at("group", format!("{} is not a DNS name", fields.path_of("group")));
    }
    if !defaults.may_be_core && !group.contains('.') {
        let fault = if group.is_empty() { "is required" } else { "must have a dot" };
        let message = format!("{} {fault}", fields.path_of("group"));
        let at = fields.scope().pos(fields.place_of("group"));
        fields.scope().report(Diagnostic::error(at, message).hint(format!("KubeFed's own is `{TYPES}`")));
    }
    let version = match defaults.version {
        "" => fields.required_str("version"),
        default => fields.str("version").filter(given).or(Some(default)),
    };
    let kind = fields.required_str("kind");
    let plural = fields.str("pluralName").filter(given);
    let lower_kind = kind.map(str::to_lowercase);
    for (key, text) in [("version", version), ("kind", lower_kind.as_deref()), ("pluralName", plural)] {
        if text.is_some_and(|text| !is_dns_1035_label(text)) {
            let letters = if key == "kind" { "letters" } else { "lower-case letters" };
            let must = format!("must be {letters}, digits and dashes, and begin with a letter");
            fields.error_at(key, format!("{} {must}", fields.path_of(key)));
        }
    }
    fields.require("scope");
    let reach = fields.choice("scope", &["Cluster", "Namespaced"]);
    fields.finish();
    Some(NamedType {
        group: group.to_owned(),
        version: version?.to_owned(),
        kind: kind?.to_owned(),
        plural: plural.unwrap_or(defaults.plural).to_owned(),
        namespaced: reach? == "Namespaced",
    })
}

fn check_name(scope: &Scope, metadata: &Metadata, target: &NamedType) {
    let wanted = if target.group.is_empty() {
        target.plural.clone()
    } else {
        format!("{}.{}", target.plural, target.group)
    };
    if metadata.name != wanted && !metadata.name.is_empty() {
        let message = format!(
            "metadata.name is `{}`, but must be the target's plural name and group, `{wanted}`",
            metadata.name
        );
        scope.error(metadata.name_at, message);
    }
}
