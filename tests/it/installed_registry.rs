//! A syncer that reads a container registry, installed by `berth install member`: its credentials, its rights, its port.

use serde_json::Value as Json;

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::pod::Pod;
use crate::support::registry::{PASSWORD, Registry, Shop, USER};
use crate::support::{Ran, run};

#[test]
#[ignore = "needs a container registry"]
fn an_installed_member_reads_a_registry_with_the_credentials_of_a_pull_secret() {
    let Some(registry) = Registry::start_with_password() else { return };
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    let login = berth_base::text::base64::encode(format!("{USER}:{PASSWORD}").as_bytes());
    let file = shop.fleet.root().join("config.json");
    let config = serde_json::json!({"auths": {registry.host(): {"auth": login}}});
    std::fs::write(&file, config.to_string()).expect("a file");
    let file = file.to_str().expect("a text path");
    shop.publish(&url, &["--registry-auth", file]).expect(0);

    let kubectl = |args: &[&str]| Ran::of(plane.kubectl().args(args));
    let install = |more: &[&str]| {
        let kubeconfig = plane.kubeconfig().to_str().expect("a text path");
        let all = ["install", "member", "a", "--kinds", "configmaps,namespaces", "--remote", &url];
        let flags = ["--image", "example.com/berth:1", "--kubeconfig", kubeconfig, "--apply"];
        run(&[&all[..], &flags, more].concat())
    };
    let ran = install(&["--registry-secret", "pull", "--cluster-properties"]).expect(0);
    // The Secret is made as the command says.
    let line = ran.err.lines().find(|line| line.contains("kubectl create secret")).expect("a command");
    let words: Vec<String> = line.split_whitespace().skip(1).map(|word| word.replace("FILE", file)).collect();
    kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
    let secret = kubectl(&["get", "secret", "pull", "-n", "berth-system", "-o", "json"]).expect(0).json();
    assert_eq!(secret["type"], "kubernetes.io/dockerconfigjson");
    assert!(!ran.err.contains("berth-git"), "a registry needs no Git: {}", ran.err);

    let (_pod, mut command) = Pod::of_deployment(&plane, "berth-system", "berth-fleet");
    let ran = Ran::of(command.args(["--once", "--health-timeout", "0"])).expect(0);
    assert!(!ran.err.contains("forbidden"), "{}", ran.err);
    let map = kubectl(&["get", "configmap", "web", "-n", "shop", "-o", "json"]).expect(0).json();
    assert_eq!(map["data"]["value"], "one");
    let role = kubectl(&["get", "clusterrole", "berth-fleet", "-o", "json"]).expect(0).json();
    let of_facts = serde_json::json!({"apiGroups": ["about.k8s.io"], "resources": ["clusterproperties"], "verbs": ["list"]});
    assert!(role["rules"].as_array().is_some_and(|rules| rules.contains(&of_facts)), "{role}");
    // Out go the registry's port and those of the API server, and no port of a Git server besides.
    let policy = kubectl(&["get", "networkpolicy", "berth-fleet", "-n", "berth-system", "-o", "json"]);
    let policy = policy.expect(0).json();
    let ports = policy["spec"]["egress"][0]["ports"].as_array().expect("ports").clone();
    let ports: Vec<u64> = ports.iter().filter_map(|port| port["port"].as_u64()).collect();
    let mut wanted = vec![53, 53, 443, 6443, u64::from(registry.port)];
    wanted.sort_unstable();
    let sorted = |mut ports: Vec<u64>| {
        ports.sort_unstable();
        ports
    };
    assert_eq!(sorted(ports), wanted);

    // Without the Secret, the deployment names none, and the registry refuses.
    install(&[]).expect(0);
    let deployment = kubectl(&["get", "deployment", "berth-fleet", "-n", "berth-system", "-o", "json"]);
    let volumes = &deployment.expect(0).json()["spec"]["template"]["spec"]["volumes"];
    assert!(
        volumes.as_array().is_some_and(|all| all.iter().all(|it| it["secret"] == Json::Null)),
        "{volumes}"
    );
    let (_pod, mut command) = Pod::of_deployment(&plane, "berth-system", "berth-fleet");
    let refused = Ran::of(command.arg("--once")).expect(6);
    assert!(!refused.err.contains(PASSWORD), "{}", refused.err);
}

#[test]
fn flags_that_do_not_go_together_are_refused_with_what_would_be_right() {
    let hub = ["install", "hub", "--image", "a/b:1", "--dir", "-"];
    let member = ["install", "member", "a", "--kinds", "configmaps", "--image", "a/b:1", "--dir", "-"];
    let git = ["--remote", "https://git.example.com/team/fleet.git"];
    let oci = ["--remote", "oci://registry.example.com/fleet"];
    for (words, said) in [
        ([&hub[..], &oci].concat(), "a registry cannot be the remote of a hub"),
        ([&hub[..], &git, &["--registry-secret", "x"]].concat(), "--registry-secret has no effect"),
        (
            [&hub[..], &git, &["--publish", "https://registry.example.com/fleet"]].concat(),
            "cannot be a registry",
        ),
        (
            [&hub[..], &git, &["--publish", "oci://ann:hunter2@registry.example.com/fleet"]].concat(),
            "an `@` is in it",
        ),
        ([&hub[..], &git, &["--profiles-namespace", "fleet"]].concat(), "--profiles-namespace has no effect"),
        ([&hub[..], &git, &["--publish-decisions", "kube:other"]].concat(), "[possible values: kube]"),
        ([&member[..], &oci, &["--git-ca"]].concat(), "--git-ca is for Git"),
        ([&member[..], &git, &["--registry-http"]].concat(), "--registry-http has no effect"),
        (
            [&member[..], &oci, &["--status-post", "https://a.example.com/status"]].concat(),
            "--status-key-secret",
        ),
        (
            [&member[..], &oci, &["--status-post", "http://a.example.com/status"]].concat(),
            "https://berth.example.com",
        ),
        ([&member[..], &git, &["--applier-object", "a/b"]].concat(), "--applier-object has no effect"),
        (
            [&member[..], &git, &["--applier", "flux", "--overrides-from", "configmap/x"]].concat(),
            "--overrides-from has no effect",
        ),
    ] {
        let ran = run(&words).expect(2);
        assert!(ran.err.contains(said) && !ran.err.contains("hunter2"), "{words:?}\n{}", ran.err);
    }
}
