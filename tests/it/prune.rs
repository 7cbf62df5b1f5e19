//! What goes from a cluster of Kubernetes when a folder no longer holds it, and what stays.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::support::faults::{Fault, Faults};
use crate::support::member::{Member, annotated};
use crate::support::wait::until;
use crate::support::{Ran, berth};

/// What a member has time for in tests that wait for nothing.
const AT_ONCE: [&str; 2] = ["--health-timeout", "0"];

fn uid(object: &Json) -> String {
    object["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

/// Berth's requests with one of these verbs for one resource.
fn count(member: &Member, verb: &str, resource: &str) -> usize {
    member.requests().iter().filter(|(one, of)| one == verb && of == resource).count()
}

fn namespace(name: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": {"berth.dev/workload": "N/x/ns"}}})
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_renamed_object_is_there_under_its_new_name_before_the_old_one_goes() {
    let Some(member) = Member::new("renamed") else { return };
    member.publish(&[member.deployment("before", "example.com/web:1")]);
    member.sync(&AT_ONCE).expect(7);
    member.publish(&[member.deployment("after", "example.com/web:1")]);
    // The new one is not healthy, so the old one still serves.
    let mut command = berth();
    command.args(["sync", "--target", "kube", "--repo", member.repo.arg(), "--interval", "1"]);
    command
        .args(["--cluster", "renamed", "--fleet", "renamed", "--kubeconfig"])
        .arg(member.plane.kubeconfig());
    let mut running = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
    until("the new one is there", || member.get("deployment", "after").is_some());
    let status = || member.repo.git(&["cat-file", "-p", "refs/berth/status/renamed:status.yaml"]);
    until("a round is over", || status().contains("sequence: 2"));
    let kept = member.get("deployment", "before").is_some();
    member.make_healthy("after");
    until("the old one is gone", || member.get("deployment", "before").is_none());
    let _ = running.kill();
    let _ = running.wait();
    assert!(kept);
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_that_moves_to_another_namespace_is_made_there_and_goes_here_and_its_namesakes_stay() {
    let Some(member) = Member::new("moved") else { return };
    member.kubectl(&["create", "namespace", "moved-foreign"]);
    member.kubectl(&["create", "configmap", "web", "-n", "moved-foreign"]);
    let there = |value: &str| {
        let mut object = member.config_map("web", value);
        object["metadata"]["namespace"] = json!("moved-there");
        object
    };
    member.publish(&[namespace("moved-there"), member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    member.publish(&[namespace("moved-there"), there("one")]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("1 write, 1 removal, 1 unchanged"), "{}", ran.out);
    assert!(member.get("configmap", "web").is_none());
    member.kubectl(&["get", "configmap", "web", "-n", "moved-there"]);
    member.kubectl(&["get", "configmap", "web", "-n", "moved-foreign"]);
    member.kubectl(&["delete", "namespace", "moved-there", "moved-foreign", "--wait=false"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_that_another_workload_takes_over_is_relabelled_and_never_removed() {
    let Some(member) = Member::new("handed") else { return };
    let of = |workload: &str| annotated(member.config_map("web", "one"), "berth.dev/workload", workload);
    member.publish(&[of("F/x/old"), member.config_map("other", "one")]);
    member.sync(&[]).expect(0);
    let before = member.get("configmap", "web").expect("it");
    member.publish(&[of("F/x/new"), member.config_map("other", "one")]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("1 write, 0 removals, 1 unchanged"), "{}", ran.out);
    let after = member.get("configmap", "web").expect("it");
    assert_eq!(uid(&before), uid(&after));
    assert_eq!(after["metadata"]["annotations"]["berth.dev/workload"], "F/x/new");
    assert_eq!(count(&member, "delete", "configmaps"), 0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_that_is_wanted_under_another_group_is_the_same_object_and_stays() {
    let Some(member) = Member::new("regrouped") else { return };
    let metadata =
        json!({"name": "note", "namespace": "regrouped", "annotations": {"berth.dev/workload": "F/x/app"}});
    let old = json!({"apiVersion": "v1", "kind": "Event", "metadata": metadata,
        "involvedObject": {"kind": "Namespace", "name": "regrouped", "namespace": "regrouped", "apiVersion": "v1"},
        "reason": "Because", "message": "words", "action": "Act", "type": "Normal",
        "reportingComponent": "example.com/tests", "reportingInstance": "one", "eventTime": "2026-01-01T00:00:00.000000Z"});
    let new = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": metadata,
        "regarding": {"kind": "Namespace", "name": "regrouped", "namespace": "regrouped", "apiVersion": "v1"},
        "reason": "Because", "note": "words", "action": "Act", "type": "Normal",
        "reportingController": "example.com/tests", "reportingInstance": "one", "eventTime": "2026-01-01T00:00:00.000000Z"});
    member.publish(&[old, member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    let before = member.get("event", "note").expect("it");
    member.publish(&[new, member.config_map("web", "one")]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.contains(" 0 removals"), "{}\n{}", ran.out, ran.err);
    let after = member.get("events.events.k8s.io", "note").expect("it is still there");
    assert_eq!(uid(&before), uid(&after));
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("0 writes, 0 removals, 2 unchanged"), "{}", ran.out);
    // And when it is wanted under neither, it goes.
    member.publish(&[member.config_map("web", "one")]);
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes, 1 removal"));
    assert!(member.get("event", "note").is_none());
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_protected_namespace_stays_whatever_is_approved() {
    let Some(member) = Member::new("protected") else { return };
    let names = ["kube-protected", "protected-by-flag", "protected-by-none"];
    member.publish(&names.map(namespace));
    member.sync(&[]).expect(0);
    member.publish(&[member.config_map("web", "one")]);
    let flag = ["--protected-namespaces", "kube-*,protected-by-f*", "--allow-risky-prune"];
    let ran = member.sync(&flag).expect(0);
    for name in ["kube-protected", "protected-by-flag"] {
        let said = format!("keep       Namespace {name}: protected namespaces are never removed");
        assert!(ran.out.contains(&said), "{}", ran.out);
        assert_eq!(member.kubectl(&["get", "namespace", name, "-ojsonpath={.status.phase}"]), "Active");
    }
    assert!(ran.out.contains("remove     Namespace protected-by-none"), "{}", ran.out);
    member.kubectl(&["delete", "namespace", "kube-protected", "protected-by-flag", "--wait=false"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_belongs_to_another_object_is_left_to_that() {
    let Some(member) = Member::new("owned") else { return };
    member.kubectl(&["create", "configmap", "owner", "-n", "owned"]);
    let owner = uid(&member.get("configmap", "owner").expect("it"));
    member.publish(&[member.config_map("web", "one"), member.config_map("other", "one")]);
    member.sync(&[]).expect(0);
    let reference = json!({"metadata": {"ownerReferences":
        [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}]}})
    .to_string();
    member.kubectl(&["patch", "configmap", "web", "-n", "owned", "--type=merge", "-p", &reference]);
    member.publish(&[]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.contains("keep       ConfigMap owned/web: its owner"), "{}", ran.out);
    assert!(member.get("configmap", "other").is_none() && member.get("configmap", "web").is_some());
    member.kubectl(&["delete", "configmap", "owner", "-n", "owned"]);
    until("it goes with its owner", || member.get("configmap", "web").is_none());
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_that_came_in_the_place_of_another_is_not_removed() {
    let Some(member) = Member::new("replaced") else { return };
    member.publish(&[member.config_map("web", "one"), member.config_map("other", "one")]);
    member.sync(&[]).expect(0);
    let before = uid(&member.get("configmap", "web").expect("it"));
    member.publish(&[]);
    let faults = Faults::between(&member.plane, &[("/namespaces/replaced/configmaps/web", Fault::Replaced)]);
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{}'}}}}]\n",
        faults.port
    );
    std::fs::write(kubeconfig.path(), text).expect("a file");
    let ran = member.sync_at(kubeconfig.path().to_str().expect("a text path"), &[]).expect(7);
    let said = "ConfigMap replaced/web: cannot be removed: another object has replaced it";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert_ne!(uid(&member.get("configmap", "web").expect("it is there")), before);
    assert!(member.get("configmap", "other").is_none());
    // It has berth's label, and not berth's fields: it is nobody's of berth from now on.
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes, 0 removals"));
    assert!(member.get("configmap", "web").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_held_by_a_foreign_finalizer_is_named_with_since_when_and_other_work_goes_on() {
    let Some(member) = Member::new("stuck") else { return };
    member.publish(&[member.config_map("held", "one"), member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    let finalizer = r#"{"metadata":{"finalizers":["example.com/never"]}}"#;
    member.kubectl(&["patch", "configmap", "held", "-n", "stuck", "--type=merge", "-p", finalizer]);
    member.publish(&[member.config_map("web", "two")]);
    let ran = member.sync(&[]).expect(7);
    let since = member.get("configmap", "held").expect("it")["metadata"]["deletionTimestamp"].clone();
    let said = format!(
        "ConfigMap stuck/held: cannot be removed: it is being removed, since {}, and waits for its \
         finalizers `example.com/never`",
        since.as_str().expect("a time")
    );
    assert!(ran.err.contains(&said), "{}", ran.err);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "two");
    member.publish(&[member.config_map("web", "three"), member.config_map("new", "one")]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains(&said), "{}", ran.err);
    assert!(member.get("configmap", "new").is_some());
    member.kubectl(&[
        "patch",
        "configmap",
        "held",
        "-n",
        "stuck",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
    member.sync(&[]).expect(0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_namespace_that_is_stuck_on_its_way_out_is_waited_for_with_less_than_a_request_a_second() {
    let Some(member) = Member::new("terminating") else { return };
    let objects = |value: &str| {
        let mut all: Vec<Json> = (0..20).map(|at| member.config_map(&format!("web-{at}"), value)).collect();
        all.iter_mut().for_each(|object| object["metadata"]["namespace"] = json!("terminating-there"));
        all.extend([namespace("terminating-there"), member.config_map("here", value)]);
        all
    };
    member.publish(&objects("one"));
    member.sync(&[]).expect(0);
    let finalizer = r#"{"metadata":{"finalizers":["example.com/never"]}}"#;
    member.kubectl(&[
        "patch",
        "configmap",
        "web-0",
        "-n",
        "terminating-there",
        "--type=merge",
        "-p",
        finalizer,
    ]);
    member.kubectl(&["delete", "namespace", "terminating-there", "--wait=false"]);
    until("all others are gone", || {
        member.kubectl(&["get", "configmaps", "-n", "terminating-there", "-o", "name"]).lines().count() == 1
    });
    member.publish(&objects("two"));

    let mut command = berth();
    command.args(["sync", "--target", "kube", "--repo", member.repo.arg()]);
    command
        .args(["--cluster", "terminating", "--fleet", "terminating", "--kubeconfig"])
        .arg(member.plane.kubeconfig());
    let mut running = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
    let status = || member.repo.git(&["cat-file", "-p", "refs/berth/status/terminating:status.yaml"]);
    until("other work is done", || member.get("configmap", "here").expect("it")["data"]["key"] == "two");
    until("it is reported", || status().contains("waits for Namespace terminating-there"));
    let (from, before) = (Instant::now(), member.requests().len());
    until("some rounds have passed", || from.elapsed() > Duration::from_secs(16));
    let (made, took) = (member.requests().len() - before, from.elapsed());
    let _ = running.kill();
    let _ = running.wait();
    assert!(status().contains("Namespace") && status().contains("since"), "{}", status());
    assert!(made as f64 / took.as_secs_f64() < 1.0, "{made} requests in {took:?}");

    // Once it is gone, it is made anew with all that belongs in it.
    member.kubectl(&[
        "patch",
        "configmap",
        "web-0",
        "-n",
        "terminating-there",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
    until("the namespace is gone", || {
        member
            .kubectl(&["get", "namespace", "terminating-there", "--ignore-not-found", "-o", "name"])
            .is_empty()
    });
    member.sync(&[]).expect(0);
    assert_eq!(
        member
            .kubectl(&[
                "get",
                "configmaps",
                "-n",
                "terminating-there",
                "-o",
                "name",
                "-l",
                "applyset.kubernetes.io/part-of"
            ])
            .lines()
            .count(),
        20
    );
    member.kubectl(&["delete", "namespace", "terminating-there", "--wait=false"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_definition_with_objects_of_its_kind_goes_only_with_an_approval() {
    let Some(member) = Member::new("defined") else { return };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.defined.example.com"},
        "spec": {
            "group": "defined.example.com", "scope": "Namespaced",
            "names": {"kind": "Ship", "plural": "ships", "singular": "ship"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    member.publish(&[definition, member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    let ship = json!({"apiVersion": "defined.example.com/v1", "kind": "Ship", "metadata": {"name": "theirs", "namespace": "defined"}});
    member.kubectl_apply(&ship, &[]);
    member.publish(&[member.config_map("web", "two")]);
    let ran = member.sync(&[]).expect(7);
    let said =
        "CustomResourceDefinition.apiextensions.k8s.io ships.defined.example.com: no longer wanted, but kept";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "two");
    assert!(member.get("ship", "theirs").is_some());
    member.publish_with(
        &[member.config_map("web", "two")],
        &["_cluster/CustomResourceDefinition.apiextensions.k8s.io_ships.defined.example.com.yaml"],
    );
    member.sync(&[]);
    until("it is gone", || {
        Ran::of(member.plane.kubectl().args(["get", "crd", "ships.defined.example.com"])).code != 0
    });
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_to_go_first_goes_before_what_comes_and_what_is_never_to_go_stays() {
    let Some(member) = Member::new("first") else { return };
    // Both can not be there at once: a quota allows one.
    let service = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "first", "annotations": {"berth.dev/workload": "F/x/app", "berth.dev/prune": "first"}},
            "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 80}]}})
    };
    let kept = annotated(member.config_map("kept", "one"), "berth.dev/prune", "disabled");
    member.publish(&[service("before"), kept]);
    member.sync(&[]).expect(0);
    member.publish(&[service("after")]);
    let ran = member.sync(&[]);
    // The trial comes before the removal, and the server refuses a second one: the next round has room.
    let ran = if ran.code == 0 { ran } else { member.sync(&[]).expect(0) };
    assert!(
        member.get("service", "before").is_none() && member.get("service", "after").is_some(),
        "{}",
        ran.err
    );
    assert!(
        ran.out.contains("keep       ConfigMap first/kept: its annotation `berth.dev/prune` is `disabled`"),
        "{}",
        ran.out
    );
    assert!(member.get("configmap", "kept").is_some());
}
