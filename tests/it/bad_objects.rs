//! What an API server does not take, or takes and can not let go: each fault is told, stops nothing else, and is well
//! again once its cause is gone.

use std::net::TcpListener;

use serde_json::{Value as Json, json};

use crate::support::Ran;
use crate::support::member::{Member, annotated};
use crate::support::wait::until;

fn of_its_own(member: &Member, mut object: Json) -> Json {
    let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
    object["metadata"]["namespace"] = json!(member.name);
    object["metadata"]["annotations"]["berth.dev/workload"] = json!(format!("F/x/{name}"));
    object
}

/// All that berth says anywhere: to people, in Git, and in the cluster.
fn everything(member: &Member, ran: &Ran) -> String {
    let status =
        member.repo.git(&["cat-file", "-p", &format!("refs/berth/status/{}:status.yaml", member.name)]);
    let events = member.kubectl(&["get", "events", "-A", "-o", "json"]);
    let parent = member.kubectl(&[
        "get",
        "configmap",
        &format!("berth-{}", member.name),
        "-n",
        "berth-system",
        "-o",
        "json",
    ]);
    format!("{}{}{status}{events}{parent}", ran.out, ran.err)
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_webhook_that_never_answers_a_removal_keeps_it_on_record_and_it_comes_later() {
    let Some(member) = Member::new("silent") else { return };
    member
        .publish(&["old", "other", "stays"].map(|name| of_its_own(&member, member.config_map(name, "one"))));
    member.sync(&[]).expect(0);
    // Connections are taken up by the system, and nobody ever reads them.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://127.0.0.1:{}/never", silent.local_addr().expect("an address").port());
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "silent-hook"}, "webhooks": [{
            "name": "hook.silent.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1, "clientConfig": {"url": url},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "silent"}},
            "objectSelector": {"matchExpressions": [{"key": "slow", "operator": "Exists"}]},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}]}]});
    member.kubectl(&["label", "configmap", "old", "-n", "silent", "slow=yes"]);
    member.kubectl_apply(&hook, &[]);
    member.publish(&[of_its_own(&member, member.config_map("stays", "two"))]);
    // A server takes a moment to heed a new webhook.
    let heeded = || {
        let trial = ["delete", "configmap", "old", "-n", "silent", "--dry-run=server"];
        !member.plane.kubectl().args(trial).output().expect("kubectl runs").status.success()
    };
    until("the webhook is heeded", heeded);
    let ran = member.sync(&[]);
    member.kubectl(&["delete", "validatingwebhookconfiguration", "silent-hook"]);
    let ran = ran.expect(7);
    assert!(ran.err.contains("ConfigMap silent/old: cannot be removed:"), "{}", ran.err);
    assert!(ran.err.contains("hook.silent.example.com"), "{}", ran.err);
    assert_eq!(member.get("configmap", "other"), None);
    assert_eq!(member.get("configmap", "stays").expect("it")["data"]["key"], "two");
    let old = member.get("configmap", "old").expect("it is still there");
    assert_eq!(old["metadata"]["labels"]["applyset.kubernetes.io/part-of"], json!(member.set_id()));
    for _ in 0..50 {
        if member.sync(&[]).code == 0 {
            break;
        }
    }
    assert_eq!(member.get("configmap", "old"), None);
}

