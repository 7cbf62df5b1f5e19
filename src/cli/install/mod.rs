//! The manifests that run a daemon or a syncer in a cluster.
//!
//! Pure: equal inputs give equal bytes. No account gets more rights than its work needs, and manifests contain no
//! credentials, only the names of their Secrets. `tests/it/charts.rs` checks that the chart and the bases under
//! `deploy/` have the same objects.

mod environment;
mod parameters;
mod pod;
mod rights;
#[cfg(test)]
mod tests;

use serde_json::{Value as Json, json};

pub use environment::own_environment;

pub use parameters::{
    Collector, Hub, HubObjects, Install, Member, Network, Overrides, Read, Registry, Remote, Reporter,
    Resource, Role, Statuses,
};

/// The objects of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub name: &'static str,
    /// Comments for the reader, one per line.
    pub about: Vec<String>,
    pub objects: Vec<Json>,
}

/// The names of all files, including optional ones.
pub const FILES: [&str; 4] =
    ["1-namespace.yaml", "2-access.yaml", "3-deployment.yaml", "4-network-policy.yaml"];

/// Returns the manifests, in the order in which they are applied.
pub fn files(install: &Install) -> Vec<File> {
    let [namespace, access, deployment, network] = FILES;
    let file = |name, about, objects| File { name, about, objects };
    let (about_access, access_objects) = match &install.role {
        Role::Hub(hub) => (Vec::new(), rights::hub_access(install, hub)),
        Role::Member(member) => (rights::about(member), rights::member_access(install, member)),
    };
    let mut files = vec![
        file(namespace, Vec::new(), vec![namespace_of(install)]),
        file(access, about_access, access_objects),
        file(deployment, pod::about(install), pod::objects(install)),
    ];
    if let Network::Limited { ports } = &install.network {
        files.push(file(network, Vec::new(), vec![pod::network_policy(install, ports)]));
    }
    files
}

/// Returns the objects that an earlier installation may have created and this one does not need. A remaining binding
/// would leave unused rights.
pub fn unwanted(install: &Install) -> Vec<Json> {
    let named = |version: &str, kind: &str, metadata: Json| json!({"apiVersion": version, "kind": kind, "metadata": metadata});
    let rbac = format!("{}/v1", parameters::RBAC);
    let mut optional = vec![
        named("networking.k8s.io/v1", "NetworkPolicy", install.metadata()),
        named("v1", "ConfigMap", install.metadata_of(&pod::trust_name(install))),
    ];
    match &install.role {
        Role::Hub(_) => {
            let own = install.cluster_metadata(&install.name);
            optional
                .extend(["ClusterRoleBinding", "ClusterRole"].map(|kind| named(&rbac, kind, own.clone())));
            optional.push(named("v1", "Service", install.metadata()));
        }
        Role::Member(_) => {
            optional.push(named(&rbac, "ClusterRoleBinding", rights::objects_binding(install)));
            let elsewhere = rights::usual_places(install);
            optional.extend(elsewhere.iter().flat_map(|metadata| {
                ["RoleBinding", "Role"].map(|kind| named(&rbac, kind, metadata.clone()))
            }));
        }
    }
    optional.extend(["RoleBinding", "Role"].map(|kind| named(&rbac, kind, install.metadata())));
    let made: Vec<Json> = files(install).into_iter().flat_map(|file| file.objects).collect();
    let place = |object: &Json| ["name", "namespace"].map(|key| object["metadata"][key].clone());
    let is_made =
        |object: &Json| made.iter().any(|one| one["kind"] == object["kind"] && place(one) == place(object));
    optional.retain(|object| !is_made(object));
    optional
}

/// Returns the Secret with a deploy key, in SSH's text form. Its file must contain no other objects.
pub fn deploy_key_secret(install: &Install, secret: &str, private_key: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": install.metadata_of(secret), "stringData": {"key": private_key}})
}

fn namespace_of(install: &Install) -> Json {
    // Everything that berth runs fits the strictest profile.
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": install.namespace,
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }})
}

/// Returns the account of the pods. Its token is mounted only in pods that request it.
fn service_account(install: &Install) -> Json {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": install.metadata(),
        "automountServiceAccountToken": false})
}

/// Returns a ClusterRole with the installation's name, and its binding to the account.
fn cluster_role(install: &Install, rules: &[Json]) -> [Json; 2] {
    let metadata = install.cluster_metadata(&install.name);
    let version = format!("{}/v1", parameters::RBAC);
    [
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        cluster_binding(install, &metadata, &install.name),
    ]
}

/// Returns the binding of a ClusterRole to the account.
fn cluster_binding(install: &Install, metadata: &Json, role: &str) -> Json {
    json!({"apiVersion": format!("{}/v1", parameters::RBAC), "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": parameters::RBAC, "kind": "ClusterRole", "name": role}, "subjects": subjects(install)})
}

/// Returns a Role in the installation's namespace, and its binding to the account.
fn role(install: &Install, rules: &[Json]) -> [Json; 2] {
    role_at(install, install.metadata(), rules)
}

/// Returns a Role in any namespace, and its binding to the account.
fn role_at(install: &Install, metadata: Json, rules: &[Json]) -> [Json; 2] {
    let version = format!("{}/v1", parameters::RBAC);
    [
        json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules}),
        json!({"apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": parameters::RBAC, "kind": "Role", "name": install.name},
            "subjects": subjects(install)}),
    ]
}

/// Returns the rights on the Lease with the installation's name.
fn lease_rules(install: &Install) -> [Json; 2] {
    let leases = |verbs| rule("coordination.k8s.io", &["leases"], verbs);
    // A rule for `create` cannot name the object, because a POST has no name in its path.
    [named(leases(&["get", "patch", "update"]), &[&install.name]), leases(&["create"])]
}

fn subjects(install: &Install) -> Json {
    json!([{"kind": "ServiceAccount", "name": install.name, "namespace": install.namespace}])
}

fn rule<T: serde::Serialize>(group: &str, plurals: &[T], verbs: &[&str]) -> Json {
    json!({"apiGroups": [group], "resources": plurals, "verbs": verbs})
}

fn named(mut rule: Json, names: &[&str]) -> Json {
    rule["resourceNames"] = json!(names);
    rule
}
