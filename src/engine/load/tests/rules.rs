use super::*;

#[test]
fn what_is_no_object_is_passed_over_with_one_note() {
    let loaded = load(&[
        ("a.yaml", "x: 1\n---\n- 1\n"),
        ("b.yaml", "replicas: 3\n"),
        ("k.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"),
    ]);
    assert_eq!(loaded.passed_over, 4);
    assert_eq!(said(&loaded), ["note: skipped 4 documents that are not Kubernetes objects"]);
}

#[test]
fn half_an_object_is_an_error() {
    let loaded = load(&[("a.yaml", "apiVersion: v1\n---\nkind: Pod\n---\napiVersion: 1\nkind: Pod\n")]);
    let errors = errors(&loaded);
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].starts_with("a.yaml:1:1: error: kind is required"));
    assert!(errors[1].starts_with("a.yaml:3:1: error: apiVersion is required"));
    assert!(errors[2].starts_with("a.yaml:5:13: error: apiVersion must be text"));
}

#[test]
fn lists_are_taken_apart() {
    let text = "\
apiVersion: v1
kind: List
items:
- {apiVersion: test.dev/v1, kind: Member, metadata: {name: a}}
- {apiVersion: test.dev/v1, kind: Member, metadata: {name: b}}
- {kind: Member}
- 7
";
    let loaded = load(&[("a.yaml", text)]);
    assert_eq!(clusters(&loaded), ["a", "b"]);
    let errors = errors(&loaded);
    assert!(errors[0].starts_with("a.yaml:6:3") && errors[1].starts_with("a.yaml:7:3"), "{errors:?}");
}

#[test]
fn typed_lists_are_taken_apart_and_their_items_need_not_repeat_the_kind() {
    let text = "\
apiVersion: test.dev/v1
kind: MemberList
metadata: {resourceVersion: '5'}
items:
- {apiVersion: test.dev/v1, kind: Member, metadata: {name: a}}
- metadata: {name: b}
---
apiVersion: test.dev/v1
kind: MemberList
metadata: {name: ''}
items: [{metadata: {name: c}}]
";
    let loaded = load(&[("a.yaml", text)]);
    assert_eq!(errors(&loaded), [""; 0]);
    assert_eq!(clusters(&loaded), ["a", "b", "c"]);
    // A list with a name, or without a list of items, is an object like any other.
    let named = "apiVersion: x.dev/v1\nkind: AllowList\nmetadata: {name: own}\nitems: [a]\n";
    assert_eq!(errors(&load(&[("a.yaml", named)])), [""; 0]);
    let bare = "apiVersion: x.dev/v1\nkind: AllowList\nitems: all\n";
    assert!(errors(&load(&[("a.yaml", bare)]))[0].contains("metadata.name is required"));
}

