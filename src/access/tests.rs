//! Rules over documents, alone: what is refused, where, and with which word for the right that is lacking.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::diag::{Diagnostic, Pos};
use crate::model::Key;
use crate::model::object::{group_of, version_of};
use crate::yaml::{self, Limits};

/// The documents of files.
fn documents(files: &[(&str, &str)]) -> Vec<Document> {
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
            found.push(Document { key, version, at, root: document.root.into() });
        }
    }
    found
}

/// What the rules and facts of some files say of others.
fn judge(before: &[(&str, &str)], now: &[(&str, &str)]) -> Judged {
    let (before, now) = (documents(before), documents(now));
    let world = World {
        rules: rules(before.iter(), false),
        before: Facts::of(before.iter()),
        next: rules(now.iter(), false),
    };
    world.judge(&now.iter().collect::<Vec<_>>())
}

fn told(judged: &Judged) -> Vec<String> {
    judged.found.iter().map(|one| format!("{}: {}", one.at.as_ref().expect("a place"), one.message)).collect()
}

fn hints(judged: &Judged) -> Vec<&str> {
    judged.found.iter().filter_map(|one: &Diagnostic| one.hint.as_deref()).collect()
}

fn rule_of(name: &str, spec: &str) -> String {
    format!("apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

fn cluster(name: &str, labels: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"
    )
}

fn in_set(name: &str, set: &str) -> String {
    cluster(name, &format!("cluster.open-cluster-management.io/clusterset: {set}"))
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{namespace: '{namespace}', name: {name}}}\n")
}

const TEAM: &str = "{folders: [teams/a], clusterSets: {bind: [blue], join: [blue]}, namespaces: [shop]}";

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
    assert!(hints(&judged)[0].starts_with("this change brings the right itself"), "{:?}", hints(&judged));
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
    // A cluster without the label is in the set `default`, so taking the label away is a move as well.
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
    // Such a set can reach any cluster, so a name pattern is no right to make one.
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

/// The roles of the documentation, and who has them.
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
        Some("access/roles.yaml:15:3: warning: no AccessRule says which folders the Group `team-b` has")
    );
    let lost = ROLES.replace("name: clusterrole1}\nsub", "name: clusterrole2}\nsub");
    let idle = idle_bindings(documents(&[("access/roles.yaml", &lost)]).iter());
    assert_eq!(idle[0].message, "there is no ClusterRole `clusterrole2` beside the rules");
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

/// Any small rule.
fn specs() -> impl Strategy<Value = String> {
    let words = |of: &'static [&'static str]| {
        proptest::sample::subsequence(of, 0..=of.len()).prop_map(|some| format!("[{}]", some.join(", ")))
    };
    let names: &[&str] = &["blue", "red", "default", "'*'"];
    let sets = (words(names), words(names), words(names));
    let rest = (
        words(&["shop", "bank", "'*'"]),
        words(&["ConfigMap", "Role", "'*'"]),
        words(&["Namespace", "ClusterRole", "'*'"]),
        words(&["oslo", "turin"]),
    );
    let folders = proptest::sample::subsequence(&["a", "b", "/"][..], 1..=3).prop_map(|some| some.join(", "));
    (folders, sets, rest).prop_map(|(folders, (bind, join, admin), (namespaces, kinds, cluster_kinds, edit))| {
        format!(
            "{{folders: [{folders}], clusterSets: {{bind: {bind}, join: {join}, admin: {admin}}}, clusters: {{edit: {edit}}}, \
             namespaces: {namespaces}, kinds: {kinds}, clusterKinds: {cluster_kinds}}}"
        )
    })
}

/// Any few files, of all sorts that rules look at.
fn files() -> impl Strategy<Value = Vec<(String, String)>> {
    let sets = || proptest::sample::select(vec!["blue", "red"]);
    let one = prop_oneof![
        (proptest::sample::select(vec!["oslo", "turin"]), sets()).prop_map(|(name, set)| in_set(name, set)),
        Just(cluster("oslo", "env: prod")),
        proptest::sample::select(vec!["shop", "bank"]).prop_map(|space| object(
            "v1",
            "ConfigMap",
            space,
            "x"
        )),
        Just(object("rbac.authorization.k8s.io/v1", "Role", "shop", "x")),
        Just(object("v1", "Namespace", "", "shop")),
        sets().prop_map(|set| object(
            "cluster.open-cluster-management.io/v1beta2",
            "ManagedClusterSet",
            "",
            set
        )),
        sets().prop_map(|set| {
            let binding = "ManagedClusterSetBinding";
            object("cluster.open-cluster-management.io/v1beta2", binding, "shop", set)
        }),
    ];
    let path = proptest::sample::select(vec!["a", "b", "a/c"]);
    proptest::collection::vec((path, one), 0..5).prop_map(|files| {
        let numbered = files.into_iter().enumerate();
        numbered.map(|(number, (folder, text))| (format!("{folder}/{number}.yaml"), text)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_more_grant_never_adds_an_error_and_without_rules_there_is_none(
        specs_before in proptest::collection::vec(specs(), 1..3),
        more in specs(),
        before in files(),
        now in files(),
    ) {
        let errors = |specs: &[String]| {
            let texts: Vec<String> = specs.iter().map(|spec| rule_of("r", spec)).collect();
            let mut files: Vec<(&str, &str)> = texts.iter().map(|text| ("access/r.yaml", text.as_str())).collect();
            files.extend(before.iter().map(|(path, text)| (path.as_str(), text.as_str())));
            let now: Vec<(&str, &str)> = now.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let judged = judge(&files, &now);
            (judged.refused, judged.stays)
        };
        let few = errors(&specs_before);
        let all: Vec<String> = specs_before.iter().cloned().chain([more]).collect();
        let many = errors(&all);
        prop_assert!(many.0.is_subset(&few.0) && many.1.is_subset(&few.1), "{many:?}\nis more than {few:?}");
        prop_assert_eq!(errors(&[]), Default::default());
    }
}
