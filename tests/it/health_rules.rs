//! Health rules that people write for kinds of their own.

use serde_json::{Value as Json, json};

use crate::support::member::{Member, annotated};

const RULES: &str = "apiVersion: berth.dev/v1alpha1
kind: HealthRule
metadata: {name: ships}
spec:
  group: ships.example.com
  kind: Ship
  healthy: object.status.phase == 'Afloat'
  failed: object.status.phase == 'Sunk'
  message: \"'the ship is ' + object.status.phase\"
";

fn ship() -> Json {
    json!({"apiVersion": "ships.example.com/v1", "kind": "Ship",
        "metadata": {"name": "ferry", "namespace": "ships", "annotations": {"berth.dev/workload": "F/x/app"}},
        "spec": {"length": 30}})
}

fn definition() -> Json {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.ships.example.com"},
        "spec": {"group": "ships.example.com", "scope": "Namespaced",
            "names": {"kind": "Ship", "plural": "ships", "singular": "ship"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
}

#[test]
#[ignore = "needs Kubernetes"]
fn objects_of_a_kind_with_a_rule_are_waited_for_and_their_message_is_said() {
    let Some(member) = Member::new("ships") else { return };
    let file = member.repo.path().join("rules.yaml");
    std::fs::write(&file, RULES).expect("a file");
    let rules = ["--health-rules", file.to_str().expect("a text path"), "--health-timeout", "0"];
    let after = annotated(
        member.config_map("after", "one"),
        "berth.dev/depends-on",
        "Ship.ships.example.com/ships/ferry",
    );
    member.publish(&[definition(), ship(), after]);

    let ran = member.sync(&rules).expect(7);
    let said = "Ship.ships.example.com ships/ferry: not healthy in time: `healthy` of its health rule cannot be evaluated";
    let failed = "`failed` of its health rule cannot be evaluated, at character";
    assert!(ran.err.contains(said) || ran.err.contains(failed), "{}", ran.err);
    assert_eq!(member.get("configmap", "after"), None, "it waits");

    for (phase, code, said) in [
        ("Docked", 7, "not healthy in time: the ship is Docked"),
        ("Sunk", 7, "failed: the ship is Sunk"),
        ("Afloat", 0, ""),
    ] {
        member.set_status("ship", "ferry", &json!({ "phase": phase }));
        let ran = member.sync(&rules).expect(code);
        assert!(ran.err.contains(said), "{phase}: {}", ran.err);
    }
    assert!(member.get("configmap", "after").is_some());
    // Without the rule it is well as soon as it is there.
    member.set_status("ship", "ferry", &json!({"phase": "Sunk"}));
    member.sync(&["--health-timeout", "0"]).expect(0);
    member.kubectl(&["delete", "crd", "ships.ships.example.com"]);
}

#[test]
fn a_file_of_rules_with_a_fault_is_refused_at_its_place() {
    let repo = crate::support::Repo::new();
    let file = repo.path().join("rules.yaml");
    std::fs::write(&file, RULES.replace("object.status.phase == 'Sunk'", "object.status.phase =="))
        .expect("a file");
    let file = file.to_str().expect("a text path");
    let args = [
        "sync",
        "--once",
        "--cluster",
        "a",
        "--target",
        "kube",
        "--repo",
        repo.arg(),
        "--health-rules",
        file,
    ];
    let ran = crate::support::run(&args).expect(1);
    assert!(ran.err.contains("rules.yaml:8:11: error: spec.failed, at character"), "{}", ran.err);
}
