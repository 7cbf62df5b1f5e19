//! Types with a Federated kind: those in KubeFed's chart, and those of type configs. Also makes a type's
//! FederatedTypeConfig.
//!
//! Types by their several names: `deploy`, `deployment`, `deployments`, `deployments.apps`, `Deployment`.
//!
//! No API server is available, so this file lists the types of Kubernetes itself. The types of custom
//! resources come from their CustomResourceDefinitions.

use serde_json::{Value as Json, json};

use super::SYSTEM_NAMESPACE;
use crate::dialects::kubefed::kinds::{CORE, TYPES};
use crate::dialects::kubefed::types::SHIPPED;

pub const TYPE_CONFIG_KIND: &str = "FederatedTypeConfig";

/// The default version of Federated kinds.
const FEDERATED_VERSION: &str = "v1beta1";

/// A Federated kind and its target type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederatedKind {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub target: ApiResource,
    pub propagates: bool,
}

impl FederatedKind {
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Reports whether a name means this kind: `FederatedDeployment`, `federateddeployments`, or any name of
    /// its target.
    pub fn is_called(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        let kind = self.kind.to_lowercase();
        let plural = plural_of(&self.kind);
        let own = [&kind, &plural]
            .into_iter()
            .any(|word| lower == *word || lower == format!("{word}.{}", self.group));
        let short = self.target.short.iter().any(|short| lower == format!("f{short}"));
        own || short || self.target.is_called(name)
    }

    pub(crate) fn is_of_namespaces(&self) -> bool {
        self.target.group.is_empty() && self.target.kind == "Namespace"
    }
}

/// The known Federated kinds.
#[derive(Clone, Debug)]
pub struct KnownTypes(Vec<FederatedKind>);

impl Default for KnownTypes {
    fn default() -> KnownTypes {
        let shipped = SHIPPED.iter().map(|(group, version, kind, namespaced)| FederatedKind {
            group: TYPES.to_owned(),
            version: FEDERATED_VERSION.to_owned(),
            kind: format!("Federated{kind}"),
            target: Resources::default()
                .of_kind(group, kind)
                .cloned()
                .unwrap_or_else(|| ApiResource::guessed(group, version, kind, *namespaced)),
            propagates: true,
        });
        KnownTypes(shipped.collect())
    }
}

impl KnownTypes {
    /// Adds the kind of a FederatedTypeConfig; a later one replaces an earlier one. Skips other objects and
    /// incomplete configs: `berth validate` reports their faults.
    pub fn learn(&mut self, object: &Json) {
        let of_core = object["apiVersion"].as_str().is_some_and(|version| version.starts_with(CORE));
        if object["kind"] != TYPE_CONFIG_KIND || !of_core {
            return;
        }
        if let Some(known) = read_type_config(object) {
            self.0.retain(|one| {
                (&one.target.group, &one.target.kind) != (&known.target.group, &known.target.kind)
            });
            self.0.push(known);
        }
    }

    /// Returns the Federated kind of a type.
    pub fn of_target(&self, group: &str, kind: &str) -> Option<&FederatedKind> {
        self.0.iter().find(|one| one.target.group == group && one.target.kind == kind)
    }

    /// Returns the Federated kind with this group and kind.
    pub fn of_federated(&self, group: &str, kind: &str) -> Option<&FederatedKind> {
        self.0.iter().find(|one| one.group == group && one.kind == kind)
    }

