//! Rules over documents alone: the refused documents, their places, and the missing rights.

mod properties;
mod roles;

use std::sync::Arc;

use super::*;
use crate::dialects::{DIALECTS, ParsedDocument};
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::Key;
use berth_base::model::object::{group_of, version_of};
use berth_base::yaml::{self, Limits};

/// Returns the documents of files.
pub(super) fn documents(files: &[(&str, &str)]) -> Vec<Document> {
    let mut found = Vec::new();
    for (path, text) in files {
        let path: Arc<str> = (*path).into();
        let read = yaml::read(text.as_bytes(), &Limits::default());
        assert!(read.faults.is_empty(), "{:?}", read.faults);
        for document in read.documents {
            let text = |parts: &[&str]| {
                let node = parts.iter().try_fold(&document.root, |node, part| node.get(part));
                node.and_then(|node| node.as_str()).unwrap_or_default().to_owned()
            };
            let api_version = text(&["apiVersion"]);
            let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
            let key = Key::new(group_of(&api_version), &text(&["kind"]), &namespace, &name);
            let at = Pos::new(path.clone(), document.root.at.line, document.root.at.column);
            let version = version_of(&api_version).to_owned();
            found.push(
                ParsedDocument { key, version, at, root: document.root.pack(), ..ParsedDocument::default() }
                    .into(),
            );
        }
    }
    found
}

/// Judges files by the rules and facts of earlier files.
pub(super) fn judge(before: &[(&str, &str)], now: &[(&str, &str)]) -> DocumentVerdicts {
    let (before, now) = (documents(before), documents(now));
    let world = World {
        rules: rules(before.iter(), false, DIALECTS),
        before: Facts::of(before.iter(), DIALECTS),
        next: rules(now.iter(), false, DIALECTS),
    };
    world.judge(&now.iter().collect::<Vec<_>>())
}

pub(super) fn told(judged: &DocumentVerdicts) -> Vec<String> {
    judged.found.iter().map(|one| format!("{}: {}", one.at.as_ref().expect("a place"), one.message)).collect()
}

fn hints(judged: &DocumentVerdicts) -> Vec<&str> {
    judged.found.iter().filter_map(|one: &Diagnostic| one.hint.as_deref()).collect()
}

pub(super) fn rule_of(name: &str, spec: &str) -> String {
    format!("apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

pub(super) fn cluster(name: &str, labels: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"
    )
}

pub(super) fn in_set(name: &str, set: &str) -> String {
    cluster(name, &format!("cluster.open-cluster-management.io/clusterset: {set}"))
}

pub(super) fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{namespace: '{namespace}', name: {name}}}\n")
}

const TEAM: &str = "{folders: [teams/a], clusterSets: {bind: [blue], join: [blue]}, namespaces: [shop]}";

#[test]
fn a_rollout_policy_reaches_no_further_than_its_folder() {
    let before = [("access/a.yaml", &*rule_of("a", TEAM))];
    let policy = |namespace: &str| object("berth.dev/v1alpha1", "RolloutPolicy", namespace, "rings");
    let judged =
        |namespace: &str| told(&judge(&before, &[before[0], ("teams/a/x.yaml", &policy(namespace))]));
    assert!(judged("shop").is_empty());
    assert!(judged("bank")[0].contains("may not place into the namespace `bank`"), "{:?}", judged("bank"));
    let fleet = judged("");
    assert!(
        fleet[0].contains("may not write `RolloutPolicy` objects, which hold for the whole fleet"),
        "{fleet:?}"
    );
}

#[test]
fn without_rules_everything_is_allowed_and_with_one_only_what_is_granted() {
    let map = object("v1", "ConfigMap", "shop", "x");
    let free = judge(&[], &[("teams/b/x.yaml", &map)]);
    assert!(free.found.is_empty() && free.refused.is_empty());
    let rules = rule_of("team-a", TEAM);
    let ruled = judge(&[("access/a.yaml", &rules)], &[("teams/a/x.yaml", &map), ("teams/b/x.yaml", &map)]);
    assert_eq!(
        told(&ruled),
        ["teams/b/x.yaml:3:23: the folder `teams/b` may not place into the namespace `shop`"]
    );
    assert_eq!(
        hints(&ruled),
        ["an AccessRule would have to grant it `namespaces: [shop]`; no AccessRule names that folder"]
    );
}

#[test]
fn rules_of_one_change_do_not_count_for_it() {
    let (old, new) = (rule_of("team-a", TEAM), rule_of("team-b", "{folders: [teams/b], namespaces: ['*']}"));
    let map = object("v1", "ConfigMap", "shop", "x");
    let now = [("access/a.yaml", &*old), ("access/b.yaml", &*new), ("teams/b/x.yaml", &*map)];
    let judged = judge(&[("access/a.yaml", &old)], &now);
    assert_eq!(judged.refused.len(), 1);
    assert!(hints(&judged)[0].starts_with("merge the access rules first"), "{:?}", hints(&judged));
    assert!(judge(&now, &now).found.is_empty(), "they do for the next");
}

