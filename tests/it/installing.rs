//! `berth install`: from an empty API server to a synced folder, again without a change, and what it refuses.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::pod::Pod;
use crate::support::remote::{Fleet, Ssh};
use crate::support::wait::{eventually, until};
use crate::support::{Ran, Repo, berth, cluster, config_map, hermetic, namespace, run};

const IMAGE: &str = "registry.example.com/berth:0.1.0";

/// A fleet with the cluster `oslo` at a server that is asked by ssh, and an empty API server.
struct Empty {
    plane: ControlPlane,
    fleet: Fleet,
    server: Ssh,
}

impl Empty {
    fn new() -> Option<Empty> {
        let plane = ControlPlane::start(Wanted::SERVER_ONLY)?;
        let people = Repo::with(&[
            ("clusters/oslo.yaml", &cluster("oslo", &[])),
            ("apps/shop.yaml", &namespace("shop")),
            ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
        ]);
        let fleet = Fleet::of(people);
        fleet.bare(&["update-ref", "-d", "refs/heads/main"]);
        fleet.people.git(&["remote", "add", "origin", fleet.bare_path().to_str().expect("text")]);
        let server = Ssh::new(fleet.root())?;
        Some(Empty { plane, fleet, server })
    }

    /// Runs berth in the people's clone, for the cluster.
    fn berth(&self, args: &[&str]) -> Ran {
        let mut command = berth();
        command.current_dir(self.fleet.people.path()).env("KUBECONFIG", self.plane.kubeconfig());
        Ran::of(command.args(args))
    }

    /// Runs a line of the documentation in the people's clone, with its variables.
    fn shell(&self, line: &str) -> Ran {
        let berth = berth();
        let binary = Path::new(berth.get_program()).parent().expect("a folder");
        let kubectl = self.plane.kubectl();
        let kubectl = Path::new(kubectl.get_program()).parent().expect("a folder");
        let path = std::env::var("PATH").expect("a path");
        let path = format!("{}:{}:{path}", binary.display(), kubectl.display());
        let mut command = hermetic("sh");
        command.current_dir(self.fleet.people.path()).env("KUBECONFIG", self.plane.kubeconfig());
        command.env("R", self.server.url()).env("I", IMAGE).env("K", self.server.known_hosts());
        Ran::of(command.env("PATH", path).args(["-c", line]))
    }

    /// `berth install` with the flags of the server.
    fn install(&self, args: &[&str]) -> Ran {
        let (url, hosts) = (self.server.url(), self.server.known_hosts());
        let common = ["--remote", &url, "--image", IMAGE, "--deploy-key", "--known-hosts", &hosts, "--apply"];
        self.berth(&[&["install"], args, &common].concat())
    }

    fn kubectl(&self, args: &[&str]) -> Ran {
        Ran::of(self.plane.kubectl().args(args))
    }

    fn get(&self, kind: &str, name: &str, namespace: &str) -> Json {
        self.kubectl(&["get", kind, name, "-n", namespace, "-o", "json"]).expect(0).json()
    }

    /// Creates an object as a dry run of the server.
    fn tries(&self, object: &Json) -> Ran {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), object.to_string()).expect("a file");
        self.kubectl(&["create", "--dry-run=server", "-f", file.path().to_str().expect("text")])
    }
}