    /// Reports whether KubeFed ships the type, so its Federated kind needs no config.
    pub fn is_shipped(group: &str, kind: &str) -> bool {
        KnownTypes::default().of_federated(group, kind).is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = &FederatedKind> {
        self.0.iter()
    }
}

/// Reads a FederatedTypeConfig; returns `None` if it is incomplete.
pub fn read_type_config(config: &Json) -> Option<FederatedKind> {
    let spec = &config["spec"];
    let (target, federated) = (&spec["targetType"], &spec["federatedType"]);
    let text = |value: &Json| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let name = text(&config["metadata"]["name"])?;
    let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
    let (group, kind) = (text(&target["group"]).unwrap_or_else(|| group.to_owned()), text(&target["kind"])?);
    let short = Resources::default().of_kind(&group, &kind).map(|known| known.short.clone());
    let target = ApiResource {
        group,
        version: text(&target["version"])?,
        kind,
        plural: text(&target["pluralName"]).unwrap_or_else(|| plural.to_owned()),
        short: short.unwrap_or_default(),
        namespaced: target["scope"] != "Cluster",
    };
    Some(FederatedKind {
        group: text(&federated["group"]).unwrap_or_else(|| TYPES.to_owned()),
        version: text(&federated["version"])?,
        kind: text(&federated["kind"])?,
        target,
        propagates: spec["propagation"] == "Enabled",
    })
}

/// Returns KubeFed's names for the Federated kind of a type, in a group and version.
pub fn federated_names(target: &ApiResource, group: Option<&str>, version: Option<&str>) -> FederatedKind {
    FederatedKind {
        group: group.unwrap_or(TYPES).to_owned(),
        version: version.unwrap_or(FEDERATED_VERSION).to_owned(),
        kind: format!("Federated{}", target.kind),
        target: target.clone(),
        propagates: true,
    }
}

/// Returns the FederatedTypeConfig of a Federated kind.
pub fn type_config(federated: &FederatedKind) -> Json {
    let target = &federated.target;
    let scope = |namespaced| if namespaced { "Namespaced" } else { "Cluster" };
    let mut target_type = json!({
        "version": target.version,
        "kind": target.kind,
        "pluralName": target.plural,
        "scope": scope(target.namespaced),
    });
    if !target.group.is_empty() {
        target_type["group"] = target.group.clone().into();
    }
    json!({
        "apiVersion": format!("{CORE}/v1beta1"),
        "kind": TYPE_CONFIG_KIND,
        "metadata": {"name": target.full_name(), "namespace": SYSTEM_NAMESPACE},
        "spec": {
            "targetType": target_type,
            "federatedType": {
                "group": federated.group,
                "version": federated.version,
                "kind": federated.kind,
                "pluralName": format!("federated{}", target.plural),
                "scope": scope(target.namespaced || federated.is_of_namespaces()),
            },
            "propagation": if federated.propagates { "Enabled" } else { "Disabled" },
        },
    })
}

/// A type of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiResource {
    /// Empty for Kubernetes' core.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub short: Vec<String>,
    pub namespaced: bool,
}

impl ApiResource {
    /// Guesses a type from an object alone.
    pub fn guessed(group: &str, version: &str, kind: &str, namespaced: bool) -> ApiResource {
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural_of(kind),
            short: Vec::new(),
            namespaced,
        }
    }

    /// Returns `deployments.apps`, or `configmaps` for the core group: the name of its type config.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Reports whether a name means this type.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        // A version may precede the group: `deployments.v1.apps`, and `pods.v1.` for the core group.
        let of_group = |word: &str| {
            let full = !self.group.is_empty() && name == format!("{word}.{}", self.group);
            full || name == format!("{word}.{}.{}", self.version, self.group)
        };
        let kind = self.kind.to_lowercase();
        [&self.plural, &kind].into_iter().chain(&self.short).any(|word| name == *word || of_group(word))
    }
}

/// The types with known names.
#[derive(Clone, Debug)]
pub struct Resources(Vec<ApiResource>);

impl Default for Resources {
    fn default() -> Resources {
        let row = |(group, version, kinds): &(&str, &str, &[KindNames])| {
            let of = |(kind, short, namespaced): &KindNames| ApiResource {
                short: short.split(' ').filter(|short| !short.is_empty()).map(str::to_owned).collect(),
                ..ApiResource::guessed(group, version, kind, *namespaced)
            };
            kinds.iter().map(of).collect::<Vec<_>>()
        };
        Resources(BUILT_IN.iter().flat_map(row).collect())
    }
}