#[test]
fn names_are_checked() {
    let cases = [
        ("{}", "metadata.name is required"),
        ("{generateName: x-}", "write a name"),
        ("{name: 5}", "must be text"),
        ("{name: a/b}", "one part of a path"),
        ("{name: ..}", "one part of a path"),
        ("{name: \"a\\nb\"}", "control characters"),
        ("{name: a, namespace: A_b}", "not a namespace's name"),
        ("{name: a, namespace: 1}", "must be text"),
        ("[]", "must be a mapping"),
    ];
    for (metadata, wanted) in cases {
        let loaded = load(&[("a.yaml", &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\n"))]);
        let errors = errors(&loaded);
        assert!(errors.len() == 1 && errors[0].contains(wanted), "{metadata}: {errors:?}");
    }
}

#[test]
fn a_cluster_needs_a_name_that_can_be_a_folder() {
    for name in ["'../x'", "Upper", "a_b", "'-a'", "a..b"] {
        let loaded = load(&[("a.yaml", &doc("Member", name, ""))]);
        assert_eq!(errors(&loaded).len(), 1, "{name}");
        assert!(loaded.fleet.clusters.is_empty(), "{name}");
    }
}

#[test]
fn the_second_of_two_equal_keys_is_out() {
    let loaded = load(&[
        ("b.yaml", &doc("Member", "a", "labels: {x: b}")),
        ("a.yaml", &doc("Member", "a", "labels: {x: a}")),
    ]);
    assert_eq!(
        errors(&loaded),
        ["b.yaml:2:1: error: Member a is described twice, first at a.yaml:2:1 hint: remove one of the two"]
    );
    assert_eq!(loaded.fleet.clusters["a"].labels["x"], "a");
}

#[test]
fn two_kinds_may_describe_one_cluster() {
    let loaded = load(&[
        ("a.yaml", &doc("Member", "a", "labels: {x: '1', w: '1'}")),
        ("b.yaml", &doc("Machine", "a", "labels: {w: '1', z: '1'}")),
    ]);
    assert!(errors(&loaded).is_empty());
    let cluster = &loaded.fleet.clusters["a"];
    assert_eq!(cluster.labels.keys().map(String::as_str).collect::<Vec<_>>(), ["w", "x", "z"]);
    assert_eq!(cluster.origins.len(), 2);
}

#[test]
fn two_kinds_that_contradict_are_both_named() {
    let loaded = load(&[
        ("b.yaml", &doc("Machine", "a", "labels: {x: '2'}")),
        ("a.yaml", &doc("Member", "a", "labels: {x: '1'}")),
    ]);
    let errors = errors(&loaded);
    assert!(
        errors[0].starts_with("b.yaml:2:1")
            && errors[0].contains("a.yaml:2:1")
            && errors[0].contains("label `x`"),
        "{errors:?}"
    );
    assert_eq!(loaded.fleet.clusters["a"].labels["x"], "1");
}

#[test]
fn unknown_kinds_of_known_groups_are_errors() {
    let loaded = load(&[(
        "a.yaml",
        &(doc("Membr", "a", "")
            + "---\napiVersion: berth.dev/v1alpha1\nkind: ClusterState\nmetadata: {name: a}\n"),
    )]);
    let errors = errors(&loaded);
    assert!(
        errors[0].contains("unknown kind `Membr`") && errors[0].contains("did you mean `Member`?"),
        "{errors:?}"
    );
    assert!(
        errors[1].contains("unknown kind `ClusterState`") && errors[1].contains("`ClusterStatus`"),
        "{errors:?}"
    );
}

#[test]
fn what_does_not_count_is_counted() {
    let map = |name: &str| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let text = doc("Trace", "a", "") + &doc("Trace", "b", "") + &map("picked") + &map("other");
    assert_eq!(
        said(&load(&[("a.yaml", &text)])),
        [
            "note: 1 x plain Kubernetes objects that no placement selects hint: `berth federate` makes Federated kinds \
             of plain objects, and a ClusterResourcePlacement selects them",
            "note: skipped 2 x `Trace`: a hub's own bookkeeping",
        ]
    );
}

#[test]
fn a_reference_to_no_placement_is_an_error_with_a_hint() {
    let loaded =
        load(&[("a.yaml", &(doc("Rule", "everywhere", "") + &doc("App", "web", "rule: everywere")))]);
    let errors = errors(&loaded);
    assert_eq!(errors, ["a.yaml:10:7: error: there is no Rule `everywere` hint: did you mean `everywhere`?"]);
    assert!(loaded.fleet.doubt.files.contains("a.yaml"));
}

#[test]
fn settings_narrow_what_is_read() {
    let config = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: [charts], unknownFields: warning}\n";
    let loaded = load(&[
        ("berth.yaml", config),
        ("charts/a.yaml", "apiVersion: v2\nname: chart\n"),
        ("a.yaml", &doc("Member", "a", "lables: {}")),
    ]);
    assert_eq!(said(&loaded), ["a.yaml:5:1: warning: unknown field `lables` hint: did you mean `labels`?"]);
    assert_eq!(loaded.passed_over, 0);
}

#[test]
fn settings_count_at_the_root_only() {
    let loaded = load(&[
        (
            "sub/berth.yaml",
            "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: ['**'], extra: 1}\n",
        ),
        ("a.yaml", &doc("Member", "a", "")),
    ]);
    let errors = errors(&loaded);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("only in `berth.yaml`") && errors[1].contains("unknown field `spec.extra`"));
    assert_eq!(clusters(&loaded), ["a"]);
}

#[test]
fn statuses_are_read() {
    let status = "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: a}\nlabels: {x: up}\nworkloads:\n- {kind: App, namespace: shop, name: w, capacity: 3}\n";
    let loaded = load(&[("status/a.yaml", status), ("a.yaml", &doc("Member", "a", ""))]);
    assert!(said(&loaded).is_empty(), "{:?}", said(&loaded));
    assert_eq!(loaded.fleet.statuses["a"].labels["x"], "up");
}

#[test]
fn a_pointer_of_git_lfs_says_so() {
    let loaded = load(&[("a.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")]);
    assert!(errors(&loaded)[0].starts_with("a.yaml: error: a Git LFS pointer"));
}

#[test]
fn clusters_of_two_real_dialects_become_one() {
    let kubefed = "\
apiVersion: core.kubefed.io/v1beta1
kind: KubeFedCluster
metadata: {name: a, namespace: kube-federation-system, labels: {x: '1', w: '1'}}
spec: {apiEndpoint: 'https://a.example.com', secretRef: {name: a}}
";
    let fleet = "\
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: a, labels: {x: '2', z: '1'}}
spec: {identity: {kind: User, name: a, apiGroup: rbac.authorization.k8s.io}}
";
    let files = tree(&[("fleet.yaml", fleet), ("kubefed.yaml", kubefed)]);
    let loaded = crate::load::load(&files, History::None);
    let errors = errors(&loaded);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("kubefed.yaml:1:1") && errors[0].contains("fleet.yaml:1:1"), "{errors:?}");
    assert_eq!(loaded.fleet.clusters["a"].labels["x"], "2");
    assert_eq!(loaded.fleet.clusters["a"].labels.len(), 3);
}
