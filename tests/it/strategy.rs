//! How KubeFleet's apply and delete strategies, and OCM's options of works, are kept to in a Kubernetes cluster.

use serde_json::{Value as Json, json};

use crate::support::member::{Member, annotated};
use crate::support::wait::until;
use crate::support::{Ran, Repo, berth};

/// A config map with these annotations of berth's.
fn with(member: &Member, name: &str, value: &str, annotations: &[(&str, &str)]) -> Json {
    let plain = member.config_map(name, value);
    annotations
        .iter()
        .fold(plain, |object, (name, value)| annotated(object, &format!("berth.dev/{name}"), value))
}

/// Changes a config map as another tool does, which stays the owner of what it has written.
fn write_as(member: &Member, manager: &str, name: &str, data: &Json) {
    let patch = json!({ "data": data }).to_string();
    let manager = format!("--field-manager={manager}");
    member.kubectl(&["patch", "cm", name, "-n", &member.name, &manager, "--type=merge", "-p", &patch]);
}

fn data(member: &Member, name: &str) -> Json {
    member.get("configmap", name).expect("it is there")["data"].clone()
}

fn status(member: &Member) -> String {
    let name = &member.name;
    member.repo.git(&["cat-file", "-p", &format!("refs/berth/status/{name}:status.yaml")])
}

