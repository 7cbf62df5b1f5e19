//! What a server refuses is that object's trouble alone, is said as what it is, and is not counted as done.

use serde_json::{Value as Json, json};

use crate::support::member::{Member, annotated};

fn namespace(name: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name,
        "annotations": {"berth.dev/workload": "FederatedNamespace/x/x", "berth.dev/take-over": "true"}}})
}

/// Forbids something by a policy of the API server, for the member's own namespace.
fn forbid(member: &Member, kind: &str, expression: &str) {
    let name = format!("{}-{kind}", member.name);
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": {"failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"], "resources": [kind]}]},
        "validations": [{"expression": expression, "message": "not this one"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    member.kubectl_apply(&policy, &[]);
    member.kubectl_apply(&binding, &[]);
}

fn account(member: &Member) {
    member.kubectl(&["create", "serviceaccount", "deployer", "-n", &member.name]);
    let verbs = "--verb=get,create,patch,update,delete";
    member.kubectl(&["create", "role", "deployer", "-n", &member.name, verbs, "--resource=configmaps"]);
    let account = format!("--serviceaccount={}:deployer", member.name);
    member.kubectl(&["create", "rolebinding", "deployer", "-n", &member.name, "--role=deployer", &account]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_namespace_that_only_others_may_write_blocks_nothing_in_it_and_nothing_undone_is_counted() {
    let Some(member) = Member::new("tenanted") else { return };
    account(&member);
    member.publish(&[namespace("tenanted"), member.config_map("web", "one")]);
    for round in ["first", "second"] {
        let ran = member.sync(&["--tenant-service-account", "deployer"]).expect(7);
        let done = if round == "first" {
            "1 write, 0 removals, 0 unchanged"
        } else {
            "0 writes, 0 removals, 1 unchanged"
        };
        assert!(ran.out.starts_with(done), "{round}: {}\n{}", ran.out, ran.err);
        assert!(!ran.err.contains("ConfigMap tenanted/web"), "{round}: {}", ran.err);
        assert!(ran.err.contains("Namespace tenanted: it has no namespace"), "{round}: {}", ran.err);
    }
    assert!(member.get("configmap", "web").is_some());
    let status = member.status();
    assert!(status.contains("objects: 1"), "{status}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn two_fleets_may_share_a_namespace_that_one_of_them_owns() {
    let Some(member) = Member::new("shared") else { return };
    member.publish(&[namespace("shared"), member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    member.publish(&[namespace("shared"), member.config_map("other", "one")]);
    let other = ["--fleet", "shared-other"];
    let ran = member.sync(&other).expect(7);
    assert!(ran.out.starts_with("1 write, 0 removals, 0 unchanged"), "{}\n{}", ran.out, ran.err);
    assert!(ran.err.contains("Namespace shared: it belongs to the ApplySet"), "{}", ran.err);
    assert!(member.get("configmap", "other").is_some() && member.get("configmap", "web").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_namespace_that_can_not_be_made_is_named_by_all_that_waits_for_it_and_counts_for_nothing() {
    let Some(member) = Member::new("unmade") else { return };
    forbid(&member, "namespaces", "object.metadata.name != 'unmade-new'");
    let inside = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "in", "namespace": "unmade-new"}});
    member.publish(&[namespace("unmade-new"), inside, member.config_map("web", "one")]);
    let mut ran = member.sync(&[]);
    // A policy counts a moment after it was made.
    for _ in 0..100 {
        if ran.code != 0 {
            break;
        }
        member.kubectl(&["delete", "namespace", "unmade-new"]);
        ran = member.sync(&[]);
    }
    let ran = ran.expect(7);
    assert!(ran.err.contains("Namespace unmade-new: the API server refuses it"), "{}", ran.err);
    assert!(
        ran.err.contains("ConfigMap unmade-new/in: waits for Namespace unmade-new, which is missing"),
        "{}",
        ran.err
    );
    assert!(!ran.out.contains("unmade-new"), "nothing of it was written: {}", ran.out);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_removal_waits_for_a_refused_object_as_long_as_that_may_take_and_says_so() {
    let Some(member) = Member::new("patient") else { return };
    let mut broken = member.deployment("new", "example.com/web:1");
    broken["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    member.publish(&[member.config_map("old", "one")]);
    member.sync(&[]).expect(0);
    member.publish(&[broken]);

    let running = member.keep_in_sync(&["--health-timeout", "6"]);
    let said = running.until("the reason in the report", || {
        let status = member.status();
        status.contains("no longer wanted, but kept").then_some(status)
    });
    assert!(
        said.contains("Deployment.apps patient/new of its workload is not applied and healthy"),
        "{said}"
    );
    assert!(member.get("configmap", "old").is_some(), "it waits");
    let begun = std::time::Instant::now();
    running.until("the removal", || member.get("configmap", "old").is_none().then_some(()));
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    running.until("a report without it", || (!member.status().contains("no longer wanted")).then_some(()));
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_misspelt_field_is_the_objects_fault_and_is_not_tried_again_until_it_changes() {
    let Some(member) = Member::new("misspelt") else { return };
    let mut wrong = member.deployment("web", "example.com/web:1");
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = json!("Always");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "misspelt"},
        "data": {"password": "aHVudGVyMg=="}, "dada": {"hunter2": "hunter3"}});
    member.publish(&[wrong.clone(), secret, member.config_map("web", "one")]);
    let running = member.keep_in_sync(&[]);
    let status = running.until("the fault", || {
        let status = member.status();
        status.contains("does not match its kind").then_some(status)
    });
    assert!(status.contains("imagePullPolcy") && status.contains("`.dada`"), "{status}");
    assert!(!status.contains("hunter"), "{status}");
    let patches = |all: &[(String, String)]| {
        let of = |(verb, resource): &&(String, String)| {
            verb == "patch" && ["deployments", "secrets"].contains(&resource.as_str())
        };
        all.iter().filter(of).count()
    };
    let all = running.until_quiet();
    assert_eq!(patches(&all), 2, "each was tried once: {all:?}");

    wrong["spec"]["template"]["spec"]["containers"][0]
        .as_object_mut()
        .expect("a mapping")
        .remove("imagePullPolcy");
    member.publish(&[annotated(wrong, "note", "mended"), member.config_map("web", "one")]);
    running.until("the deployment", || member.get("deployment", "web"));
}