/// A container's process, which ends with the test.
struct Running {
    child: Child,
    log: tempfile::NamedTempFile,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let log = tempfile::NamedTempFile::new().expect("a file");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.reopen().expect("a file"));
        Running { child: command.spawn().expect("it starts"), log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("a log")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The three commands, as docs/install.md has them.
fn three_commands() -> [String; 3] {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/install.md")).expect("a page");
    let block =
        page.split("```").find(|block| block.starts_with("sh\n")).expect("a block of commands").trim_end();
    let (_, commands) = block.rsplit_once("\n\n").expect("commands after the settings");
    let commands: Vec<String> = commands.lines().map(str::to_owned).collect();
    commands.try_into().expect("three commands")
}

/// The public key that a run printed.
fn key_of(ran: &Ran) -> &str {
    ran.out.lines().find(|line| line.starts_with("ssh-ed25519 ")).expect("a key")
}

/// The pod that a Deployment of the cluster would make.
fn pod_of(deployment: &Json) -> Json {
    let metadata = json!({"name": "tried", "namespace": deployment["metadata"]["namespace"]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": deployment["spec"]["template"]["spec"]})
}

#[test]
#[ignore = "needs Kubernetes"]
fn three_commands_lead_from_an_empty_api_server_to_a_synced_folder() {
    let Some(empty) = Empty::new() else { return };

    let [hub, member, pushed] = three_commands().map(|line| empty.shell(&line).expect(0));
    assert!(pushed.err.contains("main -> main"), "{}", pushed.err);

    assert!(
        hub.out.starts_with("created    Namespace berth-hub\ncreated    Secret berth-hub/berth-git\n"),
        "{}",
        hub.out
    );
    assert!(!format!("{hub:?}{member:?}").contains("PRIVATE"));
    assert!(
        hub.out.contains("  GitHub: https://127.0.0.1/") && hub.out.contains("Allow write access"),
        "{}",
        hub.out
    );
    assert_ne!(key_of(&hub), key_of(&member));
    empty.server.allow(key_of(&hub));
    empty.server.allow(key_of(&member));

    // The kubelet's part: a process for each Deployment, with the rights and the files of its pod, and no others.
    let (hub_pod, command) = Pod::of_deployment(&empty.plane, "berth-hub", "berth-hub");
    let daemon = Running::start(command);
    until("the daemon has published", || empty.fleet.has("refs/berth/clusters/oslo"));
    let (member_pod, command) = Pod::of_deployment(&empty.plane, "berth-system", "berth-fleet");
    let syncer = Running::start(command);
    let synced = || {
        empty.kubectl(&["get", "configmap", "web", "-n", "shop", "-o", "jsonpath={.data.value}"]).out == "one"
    };
    eventually("the folder is synced", || synced().then_some(()));
    eventually("the report arrives", || empty.fleet.has("refs/berth/status/oslo").then_some(()));
    for pod in [&hub_pod, &member_pod] {
        until("both are ready", || pod.answers("/readyz"));
        assert!(pod.answers("/healthz"));
    }
    for log in [daemon.log(), syncer.log()] {
        assert!(!log.contains("ERROR") && !log.contains("forbidden"), "{log}");
    }

    // A second run changes nothing, and makes no other keys.
    for (args, first) in [(&["hub"][..], &hub), (&["member", "oslo"], &member)] {
        let again = empty.install(args).expect(0);
        let objects = again.out.lines().take_while(|line| !line.is_empty());
        assert!(objects.clone().count() > 5, "{}", again.out);
        assert!(objects.clone().all(|line| line.starts_with("unchanged  ")), "{}", again.out);
        assert_eq!(key_of(&again), key_of(first));
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn of_two_pods_of_a_hub_one_publishes_with_no_more_rights_than_it_was_given() {
    let Some(empty) = Empty::new() else { return };
    let [hub, _, pushed] = three_commands();
    let hub = empty.shell(&hub.replace("--apply", "--standby --apply")).expect(0);
    empty.server.allow(key_of(&hub));
    empty.shell(&pushed).expect(0);
    let start = || {
        let (pod, command) = Pod::of_deployment(&empty.plane, "berth-hub", "berth-hub");
        (pod, Running::start(command))
    };
    let (_first_pod, first) = start();
    until("the daemon has published", || empty.fleet.has("refs/berth/clusters/oslo"));
    let (pod, second) = start();
    until("the other one waits", || second.log().contains("another daemon holds the lease"));
    until("it is ready", || pod.answers("/readyz"));
    drop(first);
    until("it has taken over", || second.log().contains("holding the lease"));
    assert!(!second.log().contains("ERROR") && !second.log().contains("forbidden"), "{}", second.log());
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_restricted_profile_admits_the_pods_and_would_refuse_others() {
    let Some(empty) = Empty::new() else { return };
    empty.install(&["hub", "--events", "--standby"]).expect(0);
    empty.install(&["member", "oslo", "--kinds", "configmaps"]).expect(0);
    for (namespace, name) in [("berth-hub", "berth-hub"), ("berth-system", "berth-fleet")] {
        let pod = pod_of(&empty.get("deployment", name, namespace));
        empty.tries(&pod).expect(0);
        for (place, value) in [
            ("/spec/securityContext/runAsNonRoot", json!(false)),
            ("/spec/securityContext/seccompProfile/type", json!("Unconfined")),
            ("/spec/containers/0/securityContext/allowPrivilegeEscalation", json!(true)),
            ("/spec/containers/0/securityContext/capabilities/drop", json!([])),
        ] {
            let mut worse = pod.clone();
            *worse.pointer_mut(place).expect(place) = value;
            let ran = empty.tries(&worse);
            assert!(ran.err.contains("violates PodSecurity \"restricted:latest\""), "{place}: {}", ran.err);
        }
    }
    // What each account may do, as the server decides it.
    for (account, verb, resource, namespace, may) in [
        ("berth-hub:berth-hub", "create", "events.events.k8s.io", "berth-hub", "yes"),
        ("berth-hub:berth-hub", "get", "deployments.apps/berth-hub", "berth-hub", "yes"),
        ("berth-hub:berth-hub", "get", "deployments.apps/other", "berth-hub", "no"),
        ("berth-hub:berth-hub", "update", "leases.coordination.k8s.io/berth-hub", "berth-hub", "yes"),
        ("berth-hub:berth-hub", "create", "leases.coordination.k8s.io", "berth-hub", "yes"),
        ("berth-hub:berth-hub", "update", "leases.coordination.k8s.io/other", "berth-hub", "no"),
        ("berth-hub:berth-hub", "get", "secrets", "berth-hub", "no"),
        ("berth-hub:berth-hub", "create", "events.events.k8s.io", "default", "no"),
        ("berth-system:berth-fleet", "patch", "configmaps", "default", "yes"),
        ("berth-system:berth-fleet", "get", "secrets", "berth-system", "no"),
        ("berth-system:berth-fleet", "get", "secrets", "default", "no"),
        ("berth-system:berth-fleet", "escalate", "clusterroles.rbac.authorization.k8s.io", "default", "no"),
    ] {
        let account = format!("--as=system:serviceaccount:{account}");
        let ran = empty.kubectl(&["auth", "can-i", verb, resource, "-n", namespace, &account]);
        assert_eq!(ran.out.trim(), may, "{account} {verb} {resource} in {namespace}: {}", ran.err);
    }
}

/// The blocks of docs/install.md after the three commands that need nothing but a cluster and a shell, with values in
/// place of what they leave open.
fn further_blocks() -> Vec<String> {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/install.md")).expect("a page");
    let blocks = page.split("```sh\n").skip(2).filter_map(|rest| rest.split("```").next());
    let blocks = blocks.filter(|block| block.contains(" --apply\n"));
    let usual = "--remote $R --image $I --deploy-key --known-hosts $K";
    blocks.map(|block| block.replace('…', usual).replace("=FILE", "=webhook-secret")).collect()
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_further_commands_of_the_page_are_accepted_by_a_cluster() {
    let Some(empty) = Empty::new() else { return };
    let [hub, member, _] = three_commands();
    empty.shell(&format!("{hub}\n{member}\necho '{{}}' > config.json")).expect(0);
    let mut blocks = further_blocks();
    assert_eq!(blocks.len(), 4, "{blocks:?}");
    // The last one makes the keys that another one names.
    blocks.rotate_right(1);
    for block in blocks {
        // One of them makes it anew.
        empty.kubectl(&["delete", "secret", "berth-git", "-n", "berth-hub"]).expect(0);
        empty.shell(&format!("set -e\n{block}")).expect(0);
    }
    let hub = empty.get("deployment", "berth-hub", "berth-hub").to_string();
    assert!(hub.contains("/etc/berth/git/token"), "{hub}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn fields_of_other_managers_are_taken_over_only_where_that_is_asked_for() {
    let Some(empty) = Empty::new() else { return };
    let install = |more: &[&str]| {
        let args = [
            "install",
            "member",
            "oslo",
            "--cluster-role",
            "edit",
            "--remote",
            "https://git.example.com/a.git",
        ];
        empty.berth(&[&args[..], &["--image", IMAGE, "--apply"], more].concat())
    };
    let ran = install(&[]).expect(0);
    assert!(
        ran.err.contains("kubectl create secret generic berth-git -n berth-system --from-file=token=FILE"),
        "{}",
        ran.err
    );
    let bound = empty.get("clusterrolebinding", "berth-fleet-objects", "default");
    assert_eq!(bound["roleRef"]["name"], "edit");
    let scale = ["scale", "deployment", "berth-fleet", "-n", "berth-system", "--replicas=3"];
    empty.kubectl(&scale).expect(0);
    let ran = install(&[]).expect(6);
    assert!(
        ran.err.contains("Deployment.apps berth-system/berth-fleet: other managers own fields of it"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains(".spec.replicas") && ran.err.contains("--force-conflicts"), "{}", ran.err);
    let ran = install(&["--force-conflicts"]).expect(0);
    assert!(ran.out.contains("configured Deployment.apps berth-system/berth-fleet\n"), "{}", ran.out);
    assert_eq!(empty.get("deployment", "berth-fleet", "berth-system")["spec"]["replicas"], 2);

    // A Secret of somebody else is neither replaced nor passed over.
    let ssh = ["--remote", "git@git.example.com:a.git", "--deploy-key", "--known-hosts"];
    let hosts = empty.server.known_hosts();
    let secret =
        ["create", "secret", "generic", "mine", "-n", "berth-system", "--from-literal=token=hunter2"];
    empty.kubectl(&secret).expect(0);
    let args = [
        "install",
        "member",
        "oslo",
        "--kinds",
        "configmaps",
        "--image",
        IMAGE,
        "--apply",
        "--git-secret",
        "mine",
    ];
    let ran = empty.berth(&[&args[..], &ssh, &[&hosts]].concat()).expect(2);
    assert!(ran.err.contains("the Secret berth-system/mine has no `key`"), "{}", ran.err);
    assert!(!ran.err.contains("hunter2"));
}

#[test]
#[ignore = "needs Kubernetes"]
fn rights_that_are_no_longer_asked_for_are_taken_back() {
    let Some(empty) = Empty::new() else { return };
    let member = |more: &[&str]| {
        let args =
            ["install", "member", "oslo", "--remote", "https://git.example.com/a.git", "--image", IMAGE];
        empty.berth(&[&args[..], &["--apply"], more].concat()).expect(0).out
    };
    let binding = "berth-fleet-objects";
    member(&["--cluster-role", "cluster-admin"]);
    // A role of a binding cannot be changed: the binding is made anew.
    let out = member(&["--cluster-role", "edit"]);
    assert!(
        out.contains("created    ClusterRoleBinding.rbac.authorization.k8s.io berth-fleet-objects\n"),
        "{out}"
    );
    assert_eq!(empty.get("clusterrolebinding", binding, "default")["roleRef"]["name"], "edit");
    let out = member(&["--kinds", "configmaps", "--no-network-policy"]);
    for gone in [
        "ClusterRoleBinding.rbac.authorization.k8s.io berth-fleet-objects",
        "NetworkPolicy.networking.k8s.io berth-system/berth-fleet",
    ] {
        assert!(out.contains(&format!("removed    {gone}\n")), "{gone}\n{out}");
    }
    empty.kubectl(&["get", "clusterrolebinding", binding]).expect(1);
    assert!(!member(&["--kinds", "configmaps", "--no-network-policy"]).contains("removed"));

    // What others made under such a name stays.
    empty.kubectl(&["create", "clusterrolebinding", binding, "--clusterrole=view", "--user=ann"]).expect(0);
    assert!(!member(&["--kinds", "configmaps"]).contains("removed"));
    empty.kubectl(&["get", "clusterrolebinding", binding]).expect(0);

    let hub = |more: &[&str]| {
        let args =
            ["install", "hub", "--remote", "https://git.example.com/a.git", "--image", IMAGE, "--apply"];
        empty.berth(&[&args[..], more].concat()).expect(0).out
    };
    hub(&["--events"]);
    let out = hub(&[]);
    assert!(out.contains("removed    RoleBinding.rbac.authorization.k8s.io berth-hub/berth-hub\n"), "{out}");
    let account = "--as=system:serviceaccount:berth-hub:berth-hub";
    let may =
        empty.kubectl(&["auth", "can-i", "get", "deployments.apps/berth-hub", "-n", "berth-hub", account]);
    assert_eq!(may.out.trim(), "no");
}

/// Runs `berth install hub` into a folder or onto stdout, without a cluster.
fn hub(more: &[&str]) -> Ran {
    run(&[&["install", "hub", "--image", IMAGE], more].concat())
}

#[test]
fn a_key_in_a_folder_is_for_its_owner_alone_and_stays_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = folder.path().join("known_hosts");
    std::fs::write(&hosts, "git.example.com ssh-ed25519 AAAA\n").expect("a file");
    let dir = folder.path().join("hub");
    let flags = ["--remote", "git@git.example.com:team/fleet.git", "--deploy-key", "--known-hosts"];
    let flags = [&flags[..], &[hosts.to_str().expect("text"), "--dir"]].concat();
    let write = |more: &[&str]| hub(&[&flags[..], &[dir.to_str().expect("text")], more].concat());

    let first = write(&[]).expect(0);
    assert!(first.out.contains("with the right to write: the daemon publishes"), "{}", first.out);
    let file = dir.join("deploy-key.yaml");
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(text.contains("BEGIN OPENSSH PRIVATE KEY"));
    assert_eq!(std::fs::read_to_string(dir.join(".gitignore")).expect("a file"), "deploy-key.yaml\n");
    for name in std::fs::read_dir(&dir).expect("a folder").map(|entry| entry.expect("an entry").file_name()) {
        let other = std::fs::read_to_string(dir.join(&name)).expect("a file");
        assert!(name == "deploy-key.yaml" || !other.contains("PRIVATE"), "{name:?}");
    }
    let kustomization = std::fs::read_to_string(dir.join("kustomization.yaml")).expect("a file");
    assert!(
        kustomization.contains("- 3-deployment.yaml") && !kustomization.contains("deploy-key"),
        "{kustomization}"
    );

    let again = write(&[]).expect(0);
    assert_eq!(key_of(&again), key_of(&first));
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), text);
    assert!(!format!("{first:?}{again:?}").contains("PRIVATE"));

    // The key of another installation is neither used nor lost.
    let ran = write(&["--namespace", "other"]).expect(2);
    assert!(ran.err.contains("does not hold the key of this installation"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), text);
    let ran = hub(&[&flags[..], &["-"]].concat()).expect(2);
    assert!(
        ran.out.is_empty() && ran.err.contains("--deploy-key makes a private key, which is not printed"),
        "{}",
        ran.err
    );
}

#[test]
fn flags_that_cannot_work_are_refused_with_what_would_be_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("text").to_owned()
    };
    let (hosts, empty, private) = (
        file("hosts", "git.example.com ssh-ed25519 AAAA\n"),
        file("empty", "# nobody\n"),
        file("private", "-----BEGIN OPENSSH PRIVATE KEY-----\na b c\n"),
    );
    let https = "https://git.example.com/fleet.git";
    let ssh = "git@git.example.com:fleet.git";
    let cases: &[(&[&str], &str)] = &[
        (&[], "give its address, as the cluster reaches it"),
        (&["--remote", "/srv/fleet.git"], "is not an address that a pod can reach"),
        (&["--remote", "https://$(BERTH_TOKEN)@x/y"], "is not an address that a pod can reach"),
        (&["--remote", "http://git.example.com/fleet.git"], "is not encrypted"),
        (&["--remote", "https://bob:hunter2@git.example.com/fleet.git"], "must not hold a password"),
        (
            &["--remote", https, "--image", "Registry example/berth"],
            "write it as `registry.example.com/berth:",
        ),
        (&["--remote", https, "--image", "x\"\n- evil: true"], "is not the name of an image"),
        (&["--remote", https, "--namespace", "Hub"], "use lower-case letters, digits and dashes"),
        (&["--remote", https, "--namespace", "default"], "name one for berth alone"),
        (&["--remote", https, "--namespace", "kube-system"], "name one for berth alone"),
        (&["--remote", https, "--name", "a\nb"], "use lower-case letters, digits and dashes"),
        (&["--remote", https, "--name", &"x".repeat(58)], "is not a valid name"),
        (&["--remote", https, "--git-secret", "a/b"], "is not a valid name"),
        (&["--remote", https, "--source", "a b"], "write it as `main` or `refs/heads/main`"),
        (&["--remote", https, "--egress-port", "0"], "0 is not in 1..=65535"),
        (&["--remote", https, "--egress-port", "65536"], "65536 is not in 1..=65535"),
        (&["--remote", https, "--memory-limit", "1 GB"], "write it as `512Mi` or `2Gi`"),
        (&["--remote", https, "--known-hosts", &hosts], "--known-hosts is for ssh"),
        (&["--remote", https, "--known-hosts", &hosts, "--deploy-key"], "--deploy-key is for ssh"),
        (&["--remote", ssh, "--deploy-key"], "`ssh-keyscan HOST > FILE`"),
        (&["--remote", ssh, "--known-hosts", &empty], "`ssh-keyscan HOST > FILE`"),
        (&["--remote", ssh, "--known-hosts", &private], "names no host"),
        (&["--remote", ssh, "--known-hosts", "/nonexistent"], "reading /nonexistent"),
        (&["--remote", ssh, "--git-secret", ""], "ssh needs a key"),
        (&["--remote", https, "--source-remote", "/srv/a"], "is not an address that a pod can reach"),
        (
            &["--remote", https, "--source-remote", "https://bob:hunter2@a.example/b"],
            "must not hold a password",
        ),
        (&["--remote", https, "--source-remote", ssh], "--source-secret"),
        (&["--remote", https, "--source-remote", ssh, "--source-secret", "a"], "its host must be known"),
        (&["--remote", https, "--source-secret", "a"], "--source-remote"),
        (&["--remote", https, "--otlp-endpoint", "otel:4318"], "write it as `https://host:4318`"),
        (&["--remote", https, "--otlp-endpoint", "https://a:b:c"], "write it as `https://host:4318`"),
        (&["--remote", https, "--otlp-endpoint", "https://bob:hunter2@otel"], "holds a password"),
        (
            &["--remote", https, "--otlp-endpoint", "http://otel", "--otlp-headers-secret", "a"],
            "needs https where headers go along",
        ),
        (&["--remote", https, "--env", "OTEL_EXPORTER_OTLP_HEADERS=a=b"], "must not hold a password"),
        (&["--remote", https, "--env", "BERTH_TOKEN=hunter2"], "must not hold a password"),
        (&["--remote", https, "--env", "BERTH_PROXY=http://bob:hunter2@proxy"], "must not hold a password"),
        (&["--remote", https, "--env", "BERTH_REMOTE=x"], "the other flags set it already"),
        (&["--remote", https, "--env", "berth=x"], "write it as `NAME=VALUE`"),
        (&["--remote", https, "--env", "A=b\n- c"], "write the value on one line"),
        (&["--remote", https, "--allowed-signers", &hosts], "hosts"),
    ];
    for (flags, said) in cases {
        let args = if flags.contains(&"--image") { vec![] } else { vec!["--image", IMAGE] };
        let ran = run(&[&["install", "hub", "--dir", "-"], &args[..], flags].concat());
        assert!([2, 6].contains(&ran.code), "{flags:?}: {}\n{}", ran.code, ran.err);
        assert!(ran.err.contains(said) && !ran.err.contains("hunter2"), "{flags:?}: {said}\n{}", ran.err);
        assert!(ran.out.is_empty(), "{flags:?}");
    }
    let ran = run(&["install", "hub", "--remote", https, "--dir", "-"]).expect(2);
    assert!(ran.err.contains("no image is named"), "{}", ran.err);
    assert!(ran.err.contains("push the image of a release"), "{}", ran.err);
    let member = ["install", "member", "--remote", https, "--image", IMAGE, "--dir", "-"];
    for (flags, said) in [
        (&["os lo", "--kinds", "configmaps"][..], "is not a valid name"),
        (&["oslo", "--kinds", "config maps"], "write it as `configmaps` or `deployments.apps`"),
        (&["oslo", "--kinds", "*"], "write it as `configmaps` or `deployments.apps`"),
        (&["oslo", "--cluster-role", ""], "is not a valid name"),
        (&["oslo", "--cluster-role", "a", "--kinds", "configmaps"], "cannot be used with"),
        (&["oslo", "--cluster-role", "edit", "--fleet", "Ü"], "is not a valid name"),
    ] {
        let ran = run(&[&member[..], flags].concat()).expect(2);
        assert!(ran.err.contains(said), "{flags:?}: {said}\n{}", ran.err);
    }
}

#[test]
fn a_cluster_that_cannot_be_reached_is_told_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("kubeconfig");
    let args = ["--remote", "https://git.example.com/fleet.git", "--apply", "--kubeconfig"];
    let ran = hub(&[&args[..], &[missing.to_str().expect("text")]].concat()).expect(6);
    assert!(ran.err.contains("no kubeconfig can be read from"), "{}", ran.err);
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none());
    let both = ["--remote", "https://git.example.com/fleet.git", "--apply", "--dir", "x"];
    assert!(hub(&both).expect(2).err.contains("cannot be used with"));
    assert!(!Path::new("x").exists());
    let neither = hub(&["--remote", "https://git.example.com/fleet.git"]).expect(2);
    assert!(neither.err.contains("--dir"), "{}", neither.err);
}
