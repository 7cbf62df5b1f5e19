//! A hub's roles as grants, and the parts without a meaning.

use super::*;

/// The roles of the documentation, and their bindings.
const ROLES: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: clusterrole1}
rules:
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclustersets/bind, managedclustersets/join]
  resourceNames: [blue]
  verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: binding1}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: clusterrole1}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: team-b}
";

#[test]
fn a_hubs_roles_are_grants_for_the_folders_of_their_subjects() {
    let rules = rule_of("team-b", "{folders: [teams/b], subjects: [{kind: Group, name: team-b}]}");
    let before = [("access/b.yaml", &*rules), ("access/roles.yaml", ROLES)];
    let joined = |set: &str| judge(&before, &[("teams/b/o.yaml", &in_set("oslo", set))]).refused.len();
    assert_eq!((joined("blue"), joined("red")), (0, 1));
    assert_eq!(
        judge(&before[1..], &[("teams/b/o.yaml", &in_set("oslo", "red"))]).refused.len(),
        0,
        "no rule at all"
    );
    let admin = ROLES.replace(
        "name: clusterrole1}\nsubjects",
        "name: 'open-cluster-management:managedclusterset:admin:red'}\nsubjects",
    );
    let before = [("access/b.yaml", &*rules), ("access/roles.yaml", &*admin)];
    let defined = object("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSet", "", "red");
    assert!(judge(&before, &[("teams/b/s.yaml", &defined)]).found.is_empty(), "the hub's own role for a set");
}

#[test]
fn what_of_roles_means_nothing_here_is_told() {
    let all = documents(&[("access/roles.yaml", ROLES), ("access/b.yaml", &rule_of("b", "{folders: [b]}"))]);
    let idle = idle_bindings(all.iter());
    assert_eq!(
        idle[0].to_string().lines().next(),
        Some(
            "access/roles.yaml:15:3: warning: no AccessRule lists the Group `team-b` under `subjects`, so its roles have no effect"
        )
    );
    let lost = ROLES.replace("name: clusterrole1}\nsub", "name: clusterrole2}\nsub");
    let idle = idle_bindings(documents(&[("access/roles.yaml", &lost)]).iter());
    assert_eq!(idle[0].message, "the ClusterRole `clusterrole2` does not exist in `access/`");
    assert_eq!(idle[0].hint.as_deref(), Some("did you mean `clusterrole1`?"));
    let pods =
        ROLES.replace("managedclustersets/bind, managedclustersets/join", "pods, managedclusters/accept");
    let scope = Scope::new("access/roles.yaml".into(), Severity::Error);
    Roles::default().read(&scope, &documents(&[("access/roles.yaml", &pods)])[0]);
    let found = scope.into_diagnostics();
    let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        messages,
        ["the rights on `managedclusters/accept`, `pods` (create) have no effect in a repository"]
    );
    let elsewhere = documents(&[("rbac/roles.yaml", ROLES)]);
    let warning = misplaced(&elsewhere[0]).expect("a warning");
    assert_eq!(
        warning.message,
        "`managedclustersets/bind` is a right on a hub; as an access rule it counts only under `access/`"
    );
}
