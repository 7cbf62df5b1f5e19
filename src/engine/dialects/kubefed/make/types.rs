//! Types with a Federated kind: those in KubeFed's chart, and those of type configs. Also makes a type's
//! FederatedTypeConfig.

use serde_json::{Value as Json, json};

use super::SYSTEM_NAMESPACE;
use super::resources::{ApiResource, Resources, plural_of};
use crate::dialects::kubefed::kinds::{CORE, TYPES};
use crate::dialects::kubefed::types::SHIPPED;

pub const TYPE_CONFIG_KIND: &str = "FederatedTypeConfig";

/// The default version of Federated kinds.
pub(crate) const FEDERATED_VERSION: &str = "v1beta1";

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