#[test]
#[ignore = "needs Kubernetes"]
fn client_side_apply_writes_its_fields_whoever_has_written_them_and_server_side_apply_asks() {
    let Some(member) = Member::new("sides") else { return };
    let client = [("on-conflict", "force")];
    let publish = |server: &[(&str, &str)]| {
        member.publish(&[with(&member, "client", "one", &client), with(&member, "server", "one", server)]);
    };
    publish(&[]);
    member.sync(&[]).expect(0);
    for name in ["client", "server"] {
        write_as(&member, "robot", name, &json!({"key": "robot"}));
    }
    let ran = member.sync(&[]).expect(7);
    assert_eq!(data(&member, "client"), json!({"key": "one"}));
    assert_eq!(data(&member, "server"), json!({"key": "robot"}));
    assert!(
        ran.err.contains("ConfigMap sides/server: others own the fields to change: `.data.key` of `robot`"),
        "{}",
        ran.err
    );
    // `serverSideApplyConfig: {force: true}`.
    publish(&client);
    member.sync(&[]).expect(0);
    assert_eq!(data(&member, "server"), json!({"key": "one"}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn report_diff_writes_nothing_and_names_the_fields() {
    let Some(member) = Member::new("reports") else { return };
    let only = [("apply", "report-diff"), ("take-over", "true")];
    for (name, value) in [("same", "one"), ("differs", "here")] {
        member.kubectl_apply(&member.config_map(name, value), &[]);
    }
    let names = ["same", "differs", "absent"];
    member.publish(&names.map(|name| with(&member, name, "one", &only)));
    let before: Vec<Option<Json>> = names.iter().map(|name| member.get("configmap", name)).collect();
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("0 writes, 0 removals, 0 unchanged"), "{}", ran.out);
    for said in [
        "ConfigMap reports/differs: FoundDiff: `/data/key` is \"here\" in the cluster and \"one\" in the folder",
        "ConfigMap reports/absent: FoundDiff: it does not exist",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert!(!ran.err.contains("reports/same"), "{}", ran.err);
    let after: Vec<Option<Json>> = names.iter().map(|name| member.get("configmap", name)).collect();
    assert_eq!(before, after);
    let status = status(&member);
    assert!(status.contains("differences:") && status.contains("FoundDiff"), "{status}");
    assert!(!status.contains("problems:"), "{status}");

    // An object that was applied before is left alone as well.
    member.publish(&[member.config_map("own", "one")]);
    member.sync(&[]).expect(0);
    member.publish(&[with(&member, "own", "two", &only)]);
    let ran = member.sync(&[]).expect(0);
    assert!(
        ran.err.contains("own: FoundDiff: `/data/key` is \"one\" in the cluster and \"two\""),
        "{}",
        ran.err
    );
    assert_eq!(data(&member, "own"), json!({"key": "one"}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_full_comparison_counts_what_was_added_beside_the_manifest() {
    let Some(member) = Member::new("full") else { return };
    let names = ["full", "partial"];
    let both = [with(&member, "full", "one", &[("compare", "full")]), member.config_map("partial", "one")];
    member.publish(&both);
    member.sync(&[]).expect(0);
    assert!(member.sync(&[]).expect(0).err.is_empty(), "what the server fills in is no difference");
    for name in names {
        write_as(&member, "robot", name, &json!({"more": "x"}));
    }
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("0 writes"), "{}", ran.out);
    assert_eq!(
        ran.err.trim(),
        "ConfigMap full/full: FoundDrifts: `/data/more` is \"x\" in the cluster and missing in the folder"
    );
    // As a hub does it, the field stays: nobody said that it should go.
    assert_eq!(data(&member, "full"), json!({"key": "one", "more": "x"}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_has_drifted_is_not_overwritten_until_the_manifest_changes() {
    let Some(member) = Member::new("drifts") else { return };
    let when = [("apply-when", "if-not-drifted"), ("on-conflict", "force")];
    let full = [when[0], when[1], ("compare", "full")];
    let publish = |value: &str| {
        member.publish(&[
            with(&member, "web", value, &when),
            with(&member, "more", value, &full),
            member.config_map("always", value),
        ]);
    };
    publish("one");
    member.sync(&[]).expect(0);
    for (name, field) in [("web", "key"), ("more", "added"), ("always", "key")] {
        let mut change = json!({});
        change[field] = json!("hand");
        write_as(&member, "kubectl-patch", name, &change);
    }
    for _ in 0..2 {
        let ran = member.sync(&[]).expect(7);
        for said in [
            "ConfigMap drifts/web: FoundDrifts: it was changed in the cluster, and stays changed until the folder changes: `/data/key` is \"hand\" in the cluster and \"one\" in the folder",
            "`/data/added` is \"hand\" in the cluster and missing in the folder",
        ] {
            assert!(ran.err.contains(said), "{said}\n{}", ran.err);
        }
        assert_eq!(data(&member, "web"), json!({"key": "hand"}));
        assert_eq!(data(&member, "always"), json!({"key": "one"}));
    }
    assert!(status(&member).contains("FoundDrifts"), "{}", status(&member));
    publish("two");
    member.sync(&[]).expect(0);
    assert_eq!(data(&member, "web"), json!({"key": "two"}));
    let ran = member.sync(&[]).expect(7);
    assert!(!ran.err.contains("drifts/web"), "{}", ran.err);
    write_as(&member, "kubectl-patch", "more", &json!({"added": null}));
    member.sync(&[]).expect(0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_drifted_namespace_keeps_nothing_in_it_from_being_applied() {
    let Some(member) = Member::new("drifted-ns") else { return };
    let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "drifted-ns", "labels": {"env": "test"}, "annotations": {}}});
    for (name, value) in [("take-over", "true"), ("apply-when", "if-not-drifted"), ("prune", "disabled")] {
        namespace = annotated(namespace, &format!("berth.dev/{name}"), value);
    }
    member.publish(&[namespace.clone()]);
    member.sync(&[]).expect(0);
    member.kubectl(&["label", "namespace", "drifted-ns", "env=hand", "--overwrite"]);
    member.publish(&[namespace, member.config_map("web", "one")]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains("Namespace drifted-ns: FoundDrifts: "), "{}", ran.err);
    assert!(member.get("configmap", "web").is_some(), "{}", ran.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_there_is_taken_over_always_if_nothing_differs_or_never() {
    let Some(member) = Member::new("takes") else { return };
    let mut cases = Vec::new();
    for (name, value, annotations) in [
        ("always", "here", vec![("take-over", "true"), ("on-conflict", "force")]),
        ("equal", "one", vec![("take-over", "if-no-diff")]),
        ("differs", "here", vec![("take-over", "if-no-diff")]),
        ("beside", "one", vec![("take-over", "if-no-diff")]),
        ("beside-full", "one", vec![("take-over", "if-no-diff"), ("compare", "full")]),
        ("never", "one", vec![("take-over", "never")]),
    ] {
        let mut there = member.config_map(name, value);
        there["metadata"].as_object_mut().expect("a mapping").remove("annotations");
        if name.starts_with("beside") {
            there["data"]["more"] = json!("x");
        }
        member.kubectl_apply(&there, &[]);
        cases.push(with(&member, name, "one", &annotations));
    }
    member.publish(&cases);
    let ran = member.sync(&[]).expect(7);
    for said in [
        "ConfigMap takes/differs: FailedToTakeOver: it exists, was not made by berth, and differs: `/data/key` is \"here\"",
        "ConfigMap takes/beside-full: FailedToTakeOver: it exists, was not made by berth, and differs: `/data/more` is \"x\"",
        "ConfigMap takes/never: NotTakenOver: it exists and was not made by berth",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    let owned = |name: &str| {
        let object = member.get("configmap", name).expect("it is there");
        object["metadata"]["labels"].get("applyset.kubernetes.io/part-of").is_some()
    };
    let taken = ["always", "equal", "differs", "beside", "beside-full", "never"].map(owned);
    assert_eq!(taken, [true, true, false, true, false, false], "{}", ran.err);
    assert_eq!(data(&member, "always"), json!({"key": "one"}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_with_owners_of_its_own_is_taken_only_where_co_ownership_is_allowed() {
    let Some(member) = Member::new("owners") else { return };
    let owner = member.config_map("owner", "x");
    member.kubectl_apply(&owner, &[]);
    let uid = member.get("configmap", "owner").expect("it is there")["metadata"]["uid"].clone();
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    let owned = |name: &str| {
        let patch = json!({"metadata": {"ownerReferences": reference}}).to_string();
        let manager = "--field-manager=controller";
        member.kubectl(&["patch", "cm", name, "-n", "owners", manager, "--type=merge", "-p", &patch]);
    };
    for name in ["alone", "shared"] {
        member.kubectl_apply(&member.config_map(name, "one"), &[]);
        owned(name);
    }
    let take = [("take-over", "true"), ("on-conflict", "force")];
    let alone = [take[0], take[1], ("co-owners", "refused")];
    member.publish(&[
        with(&member, "alone", "two", &alone),
        with(&member, "shared", "two", &take),
        with(&member, "later", "two", &alone),
    ]);
    let ran = member.sync(&[]).expect(7);
    let said = "ConfigMap owners/alone: FailedToTakeOver: it has other owners, and co-ownership is not allowed: \
                `ConfigMap owner`";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert_eq!(data(&member, "alone"), json!({"key": "one"}));
    assert_eq!(data(&member, "shared"), json!({"key": "two"}));
    let shared = member.get("configmap", "shared").expect("it is there");
    assert_eq!(shared["metadata"]["ownerReferences"][0]["name"], "owner", "its other owner stays");

    // The same for one that gets an owner later.
    owned("later");
    let ran = member.sync(&[]).expect(7);
    assert!(
        ran.err.contains("ConfigMap owners/later: ManifestApplyFailed: it has other owners"),
        "{}",
        ran.err
    );
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_drift_of_a_secret_is_named_without_its_values() {
    let Some(member) = Member::new("hidden") else { return };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "hidden",
        "annotations": {"berth.dev/apply-when": "if-not-drifted", "berth.dev/workload": "F/x/app"}},
        "data": {"password": "aHVudGVyMg=="}});
    member.publish(&[secret]);
    member.sync(&[]).expect(0);
    let patch = r#"{"data":{"password":"aHVudGVyMw=="}}"#;
    member.kubectl(&["patch", "secret", "key", "-n", "hidden", "--type=merge", "-p", patch]);
    let ran = member.sync(&[]).expect(7);
    assert!(
        ran.err.contains("Secret hidden/key: FoundDrifts: ") && ran.err.contains("`/data/password`"),
        "{}",
        ran.err
    );
    let all = format!("{}{}{}", ran.out, ran.err, status(&member));
    assert!(!all.contains("hunter") && !all.contains("aHVudGVy"), "{all}");
}

/// A fleet of KubeFleet objects with one cluster and one config map.
fn fleet(name: &str, strategy: &str) -> Repo {
    let member = "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {name: m}\n\
                  spec: {identity: {kind: ServiceAccount, name: m, namespace: fleet-system}}\n";
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: {name}}}\ndata: {{key: one}}\n"
    );
    let placement = format!(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
         metadata: {{name: web, namespace: {name}}}\nspec:\n  \
         resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: web}}]\n  strategy: {strategy}\n"
    );
    let (other, elsewhere) =
        (placement.replace("name: web", "name: other"), map.replace("name: web", "name: other"));
    Repo::with(&[
        ("m.yaml", member),
        ("map.yaml", &map),
        ("placement.yaml", &placement),
        ("other.yaml", &format!("{other}---\n{elsewhere}")),
    ])
}

fn sync(repo: &Repo, member: &Member) -> Ran {
    let mut command = berth();
    command.args(["sync", "--once", "--target", "kube", "--repo", repo.arg(), "--cluster", "m"]);
    command.args(["--fleet", &member.name, "--health-timeout", "90"]);
    command.arg("--kubeconfig").arg(member.plane.kubeconfig());
    Ran::of(&mut command)
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_placement_that_is_deleted_takes_its_objects_along_or_abandons_them() {
    for (name, policy, stays) in [("deletes", "Delete", false), ("abandons", "Abandon", true)] {
        let Some(member) = Member::new(name) else { return };
        let repo = fleet(name, &format!("{{deleteStrategy: {{propagationPolicy: {policy}}}}}"));
        repo.publish().expect(0);
        sync(&repo, &member).expect(0);
        assert_eq!(data(&member, "web"), json!({"key": "one"}));
        repo.git(&["rm", "-q", "placement.yaml"]);
        repo.commit("delete the placement");
        repo.publish_ungated().expect(0);
        sync(&repo, &member).expect(0);
        let left = member.get("configmap", "web");
        assert_eq!(left.is_some(), stays, "{policy}");
        if let Some(left) = left {
            let metadata = left["metadata"].to_string();
            assert!(!metadata.contains("part-of") && !metadata.contains("berth.dev/orphan\":"), "{metadata}");
        }
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_placement_that_only_reports_differences_shows_them_as_its_hub_would() {
    let Some(member) = Member::new("described") else { return };
    member.kubectl_apply(&member.config_map("web", "here"), &[]);
    let repo = fleet("described", "{applyStrategy: {type: ReportDiff}}");
    repo.publish().expect(0);
    let ran = sync(&repo, &member).expect(0);
    assert!(ran.err.contains("FoundDiff: `/data/key` is \"here\" in the cluster and \"one\""), "{}", ran.err);
    assert_eq!(data(&member, "web"), json!({"key": "here"}));
    let ran = crate::support::run(&["describe", "rp/described/web", "--repo", repo.arg(), "-o", "json"]);
    let shown = ran.expect(0).json();
    let cluster = &shown["items"][0]["status"]["placementStatuses"][0];
    let kinds: Vec<&Json> =
        cluster["conditions"].as_array().expect("a list").iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds.last(), Some(&&json!("DiffReported")), "{cluster}");
    assert!(!kinds.contains(&&json!("Applied")), "{cluster}");
    let diffed = &cluster["diffedPlacements"][0];
    assert_eq!((&diffed["kind"], &diffed["name"]), (&json!("ConfigMap"), &json!("web")), "{cluster}");
    assert!(diffed["observedDiffs"].to_string().contains("/data/key"), "{cluster}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_only_made_is_never_changed_and_what_is_only_read_is_never_written_or_removed() {
    let Some(member) = Member::new("options") else { return };
    member.kubectl_apply(&member.config_map("there", "here"), &[]);
    member.kubectl_apply(&member.config_map("read", "here"), &[]);
    let create = [("apply", "create-only")];
    let publish = |value: &str| {
        member.publish(&[
            with(&member, "made", value, &create),
            with(&member, "there", value, &create),
            with(&member, "read", value, &[("apply", "read-only")]),
        ]);
    };
    publish("one");
    let ran = member.sync(&[]).expect(0);
    assert!(
        ran.out.starts_with("1 write, 0 removals, 1 unchanged\n  create     ConfigMap options/made"),
        "{}",
        ran.out
    );
    publish("two");
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes"));
    write_as(&member, "robot", "made", &json!({"key": "robot"}));
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes"));
    assert_eq!(data(&member, "made"), json!({"key": "robot"}));
    assert_eq!(data(&member, "there"), json!({"key": "here"}));
    // What was made goes with its work; what was there, or only read, stays.
    member.publish(&[]);
    member.sync(&[]).expect(0);
    assert_eq!(member.get("configmap", "made"), None);
    assert!(["there", "read"].iter().all(|name| data(&member, name) == json!({"key": "here"})));

    // One that is read from now on is let go, so that nothing removes it later.
    member.publish(&[member.config_map("was-written", "one")]);
    member.sync(&[]).expect(0);
    member.publish(&[with(&member, "was-written", "two", &[("apply", "read-only")])]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.contains("let go     ConfigMap options/was-written"), "{}", ran.out);
    member.publish(&[]);
    member.sync(&[]).expect(0);
    assert_eq!(data(&member, "was-written"), json!({"key": "one"}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_only_read_and_not_there_is_said() {
    let Some(member) = Member::new("readers") else { return };
    member.publish(&[with(&member, "read", "one", &[("apply", "read-only")])]);
    let ran = member.sync(&["--health-timeout", "0"]).expect(7);
    assert!(
        ran.err.contains("ConfigMap readers/read: ") && ran.err.contains("it does not exist"),
        "{}",
        ran.err
    );
    assert_eq!(member.get("configmap", "read"), None);
}

#[test]
#[ignore = "needs Kubernetes"]
fn fields_that_count_only_at_first_are_the_members_afterwards() {
    let Some(member) = Member::new("initial") else { return };
    let fields = [("initial", "/data/key,/metadata/labels"), ("on-conflict", "fail")];
    let publish = |value: &str, rest: &str| {
        let mut object = with(&member, "web", value, &fields);
        object["data"]["rest"] = json!(rest);
        member.publish(&[object]);
    };
    publish("one", "one");
    member.sync(&[]).expect(0);
    assert_eq!(data(&member, "web"), json!({"key": "one", "rest": "one"}));
    write_as(&member, "robot", "web", &json!({"key": "robot"}));
    for round in ["first", "second"] {
        assert!(member.sync(&[]).expect(0).out.starts_with("0 writes"), "{round}");
    }
    publish("two", "two");
    member.sync(&[]).expect(0);
    assert_eq!(data(&member, "web"), json!({"key": "robot", "rest": "two"}));
    write_as(&member, "robot", "web", &json!({"key": "robot again"}));
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes"));
    assert_eq!(data(&member, "web"), json!({"key": "robot again", "rest": "two"}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn fields_that_are_tolerated_stay_changed_until_the_manifest_changes() {
    let Some(member) = Member::new("tolerated") else { return };
    let publish = |value: &str| {
        member.publish(&[with(
            &member,
            "web",
            value,
            &[("tolerate", "/data/key"), ("on-conflict", "force")],
        )]);
    };
    publish("one");
    member.sync(&[]).expect(0);
    write_as(&member, "robot", "web", &json!({"key": "robot"}));
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes"));
    assert_eq!(data(&member, "web"), json!({"key": "robot"}));
    publish("two");
    member.sync(&[]).expect(0);
    assert_eq!(data(&member, "web"), json!({"key": "two"}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn objects_of_a_work_go_or_stay_as_its_delete_option_says() {
    let Some(member) = Member::new("works") else { return };
    let map = |name: &str, annotations: &[(&str, &str)]| with(&member, name, "one", annotations);
    let foreground = r#"{"propagationPolicy":"Foreground"}"#;
    let gone = map("gone", &[("delete-options", foreground)]);
    member.publish(&[gone, map("orphan", &[("orphan", "true")])]);
    member.sync(&[]).expect(0);
    member.publish(&[]);
    member.sync(&[]);
    until("the config map is gone", || member.get("configmap", "gone").is_none());
    assert_eq!(data(&member, "orphan"), json!({"key": "one"}));
}