#[test]
fn a_grant_is_one_rule_as_a_whole() {
    let rules = format!(
        "{}---\n{}",
        rule_of("maps", "{folders: [a], namespaces: [shop], kinds: [ConfigMap]}"),
        rule_of("roles", "{folders: [a], namespaces: [audit], kinds: [Role]}")
    );
    let of = |kind: &str, namespace: &str| {
        let api = if kind == "Role" { "rbac.authorization.k8s.io/v1" } else { "v1" };
        let text = object(api, kind, namespace, "x");
        judge(&[("access/r.yaml", &rules)], &[("a/x.yaml", &text)]).refused.len()
    };
    assert_eq!((of("ConfigMap", "shop"), of("Role", "audit")), (0, 0));
    assert_eq!((of("Role", "shop"), of("ConfigMap", "audit"), of("Secret", "shop")), (1, 1, 1));
}

#[test]
fn what_has_no_namespace_and_what_gives_rights_is_granted_by_name() {
    let rules = rule_of("a", "{folders: [a], namespaces: [shop]}");
    let open = rule_of("a", "{folders: [a], namespaces: [shop], kinds: ['*', Role], clusterKinds: ['*']}");
    let count =
        |rules: &str, text: &str| judge(&[("access/r.yaml", rules)], &[("a/x.yaml", text)]).refused.len();
    let rbac = "rbac.authorization.k8s.io/v1";
    for (text, closed, opened) in [
        (object("v1", "Namespace", "", "shop"), 0, 0),
        (object("v1", "Namespace", "", "other"), 1, 0),
        (object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "x"), 1, 0),
        (object(rbac, "Role", "shop", "x"), 1, 0),
        (object(rbac, "RoleBinding", "shop", "x"), 1, 1),
        (object(rbac, "ClusterRole", "", "x"), 1, 1),
        (object("placement.kubernetes-fleet.io/v1", "ClusterResourcePlacement", "", "x"), 1, 0),
        (object("placement.kubernetes-fleet.io/v1", "ResourcePlacement", "shop", "x"), 0, 0),
        (object("types.kubefed.io/v1beta1", "FederatedDeployment", "shop", "x"), 0, 0),
        (object("types.kubefed.io/v1beta1", "FederatedDeployment", "other", "x"), 1, 1),
        (object("types.kubefed.io/v1beta1", "FederatedClusterRole", "", "x"), 1, 1),
        (object("core.kubefed.io/v1beta1", "FederatedTypeConfig", "shop", "x"), 1, 0),
        // The namespace of a cluster-scoped object is ignored.
        (object("v1", "Namespace", "shop", "other"), 1, 0),
        (object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "shop", "x"), 1, 0),
        (object("placement.kubernetes-fleet.io/v1", "ClusterResourcePlacement", "shop", "x"), 1, 0),
        (object("types.kubefed.io/v1beta1", "FederatedClusterRole", "shop", "x"), 1, 1),
        (object("types.kubefed.io/v1beta1", "FederatedNamespace", "shop", "shop"), 0, 0),
    ] {
        assert_eq!((count(&rules, &text), count(&open, &text)), (closed, opened), "{text}");
    }
}

#[test]
fn objects_inside_others_are_asked_for_too() {
    let rules = rule_of("a", "{folders: [a], namespaces: [shop]}");
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}";
    let work = format!(
        "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
         metadata: {{namespace: shop, name: w}}\nspec:\n  manifestWorkTemplate:\n    workload:\n      manifests:\n      - {role}\n"
    );
    let envelope = format!(
        "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ResourceEnvelope\nmetadata: {{namespace: shop, name: e}}\n\
         data:\n  x: {role}\n"
    );
    let old = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: shop\n  name: e\n  annotations:\n    \
         kubernetes-fleet.io/envelope-configmap: 'true'\ndata:\n  x: '{role}'\n"
    );
    for (text, line) in [(work, 8), (envelope, 5), (old, 9)] {
        let judged = judge(&[("access/r.yaml", &rules)], &[("a/x.yaml", &text)]);
        assert_eq!(told(&judged).len(), 1, "{text}");
        assert!(told(&judged)[0].starts_with(&format!("a/x.yaml:{line}:")), "{:?}", told(&judged));
        assert!(told(&judged)[0].contains("may not place ClusterRole `r`, which is in no namespace"));
    }
}

