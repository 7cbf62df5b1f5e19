//! Finds misspelt fields of Kubernetes' built-in kinds: unknown names so close to a known one that nothing else can
//! be meant.
//!
//! An unknown name without a close one is ignored, because a newer version of Kubernetes may have it. Other kinds are
//! not checked.

mod walk;

pub use walk::Slip;

use k8s_openapi::api::{
    apps::v1 as apps, autoscaling::v2 as autoscaling, batch::v1 as batch, core::v1 as core,
    networking::v1 as networking, policy::v1 as policy, rbac::v1 as rbac,
};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// Finds the slips of an object.
pub fn slips(object: &Json) -> Vec<Slip> {
    let text = |key: &str| object.get(key).and_then(Json::as_str).unwrap_or_default();
    let check: Option<fn(&Json) -> Vec<Slip>> = match (text("apiVersion"), text("kind")) {
        ("apps/v1", "Deployment") => Some(check::<apps::Deployment>),
        ("apps/v1", "StatefulSet") => Some(check::<apps::StatefulSet>),
        ("apps/v1", "DaemonSet") => Some(check::<apps::DaemonSet>),
        ("apps/v1", "ReplicaSet") => Some(check::<apps::ReplicaSet>),
        ("batch/v1", "Job") => Some(check::<batch::Job>),
        ("batch/v1", "CronJob") => Some(check::<batch::CronJob>),
        ("v1", "Pod") => Some(check::<core::Pod>),
        ("v1", "Service") => Some(check::<core::Service>),
        ("v1", "ConfigMap") => Some(check::<core::ConfigMap>),
        ("v1", "Secret") => Some(check::<core::Secret>),
        ("v1", "ServiceAccount") => Some(check::<core::ServiceAccount>),
        ("v1", "Namespace") => Some(check::<core::Namespace>),
        ("v1", "PersistentVolumeClaim") => Some(check::<core::PersistentVolumeClaim>),
        ("v1", "LimitRange") => Some(check::<core::LimitRange>),
        ("v1", "ResourceQuota") => Some(check::<core::ResourceQuota>),
        ("networking.k8s.io/v1", "Ingress") => Some(check::<networking::Ingress>),
        ("networking.k8s.io/v1", "NetworkPolicy") => Some(check::<networking::NetworkPolicy>),
        ("policy/v1", "PodDisruptionBudget") => Some(check::<policy::PodDisruptionBudget>),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => Some(check::<autoscaling::HorizontalPodAutoscaler>),
        ("rbac.authorization.k8s.io/v1", "Role") => Some(check::<rbac::Role>),
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => Some(check::<rbac::RoleBinding>),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => Some(check::<rbac::ClusterRole>),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => Some(check::<rbac::ClusterRoleBinding>),
        _ => None,
    };
    check.map(|check| check(object)).unwrap_or_default()
}

/// Reads the object as its type. A value of the wrong type ends the reading; earlier findings count.
fn check<T: DeserializeOwned>(object: &Json) -> Vec<Slip> {
    walk::unknown_names::<T>(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(object: Json) -> Vec<String> {
        slips(&object).iter().map(|slip| format!("{} -> {}", slip.shown(), slip.meant)).collect()
    }

    #[test]
    fn slips_at_any_depth_are_found_with_what_is_meant() {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labls": {"a": "b"}},
            "spec": {"replica": 2, "template": {"spec": {
                "containers": [{"name": "a"}, {"name": "b", "imagePullPolcy": "Always", "enV": []}],
                "nodeselector": {"x": "y"},
            }}},
        });
        assert_eq!(
            found(deployment),
            [
                "metadata.labls -> labels",
                "spec.replica -> replicas",
                "spec.template.spec.nodeselector -> nodeSelector",
                "spec.template.spec.containers[1].enV -> env",
                "spec.template.spec.containers[1].imagePullPolcy -> imagePullPolicy",
            ]
        );
    }

    #[test]
    fn what_is_no_slip_is_left_alone() {
        let pod =
            |spec: Json| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
        // A field of a newer version, null, any key of a map, names next to the intended one.
        assert!(found(pod(json!({"containers": [], "quantumEntanglement": true}))).is_empty());
        assert!(found(pod(json!({"containers": [], "nodeselector": null}))).is_empty());
        assert!(found(pod(json!({"containers": [], "nodeSelector": {"zone": "a", "zne": "b"}}))).is_empty());
        let quantity =
            json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]});
        assert!(found(pod(quantity)).is_empty());
        let service = json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80, "targetPort": "http"}]}});
        assert!(found(service).is_empty());
        // A kind that is not built in, and one of another group.
        assert!(
            found(json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"replica": 2}}))
                .is_empty()
        );
        // A value of the wrong type ends the reading and is no misspelling.
        assert!(found(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": "x"})).is_empty());
        assert!(found(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"dta": "x"}})).is_empty());
    }
}