impl Resources {
    /// Adds the type that a CustomResourceDefinition defines. Skips any other object.
    pub fn learn(&mut self, object: &Json) {
        if object["kind"] != "CustomResourceDefinition" {
            return;
        }
        let spec = &object["spec"];
        let text = |value: &Json| value.as_str().map(str::to_owned);
        let names = &spec["names"];
        let listed = spec["versions"].as_array().into_iter().flatten();
        let storage =
            listed.clone().find(|version| version["storage"] == true).or_else(|| listed.clone().next());
        let version = storage.and_then(|version| text(&version["name"])).or_else(|| text(&spec["version"]));
        let parts = (text(&spec["group"]), version, text(&names["kind"]), text(&names["plural"]));
        let (Some(group), Some(version), Some(kind), Some(plural)) = parts else { return };
        let short = names["shortNames"].as_array().into_iter().flatten().filter_map(text).collect();
        let namespaced = spec["scope"] != "Cluster";
        self.0.push(ApiResource { group, version, kind, plural, short, namespaced });
    }

    /// Returns the types with this name; several if groups share it.
    pub fn called(&self, name: &str) -> Vec<&ApiResource> {
        self.0.iter().filter(|resource| resource.is_called(name)).collect()
    }

    pub fn of_kind(&self, group: &str, kind: &str) -> Option<&ApiResource> {
        self.0.iter().find(|resource| resource.group == group && resource.kind == kind)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|resource| resource.plural.as_str())
    }
}

/// Returns the plural as KubeFed forms it.
pub fn plural_of(kind: &str) -> String {
    let word = kind.to_lowercase();
    if ["s", "x", "ch", "sh", "z", "o"].iter().any(|end| word.ends_with(end)) {
        return if word == "endpoints" { word } else { format!("{word}es") };
    }
    // As in Kubernetes' own names: after a vowel, the y stays.
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// The kind, its short names, and whether it is namespaced.
type KindNames = (&'static str, &'static str, bool);

/// The built-in types, by group and version.
const BUILT_IN: &[(&str, &str, &[KindNames])] = &[
    (
        "",
        "v1",
        &[
            ("ConfigMap", "cm", true),
            ("Endpoints", "ep", true),
            ("Event", "ev", true),
            ("LimitRange", "limits", true),
            ("Namespace", "ns", false),
            ("Node", "no", false),
            ("PersistentVolume", "pv", false),
            ("PersistentVolumeClaim", "pvc", true),
            ("Pod", "po", true),
            ("PodTemplate", "", true),
            ("ReplicationController", "rc", true),
            ("ResourceQuota", "quota", true),
            ("Secret", "", true),
            ("Service", "svc", true),
            ("ServiceAccount", "sa", true),
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        &[("MutatingWebhookConfiguration", "", false), ("ValidatingWebhookConfiguration", "", false)],
    ),
    ("apiextensions.k8s.io", "v1", &[("CustomResourceDefinition", "crd crds", false)]),
    ("apiregistration.k8s.io", "v1", &[("APIService", "", false)]),
    (
        "apps",
        "v1",
        &[
            ("ControllerRevision", "", true),
            ("DaemonSet", "ds", true),
            ("Deployment", "deploy", true),
            ("ReplicaSet", "rs", true),
            ("StatefulSet", "sts", true),
        ],
    ),
    ("autoscaling", "v2", &[("HorizontalPodAutoscaler", "hpa", true)]),
    ("batch", "v1", &[("CronJob", "cj", true), ("Job", "", true)]),
    ("coordination.k8s.io", "v1", &[("Lease", "", true)]),
    ("discovery.k8s.io", "v1", &[("EndpointSlice", "", true)]),
    ("events.k8s.io", "v1", &[("Event", "ev", true)]),
    (
        "networking.k8s.io",
        "v1",
        &[("Ingress", "ing", true), ("IngressClass", "", false), ("NetworkPolicy", "netpol", true)],
    ),
    ("node.k8s.io", "v1", &[("RuntimeClass", "", false)]),
    ("policy", "v1", &[("PodDisruptionBudget", "pdb", true)]),
    (
        "rbac.authorization.k8s.io",
        "v1",
        &[
            ("ClusterRole", "", false),
            ("ClusterRoleBinding", "", false),
            ("Role", "", true),
            ("RoleBinding", "", true),
        ],
    ),
    ("scheduling.k8s.io", "v1", &[("PriorityClass", "pc", false)]),
    (
        "storage.k8s.io",
        "v1",
        &[("CSIDriver", "", false), ("StorageClass", "sc", false), ("VolumeAttachment", "", false)],
    ),
];