#[test]
fn a_binding_needs_its_set_and_its_namespace() {
    let rules = rule_of("team-a", TEAM);
    let binding = |set: &str, namespace: &str| {
        let text = format!(
            "{}spec: {{clusterSet: {set}}}\n",
            object("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding", namespace, set)
        );
        told(&judge(&[("access/a.yaml", &rules)], &[("teams/a/b.yaml", &text)]))
    };
    assert!(binding("blue", "shop").is_empty());
    assert_eq!(
        binding("red", "shop"),
        ["teams/a/b.yaml:4:20: the folder `teams/a` may not bind the cluster set `red`"]
    );
    assert_eq!(binding("blue", "bank").len(), 1);
    assert_eq!(binding("red", "bank").len(), 2);
}

#[test]
fn moving_a_cluster_needs_the_right_on_both_sets() {
    let both = rule_of("x", "{folders: [clusters], clusterSets: {join: [blue, red]}}");
    let (blue, red) = (
        rule_of("x", "{folders: [clusters], clusterSets: {join: [blue]}}"),
        rule_of("x", "{folders: [clusters], clusterSets: {join: [red]}}"),
    );
    let moved = |rules: &str| {
        let before = [("access/r.yaml", rules), ("clusters/o.yaml", &*in_set("oslo", "blue"))];
        told(&judge(&before, &[("clusters/o.yaml", &in_set("oslo", "red"))]))
    };
    assert!(moved(&both).is_empty());
    assert!(
        moved(&blue)[0].ends_with("may not put the cluster `oslo` into the set `red`"),
        "{:?}",
        moved(&blue)
    );
    assert!(moved(&red)[0].ends_with("may not take the cluster `oslo` out of the set `blue`"));
    // A cluster without the label is in the set `default`, so removing the label is a move.
    let before = [("access/r.yaml", &*blue), ("clusters/o.yaml", &*in_set("oslo", "blue"))];
    let left = judge(&before, &[("clusters/o.yaml", &cluster("oslo", ""))]);
    assert!(told(&left)[0].ends_with("may not put the cluster `oslo` into the set `default`"));
}

#[test]
fn a_second_document_about_a_cluster_is_the_fault_of_whoever_wrote_it() {
    let rules = format!(
        "{}---\n{}",
        rule_of("clusters", "{folders: [clusters], clusterSets: {join: [blue]}}"),
        rule_of("b", "{folders: [teams/b], clusterSets: {join: [red, default]}}")
    );
    let own = in_set("oslo", "blue");
    let other = "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {name: oslo, labels: {env: prod}}\n";
    let before = [("access/r.yaml", &*rules), ("clusters/o.yaml", &*own)];
    let judged = judge(&before, &[("clusters/o.yaml", &own), ("teams/b/o.yaml", other)]);
    assert_eq!(judged.refused, [1].into());
    assert!(
        told(&judged)[0]
            .contains("the folder `teams/b` may not describe the cluster `oslo` of the set `blue`")
    );
}

#[test]
fn changing_a_cluster_needs_admin_and_joining_one_does_not() {
    let join = rule_of("x", "{folders: [clusters], clusterSets: {join: [blue]}}");
    let admin = rule_of("x", "{folders: [clusters], clusterSets: {admin: [blue]}}");
    let edit = rule_of("x", "{folders: [clusters], clusterSets: {join: [blue]}, clusters: {edit: [oslo]}}");
    let tainted = format!("{}spec: {{taints: [{{key: a, effect: NoSelect}}]}}\n", in_set("oslo", "blue"));
    let changed = |rules: &str, text: &str| {
        let before = [("access/r.yaml", rules), ("clusters/o.yaml", &*in_set("oslo", "blue"))];
        told(&judge(&before, &[("clusters/o.yaml", text), ("clusters/n.yaml", &in_set("new", "blue"))]))
    };
    assert!(changed(&join, &in_set("oslo", "blue")).is_empty());
    assert_eq!(
        changed(&join, &tainted),
        ["clusters/o.yaml:1:1: the folder `clusters` may not change the cluster `oslo`"]
    );
    assert!(changed(&admin, &tainted).is_empty() && changed(&edit, &tainted).is_empty());
}

