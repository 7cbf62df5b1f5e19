//! A cluster that hides, changes, refuses or keeps objects: berth reports each for itself, and nothing else suffers.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::operate::Running;
use crate::support::Ran;
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::member::{Member, annotated};
use crate::support::wait::until;

/// Everything that berth has written about a member: to people, in Git, and in the cluster.
fn everything(member: &Member, ran: &Ran) -> String {
    let name = format!("berth-{}-status", member.name);
    let args = ["get", "configmap", &name, "-n", "berth-system", "-o", "json", "--ignore-not-found"];
    let shown = member.kubectl(&args);
    let events = member.kubectl(&["get", "events", "-A", "-o", "json"]);
    format!("{}{}{}{shown}{events}", ran.out, ran.err, member.status())
}

fn create(member: &Member, object: &Json) {
    member.kubectl_apply(object, &[]);
}

/// A policy of admission in the member's namespace, and its binding.
fn policy(member: &Member, word: &str, resource: &str, spec: Json) -> [Json; 2] {
    let name = format!("{}.example.com", member.name);
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{word}AdmissionPolicy"),
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": member.name}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"], "resources": [resource]}],
            },
        },
    });
    policy["spec"].as_object_mut().expect("a spec").extend(spec.as_object().expect("an object").clone());
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{word}AdmissionPolicyBinding"),
        "metadata": {"name": name}, "spec": {"policyName": name},
    });
    if word == "Validating" {
        binding["spec"]["validationActions"] = json!(["Deny"]);
    }
    [policy, binding]
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_api_that_is_away_takes_nothing_off_the_record_and_is_looked_for_again() {
    // A member without a record looks at all kinds: on a shared server, others would meet this one.
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let member = Member::of(Arc::new(plane), "remote");
    let (group, crd) = ("remote.example.com", "boats.remote.example.com");
    create(
        &member,
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": crd},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Boat", "plural": "boats"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
        }),
    );
    member.kubectl(&["wait", "--for=condition=Established", &format!("crd/{crd}")]);
    let boat = json!({"apiVersion": "remote.example.com/v1", "kind": "Boat",
        "metadata": {"name": "anna", "namespace": "remote"}});
    member.publish(&[boat, member.config_map("web", "one")]);
    member.sync(&[]).expect(0);

    // The group is that of an aggregated server now, which does not answer.
    let service = json!({"metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": null}},
        "spec": {"service": {"name": "nobody", "namespace": "remote"}, "insecureSkipTLSVerify": true}});
    member.kubectl(&[
        "patch",
        "apiservice",
        "v1.remote.example.com",
        "--type=merge",
        "-p",
        &service.to_string(),
    ]);
    member.publish(&[member.config_map("web", "two")]);
    let unknown = "the live objects of its kind are unknown: the server of its API group does not answer";
    until("the API is away", || member.sync(&[]).err.contains(unknown));
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "two");
    let running = member.keep_in_sync(&[]);
    running.until("it is reported", || member.status().contains(unknown).then_some(()));

    // The API is back, and its object goes.
    member.kubectl(&["delete", "apiservice", "v1.remote.example.com"]);
    running.until("the object goes", || {
        let args = ["get", crd, "-n", "remote", "-o", "name"];
        let ran = Ran::of(member.plane.kubectl().args(args));
        (ran.code == 0 && ran.out.is_empty()).then_some(())
    });
    running.until_applied(2);
    drop(running);
    member.kubectl(&["delete", "crd", crd]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_that_runs_on_applies_again_what_a_restored_server_has_lost() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let mut member = Member::of(Arc::new(plane), "restored");
    let publish = |member: &Member, value: &str| {
        member.publish(&["web", "more"].map(|name| member.config_map(name, value)));
    };
    fn plane_of(member: &mut Member) -> &mut ControlPlane {
        Arc::get_mut(&mut member.plane).expect("nobody else has it")
    }
    publish(&member, "one");
    member.sync(&[]).expect(0);
    plane_of(&mut member).stop();
    let backup = plane_of(&mut member).back_up();
    plane_of(&mut member).start_again();

    // Silence alone would take too long to show it.
    let _running = Running::start(&member, &["--watch-silence", "3600"]);
    publish(&member, "two");
    let has_two = |member: &Member| {
        let value = |name: &str| Some(member.get("configmap", name)?["data"]["key"] == "two");
        value("web") == Some(true) && value("more") == Some(true)
    };
    until("the folder is applied", || has_two(&member));
    member.kubectl(&["create", "configmap", "later", "-n", "restored"]);
    plane_of(&mut member).stop();
    plane_of(&mut member).restore(&backup);
    plane_of(&mut member).start_again();
    assert_eq!(member.get("configmap", "later"), None);
    until("the folder is applied again", || has_two(&member));
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_values_of_a_secret_s_override_are_never_shown_not_even_after_it() {
    let Some(member) = Member::new("veiled") else { return };
    // Members make it, and this one may be the first.
    create(&member, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth-system"}}));
    let overrides = "apiVersion: berth.dev/v1alpha1\nkind: LocalOverrides\noverrides:\n\
        - target: {kind: ConfigMap, namespace: veiled, name: web}\n  \
          patches: [{op: replace, path: /data/key, value: hunter2}]\n";
    create(
        &member,
        &json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "veiled", "namespace": "berth-system"}, "stringData": {"o.yaml": overrides}}),
    );
    member.publish(&[member.config_map("web", "one")]);
    member.sync(&["--overrides-from", "secret/veiled"]).expect(0);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "hunter2");

    let ran = member.sync(&["--dry-run"]).expect(0);
    assert!(ran.out.starts_with("would make 1 write"), "{}", ran.out);
    assert!(!everything(&member, &ran).contains("hunter2"), "{}{}", ran.out, ran.err);
    member.publish(&[annotated(member.config_map("web", "one"), "berth.dev/apply", "report-diff")]);
    let ran = member.sync(&[]).expect(0);
    let said = everything(&member, &ran);
    assert!(said.contains("FoundDiff: `/data/key`") && !said.contains("hunter2"), "{}{}", ran.out, ran.err);

    member.publish(&[member.config_map("web", "two")]);
    member.sync(&[]).expect(0);
    let web = member.get("configmap", "web").expect("it");
    assert_eq!(web["data"]["key"], "two");
    assert_eq!(web["metadata"]["annotations"]["berth.dev/sealed"], json!(null));
    member.publish(&[member.config_map("web", "three")]);
    let ran = member.sync(&["--dry-run"]).expect(0);
    assert!(ran.out.contains("-  key: two\n+  key: three\n"), "{}", ran.out);
    member.kubectl(&["delete", "secret", "veiled", "-n", "berth-system"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn nothing_that_a_policy_writes_of_a_refused_secret_is_shown() {
    let Some(member) = Member::new("quoting") else { return };
    let says = json!({"validations": [{"expression": "false", "reason": "Invalid",
        "messageExpression": "'no ' + string(object.data['key'])"}]});
    let policy = policy(&member, "Validating", "secrets", says);
    policy.iter().for_each(|object| create(&member, object));
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "quoting"}, "data": {"key": "aHVudGVyMg=="}});
    until("the policy is heeded", || {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), secret.to_string()).expect("a file");
        let args = ["create", "--dry-run=server", "-f", file.path().to_str().expect("a text path")];
        Ran::of(member.plane.kubectl().args(args)).err.contains("aHVudGVyMg")
    });
    member.publish(&[secret, member.config_map("web", "one")]);
    for more in [&["--dry-run"][..], &["--health-timeout", "0"], &["-o", "json"]] {
        let ran = member.sync(more).expect(7);
        let said = everything(&member, &ran);
        assert!(said.contains("the API server refuses it: Invalid (422)"), "{}{}", ran.out, ran.err);
        for value in ["hunter2", "aHVudGVyMg"] {
            assert!(!said.contains(value), "{more:?}: {}{}", ran.out, ran.err);
        }
    }
    assert!(member.get("configmap", "web").is_some());
    for object in &policy {
        let kind = object["kind"].as_str().expect("a kind");
        member.kubectl(&["delete", kind, object["metadata"]["name"].as_str().expect("a name")]);
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_value_that_a_policy_changed_is_told_and_put_right_once_the_policy_is_gone() {
    let Some(member) = Member::new("mutating") else { return };
    let replace = "[JSONPatch{op: 'replace', path: '/data/key', value: 'policy'}]";
    let mutates = json!({"reinvocationPolicy": "Never",
        "matchConditions": [{"name": "has-key", "expression": "has(object.data) && 'key' in object.data"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": replace}}]});
    let policy = policy(&member, "Mutating", "configmaps", mutates);
    policy.iter().for_each(|object| create(&member, object));
    let is_heeded = || {
        let args = ["create", "configmap", "x", "-n", "mutating", "--from-literal=key=x"];
        member.kubectl(&[&args[..], &["--dry-run=server", "-o", "json"]].concat()).contains("\"policy\"")
    };
    until("the policy is heeded", is_heeded);
    let reported = annotated(member.config_map("reported", "one"), "berth.dev/drift", "report");
    let ignored = annotated(member.config_map("ignored", "one"), "berth.dev/ignore", "/data/key");
    member.publish(&[member.config_map("web", "one"), reported, ignored]);
    member.sync(&[]).expect(0);
    let value = |name: &str| member.get("configmap", name).expect("it")["data"]["key"].clone();
    assert_eq!([value("web"), value("reported"), value("ignored")], ["policy", "policy", "policy"]);

    let why = "FoundDrifts: an admission policy or webhook changed it when berth applied it: `/data/key` is \
               \"policy\" in the cluster and \"one\" in the folder";
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("0 writes, 0 removals, 3 unchanged"), "{}", ran.out);
    for name in ["web", "reported"] {
        let said = format!("ConfigMap mutating/{name}: {why}");
        assert!(format!("{}{}", ran.out, ran.err).contains(&said), "{}{}", ran.out, ran.err);
    }
    assert!(!ran.err.contains("mutating/ignored") && !ran.out.contains("mutating/ignored"), "{}", ran.err);

    for object in &policy {
        let kind = object["kind"].as_str().expect("a kind");
        member.kubectl(&["delete", kind, object["metadata"]["name"].as_str().expect("a name")]);
    }
    until("the policy is gone", || !is_heeded());
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains(&format!("{why}; berth only reports its drift")), "{}", ran.err);
    assert_eq!([value("web"), value("reported"), value("ignored")], ["one", "policy", "policy"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_that_does_not_go_is_made_anew_when_it_has_gone_and_holds_up_no_other() {
    let Some(member) = Member::new("lingering") else { return };
    let fixed = |value: &str| {
        let mut object = annotated(member.config_map("fixed", value), "berth.dev/recreate", "allowed");
        object["immutable"] = json!(true);
        object
    };
    member.publish(&[fixed("one"), member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    let finalizers = |value: Json| {
        let patch = json!({"metadata": {"finalizers": value}}).to_string();
        member.kubectl(&["patch", "configmap", "fixed", "-n", "lingering", "--type=merge", "-p", &patch]);
    };
    finalizers(json!(["example.com/never"]));
    member.publish(&[fixed("two"), member.config_map("web", "two")]);
    let ran = member.sync(&["--health-timeout", "0"]).expect(7);
    let said = "ConfigMap lingering/fixed: not healthy in time: it is being removed, since ";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(ran.err.contains("and waits for its finalizers `example.com/never`"), "{}", ran.err);
    assert!(ran.err.contains("removed to be created again, because it cannot be changed"), "{}", ran.err);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "two");

    let running = member.keep_in_sync(&[]);
    running.until("it is reported", || member.status().contains("it is being removed, since").then_some(()));
    finalizers(json!(null));
    running.until("the working copy is damaged; recreating it", || {
        (member.get("configmap", "fixed")?["data"]["key"] == "two").then_some(())
    });
    running.until_applied(2);
}

/// The rights that the page of members names, as the rules of a role: those in all namespaces, and those in berth's.
fn rights_of_the_page() -> (Vec<Json>, Vec<Json>) {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/members.md")).expect("the page");
    let (_, rest) = page.split_once("| on | verbs |\n| --- | --- |\n").expect("the table of rights");
    let table = rest.split("\n\n").next().expect("its rows");
    let (mut everywhere, mut at_home) = (Vec::new(), Vec::new());
    for row in table.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let verbs: Vec<&str> = cells[2].split(", ").filter(|verb| !verb.starts_with("if ")).collect();
        let (groups, resource, rules) = match cells[1] {
            "the kinds of its folder, in all namespaces" => (["", ""], "services", &mut everywhere),
            "pods" => (["", ""], "pods", &mut everywhere),
            "Events" => (["", "events.k8s.io"], "events", &mut everywhere),
            "the namespace `berth-system`" => (["", ""], "namespaces", &mut everywhere),
            "ConfigMaps in `berth-system`" => (["", ""], "configmaps", &mut at_home),
            "Leases in `berth-system`" => (["coordination.k8s.io", ""], "leases", &mut at_home),
            other => panic!("the test does not know the row {other}"),
        };
        rules.push(json!({"apiGroups": groups, "resources": [resource], "verbs": verbs}));
    }
    (everywhere, at_home)
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_rights_that_the_page_names_are_enough() {
    let Some(member) = Member::new("rightful") else { return };
    let (everywhere, at_home) = rights_of_the_page();
    let bind = |kind: &str, namespace: Option<&str>, role: &str, rules: &[Json]| {
        let metadata = json!({"name": role, "namespace": namespace});
        let api_version = "rbac.authorization.k8s.io/v1";
        create(
            &member,
            &json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules}),
        );
        create(
            &member,
            &json!({"apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "rightful"}]}),
        );
    };
    bind("ClusterRole", None, "rightful-everywhere", &everywhere);
    bind("Role", Some("rightful"), "rightful", &at_home);
    let config = member.kubectl(&["config", "view", "--raw", "-o", "json"]);
    let mut config: Json = serde_json::from_str(&config).expect("JSON");
    config["users"][0]["user"]["as"] = json!("rightful");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), config.to_string()).expect("a file");
    let kubeconfig = file.path().to_str().expect("a text path");

    let service = |port: u16| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "rightful"},
            "spec": {"ports": [{"port": port}]}})
    };
    member.publish(&[service(80)]);
    member.sync_at(kubeconfig, &["--namespace", "rightful"]).expect(0);
    let running = member.keep_in_sync(&["--kubeconfig", kubeconfig, "--namespace", "rightful"]);
    member.publish(&[service(81)]);
    running.until_applied(2);
    member.kubectl(&["delete", "service", "web", "-n", "rightful"]);
    running.until("it is made again", || member.get("service", "web"));
    drop(running);

    // A namespace that is missing is made, with no right but that.
    bind("ClusterRole", None, "rightful-at-home", &at_home);
    let fresh = ["--namespace", "rightful-fresh", "--no-lease", "--fleet", "fresh"];
    member.publish(&[json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "other", "namespace": "rightful"}, "spec": {"ports": [{"port": 80}]}})]);
    member.sync_at(kubeconfig, &fresh).expect(0);
    member.kubectl(&["get", "configmap", "berth-fresh", "-n", "rightful-fresh"]);
    member.kubectl(&["delete", "namespace", "rightful-fresh", "--wait=false"]);
    for role in ["rightful-everywhere", "rightful-at-home"] {
        member.kubectl(&["delete", "clusterrole,clusterrolebinding", role]);
    }
}
