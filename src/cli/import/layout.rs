//! The layout of imported files: one object per file, in a tree that people can navigate.
//!
//! ```text
//! clusters/<name>.yaml                               the inventory
//! hub/<kind>/<name>.yaml                             the hub's own settings and types
//! namespaces/<namespace>/namespace.yaml              a plain Namespace
//! namespaces/<namespace>/<kind>/<name>.yaml          objects in a namespace
//! cluster-scoped/<kind>/<name>.yaml                  cluster-scoped objects
//! ```
//!
//! Folder names have no meaning for berth: move the files freely.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use berth_base::model::{Key, path};
use berth_base::yaml;
use berth_engine::dialects::{AccessRole, DIALECTS};

/// Returns every file's path and text.
pub fn files<'a>(objects: impl IntoIterator<Item = (&'a Key, &'a Json)>) -> BTreeMap<String, String> {
    objects.into_iter().map(|(key, object)| (path_of(key), yaml::emit(object))).collect()
}

/// Returns the path of an object's file.
pub fn path_of(key: &Key) -> String {
    let name = path::encode(&key.name);
    if DIALECTS.iter().any(|dialect| dialect.is_cluster(key)) {
        return format!("clusters/{name}.yaml");
    }
    let roles: Vec<AccessRole<'_>> = DIALECTS.iter().map(|dialect| (dialect.access_role)(key)).collect();
    // The group is a part of the path unless it is a usual one: two groups may have the same kind.
    let is_usual = key.group.is_empty() || roles.iter().any(|role| *role != AccessRole::Plain);
    let kind = key.kind.to_lowercase();
    let kind = path::encode(&if is_usual { kind } else { format!("{kind}.{}", key.group) });
    match (&*key.group, &*key.kind) {
        _ if roles.contains(&AccessRole::FleetWide) => format!("hub/{kind}/{name}.yaml"),
        ("", "Namespace") => format!("namespaces/{name}/namespace.yaml"),
        _ if key.namespace.is_empty() => format!("cluster-scoped/{kind}/{name}.yaml"),
        _ => format!("namespaces/{}/{kind}/{name}.yaml", path::encode(&key.namespace)),
    }
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