fn boats(group: &str) -> Json {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Boat", "plural": "boats", "singular": "boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_kind_that_is_not_there_yet_is_waited_for_and_one_that_goes_takes_nothing_else_along() {
    let Some(member) = Member::new("kinds") else { return };
    let group = "kinds.example.com";
    let crd = "boats.kinds.example.com";
    let boat = json!({"apiVersion": "kinds.example.com/v1", "kind": "Boat",
        "metadata": {"name": "anna", "namespace": "kinds"}, "spec": {"length": 7}});
    let folder = [boat, of_its_own(&member, member.config_map("web", "one"))];
    member.publish(&folder);
    let waits = "Boat.kinds.example.com kinds/anna: the cluster does not serve Boat of kinds.example.com/v1";
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains(waits), "{}", ran.err);
    assert!(member.get("configmap", "web").is_some());
    // Somebody else brings the definition.
    member.kubectl_apply(&boats(group), &[]);
    member.kubectl(&["wait", "--for=condition=Established", &format!("crd/{crd}")]);
    member.sync(&[]).expect(0);
    assert_eq!(member.get(crd, "anna").expect("it")["spec"]["length"], 7);
    // And takes it away, with all that was made of it.
    member.kubectl(&["delete", "crd", crd]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains(waits) && ran.out.contains("0 removals"), "{}{}", ran.out, ran.err);
    // One that is in the folder goes with an approval only, while there are objects of it.
    member.publish(&[&folder[..], &[boats(group)]].concat());
    member.sync(&[]).expect(0);
    member.publish(&folder);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains("CRDs and volume claims are removed only with an approval"), "{}", ran.err);
    assert_eq!(member.get(crd, "anna").expect("it")["spec"]["length"], 7);
    member.publish_with(
        &folder[1..],
        &[&format!("_cluster/CustomResourceDefinition.apiextensions.k8s.io_{crd}.yaml")],
    );
    // Its objects go first, which takes the server a moment.
    let mut tries = 0;
    while member.sync(&[]).code != 0 {
        tries += 1;
        assert!(tries < 50, "it does not go");
    }
    assert_eq!(member.kubectl(&["get", "crd", crd, "--ignore-not-found"]), "");
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_never_changes_is_said_before_anything_is_done_and_is_removed_for_nothing_less_than_leave() {
    let Some(member) = Member::new("fixed") else { return };
    let claim = |size: &str| {
        of_its_own(
            &member,
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "a", "resources": {"requests": {"storage": size}}}}),
        )
    };
    let service = |address: &str| {
        of_its_own(
            &member,
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"clusterIP": address, "ports": [{"port": 80, "protocol": "TCP"}]}}),
        )
    };
    let sealed = |value: &str| {
        of_its_own(
            &member,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sealed"},
            "immutable": true, "data": {"key": value}}),
        )
    };
    member.publish(&[claim("2Gi"), service("10.0.0.77"), sealed("one"), member.config_map("well", "one")]);
    member.sync(&["--health-timeout", "0"]);
    let uids = || {
        let of =
            |kind: &str, name: &str| member.get(kind, name).expect("it is there")["metadata"]["uid"].clone();
        [of("pvc", "data"), of("service", "web"), of("configmap", "sealed")]
    };
    let before = uids();
    member.publish(&[claim("1Gi"), service("10.0.0.78"), sealed("two"), member.config_map("well", "two")]);
    for more in [&["--dry-run"][..], &["--health-timeout", "0"]] {
        let ran = member.sync(more).expect(7);
        for said in [
            "PersistentVolumeClaim fixed/data: the API server refuses it:",
            "Service fixed/web: the API server refuses it:",
            "ConfigMap fixed/sealed: the API server refuses it:",
        ] {
            assert!(ran.err.contains(said), "{more:?}: {said}\n{}{}", ran.out, ran.err);
        }
        assert_eq!(uids(), before);
    }
    assert_eq!(member.get("configmap", "well").expect("it")["data"]["key"], "two");
    // With leave, what holds no data is made anew, and what does is not.
    let all = [claim("1Gi"), service("10.0.0.78"), sealed("two")];
    member.publish(&all.map(|object| annotated(object, "berth.dev/recreate", "allowed")));
    member.sync(&["--health-timeout", "0"]).expect(7);
    let after = uids();
    assert_eq!(after[0], before[0]);
    assert!(after[1] != before[1] && after[2] != before[2]);
    assert_eq!(member.get("service", "web").expect("it")["spec"]["clusterIP"], "10.0.0.78");
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_secret_that_is_not_taken_is_told_without_a_word_of_it() {
    let Some(member) = Member::new("untold") else { return };
    let secret = |name: &str, rest: Json| {
        let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        object.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
        of_its_own(&member, object)
    };
    let bad = [
        secret("number", json!({"stringData": {"port": 66_677_788}})),
        secret("base64", json!({"data": {"key": "hunter2 is no base64"}})),
        secret("list", json!({"data": ["hunter2"]})),
        secret("tls", json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "aHVudGVyMg=="}})),
        secret(
            "docker",
            json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "aHVudGVyMg=="}}),
        ),
        secret("key", json!({"stringData": {"no such key!": "x"}})),
    ];
    let mut all = bad.to_vec();
    all.push(secret("well", json!({"stringData": {"password": "hunter2"}})));
    member.publish(&all);
    for more in [&["--dry-run"][..], &[], &["-o", "json"]] {
        let ran = member.sync(more).expect(7);
        for object in &bad {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let line = ran.err.lines().find(|line| line.starts_with(&format!("Secret untold/{name}: ")));
            assert!(line.is_some(), "{more:?}: nothing about {name}\n{}", ran.err);
        }
        if !more.contains(&"--dry-run") {
            let said = everything(&member, &ran);
            for secret in ["hunter2", "aHVudGVyMg", "66677788"] {
                assert!(!said.contains(secret), "{more:?}: {secret} in {said}");
            }
        }
        assert!(!format!("{}{}", ran.out, ran.err).contains("hunter2"));
    }
    assert_eq!(member.get("secret", "well").expect("it")["data"]["password"], "aHVudGVyMg==");
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_secrets_text_is_kept_to_like_anything_else() {
    let Some(member) = Member::new("texts") else { return };
    let secret = |data: Json| {
        of_its_own(
            &member,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": data}),
        )
    };
    member.publish(&[secret(json!({"user": "ann", "password": "one"}))]);
    member.sync(&[]).expect(0);
    let patch = r#"{"stringData":{"password":"by hand"}}"#;
    member.kubectl(&["patch", "secret", "key", "-n", "texts", "--type=merge", "-p", patch]);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("1 write,"), "{}", ran.out);
    assert_eq!(member.get("secret", "key").expect("it")["data"], json!({"user": "YW5u", "password": "b25l"}));
    member.publish(&[secret(json!({"password": "one"}))]);
    member.sync(&[]).expect(0);
    assert_eq!(member.get("secret", "key").expect("it")["data"], json!({"password": "b25l"}));
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes"));
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_encrypted_is_never_applied_as_it_is() {
    let Some(member) = Member::new("encrypted") else { return };
    let value = "ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A==,type:str]";
    let sops = json!({"mac": value, "version": "3.9.0", "age": []});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "text"}, "stringData": {"key": value}});
    let whole = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "whole"}, "data": {"key": value}, "sops": sops});
    member.publish(&[
        of_its_own(&member, secret),
        of_its_own(&member, whole),
        member.config_map("well", "ENC[ is just a word"),
    ]);
    for more in [&["--dry-run"][..], &[]] {
        let ran = member.sync(more).expect(7);
        for name in ["Secret encrypted/text", "ConfigMap encrypted/whole"] {
            assert!(ran.err.contains(&format!("{name}: it is encrypted by SOPS")), "{}", ran.err);
        }
        assert!(!ran.err.contains("AES256"), "{}", ran.err);
    }
    assert_eq!((member.get("secret", "text"), member.get("configmap", "whole")), (None, None));
    assert!(member.get("configmap", "well").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_that_is_too_large_and_a_folder_of_many_files_stop_nothing_else() {
    let Some(member) = Member::new("large") else { return };
    let files = |name: &str, bytes: usize| {
        let object = of_its_own(
            &member,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"key": "x".repeat(bytes)}}),
        );
        (format!("large/ConfigMap_{name}.yaml"), object.to_string().into_bytes())
    };
    let mut all = vec![files("huge", 3 << 20), files("big", 1 << 20)];
    all.extend((0..1_000).map(|index| files(&format!("many-{index}"), 10)));
    member.publish_files(&all, &[]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.out.starts_with("1001 writes"), "{}", ran.out.lines().next().unwrap_or_default());
    let line = ran.err.lines().find(|line| line.starts_with("ConfigMap large/huge: "));
    let line = line.unwrap_or_else(|| panic!("nothing about it in\n{}", ran.err));
    assert!(line.contains("refuses it") && line.len() < 1_000, "{line}");
    assert!(member.get("configmap", "big").is_some() && member.get("configmap", "many-999").is_some());
}
