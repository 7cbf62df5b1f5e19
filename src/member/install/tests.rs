//! What is in the manifests, and what must never be.

use serde_json::{Value as Json, json};

use super::*;

fn install(kinds: &[(&str, &str)]) -> Install {
    let kinds = kinds
        .iter()
        .map(|(group, plural)| Resource { group: (*group).to_owned(), plural: (*plural).to_owned() });
    Install {
        cluster: "oslo".to_owned(),
        fleet: "fleet".to_owned(),
        name: "berth-fleet".to_owned(),
        namespace: "berth-system".to_owned(),
        image: "berth:1".to_owned(),
        remote: Remote {
            url: "https://git.example.com/fleet.git".to_owned(),
            secret: Some("berth-git".to_owned()),
            ..Remote::default()
        },
        kinds: kinds.collect(),
        ..Install::default()
    }
}

fn object(install: &Install, kind: &str) -> Json {
    let all = files(install).into_iter().flat_map(|file| file.objects);
    all.into_iter().find(|object| object["kind"] == kind).expect(kind)
}

fn verbs(install: &Install, group: &str, plural: &str) -> Vec<String> {
    let role = object(install, "ClusterRole");
    let rules = role["rules"].as_array().expect("rules").clone();
    let ours = rules.into_iter().filter(|rule| {
        rule["apiGroups"] == json!([group])
            && rule["resources"].as_array().is_some_and(|all| all.contains(&json!(plural)))
    });
    ours.flat_map(|rule| serde_json::from_value::<Vec<String>>(rule["verbs"].clone()).expect("verbs"))
        .collect()
}

#[test]
fn rights_are_for_the_kinds_of_the_folder_and_no_others() {
    let install = install(&[("apps", "deployments"), ("", "configmaps")]);
    assert!(verbs(&install, "apps", "deployments").contains(&"delete".to_owned()));
    assert!(verbs(&install, "", "secrets").is_empty() && verbs(&install, "apps", "daemonsets").is_empty());
    assert!(!object(&install, "ClusterRole").to_string().contains('*'));
}

#[test]
fn only_who_is_told_to_may_hand_out_more_than_it_has() {
    let mut install = install(&[("rbac.authorization.k8s.io", "roles")]);
    assert!(!verbs(&install, "rbac.authorization.k8s.io", "roles").contains(&"escalate".to_owned()));
    install.escalate = true;
    assert!(verbs(&install, "rbac.authorization.k8s.io", "roles").contains(&"escalate".to_owned()));
    assert!(files(&install)[1].about.join("\n").contains("administrator"));
    // Without such objects nothing is to be handed out.
    install.kinds.clear();
    assert!(!object(&install, "ClusterRole").to_string().contains("escalate"));
}

#[test]
fn whoever_acts_as_others_only_reads_by_itself() {
    let mut install = install(&[("apps", "deployments")]);
    install.tenant_account = Some("deployer".to_owned());
    assert_eq!(verbs(&install, "apps", "deployments"), ["get", "list", "watch"]);
    assert_eq!(verbs(&install, "", "serviceaccounts"), ["get", "impersonate"]);
}

#[test]
fn credentials_come_from_a_secret_and_the_pod_may_do_little() {
    let pod = &object(&install(&[]), "Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][2]["secret"]["secretName"], "berth-git");
    let container = &pod["containers"][0];
    assert_eq!(container["args"], json!(["sync"]));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!((&pod["securityContext"]["runAsNonRoot"], &pod["hostNetwork"]), (&json!(true), &Json::Null));
}
