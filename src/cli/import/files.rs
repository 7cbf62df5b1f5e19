//! Objects → files, one object a file, in a tree that a person finds their way in:
//!
//! ```text
//! clusters/<name>.yaml                               the inventory
//! hub/<kind>/<name>.yaml                             the hub's own settings and types
//! namespaces/<namespace>/namespace.yaml              a plain Namespace
//! namespaces/<namespace>/<kind>/<name>.yaml          what stands in a namespace
//! cluster-scoped/<kind>/<name>.yaml                  what stands in none
//! ```
//!
//! Folder names carry no meaning for berth: move the files as you like.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use berth_base::model::{Key, path};
use berth_base::yaml;

/// Every file's path and text.
pub fn files<'a>(objects: impl IntoIterator<Item = (&'a Key, &'a Json)>) -> BTreeMap<String, String> {
    objects.into_iter().map(|(key, object)| (path_of(key), yaml::emit(object))).collect()
}

/// Returns the path of an object's file.
pub fn path_of(key: &Key) -> String {
    let name = path::encode(&key.name);
    let kind = path::encode(&kind_folder(key));
    match (&*key.group, &*key.kind) {
        ("core.kubefed.io", "KubeFedCluster")
        | ("cluster.kubernetes-fleet.io", "MemberCluster")
        | ("cluster.open-cluster-management.io", "ManagedCluster") => format!("clusters/{name}.yaml"),
        ("core.kubefed.io", _) => format!("hub/{kind}/{name}.yaml"),
        ("", "Namespace") => format!("namespaces/{name}/namespace.yaml"),
        _ if key.namespace.is_empty() => format!("cluster-scoped/{kind}/{name}.yaml"),
        _ => format!("namespaces/{}/{kind}/{name}.yaml", path::encode(&key.namespace)),
    }
}

/// The kind, with its group where it is none of the usual ones: two groups may have the same kind.
fn kind_folder(key: &Key) -> String {
    let kind = key.kind.to_lowercase();
    let own = [
        "",
        "cluster.open-cluster-management.io",
        "core.kubefed.io",
        "placement.kubernetes-fleet.io",
        "scheduling.kubefed.io",
        "types.kubefed.io",
        "work.open-cluster-management.io",
    ];
    let own = own.contains(&&*key.group);
    if own { kind } else { format!("{kind}.{}", key.group) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_has_a_file_of_its_own() {
        for (key, path) in [
            (
                Key::new("core.kubefed.io", "KubeFedCluster", "kube-federation-system", "oslo"),
                "clusters/oslo.yaml",
            ),
            (
                Key::new("core.kubefed.io", "FederatedTypeConfig", "kube-federation-system", "jobs.batch"),
                "hub/federatedtypeconfig/jobs.batch.yaml",
            ),
            (Key::new("", "Namespace", "", "shop"), "namespaces/shop/namespace.yaml"),
            (
                Key::new("types.kubefed.io", "FederatedDeployment", "shop", "web"),
                "namespaces/shop/federateddeployment/web.yaml",
            ),
            (
                Key::new("types.example.com", "FederatedBoat", "shop", "web"),
                "namespaces/shop/federatedboat.types.example.com/web.yaml",
            ),
            (
                Key::new("types.kubefed.io", "FederatedClusterRole", "", "system:view"),
                "cluster-scoped/federatedclusterrole/system%3Aview.yaml",
            ),
        ] {
            assert_eq!(path_of(&key), path);
        }
    }
}