#[test]
fn labels_that_a_set_selects_by_are_protected_like_the_set_label() {
    let rules = format!(
        "{}---\n{}",
        rule_of("a", "{folders: [clusters], clusterSets: {admin: [blue]}}"),
        rule_of("all", "{folders: [sets], clusterSets: {admin: ['*']}}")
    );
    let set = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: prod}\n\
               spec:\n  clusterSelector:\n    selectorType: LabelSelector\n    labelSelector: {matchLabels: {env: prod}}\n";
    let blue = "cluster.open-cluster-management.io/clusterset: blue";
    let (plain, prod) = (cluster("oslo", blue), cluster("oslo", &format!("{blue}, env: prod")));
    let before = [("access/r.yaml", &*rules), ("sets/s.yaml", set), ("clusters/o.yaml", &*plain)];
    let into = judge(&before, &[("sets/s.yaml", set), ("clusters/o.yaml", &prod)]);
    assert!(
        told(&into)[0].ends_with("may not put the cluster `oslo` into the set `prod` by its labels"),
        "{:?}",
        told(&into)
    );
    let before = [("access/r.yaml", &*rules), ("sets/s.yaml", set), ("clusters/o.yaml", &*prod)];
    let out = judge(&before, &[("sets/s.yaml", set), ("clusters/o.yaml", &plain)]);
    assert!(told(&out)[0].ends_with("may not take the cluster `oslo` out of the set `prod` by its labels"));
    assert!(judge(&before, &[("sets/s.yaml", set), ("clusters/o.yaml", &prod)]).found.is_empty());
    // Such a set can select any cluster, so a right on a name pattern does not suffice to create it.
    let own = rule_of("a", "{folders: [sets], clusterSets: {admin: ['pro*']}}");
    let made = judge(&[("access/r.yaml", &own)], &[("sets/s.yaml", set)]);
    assert_eq!(
        told(&made),
        [
            "sets/s.yaml:6:19: the folder `sets` may not make a set that picks clusters by their labels, since it can reach any cluster"
        ]
    );
}

#[test]
fn clusters_and_sets_go_only_where_their_folder_may_let_them() {
    let set = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: blue}\n";
    let gone = |spec: &str| {
        let rules = rule_of("x", spec);
        let before = [("access/r.yaml", &*rules), ("c/s.yaml", set), ("c/o.yaml", &*in_set("oslo", "blue"))];
        told(&judge(&before, &[]))
    };
    assert_eq!(
        gone("{folders: [d], namespaces: [x]}"),
        [
            "c/o.yaml: the folder `c` may not take the cluster `oslo` out of the set `blue`",
            "c/s.yaml: the folder `c` may not delete the cluster set `blue`"
        ]
    );
    assert!(gone("{folders: [c], clusterSets: {admin: [blue]}}").is_empty());
}

#[test]
fn one_of_a_clusters_documents_goes_only_where_the_cluster_may_be_changed() {
    let other = "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {name: oslo, labels: {env: prod}}\n";
    let own = in_set("oslo", "blue");
    let gone = |spec: &str| {
        let rules = rule_of("x", spec);
        let before = [("access/r.yaml", &*rules), ("c/o.yaml", &*own), ("c/more.yaml", other)];
        told(&judge(&before, &[("c/o.yaml", &own)]))
    };
    assert_eq!(
        gone("{folders: [c], clusterSets: {join: [blue]}}"),
        [
            "c/more.yaml: the folder `c` may not change the cluster `oslo`, which another document describes, too"
        ]
    );
    assert!(gone("{folders: [c], clusterSets: {join: [blue]}, clusters: {edit: [oslo]}}").is_empty());
    assert!(gone("{folders: [c], clusterSets: {admin: [blue]}}").is_empty());
}

#[test]
fn kinds_bind_in_groups_that_only_share_a_domain_with_a_policy() {
    let rules = rule_of("a", "{folders: [teams/a], namespaces: [shop], kinds: [Deployment]}");
    let written = |api_version: &str, kind: &str| {
        let text = object(api_version, kind, "shop", "x");
        told(&judge(&[("access/r.yaml", &rules)], &[("teams/a/x.yaml", &text)]))
    };
    for (api_version, kind) in [
        ("policy.open-cluster-management.io/v1", "ConfigurationPolicy"),
        ("operator.kubefed.io/v1", "Operator"),
        ("x.kubernetes-fleet.io/v1", "Thing"),
    ] {
        let found = written(api_version, kind);
        assert!(found.len() == 1 && found[0].contains(&format!("may not place a {kind}")), "{found:?}");
    }
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("cluster.open-cluster-management.io/v1beta1", "Placement"),
        ("types.kubefed.io/v1beta1", "FederatedConfigMap"),
        ("placement.kubernetes-fleet.io/v1beta1", "ResourcePlacement"),
    ] {
        assert_eq!(written(api_version, kind), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn a_rule_that_can_not_be_read_grants_nothing_and_switches_nothing_off() {
    for odd in [
        rule_of("x", "{folders: [a], namspaces: [shop]}"),
        rule_of("x", "{folders: ['../a'], namespaces: [shop]}"),
        rule_of("x", "{namespaces: [shop]}"),
        rule_of("x", "{folders: [a], namespaces: [shop]}").replace("AccessRule", "AccesRule"),
    ] {
        let judged =
            judge(&[("access/r.yaml", &odd)], &[("a/x.yaml", &object("v1", "ConfigMap", "shop", "x"))]);
        assert_eq!(judged.refused.len(), 1, "{odd}");
    }
}
