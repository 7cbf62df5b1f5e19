//! A member of Kubernetes is brought to its folder, and nothing else in it is touched.

use serde_json::{Value as Json, json};

use crate::support::faults::{Fault, Faults};
use crate::support::member::{Member, annotated};
use crate::support::wait::{eventually, pause};

/// What a member has time for in tests that wait for nothing.
const AT_ONCE: [&str; 2] = ["--health-timeout", "0"];

fn crd(group: &str) -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Boat", "plural": "boats", "singular": "boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"length": {"type": "integer", "minimum": 1}}}}}}}],
        },
    })
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_folder_is_applied_and_what_it_no_longer_holds_goes() {
    let Some(member) = Member::new("whole") else { return };
    member.kubectl(&["create", "configmap", "foreign", "-n", "whole"]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "whole"}, "stringData": {"password": "hunter2"}});
    member.publish(&[member.config_map("web", "one"), member.config_map("old", "one"), secret.clone()]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("3 writes, 0 removals, 0 unchanged"), "{}", ran.out);
    let web = member.get("configmap", "web").expect("it is applied");
    assert_eq!(web["data"]["key"], "one");
    assert_eq!(web["metadata"]["labels"]["applyset.kubernetes.io/part-of"], member.set_id());
    assert_eq!(web["metadata"]["managedFields"][0]["manager"], "berth/whole");
    assert_eq!(web["metadata"]["managedFields"][0]["operation"], "Apply");

    member.publish(&[member.config_map("web", "two"), secret]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("1 write, 1 removal, 1 unchanged"), "{}", ran.out);
    assert_eq!(member.get("configmap", "web").expect("it stays")["data"]["key"], "two");
    assert_eq!(member.get("configmap", "old"), None);
    assert!(member.get("configmap", "foreign").is_some());

    let status = member.repo.git(&["cat-file", "-p", "refs/berth/status/whole:status.yaml"]);
    assert!(status.contains("sequence: 2") && status.contains("objects: 2"), "{status}");
    assert!(!status.contains("hunter2"), "{status}");
    let parent = member.kubectl(&["get", "configmap", "berth-whole", "-n", "berth-system", "-o", "json"]);
    assert!(
        parent.contains("\"applyset.kubernetes.io/contains-group-kinds\": \"ConfigMap,Secret\""),
        "{parent}"
    );
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_unchanged_folder_costs_one_list_for_each_kind_and_no_write() {
    let Some(member) = Member::new("quiet") else { return };
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "quiet"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let deployment =
        annotated(member.deployment("web", "example.com/web:1"), "berth.dev/retain", "/spec/replicas");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "web", "namespace": "quiet", "creationTimestamp": null},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    member.publish(&[member.config_map("web", "one"), service, deployment, role]);
    member.sync(&AT_ONCE).expect(7);
    member.make_healthy("web");
    member.sync(&[]).expect(0);
    let before = member.requests();
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("0 writes, 0 removals, 4 unchanged"), "{}", ran.out);
    let after = eventually("four lists", || {
        let after = member.requests().split_off(before.len());
        (after.iter().filter(|(verb, _)| verb == "list").count() >= 4).then_some(after)
    });
    let mut lists: Vec<&str> =
        after.iter().filter(|(verb, _)| verb == "list").map(|(_, resource)| resource.as_str()).collect();
    lists.sort_unstable();
    assert_eq!(lists, ["configmaps", "deployments", "roles", "services"]);
    let rest: Vec<_> = after.iter().filter(|(verb, _)| verb != "list" && verb != "get").collect();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn definitions_and_namespaces_come_first_and_what_needs_them_follows_in_the_same_round() {
    let Some(member) = Member::new("order") else { return };
    let boat = json!({"apiVersion": "order.example.com/v1", "kind": "Boat",
        "metadata": {"name": "ferry", "namespace": "order-new"}, "spec": {"length": 30}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "order-new"}});
    member.publish(&[crd("order.example.com"), namespace, boat]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("3 writes"), "{}", ran.out);
    member.kubectl(&["get", "boats.order.example.com", "ferry", "-n", "order-new"]);

    // Neither goes without an approval, and with one both do.
    member.publish(&[]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains("Namespace order-new: no longer wanted, but kept"), "{}", ran.err);
    member.kubectl(&["get", "namespace", "order-new"]);
    member.publish_with(
        &[],
        &[
            "_cluster/Namespace_order-new.yaml",
            "_cluster/CustomResourceDefinition.apiextensions.k8s.io_boats.order.example.com.yaml",
        ],
    );
    let ran = member.sync(&[]);
    let left = member.kubectl(&[
        "get",
        "namespace",
        "order-new",
        "--ignore-not-found",
        "-ojsonpath={.status.phase}",
    ]);
    assert!(left.is_empty() || left == "Terminating", "{left} {}", ran.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn one_faulty_object_stops_no_other_and_all_faults_are_said() {
    let Some(member) = Member::new("alone") else { return };
    let unknown = json!({"apiVersion": "nowhere.example.com/v1", "kind": "Ghost",
        "metadata": {"name": "g", "namespace": "alone"}});
    let homeless =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "no-such"}});
    let mut invalid = member.deployment("broken", "example.com/web:1");
    invalid["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "alone"},
        "data": {"password": "hunter2 is no base64"}});
    member.publish(&[member.config_map("web", "one"), unknown, homeless, invalid, secret]);
    let ran = member.sync(&AT_ONCE).expect(7);
    assert!(member.get("configmap", "web").is_some());
    for said in [
        "Ghost.nowhere.example.com alone/g: the cluster does not serve Ghost of nowhere.example.com/v1",
        "ConfigMap no-such/x: its namespace `no-such` does not exist",
        "Deployment.apps alone/broken: the API server refuses it:",
        "Secret alone/s: its field `data.password` is not base64",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert!(!ran.err.contains("hunter2"), "{}", ran.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_quota_and_a_webhook_refuse_one_object_alone() {
    let Some(member) = Member::new("refused") else { return };
    member.kubectl(&["create", "quota", "few", "-n", "refused", "--hard=secrets=0"]);
    // Its controller does not run here.
    member.set_status("quota", "few", &json!({"hard": {"secrets": "0"}, "used": {"secrets": "0"}}));
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "refused-hook"}, "webhooks": [{
            "name": "hook.refused.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1,
            "clientConfig": {"url": "https://127.0.0.1:1/never"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "refused"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}]}]});
    member.kubectl_apply(&hook, &[]);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "refused"},
        "spec": {"ports": [{"port": 80}]}});
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "refused"}});
    member.publish(&[service, secret, member.config_map("web", "one")]);
    let ran = member.sync(&AT_ONCE).expect(7);
    member.kubectl(&["delete", "validatingwebhookconfiguration", "refused-hook"]);
    assert!(ran.err.contains("Service refused/web: the API server refuses it:"), "{}", ran.err);
    assert!(ran.err.contains("hook.refused.example.com"), "{}", ran.err);
    assert!(ran.err.contains("Secret refused/s: the API server refuses it: Forbidden (403)"), "{}", ran.err);
    assert!(member.get("configmap", "web").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_edit_by_hand_is_put_back_and_a_deleted_object_comes_back() {
    let Some(member) = Member::new("drift") else { return };
    member.publish(&[member.config_map("web", "one"), member.config_map("gone", "one")]);
    member.sync(&[]).expect(0);
    member.kubectl(&[
        "patch",
        "configmap",
        "web",
        "-n",
        "drift",
        "--type=merge",
        "-p",
        r#"{"data":{"key":"hand","more":"x"}}"#,
    ]);
    member.kubectl(&["delete", "configmap", "gone", "-n", "drift"]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("2 writes"), "{}", ran.out);
    let web = member.get("configmap", "web").expect("it is there");
    // What somebody added beside it is theirs.
    assert_eq!(web["data"], json!({"key": "one", "more": "x"}));
    assert!(member.get("configmap", "gone").is_some());
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes"));
}

#[test]
#[ignore = "needs Kubernetes"]
fn fields_of_others_are_a_conflict_that_is_forced_or_yielded_where_the_object_says_so() {
    let Some(member) = Member::new("fields") else { return };
    let take = |value: &str| annotated(member.config_map("web", value), "berth.dev/take-over", "true");
    member
        .kubectl_apply(&member.config_map("web", "theirs"), &["--server-side", "--field-manager=autopilot"]);

    member.publish(&[member.config_map("web", "ours"), member.config_map("other", "one")]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains("it exists and was not made by berth"), "{}", ran.err);
    assert!(member.get("configmap", "other").is_some());

    member.publish(&[take("ours")]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains("`.data.key` of `autopilot`"), "{}", ran.err);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "theirs");

    member.publish(&[annotated(take("ours"), "berth.dev/on-conflict", "yield")]);
    member.sync(&[]).expect(0);
    let web = member.get("configmap", "web").expect("it");
    assert_eq!(
        (&web["data"]["key"], &web["metadata"]["annotations"]["berth.dev/workload"]),
        (&json!("theirs"), &json!("F/x/app"))
    );

    member.publish(&[annotated(take("ours"), "berth.dev/on-conflict", "force")]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.err.contains("took over `.data.key` of `autopilot`"), "{}", ran.err);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "ours");
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_kubectl_applied_before_is_taken_over_and_said() {
    let Some(member) = Member::new("legacy") else { return };
    let mut before = member.config_map("web", "before");
    before["data"]["dropped"] = json!("by git");
    member.kubectl_apply(&before, &[]);
    member.publish(&[annotated(member.config_map("web", "after"), "berth.dev/take-over", "true")]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.err.contains("took over the fields of `kubectl-client-side-apply`"), "{}", ran.err);
    let web = member.get("configmap", "web").expect("it");
    assert_eq!(web["data"], json!({"key": "after"}));
    let annotations = web["metadata"]["annotations"].as_object().expect("annotations");
    assert!(!annotations.contains_key("kubectl.kubernetes.io/last-applied-configuration"), "{annotations:?}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn take_over_without_difference_only_and_never_are_kept_to() {
    let Some(member) = Member::new("adopt") else { return };
    for name in ["same", "differs", "never"] {
        let mut object = member.config_map(name, "one");
        object["metadata"].as_object_mut().expect("a mapping").remove("annotations");
        member.kubectl_apply(&object, &["--server-side"]);
    }
    let differs = if_no_diff(&member, "differs", "two");
    let never = annotated(member.config_map("never", "one"), "berth.dev/take-over", "never");
    member.publish(&[if_no_diff(&member, "same", "one"), differs, never]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.out.contains("take over  ConfigMap adopt/same"), "{}\n{}", ran.out, ran.err);
    assert!(
        ran.err.contains(
            "ConfigMap adopt/differs: FailedToTakeOver: it exists, was not made by berth, and differs"
        ),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("ConfigMap adopt/never: NotTakenOver: it exists and was not made by berth"),
        "{}",
        ran.err
    );
}

fn if_no_diff(member: &Member, name: &str, value: &str) -> Json {
    annotated(member.config_map(name, value), "berth.dev/take-over", "if-no-diff")
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_the_member_keeps_stays_and_what_git_removed_goes() {
    let Some(member) = Member::new("keep") else { return };
    let retain = "/metadata/annotations,/metadata/finalizers,/spec/replicas";
    let kept = |object: Json| annotated(object, "berth.dev/retain", retain);
    let first =
        annotated(kept(member.deployment("web", "example.com/web:1")), "example.com/note", "from git");
    member.publish(&[first]);
    member.sync(&AT_ONCE).expect(7);
    member.kubectl(&["scale", "deployment", "web", "-n", "keep", "--replicas=5"]);
    member.kubectl(&["annotate", "deployment", "web", "-n", "keep", "example.com/own=member"]);

    member.publish(&[kept(member.deployment("web", "example.com/web:2"))]);
    member.sync(&AT_ONCE).expect(7);
    let web = member.get("deployment", "web").expect("it");
    assert_eq!(web["spec"]["replicas"], 5);
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/web:2");
    let annotations = &web["metadata"]["annotations"];
    assert_eq!(
        (&annotations["example.com/own"], &annotations["example.com/note"]),
        (&json!("member"), &Json::Null)
    );

    // A field that berth itself had set is handed over, not reset.
    member.publish(&[
        kept(member.deployment("other", "example.com/web:1")),
        kept(member.deployment("web", "example.com/web:3")),
    ]);
    member.sync(&AT_ONCE).expect(7);
    let mut three = kept(member.deployment("other", "example.com/web:2"));
    three["spec"]["replicas"] = json!(3);
    member.publish(&[three, kept(member.deployment("web", "example.com/web:3"))]);
    member.sync(&AT_ONCE).expect(7);
    assert_eq!(member.get("deployment", "other").expect("it")["spec"]["replicas"], 1);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_services_addresses_and_an_accounts_secrets_stay() {
    let Some(member) = Member::new("addresses") else { return };
    let service = |port: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "addresses",
            "annotations": {"berth.dev/retain": "/spec/clusterIP,/spec/clusterIPs,/spec/ports/*/nodePort,/spec/healthCheckNodePort"}},
            "spec": {"type": "NodePort", "selector": {"app": port}, "ports": [{"name": "web", "port": 80, "protocol": "TCP"}]}})
    };
    let account = |label: &str| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "addresses",
            "labels": {"a": label}, "annotations": {"berth.dev/retain": "/secrets"}}})
    };
    member.publish(&[service("a"), account("a")]);
    member.sync(&[]).expect(0);
    let before = member.get("service", "web").expect("it");
    member.kubectl(&[
        "patch",
        "serviceaccount",
        "robot",
        "-n",
        "addresses",
        "-p",
        r#"{"secrets":[{"name":"token"}]}"#,
    ]);
    member.publish(&[service("b"), account("b")]);
    member.sync(&[]).expect(0);
    let after = member.get("service", "web").expect("it");
    assert_eq!(after["spec"]["selector"]["app"], "b");
    for at in ["/spec/clusterIP", "/spec/ports/0/nodePort"] {
        assert_eq!(after.pointer(at), before.pointer(at), "{at}");
    }
    let robot = member.get("serviceaccount", "robot").expect("it");
    assert_eq!(
        (&robot["secrets"][0]["name"], &robot["metadata"]["labels"]["a"]),
        (&json!("token"), &json!("b"))
    );
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_can_not_be_changed_is_an_error_and_made_anew_only_where_the_object_says_so() {
    let Some(member) = Member::new("anew") else { return };
    let with = |value: &str| {
        let mut object = member.deployment("web", "example.com/web:1");
        object["spec"]["selector"]["matchLabels"]["v"] = json!(value);
        object["spec"]["template"]["metadata"]["labels"]["v"] = json!(value);
        object
    };
    let uid = || member.get("deployment", "web").expect("it")["metadata"]["uid"].clone();
    member.publish(&[with("1")]);
    member.sync(&AT_ONCE).expect(7);
    let first = uid();
    member.publish(&[with("2")]);
    let ran = member.sync(&AT_ONCE).expect(7);
    assert!(ran.err.contains("field is immutable"), "{}", ran.err);
    assert!(ran.err.contains("`berth.dev/recreate: allowed`"), "{}", ran.err);
    assert_eq!(uid(), first);
    member.publish(&[annotated(with("2"), "berth.dev/recreate", "allowed")]);
    let ran = member.sync(&AT_ONCE).expect(7);
    assert!(ran.err.contains("removed and created again"), "{}", ran.err);
    assert_ne!(uid(), first);

    let claim = |class: &str, recreate: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "anew",
            "annotations": {"berth.dev/recreate": recreate}},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}})
    };
    member.publish(&[claim("a", "allowed")]);
    member.sync(&AT_ONCE).expect(7);
    member.publish(&[claim("b", "allowed")]);
    let ran = member.sync(&AT_ONCE).expect(7);
    assert!(ran.err.contains("`berth.dev/recreate: data-loss-accepted`"), "{}", ran.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_copied_label_makes_nothing_berths_own() {
    let Some(member) = Member::new("copied") else { return };
    member.publish(&[member.config_map("web", "one"), member.config_map("second", "one")]);
    member.sync(&[]).expect(0);
    let mut copy = member.get("configmap", "web").expect("it");
    copy["metadata"] = json!({"name": "copy", "namespace": "copied", "labels": copy["metadata"]["labels"]});
    member.kubectl_apply(&copy, &[]);
    member.publish(&[member.config_map("second", "one")]);
    member.sync(&[]).expect(0);
    assert_eq!(member.get("configmap", "web"), None);
    assert!(member.get("configmap", "copy").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn orphans_stay_protected_objects_stay_and_a_stuck_finalizer_is_named() {
    let Some(member) = Member::new("leaving") else { return };
    let mut stuck = member.config_map("stuck", "one");
    stuck["metadata"]["finalizers"] = json!(["example.com/never"]);
    member.publish(&[
        annotated(member.config_map("orphan", "one"), "berth.dev/orphan", "true"),
        annotated(member.config_map("protected", "one"), "berth.dev/prune", "disabled"),
        stuck,
        member.config_map("stays", "one"),
    ]);
    member.sync(&[]).expect(0);
    member.publish(&[member.config_map("stays", "one")]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.out.contains("keep       ConfigMap leaving/protected"), "{}", ran.out);
    assert!(
        ran.err.contains("ConfigMap leaving/stuck: cannot be removed")
            && ran.err.contains("`example.com/never`"),
        "{}",
        ran.err
    );
    let orphan = member.get("configmap", "orphan").expect("it stays");
    assert_eq!(orphan["metadata"]["labels"]["applyset.kubernetes.io/part-of"], Json::Null);
    assert_eq!(orphan["metadata"]["annotations"]["berth.dev/orphan"], Json::Null);
    assert!(member.get("configmap", "protected").is_some());
    member.kubectl(&[
        "patch",
        "configmap",
        "stuck",
        "-n",
        "leaving",
        "--type=json",
        "-p",
        r#"[{"op":"remove","path":"/metadata/finalizers"}]"#,
    ]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_no_longer_wanted_goes_when_what_comes_is_healthy() {
    let Some(member) = Member::new("after") else { return };
    member.publish(&[member.config_map("old", "one")]);
    member.sync(&[]).expect(0);
    member.publish(&[member.deployment("web", "example.com/web:1")]);
    // A deadline that has not come, and a process that ends before it.
    let mut waiting = crate::support::berth();
    waiting.args([
        "sync",
        "--target",
        "kube",
        "--repo",
        member.repo.arg(),
        "--cluster",
        "after",
        "--fleet",
        "after",
    ]);
    waiting.arg("--kubeconfig").arg(member.plane.kubeconfig()).args(["--interval", "1"]);
    let mut waiting = waiting.stderr(std::process::Stdio::null()).spawn().expect("berth starts");
    let web_is_there = || member.get("deployment", "web").is_some().then_some(());
    eventually("the deployment", web_is_there);
    pause(std::time::Duration::from_secs(2), "nothing may be removed meanwhile");
    let old = member.get("configmap", "old");
    member.make_healthy("web");
    eventually("the removal", || member.get("configmap", "old").is_none().then_some(()));
    waiting.kill().expect("it runs");
    waiting.wait().expect("it ends");
    assert!(old.is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_wave_waits_for_the_one_before_it_to_be_healthy() {
    let Some(member) = Member::new("waves") else { return };
    let second = annotated(member.config_map("second", "one"), "berth.dev/wave", "1");
    let mut dependent = member.config_map("dependent", "one");
    dependent["metadata"]["annotations"] = json!({"berth.dev/depends-on": "Deployment.apps/waves/first"});
    member.publish(&[member.deployment("first", "example.com/web:1"), second, dependent]);
    let ran = member.sync(&AT_ONCE).expect(7);
    assert!(
        ran.err.contains("ConfigMap waves/second: waits for Deployment.apps waves/first of wave 0"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains(
            "ConfigMap waves/dependent: waits for `Deployment.apps/waves/first`, which it depends on"
        ),
        "{}",
        ran.err
    );
    assert_eq!(member.get("configmap", "second"), None);
    member.make_healthy("first");
    member.sync(&[]).expect(0);
    assert!(member.get("configmap", "second").is_some() && member.get("configmap", "dependent").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_not_healthy_at_the_deadline_is_said_with_the_pods_reason() {
    let Some(member) = Member::new("sick") else { return };
    member.publish(&[member.deployment("web", "example.com/web:1")]);
    member.sync(&AT_ONCE).expect(7);
    let pod = eventually("a pod", || {
        let name = member.kubectl(&["get", "pods", "-n", "sick", "-ojsonpath={.items[0].metadata.name}"]);
        (!name.is_empty()).then_some(name)
    });
    member.set_status(
        "pod",
        &pod,
        &json!({"containerStatuses": [{"name": "main", "image": "example.com/web:1",
        "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}),
    );
    let ran = member.sync(&["--health-timeout", "1"]).expect(7);
    let said = "Deployment.apps sick/web: not healthy in time: ";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(ran.err.contains("container main: ImagePullBackOff: no such image"), "{}", ran.err);
    let status = member.repo.git(&["cat-file", "-p", "refs/berth/status/sick:status.yaml"]);
    assert!(status.contains("ImagePullBackOff"), "{status}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_dry_run_shows_what_the_server_would_make_of_it_and_changes_nothing() {
    let Some(member) = Member::new("trial") else { return };
    let secret = |password: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "trial"},
            "stringData": {"password": password}})
    };
    member.publish(&[member.config_map("web", "one"), secret("hunter2")]);
    let ran = member.sync(&["--dry-run"]).expect(0);
    assert!(ran.out.starts_with("would make 2 writes"), "{}", ran.out);
    assert_eq!((member.get("configmap", "web"), member.get("secret", "key")), (None, None));
    member.sync(&[]).expect(0);
    member.publish(&[member.config_map("web", "two"), secret("hunter3")]);
    let ran = member.sync(&["--dry-run"]).expect(0);
    assert!(ran.out.contains("-  key: one\n+  key: two\n"), "{}", ran.out);
    assert!(ran.out.contains("+  password: hash "), "{}", ran.out);
    for secret in ["hunter", "aHVudGVy"] {
        assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{}{}", ran.out, ran.err);
    }
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "one");
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_owned_is_found_again_without_the_record() {
    let Some(member) = Member::new("lost") else { return };
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "web", "namespace": "lost"}, "rules": []});
    member.publish(&[member.config_map("web", "one"), role]);
    member.sync(&[]).expect(0);
    member.kubectl(&["delete", "configmap", "berth-lost", "-n", "berth-system"]);
    member.publish(&[member.config_map("web", "one")]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("0 writes, 1 removal, 1 unchanged"), "{}", ran.out);
    assert_eq!(member.get("role", "web"), None);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_cluster_is_never_taken_from_another_member_nor_brought_back_to_an_older_folder() {
    let Some(member) = Member::new("rails") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let old = member.repo.id("refs/berth/clusters/rails");
    member.publish(&[member.config_map("web", "two")]);
    member.sync(&[]).expect(0);
    member.repo.git(&["update-ref", "refs/berth/clusters/rails", &old]);
    let ran = member.sync(&[]).expect(5);
    assert!(ran.err.contains("sequence 1, but the later 2 was already applied"), "{}", ran.err);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "two");
    member.repo.git(&["update-ref", "-d", "refs/berth/clusters/rails"]);
    member.sync(&[]).expect(6);
    assert!(member.get("configmap", "web").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_cluster_that_can_not_be_reached_is_said_so() {
    let Some(member) = Member::new("away") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n\
                      clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n";
    let file = member.repo.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).expect("a file");
    let ran = member.sync_at(file.to_str().expect("a text path"), &[]).expect(6);
    assert!(ran.err.contains("cannot be reached"), "{}", ran.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_busy_server_is_waited_for_and_an_answer_that_was_lost_is_asked_for_again() {
    const FAULTS: &[(&str, Fault)] = &[("/configmaps/busy", Fault::Busy), ("/configmaps/lost", Fault::Lost)];
    let Some(member) = Member::new("faults") else { return };
    let faults = Faults::between(&member.plane, FAULTS);
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{}'}}}}]\nusers: [{{name: a, user: {{}}}}]\n",
        faults.port
    );
    let file = member.repo.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).expect("a file");
    let kubeconfig = file.to_str().expect("a text path");
    member.publish(&["busy", "lost", "well"].map(|name| member.config_map(name, "one")));
    let began = std::time::Instant::now();
    let ran = member.sync_at(kubeconfig, &[]).expect(0);
    assert!(ran.out.starts_with("3 writes"), "{}", ran.out);
    assert!(began.elapsed() >= std::time::Duration::from_secs(1));
    assert_eq!(faults.happened.lock().expect("it").len(), 2);
    assert!(["busy", "lost", "well"].iter().all(|name| member.get("configmap", name).is_some()));
    assert!(member.sync_at(kubeconfig, &[]).expect(0).out.starts_with("0 writes, 0 removals, 3 unchanged"));
}
