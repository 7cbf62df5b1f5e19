//! Kinds whose availability a member measures, as KubeFleet has them. Of all others only time tells.

use berth_base::model::{Object, Workload};
use berth_base::packed::View;

/// Kinds that are measured, or available as soon as they are applied, each with its API group.
const MEASURED: [(&str, &[&str]); 8] = [
    ("", &["ConfigMap", "LimitRange", "Namespace", "ResourceQuota", "Secret", "Service", "ServiceAccount"]),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apps", &["ControllerRevision", "DaemonSet", "Deployment", "StatefulSet"]),
    ("networking.k8s.io", &["IngressClass", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass"]),
];

/// Reports whether the availability of all the workload's objects is measured.
pub fn is_measured(workload: &Workload) -> bool {
    workload.templates.iter().all(|template| has_measure(&template.object))
}

fn has_measure(object: &Object) -> bool {
    let kinds = MEASURED.iter().filter(|(group, _)| *object.id.group == **group);
    let is_known = kinds.flat_map(|(_, kinds)| *kinds).any(|kind| *object.id.kind == **kind);
    // A service of this type only names a host elsewhere.
    let is_name_only = object.content.pointer("/spec/type").and_then(View::as_str) == Some("ExternalName");
    is_known && !(&*object.id.kind == "Service" && is_name_only)
}

#[cfg(test)]
mod tests {
    use berth_base::packed::Packed;
    use std::sync::Arc;

    use berth_base::diag::Pos;
    use berth_base::model::{Key, ObjectId, Template, Workload};
    use serde_json::{Value as Json, json};

    use super::*;

    fn measured(objects: &[Json]) -> bool {
        let template = |object: &Json| Template {
            object: Arc::new(Object {
                id: ObjectId::of(object).expect("an object"),
                origin: Pos::file("w.yaml"),
                content: Packed::of(object),
            }),
            final_labels: Default::default(),
            sync_annotations: Default::default(),
            retained: Vec::new(),
        };
        let templates = objects.iter().map(template).collect();
        is_measured(&Workload::new(Key::new("", "K", "", "w"), Pos::file("w.yaml"), templates))
    }

    fn object(api_version: &str, kind: &str) -> Json {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    }

    #[test]
    fn one_object_without_a_measure_leaves_the_workload_to_time() {
        let (deployment, config) = (object("apps/v1", "Deployment"), object("v1", "ConfigMap"));
        assert!(measured(&[deployment.clone(), config.clone()]));
        assert!(!measured(&[deployment, object("batch/v1", "Job"), config]));
        assert!(!measured(&[object("example.com/v1", "Deployment")]));
        assert!(measured(&[]));
    }

    #[test]
    fn a_service_that_names_a_host_elsewhere_has_no_measure() {
        let mut service = object("v1", "Service");
        assert!(measured(&[service.clone()]));
        service["spec"] = json!({"type": "ExternalName", "externalName": "db.example.com"});
        assert!(!measured(&[service]));
    }
}
