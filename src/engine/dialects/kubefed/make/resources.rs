//! Types by their several names: `deploy`, `deployment`, `deployments`, `deployments.apps`, `Deployment`.
//!
//! No API server is available, so this file lists the types of Kubernetes itself. The types of custom
//! resources come from their CustomResourceDefinitions.

use serde_json::Value as Json;

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
        let row = |(group, version, kinds): &(&str, &str, &[Row])| {
            let of = |(kind, short, namespaced): &Row| ApiResource {
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
type Row = (&'static str, &'static str, bool);

/// The built-in types, by group and version.
const BUILT_IN: &[(&str, &str, &[Row])] = &[
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
