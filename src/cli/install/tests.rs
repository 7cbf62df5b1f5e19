//! The required and the forbidden contents of the manifests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::*;

fn install(kinds: &[(&str, &str)]) -> Install {
    let kinds = kinds
        .iter()
        .map(|(group, plural)| Resource { group: (*group).to_owned(), plural: (*plural).to_owned() });
    let member = Member {
        cluster: "oslo".to_owned(),
        fleet: "fleet".to_owned(),
        kinds: kinds.collect(),
        ..Member::default()
    };
    Install { name: "berth-fleet".to_owned(), ..of_role(Role::Member(member)) }
}

fn of_role(role: Role) -> Install {
    Install {
        name: "berth-hub".to_owned(),
        namespace: "berth-system".to_owned(),
        image: "berth:1".to_owned(),
        pull_secret: None,
        remote: Remote {
            url: "https://git.example.com/fleet.git".to_owned(),
            secret: Some("berth-git".to_owned()),
            ..Remote::default()
        },
        allowed_signers: None,
        registry: None,
        collector: None,
        env: BTreeMap::new(),
        memory_limit: None,
        cache_limit: None,
        network: Network::Limited { ports: BTreeSet::new() },
        role,
    }
}

fn member(install: &mut Install) -> &mut Member {
    match &mut install.role {
        Role::Member(member) => member,
        Role::Hub(_) => panic!("it is a hub"),
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
    member(&mut install).escalate = true;
    assert!(verbs(&install, "rbac.authorization.k8s.io", "roles").contains(&"escalate".to_owned()));
    assert!(files(&install)[1].about.join("\n").contains("administrator"));
    // Without such kinds in the folder, no rights need to be granted.
    member(&mut install).kinds.clear();
    assert!(!object(&install, "ClusterRole").to_string().contains("escalate"));
}

#[test]
fn whoever_acts_as_others_only_reads_by_itself() {
    let mut install = install(&[("apps", "deployments")]);
    member(&mut install).tenant_account = Some("deployer".to_owned());
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

#[test]
fn a_role_of_the_cluster_takes_the_place_of_rules_for_kinds() {
    let mut install = install(&[]);
    member(&mut install).cluster_role = Some("edit".to_owned());
    let bound: Vec<Json> = files(&install)[1]
        .objects
        .iter()
        .filter(|object| object["kind"] == "ClusterRoleBinding")
        .map(|object| object["roleRef"]["name"].clone())
        .collect();
    assert_eq!(bound, ["berth-fleet", "edit"]);
    assert!(files(&install)[1].about[0].contains("`edit`"));
}

#[test]
fn a_daemon_has_no_rights_and_no_token_but_for_its_events_and_its_lease() {
    let mut install = of_role(Role::Hub(Hub::default()));
    let kinds = |install: &Install| -> Vec<Json> {
        files(install)[1].objects.iter().map(|object| object["kind"].clone()).collect()
    };
    let token = |install: &Install| {
        object(install, "Deployment")["spec"]["template"]["spec"]["automountServiceAccountToken"].clone()
    };
    assert_eq!((kinds(&install), token(&install)), (vec![json!("ServiceAccount")], json!(false)));
    install.role = Role::Hub(Hub { events: true, ..Hub::default() });
    assert_eq!(kinds(&install), ["ServiceAccount", "Role", "RoleBinding"]);
    assert_eq!(token(&install), true);
    assert!(!files(&install)[1].objects.iter().any(|object| object.to_string().contains("secrets")));
    install.role = Role::Hub(Hub { standby: true, ..Hub::default() });
    assert_eq!((kinds(&install).len(), token(&install)), (3, json!(true)));
    let rules = object(&install, "Role")["rules"].clone();
    assert_eq!(rules.as_array().map(Vec::len), Some(2));
    assert_eq!((&rules[0]["resources"], &rules[1]["resources"]), (&json!(["leases"]), &json!(["leases"])));
    assert_eq!(rules[0]["resourceNames"], json!([install.name]));
    assert_eq!(object(&install, "Deployment")["spec"]["replicas"], 2);
}

#[test]
fn connections_are_limited_to_what_the_process_needs() {
    let ports = |install: &Install| -> Vec<u64> {
        let policy = object(install, "NetworkPolicy");
        let ports = policy["spec"]["egress"][0]["ports"].as_array().expect("ports").clone();
        ports.iter().filter_map(|port| port["port"].as_u64()).collect()
    };
    let mut hub = of_role(Role::Hub(Hub::default()));
    assert_eq!(ports(&hub), [53, 53, 443]);
    hub.remote.ssh = true;
    assert_eq!(ports(&hub), [53, 22, 53]);
    hub.remote.port = Some(2222);
    hub.network = Network::Limited { ports: BTreeSet::from([3128]) };
    assert_eq!(ports(&hub), [53, 53, 2222, 3128]);
    assert_eq!(ports(&install(&[])), [53, 53, 443, 6443]);
    hub.network = Network::Open;
    assert_eq!(files(&hub).len(), 3);
}

#[test]
fn metrics_are_reached_from_namespaces_with_a_label_and_the_rest_from_everywhere() {
    let ingress = |install: &Install| object(install, "NetworkPolicy")["spec"]["ingress"].clone();
    let metrics = json!({
        "from": [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
        "ports": [{"protocol": "TCP", "port": 9090}],
    });
    assert_eq!(ingress(&install(&[])), json!([metrics]));
    let webhook_secret = Some("hook".to_owned());
    let hub = of_role(Role::Hub(Hub { webhook_secret, ..Hub::default() }));
    assert_eq!(ingress(&hub), json!([metrics, {"ports": [{"protocol": "TCP", "port": 8080}]}]));
}

#[test]
fn a_deploy_key_is_in_its_own_secret_and_in_no_other_object() {
    let mut install = of_role(Role::Hub(Hub::default()));
    install.remote.ssh = true;
    assert!(
        files(&install)[2].about.join("\n").contains("--from-file=key=FILE --from-file=known_hosts=FILE")
    );
    install.remote.known_hosts = Some("git.example.com ssh-ed25519 AAAA".to_owned());
    install.remote.deploy_key = true;
    let about = files(&install)[2].about.join("\n");
    assert!(about.contains("--signing-secret") && !about.contains("--from-file"), "{about}");
    let trust = object(&install, "ConfigMap");
    assert_eq!(trust["data"]["known_hosts"], "git.example.com ssh-ed25519 AAAA");
    let secret = deploy_key_secret(&install, "berth-git", "private");
    assert_eq!(
        (&secret["metadata"]["name"], &secret["stringData"]["key"]),
        (&json!("berth-git"), &json!("private"))
    );
    assert!(!files(&install).iter().flat_map(|file| &file.objects).any(|object| object["kind"] == "Secret"));
}
