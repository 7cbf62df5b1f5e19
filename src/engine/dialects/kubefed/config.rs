//! KubeFedConfig → the settings of a control plane: its namespace, its scope, and whether it adopts objects.
//!
//! A repository may describe several namespace-scoped control planes, each for its own namespace, and at most
//! one for the whole cluster. berth ignores settings of controllers.

use std::collections::BTreeMap;

use crate::dialects::Document;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::meta::open;
use berth_base::yaml::{Fields, Scope};

pub(super) const NAME: &str = "kubefed";
pub(super) const DEFAULT_NAMESPACE: &str = "kube-federation-system";

/// Namespaces that are never created in members; objects in them can be placed.
const SYSTEM_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Feature gates of the last and of earlier releases.
const GATES: [&str; 5] = [
    "CrossClusterServiceDiscovery",
    "FederatedIngress",
    "PushReconciler",
    "RawResourceStatusCollection",
    "SchedulerPreferences",
];

/// The control planes by namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Planes(BTreeMap<String, Plane>);

#[derive(Clone, Debug, PartialEq)]
struct Plane {
    namespaced: bool,
    adopts: bool,
    /// Its scheduler of replicas is enabled.
    divides: bool,
}

impl Planes {
    /// Reports whether a namespace has its own control plane.
    pub(super) fn is_namespaced(&self, namespace: &str) -> bool {
        self.0.get(namespace).is_some_and(|plane| plane.namespaced)
    }

    /// Reports whether every control plane is namespace-scoped, so that none places cluster-scoped objects.
    pub(super) fn all_namespaced(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(|plane| plane.namespaced)
    }

    /// Reports whether members take over objects that already exist.
    pub(super) fn adopts(&self, namespace: &str) -> bool {
        match self.0.get(namespace).filter(|plane| plane.namespaced) {
            Some(plane) => plane.adopts,
            None => self.0.values().filter(|plane| !plane.namespaced).all(|plane| plane.adopts),
        }
    }

    /// Reports whether replica preferences of a namespace have an effect.
    pub(super) fn divides(&self, namespace: &str) -> bool {
        match self.0.get(namespace).filter(|plane| plane.namespaced) {
            Some(plane) => plane.divides,
            None => self.0.values().filter(|plane| !plane.namespaced).all(|plane| plane.divides),
        }
    }

    /// Reports whether the namespace itself is never propagated.
    pub(super) fn is_system(&self, namespace: &str) -> bool {
        SYSTEM_NAMESPACES.contains(&namespace)
            || namespace == DEFAULT_NAMESPACE
            || self.0.contains_key(namespace)
    }
}

pub(super) fn read(scope: &Scope, document: &Document, planes: &mut Planes) {
    let root = document.open();
    let Some((mut fields, metadata)) = open(scope, &root) else { return };
    let spec = fields.required_fields("spec");
    fields.finish();
    let Some(mut spec) = spec else { return };
    if metadata.name != NAME && !metadata.name.is_empty() {
        let message = format!("a KubeFedConfig must be named `{NAME}`; this one is ignored");
        scope.warning(metadata.name_at, message);
        return;
    }
    spec.require("scope");
    let reach = spec.choice("scope", &["Cluster", "Namespaced"]);
    let adopts = spec.fields("syncController").and_then(read_sync).unwrap_or(true);
    spec.accept(&["clusterHealthCheck", "controllerDuration", "leaderElect", "statusController"]);
    let divides = read_gates(&mut spec);
    spec.finish();
    let namespace =
        if metadata.namespace.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { metadata.namespace };
    planes.0.insert(namespace, Plane { namespaced: reach == Some("Namespaced"), adopts, divides });
}

fn read_sync(mut fields: Fields<'_>) -> Option<bool> {
    fields.accept(&["maxConcurrentReconciles"]);
    let adopts = fields.choice("adoptResources", &["Enabled", "Disabled"]).map(|word| word == "Enabled");
    fields.finish();
    adopts
}

/// Reports whether the gates leave the replica scheduler enabled, which is the default.
fn read_gates(spec: &mut Fields<'_>) -> bool {
    let mut divides = true;
    for mut gate in spec.each("featureGates") {
        let name = gate.required_str("name");
        let state = gate.choice("configuration", &["Enabled", "Disabled"]);
        let off = state == Some("Disabled");
        let at = gate.scope().pos(gate.place_of("name"));
        let say = |message: String, hint: Option<String>| {
            gate.scope().report(Diagnostic::warning(at, message).maybe_hint(hint));
        };
        match name {
            Some("SchedulerPreferences") => divides = !off,
            Some("PushReconciler") if off => {
                let hint = "set `propagation: Disabled` in the type configs to keep members unchanged";
                say("berth propagates without the gate PushReconciler too".to_owned(), Some(hint.to_owned()));
            }
            Some(name) if !GATES.contains(&name) => {
                say(format!("KubeFed has no feature gate `{name}`"), did_you_mean(name, GATES));
            }
            _ => {}
        }
        gate.finish();
    }
    divides
}
