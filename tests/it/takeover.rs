//! What a take-over would do is shown before, and is what it does.

use serde_json::{Value as Json, json};

use crate::support::member::{Member, annotated};

/// A deployment as somebody applied it by hand, with more in it than Git has.
fn by_hand(member: &Member, name: &str) -> Json {
    let mut object = member.deployment(name, "example.com/web:1");
    object["metadata"]["labels"] = json!({"team": "shop"});
    let spec = &mut object["spec"]["template"]["spec"];
    spec["terminationGracePeriodSeconds"] = json!(5);
    spec["containers"][0]["env"] =
        json!([{"name": "REGION", "value": "north"}, {"name": "KEPT", "value": "x"}]);
    spec["containers"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "sidecar", "image": "example.com/proxy:1"}));
    object
}

/// The same as Git has it.
fn in_git(member: &Member, name: &str) -> Json {
    let mut object = member.deployment(name, "example.com/web:1");
    object["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "KEPT", "value": "x"}]);
    object
}

fn template(member: &Member, name: &str) -> Json {
    member.get("deployment", name).expect("it")["spec"]["template"]["spec"].clone()
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_dry_run_of_a_take_over_shows_what_kubectl_had_applied_and_goes() {
    let Some(member) = Member::new("foreseen") else { return };
    member.kubectl_apply(&by_hand(&member, "web"), &[]);
    // What a controller has set beside it is nobody's to remove.
    let injected = json!({"spec": {"template": {"metadata": {"annotations": {"injected": "yes"}}}}});
    member.patch_as("injector", "deployment", "web", &injected);
    member.publish(&[annotated(in_git(&member, "web"), "berth.dev/take-over", "true")]);

    let ran = member.sync(&["--dry-run"]).expect(0);
    for gone in ["-      - image: example.com/proxy:1", "-        - name: REGION", "-    team: shop"] {
        assert!(ran.out.contains(gone), "{gone}:\n{}", ran.out);
    }
    // A default that comes back is shown as it will be.
    assert!(ran.out.contains("-      terminationGracePeriodSeconds: 5"), "{}", ran.out);
    assert!(ran.out.contains("+      terminationGracePeriodSeconds: 30"), "{}", ran.out);
    assert!(!ran.out.contains("-        injected"), "{}", ran.out);
    let before = template(&member, "web");
    assert_eq!(before["containers"].as_array().expect("a list").len(), 2, "a dry run changes nothing");

    let ran = member.sync(&["--health-timeout", "0"]);
    let after = member.get("deployment", "web").expect("it");
    let spec = &after["spec"]["template"]["spec"];
    assert_eq!(spec["containers"].as_array().expect("a list").len(), 1, "{spec}");
    assert_eq!(spec["containers"][0]["env"], json!([{"name": "KEPT", "value": "x"}]));
    assert_eq!(spec["terminationGracePeriodSeconds"], 30);
    assert_eq!(after["spec"]["template"]["metadata"]["annotations"]["injected"], "yes");
    assert!(ran.err.contains("removed `/metadata/labels/team`"), "what went is said: {}", ran.err);
    assert!(ran.err.contains("/spec/template/spec/containers/sidecar`"), "{}", ran.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_dry_run_of_a_take_over_says_what_the_server_would_refuse() {
    let Some(member) = Member::new("refuses") else { return };
    // Without the data that `kubectl apply` had written, what is wanted is not valid.
    let mut before = member.config_map("web", "one");
    before["metadata"]["finalizers"] = json!(["example.com/held"]);
    member.kubectl_apply(&before, &[]);
    member.publish(&[annotated(member.config_map("web", "two"), "berth.dev/take-over", "true")]);
    let ran = member.sync(&["--dry-run"]).expect(0);
    assert!(ran.out.contains("-  - example.com/held"), "a finalizer that goes is shown: {}", ran.out);
    member.sync(&[]).expect(0);
    let after = member.get("configmap", "web").expect("it");
    assert!(after["metadata"].get("finalizers").is_none(), "{after}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_taken_over_only_without_a_difference_loses_nothing() {
    let Some(member) = Member::new("lossless") else { return };
    member.kubectl_apply(&by_hand(&member, "web"), &[]);
    let before = template(&member, "web");
    member.publish(&[annotated(in_git(&member, "web"), "berth.dev/take-over", "if-no-diff")]);
    let ran = member.sync(&["--health-timeout", "0"]);
    assert!(ran.out.contains("take over  Deployment.apps lossless/web"), "{}\n{}", ran.out, ran.err);
    assert_eq!(template(&member, "web"), before, "it did not differ in what Git has, and is as it was");
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_kubectl_applied_on_the_server_side_stays_its_own_until_it_lets_go() {
    let Some(member) = Member::new("by-server") else { return };
    let wanted = |value: &str| annotated(member.config_map("web", value), "berth.dev/take-over", "true");
    let mut before = member.config_map("web", "one");
    before["data"]["extra"] = json!("x");
    before["metadata"]["annotations"]["berth.dev/take-over"] = json!("true");
    member.kubectl_apply(&before, &["--server-side"]);
    let data = || member.get("configmap", "web").expect("it")["data"].clone();

    // Where it differs, that is a conflict; where it does not, both own it, and nothing goes.
    member.publish(&[wanted("two")]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains("others own the fields to change: `.data.key` of `kubectl`"), "{}", ran.err);
    member.publish(&[wanted("one")]);
    let ran = member.sync(&["--dry-run"]).expect(0);
    assert!(!ran.out.contains("-  extra"), "{}", ran.out);
    member.sync(&[]).expect(0);
    assert_eq!(data(), json!({"key": "one", "extra": "x"}));

    // As docs/members.md says: applied once more with nothing but its name.
    let name = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "web", "namespace": "by-server"}});
    member.kubectl_apply(&name, &["--server-side"]);
    assert_eq!(data(), json!({"key": "one"}));
    member.publish(&[wanted("two")]);
    member.sync(&[]).expect(0);
    assert_eq!(data(), json!({"key": "two"}));
}
