//! A syncer that runs in the cluster it keeps: installed by what `berth install member` writes, with the rights of its
//! own account, with overrides that are kept there, for tenants, and taken out again.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value as Json, json};

use crate::support::kube::ControlPlane;
use crate::support::member::{Member, annotated};
use crate::support::pod::Pod;
use crate::support::wait::until;
use crate::support::{Ran, Repo, berth, cluster, small_fleet};

/// What a member has time for in tests that wait for nothing.
const AT_ONCE: [&str; 2] = ["--health-timeout", "0"];

/// `berth sync` as it runs in the pod.
fn command(pod: &Pod, member: &Member, namespace: &str) -> std::process::Command {
    let mut command = berth();
    pod.set_credentials(&mut command);
    command.args(["sync", "--target", "kube", "--repo", member.repo.arg(), "--cluster", &member.name]);
    command.args(["--fleet", &member.name, "--namespace", namespace]);
    command
}

fn sync(pod: &Pod, member: &Member, namespace: &str, more: &[&str]) -> Ran {
    let mut command = command(pod, member, namespace);
    Ran::of(command.args(["--once"]).args(AT_ONCE).args(more))
}

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut std::process::Command, log: &Path) -> Running {
        let log = std::fs::File::create(log).expect("a file");
        Running(command.stdout(Stdio::null()).stderr(log).spawn().expect("it starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `berth install member`, for a member that is in the inventory already.
fn install(member: &Member, folder: &Path, more: &[&str]) -> Ran {
    let namespace = format!("{}-system", member.name);
    let mut command = berth();
    command.args(["install", "member", &member.name, "--repo", member.repo.arg(), "--fleet", &member.name]);
    command.args(["--dir", folder.to_str().expect("a text path"), "--namespace", &namespace]);
    command.args(["--remote", "https://git.example.com/team/fleet.git", "--image", "example.com/berth:1"]);
    Ran::of(command.args(more))
}

fn enlist(member: &Member) {
    let cluster = format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {}}}\n\
         spec: {{hubAcceptsClient: true}}\n",
        member.name
    );
    member.repo.write("clusters/one.yaml", &cluster);
}

fn token(member: &Member, namespace: &str, account: &str) -> String {
    member.kubectl(&["create", "token", account, "-n", namespace]).trim().to_owned()
}

fn role(member: &Member) -> Json {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "reader", "namespace": member.name, "annotations": {"berth.dev/workload": "F/x/rights"}},
        "rules": [{"apiGroups": [""], "resources": ["endpoints"], "verbs": ["get"]}]})
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_install_writes_is_applied_and_its_account_syncs_the_cluster_with_just_these_rights() {
    let Some(member) = Member::new("installed") else { return };
    enlist(&member);
    member.publish(&[member.config_map("web", "one"), member.deployment("web", "example.com/web:1")]);
    let folder = tempfile::tempdir().expect("a folder");
    let ran = install(&member, folder.path(), &[]).expect(0);
    assert!(ran.err.contains("kubectl create secret generic berth-git -n installed-system"), "{}", ran.err);
    let access = std::fs::read_to_string(folder.path().join("2-access.yaml")).expect("a file");
    assert!(access.contains("- deployments") && !access.contains("secrets"), "{access}");
    member.kubectl(&["apply", "-k", folder.path().to_str().expect("a text path")]);
    // The pods would be admitted by the strictest profile.
    let deployment = member.kubectl(&["get", "deployment", "-n", "installed-system", "-o", "json"]);
    assert!(deployment.contains("\"runAsNonRoot\": true"), "{deployment}");
    until("the syncer's pods are admitted", || {
        member.kubectl(&["get", "pods", "-n", "installed-system", "-o", "name"]).lines().count() == 2
    });

    let pod = Pod::new(&member.plane, &token(&member, "installed-system", "berth-installed"));
    let ran = sync(&pod, &member, "installed-system", &[]).expect(7);
    assert!(ran.out.starts_with("2 writes, 0 removals, 0 unchanged"), "{}\n{}", ran.out, ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains("Deployment.apps installed/web: not healthy in time"), "{}", ran.err);

    // A kind that it has no rights for fails alone, with the right that is missing.
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "installed"}, "stringData": {"password": "hunter2"}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "installed"},
        "spec": {"ports": [{"port": 80}]}});
    member.publish(&[member.config_map("web", "two"), secret, service]);
    let ran = sync(&pod, &member, "installed-system", &[]).expect(7);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "two");
    for said in [
        "Service installed/web: its kind cannot be listed, so it stays unchanged:",
        "cannot list resource \"services\"",
        "Secret installed/key:",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert!(!ran.err.contains("hunter2"), "{}", ran.err);

    // Made again for the new folder, the rights are enough.
    install(&member, folder.path(), &["--no-network-policy"]).expect(0);
    assert!(!folder.path().join("4-network-policy.yaml").exists());
    let access = folder.path().join("2-access.yaml");
    let access = access.to_str().expect("a text path");
    member.kubectl(&["apply", "-f", access]);
    until("the rights are in force", || sync(&pod, &member, "installed-system", &[]).code == 0);
    assert!(member.get("service", "web").is_some() && member.get("secret", "key").is_some());

    // A kind that can not even be listed any more is the only one that suffers.
    install(&member, folder.path(), &["--kinds", "configmaps,secrets"]).expect(0);
    member.kubectl(&["apply", "-f", access]);
    member.publish(&[member.config_map("web", "three")]);
    until("the rights are in force", || {
        sync(&pod, &member, "installed-system", &["--dry-run"]).err.contains("cannot list resource")
    });
    let ran = sync(&pod, &member, "installed-system", &[]).expect(7);
    assert!(ran.err.contains("Service *: the live objects of its kind are unknown"), "{}", ran.err);
    assert!(ran.err.contains("cannot list resource \"services\""), "{}", ran.err);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "three");
    assert!(member.get("service", "web").is_some() && member.get("secret", "key").is_none());
    // With the right back, what was left is found again.
    member.kubectl(&[
        "create",
        "clusterrolebinding",
        "installed-more",
        "--clusterrole=cluster-admin",
        "--serviceaccount=installed-system:berth-installed",
    ]);
    until("what was left is gone", || {
        sync(&pod, &member, "installed-system", &[]).code == 0 && member.get("service", "web").is_none()
    });
    member.kubectl(&["delete", "clusterrolebinding", "installed-more"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn roles_of_a_folder_are_applied_only_where_escalation_was_allowed() {
    let Some(member) = Member::new("escalation") else { return };
    enlist(&member);
    member.publish(&[member.config_map("web", "one"), role(&member)]);
    let folder = tempfile::tempdir().expect("a folder");
    let apply = || {
        member.kubectl(&[
            "apply",
            "-f",
            folder.path().join("1-namespace.yaml").to_str().expect("a text path"),
        ]);
        member.kubectl(&["apply", "-f", folder.path().join("2-access.yaml").to_str().expect("a text path")]);
    };
    let ran = install(&member, folder.path(), &[]).expect(0);
    assert!(ran.err.contains("--allow-escalation allows it"), "{}", ran.err);
    apply();
    let pod = Pod::new(&member.plane, &token(&member, "escalation-system", "berth-escalation"));
    let ran = sync(&pod, &member, "escalation-system", &[]).expect(7);
    assert!(
        ran.err.contains("Role.rbac.authorization.k8s.io escalation/reader: the API server refuses it:"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("attempting to grant RBAC permissions not currently held"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(member.get("configmap", "web").is_some() && member.get("role", "reader").is_none());

    let ran = install(&member, folder.path(), &["--allow-escalation"]).expect(0);
    assert!(ran.err.contains("can become its administrator"), "{}", ran.err);
    apply();
    until("the rights are in force", || sync(&pod, &member, "escalation-system", &[]).code == 0);
    assert!(member.get("role", "reader").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_token_that_is_replaced_while_the_syncer_runs_is_used_at_once() {
    let Some(member) = Member::new("rotation") else { return };
    enlist(&member);
    member.publish(&[member.config_map("web", "one")]);
    let folder = tempfile::tempdir().expect("a folder");
    install(&member, folder.path(), &[]).expect(0);
    for file in ["1-namespace.yaml", "2-access.yaml"] {
        member.kubectl(&["apply", "-f", folder.path().join(file).to_str().expect("a text path")]);
    }
    let good = token(&member, "rotation-system", "berth-rotation");
    let pod = Pod::new(&member.plane, "no.longer.valid");
    let refused = sync(&pod, &member, "rotation-system", &["--no-lease"]).expect(6);
    assert!(refused.err.contains("does not accept the credentials"), "{}", refused.err);
    assert!(!refused.err.contains("no.longer.valid"), "{}", refused.err);

    let log = tempfile::NamedTempFile::new().expect("a file");
    let mut command = command(&pod, &member, "rotation-system");
    command.args(["--interval", "1", "--no-lease"]);
    let running = Running::start(&mut command, log.path());
    until("it was refused", || {
        std::fs::read_to_string(log.path()).expect("a log").contains("does not accept the credentials")
    });
    let replaced = std::time::Instant::now();
    pod.set_token(&good);
    until("it works with the new token", || member.get("configmap", "web").is_some());
    // A client that only reads its file once a minute would have gone on with the old one.
    assert!(replaced.elapsed() < std::time::Duration::from_secs(45));
    drop(running);
}

#[test]
fn manifests_are_the_same_each_time_and_only_berths_own_files_are_replaced() {
    let member = Fleet::new();
    let folder = tempfile::tempdir().expect("a folder");
    let read = || FILES.map(|name| std::fs::read(folder.path().join(name)).expect(name));
    member.install(folder.path(), &["--kinds", "deployments,boats.example.com"]).expect(0);
    let first = read();
    member.install(folder.path(), &["--kinds", "boats.example.com,deployments"]).expect(0);
    assert_eq!(first, read());
    let printed = member.install(Path::new("-"), &["--kinds", "deployments,boats.example.com"]).expect(0);
    assert!(printed.out.starts_with("# Made by berth install\n"), "{}", printed.out);
    assert!(printed.out.ends_with(std::str::from_utf8(&first[3]).expect("text")), "{}", printed.out);

    std::fs::write(folder.path().join("2-access.yaml"), "mine\n").expect("a file");
    let ran = member.install(folder.path(), &[]).expect(2);
    assert!(ran.err.contains("2-access.yaml already exists"), "{}", ran.err);
    assert_eq!(std::fs::read(folder.path().join("2-access.yaml")).expect("a file"), b"mine\n");
}

#[test]
fn a_new_member_gets_rights_for_the_kinds_that_it_will_get() {
    let fleet = Fleet::new();
    fleet.run(&["join", "turin", "--dialect", "ocm"]).expect(0);
    let known_hosts = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(known_hosts.path(), "git.example.com ssh-ed25519 AAAA\n").expect("a file");
    let args = ["install", "member", "turin", "--dir", "-", "--remote", "git@git.example.com:team/fleet.git"];
    let image =
        ["--image", "example.com/berth:1", "--known-hosts", known_hosts.path().to_str().expect("text")];
    let ran = fleet.run(&[&args[..], &image].concat()).expect(0);
    for said in ["- configmaps\n", "BERTH_SSH_KEY", "git@git.example.com:team/fleet.git", "ssh-ed25519 AAAA"]
    {
        assert!(ran.out.contains(said), "{said}\n{}", ran.out);
    }
    let ran = fleet.run(&[&["install", "member", "milan"], &args[3..], &image].concat()).expect(2);
    assert!(ran.err.contains("no cluster `milan` in this fleet"), "{}", ran.err);
    assert!(ran.err.contains("`berth join milan`"), "{}", ran.err);
}

const FILES: [&str; 5] =
    ["1-namespace.yaml", "2-access.yaml", "3-deployment.yaml", "4-network-policy.yaml", "kustomization.yaml"];

/// A fleet with a cluster `oslo` and a config map for every cluster.
struct Fleet {
    repo: Repo,
}

impl Fleet {
    fn new() -> Fleet {
        let repo = small_fleet();
        repo.write("clusters/oslo.yaml", cluster("oslo", &[]));
        Fleet { repo }
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(berth().args(args).args(["--repo", self.repo.arg()]))
    }

    fn install(&self, folder: &Path, more: &[&str]) -> Ran {
        let dir = ["--dir", folder.to_str().expect("a text path"), "--image", "example.com/berth:1"];
        let remote = ["--remote", "https://git.example.com/team/fleet.git"];
        self.run(&[&["install", "member", "oslo"][..], &dir, &remote, more].concat())
    }
}

fn overrides(name: &str, label: Option<&str>, text: &str) -> Json {
    let labels = label.map_or(json!({}), |label| json!({label: "true"}));
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "berth-system", "labels": labels},
        "data": {"overrides.yaml": text}})
}

fn document(target: &str, patch: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: LocalOverrides\noverrides:\n- target: {target}\n  patches:\n  - {patch}\n"
    )
}

#[test]
#[ignore = "needs Kubernetes"]
fn overrides_from_the_cluster_apply_last_in_the_order_of_their_names_and_a_failing_one_blocks_its_object_alone()
 {
    let Some(member) = Member::new("local") else { return };
    member.publish(&[
        member.config_map("web", "git"),
        member.config_map("other", "git"),
        member.deployment("web", "x:1"),
    ]);
    member.sync(&AT_ONCE).expect(7);
    let label = "local.example.com/overrides";
    let all = "{kind: ConfigMap, name: web, labelSelector: {matchExpressions: [{key: never, operator: DoesNotExist}]}}";
    member.kubectl_apply(
        &overrides("local-b", Some(label), &document(all, "{op: replace, path: /data/key, value: second}")),
        &[],
    );
    member.kubectl_apply(
        &overrides("local-a", Some(label), &document(all, "{op: replace, path: /data/key, value: first}")),
        &[],
    );
    let broken =
        document("{kind: Deployment, group: apps}", "{op: replace, path: /spec/nowhere/x, value: 1}");
    member.kubectl_apply(&overrides("local-c", None, &broken), &[]);
    let sources = [
        "--overrides-from",
        "configmaps/local.example.com/overrides=true",
        "--overrides-from",
        "configmap/local-c",
    ];
    let sources = [&sources[..], &AT_ONCE].concat();

    let ran = member.sync(&[&sources[..], &["--dry-run"]].concat()).expect(7);
    for said in [
        "ConfigMap local/web: changed by a local override, at ConfigMap berth-system/local-a/overrides.yaml:4:3",
        "ConfigMap local/web: changed by a local override, at ConfigMap berth-system/local-b/overrides.yaml:4:3",
        "Deployment.apps local/web: the local override at ConfigMap \
         berth-system/local-c/overrides.yaml:6:5 cannot be applied",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert!(ran.out.contains("+  key: second"), "{}", ran.out);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "git");

    let ran = member.sync(&sources).expect(7);
    assert!(ran.out.starts_with("1 write, 0 removals, 1 unchanged"), "{}", ran.out);
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "second");
    assert_eq!(member.get("configmap", "other").expect("it")["data"]["key"], "git");
    assert!(member.get("deployment", "web").is_some());

    // Without the override, the object is as Git has it again.
    for name in ["local-a", "local-b", "local-c"] {
        member.kubectl(&["delete", "configmap", name, "-n", "berth-system"]);
    }
    let ran = member.sync(&sources).expect(7);
    assert!(
        ran.err.contains(
            "ConfigMap berth-system/local-c: it does not exist; none of its overrides is in \
                          effect"
        ),
        "{}",
        ran.err
    );
    assert_eq!(member.get("configmap", "web").expect("it")["data"]["key"], "git");
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_an_override_from_a_secret_holds_is_never_shown() {
    let Some(member) = Member::new("sealed") else { return };
    member.publish(&[member.config_map("web", "git"), member.deployment("web", "x:1")]);
    let patches = document("{kind: ConfigMap}", "{op: add, path: /data/password, value: hunter2}");
    // A value that the server refuses, and would quote.
    let refused = document("{kind: Deployment}", "{op: replace, path: /spec/replicas, value: hunter2}");
    // What is no override at all, with a value in it.
    let faulty = "apiVersion: berth.dev/v1alpha1\nkind: hunter2\n";
    for (name, text) in [("sealed-a", patches.as_str()), ("sealed-b", &refused), ("sealed-c", faulty)] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "berth-system"},
            "stringData": {"overrides.yaml": text}});
        member.kubectl_apply(&secret, &[]);
    }
    let sources =
        ["--overrides-from", "secret/sealed-a,secret/sealed-b,secret/sealed-c", "--health-timeout", "0"];
    let dry = member.sync(&[&sources[..], &["--dry-run"]].concat()).expect(7);
    let ran = member.sync(&sources).expect(7);
    for said in [
        "Secret berth-system/sealed-c: it cannot be used: `overrides.yaml` has a fault at 2:",
        "Deployment.apps sealed/web: the API server refuses it:",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert!(
        dry.err.contains(
            "ConfigMap sealed/web: changed by a local override, at Secret berth-system/sealed-a/overrides.yaml:4:3; the change is not shown"
        ),
        "{}",
        dry.err
    );
    let status = member.repo.git(&["cat-file", "-p", "refs/berth/status/sealed:status.yaml"]);
    for text in [&dry.out, &dry.err, &ran.out, &ran.err, &status] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert_eq!(
        member.get("configmap", "web").expect("it")["data"],
        json!({"key": "git", "password": "hunter2"})
    );
    for name in ["sealed-a", "sealed-b", "sealed-c"] {
        member.kubectl(&["delete", "secret", name, "-n", "berth-system"]);
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_running_syncer_notices_changed_overrides_and_keeps_the_last_good_ones() {
    let Some(member) = Member::new("noticed") else { return };
    member.publish(&[member.config_map("web", "git"), member.config_map("other", "git")]);
    member.sync(&[]).expect(0);
    let set = |text: &str| member.kubectl_apply(&overrides("noticed", None, text), &[]);
    let value = |value: &str| {
        document("{kind: ConfigMap, name: web}", &format!("{{op: replace, path: /data/key, value: {value}}}"))
    };
    let is = |value: &str| member.get("configmap", "web").expect("it")["data"]["key"] == value;
    let status = || member.repo.git(&["cat-file", "-p", "refs/berth/status/noticed:status.yaml"]);
    set(&value("one"));
    let log = tempfile::NamedTempFile::new().expect("a file");
    let mut command = berth();
    command.args(["sync", "--target", "kube", "--repo", member.repo.arg(), "--interval", "1"]);
    command.args(["--cluster", "noticed", "--fleet", "noticed", "--overrides-from", "configmap/noticed"]);
    command.args(["--kubeconfig", member.plane.kubeconfig().to_str().expect("a text path")]);
    let running = Running::start(&mut command, log.path());
    until("the first override counts", || is("one"));
    set(&value("two"));
    until("the second override counts", || is("two"));

    set("kind: nonsense\n");
    until("the fault is reported", || status().contains("its last good overrides stay in effect"));
    // The next folder is applied, with the override as it was.
    member.publish(&[member.config_map("web", "new"), member.config_map("other", "new")]);
    until("the next folder is applied", || {
        member.get("configmap", "other").expect("it")["data"]["key"] == "new"
    });
    assert!(is("two"));
    set(&value("three"));
    until("the third override counts", || is("three") && !status().contains("stay in effect"));
    drop(running);
    member.kubectl(&["delete", "configmap", "noticed", "-n", "berth-system"]);
}

/// `berth sync` with something typed into it.
fn typed(member: &Member, args: &[&str], line: &str) -> Ran {
    use std::io::Write as _;
    let mut command = berth();
    command.args(["sync", "--target", "kube", "--cluster", &member.name, "--fleet", &member.name]);
    command
        .args([
            "--context",
            ControlPlane::CONTEXT,
            "--kubeconfig",
            member.plane.kubeconfig().to_str().expect("a text path"),
        ])
        .args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(line.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_is_torn_down_in_the_opposite_order_by_whoever_types_its_name() {
    let Some(member) = Member::new("tornapart") else { return };
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tornapart-there"}});
    let keep = annotated(member.config_map("keep", "one"), "berth.dev/prune", "disabled");
    let orphan = annotated(member.config_map("orphan", "one"), "berth.dev/orphan", "true");
    let first = [space, keep, orphan, role(&member), member.config_map("web", "one")];
    member.publish(&[&first[..], &[member.deployment("web", "example.com/web:1")]].concat());
    member.kubectl(&["create", "configmap", "foreign", "-n", "tornapart"]);
    member.sync(&AT_ONCE).expect(7);
    let there = |kind: &str, name: &str| member.get(kind, name).is_some();

    // Whoever looks only, or types another name, changes nothing.
    let ran = typed(&member, &["--teardown", "--dry-run"], "").expect(5);
    assert!(ran.out.starts_with("would make 0 writes, 3 removals"), "{}", ran.out);
    let ran = typed(&member, &["--teardown"], "oslo\n").expect(2);
    assert!(ran.err.contains("that is not the cluster's name"), "{}", ran.err);
    assert!(there("configmap", "web") && there("deployment", "web"));

    let before = member.requests().len();
    let ran = typed(&member, &["--teardown"], "tornapart\n").expect(5);
    assert!(
        ran.out.contains("keep       Namespace tornapart-there: namespaces, CRDs and volume claims"),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("3 objects removed, 1 let go"), "{}", ran.err);
    for (kind, name) in [("configmap", "web"), ("deployment", "web"), ("role", "reader")] {
        assert!(!there(kind, name), "{kind} {name}");
    }
    for name in ["keep", "orphan", "foreign"] {
        assert!(there("configmap", name), "{name}");
    }
    let orphan = member.get("configmap", "orphan").expect("it stays");
    assert_eq!(orphan["metadata"]["labels"]["applyset.kubernetes.io/part-of"], Json::Null);
    until("the log has all removals", || {
        member.requests().iter().skip(before).filter(|(verb, _)| verb == "delete").count() >= 3
    });
    let removals: Vec<String> = member
        .requests()
        .split_off(before)
        .into_iter()
        .filter(|(verb, _)| verb == "delete")
        .map(|(_, resource)| resource)
        .collect();
    assert_eq!(removals, ["deployments", "configmaps", "roles"]);

    // With the approval the rest goes, but for what is never to go: so the record stays.
    // A namespace takes its time to go, and what takes longer than it may is said.
    let ran = typed(&member, &["--teardown", "--yes", "--allow-risky-prune", "--health-timeout", "1"], "");
    assert!(!ran.err.contains("only berth's namespace and its lease are left"), "{}", ran.err);
    let phase = ["get", "namespace", "tornapart-there", "--ignore-not-found", "-ojsonpath={.status.phase}"];
    let phase = member.kubectl(&phase);
    let said = "Namespace tornapart-there: it is being removed";
    assert!(phase.is_empty() || phase == "Terminating" && ran.err.contains(said), "{phase}\n{}", ran.err);
    assert!(there("configmap", "keep"));
    member.kubectl(&["get", "configmap", "berth-tornapart", "-n", "berth-system"]);
    // Another member's name takes nothing.
    let other = Ran::of(
        berth()
            .args([
                "sync",
                "--target",
                "kube",
                "--cluster",
                "other",
                "--fleet",
                "tornapart",
                "--teardown",
                "--yes",
                "--kubeconfig",
            ])
            .arg(member.plane.kubeconfig()),
    );
    assert!(other.code != 0 && other.err.contains("belongs to cluster `tornapart`"), "{}", other.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_teardown_names_what_does_not_go_and_goes_on_with_the_rest() {
    let Some(member) = Member::new("tornheld") else { return };
    let mut held = member.deployment("held", "example.com/web:1");
    held["metadata"]["finalizers"] = json!(["example.com/never"]);
    member.publish(&[held, member.config_map("web", "one")]);
    member.sync(&AT_ONCE).expect(7);
    let ran = typed(&member, &["--teardown", "--yes", "--health-timeout", "2"], "").expect(7);
    assert!(ran.err.contains("Deployment.apps tornheld/held: it is being removed, since"), "{}", ran.err);
    assert!(ran.err.contains("`example.com/never`") && ran.err.contains("1 object removed"), "{}", ran.err);
    assert!(member.get("configmap", "web").is_none());
    let free = r#"{"metadata":{"finalizers":null}}"#;
    member.kubectl(&["patch", "deployment", "held", "-n", "tornheld", "--type=merge", "-p", free]);
    let ran = typed(&member, &["--teardown", "--yes"], "").expect(0);
    assert!(ran.err.contains("only berth's namespace and its lease are left"), "{}", ran.err);
    assert!(
        member
            .kubectl(&["get", "configmap", "berth-tornheld", "-n", "berth-system", "--ignore-not-found"])
            .is_empty()
    );
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_released_stays_as_it_is_and_another_tool_can_own_it() {
    let Some(member) = Member::new("released") else { return };
    let keep = annotated(member.config_map("keep", "one"), "berth.dev/prune", "disabled");
    member.publish(&[member.config_map("web", "one"), keep, member.deployment("web", "example.com/web:1")]);
    member.sync(&AT_ONCE).expect(7);
    let before = member.get("deployment", "web").expect("it");
    typed(&member, &["--release", "--dry-run"], "").expect(0);
    assert_eq!(
        member.get("deployment", "web").expect("it")["metadata"]["labels"],
        before["metadata"]["labels"]
    );
    let ran = typed(&member, &["--release"], "released\n").expect(0);
    assert!(
        ran.err.contains("3 objects let go")
            && ran.err.contains("only berth's namespace and its lease are left"),
        "{}",
        ran.err
    );
    for (kind, name) in [("configmap", "web"), ("configmap", "keep"), ("deployment", "web")] {
        let object = member.get(kind, name).expect("it stays");
        let text = object["metadata"].to_string();
        assert!(
            !text.contains("berth.dev/") && !text.contains("applyset") && !text.contains("berth/released"),
            "{text}"
        );
    }
    let after = member.get("deployment", "web").expect("it");
    assert_eq!((&before["spec"], &before["metadata"]["uid"]), (&after["spec"], &after["metadata"]["uid"]));
    let theirs = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "released"},
        "spec": after["spec"]});
    member.kubectl_apply(&theirs, &["--server-side", "--field-manager=flux"]);
    let third = typed(&member, &["--teardown", "--yes"], "").expect(0);
    assert!(third.err.contains("0 objects removed"), "{}", third.err);
    assert!(member.get("deployment", "web").is_some() && member.get("configmap", "web").is_some());
}

#[test]
fn a_folder_is_torn_down_and_released_as_a_cluster_is() {
    let fleet = small_fleet();
    let out = tempfile::tempdir().expect("a folder");
    let target = format!("dir:{}", out.path().display());
    let sync = |more: &[&str]| {
        Ran::of(
            berth().args(["sync", "--cluster", "a", "--target", &target, "--repo", fleet.arg()]).args(more),
        )
    };
    let web = out.path().join("shop/ConfigMap_web.yaml");
    fleet.commit("all");
    Ran::of(berth().args(["run", "--once", "--repo", fleet.arg()])).expect(0);
    sync(&["--once"]).expect(0);
    std::fs::write(out.path().join("mine.yaml"), "mine\n").expect("a file");
    sync(&["--release", "--yes"]).expect(0);
    assert!(web.is_file() && !out.path().join(".berth/inventory.json").exists());
    std::fs::remove_file(&web).expect("removed");
    std::fs::remove_dir_all(out.path().join("_cluster")).expect("removed");
    sync(&["--once"]).expect(0);
    let ran = sync(&["--teardown", "--yes"]).expect(5);
    assert!(ran.err.contains("1 object removed"), "{}\n{}", ran.out, ran.err);
    assert!(!web.exists() && out.path().join("_cluster/Namespace_shop.yaml").is_file());
    sync(&["--teardown", "--yes", "--allow-risky-prune"]).expect(0);
    assert!(!out.path().join("_cluster/Namespace_shop.yaml").exists());
    assert!(out.path().join("mine.yaml").is_file() && !out.path().join(".berth/inventory.json").exists());
}

#[test]
#[ignore = "needs Kubernetes"]
fn each_tenant_applies_and_removes_with_the_rights_of_its_own_account_and_no_more() {
    let Some(member) = Member::new("tenants") else { return };
    member.kubectl(&["create", "namespace", "tenants-poor"]);
    member.kubectl(&["create", "namespace", "tenants-bare"]);
    let in_namespace = |namespace: &str| {
        let mut object = member.config_map("web", "one");
        object["metadata"]["namespace"] = json!(namespace);
        annotated(object, "berth.dev/workload", &format!("F/{namespace}/app"))
    };
    for namespace in ["tenants", "tenants-poor"] {
        member.kubectl(&["create", "serviceaccount", "deployer", "-n", namespace]);
    }
    let grant = |verbs: &str| {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "deployer", "namespace": "tenants"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs.split(',').collect::<Vec<_>>()}]});
        member.kubectl_apply(&role, &[]);
    };
    grant("create,patch");
    member.kubectl(&[
        "create",
        "rolebinding",
        "deployer",
        "-n",
        "tenants",
        "--role=deployer",
        "--serviceaccount=tenants:deployer",
    ]);
    let admin = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "tenants-admin", "annotations": {"berth.dev/workload": "F/x/admin"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "tenants"}]});
    let wide = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "tenants-new", "annotations": {"berth.dev/workload": "N/x/ns"}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "tenants",
        "annotations": {"berth.dev/workload": "F/x/other"}}, "spec": {"ports": [{"port": 80}]}});
    let all = [
        in_namespace("tenants"),
        member.config_map("old", "one"),
        service,
        in_namespace("tenants-poor"),
        in_namespace("tenants-bare"),
        wide,
    ];
    member.publish(&[&all[..], &[admin]].concat());
    let tenant = ["--tenant-service-account", "deployer", "--health-timeout", "0"];
    until("the rights are in force", || {
        member.sync(&tenant).out.contains("ConfigMap tenants/web") || member.get("configmap", "web").is_some()
    });
    let ran = member.sync(&tenant).expect(7);
    for said in [
        "User \"system:serviceaccount:tenants:deployer\" cannot patch resource \"services\"",
        "User \"system:serviceaccount:tenants-poor:deployer\" cannot patch resource \"configmaps\"",
        "ConfigMap tenants-bare/web: the ServiceAccount tenants-bare/deployer, which would write it, does not exist",
        "ClusterRoleBinding.rbac.authorization.k8s.io tenants-admin: it has no namespace, so no",
        "Namespace tenants-new: it has no namespace, so no tenant's account can write it",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), 5, "{}", ran.err);
    assert!(member.get("configmap", "web").is_some());
    member.publish(&all);
    let ran = member.sync(&[&tenant[..], &["--tenant-cluster-scoped"]].concat()).expect(7);
    assert!(ran.out.contains("create     Namespace tenants-new"), "{}", ran.out);
    assert_eq!(ran.err.lines().count(), 3, "{}", ran.err);
    // Every write to the namespace was made by its account.
    let text =
        |event: &Json, at: &str| event.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
    let events = member.plane.requests().into_iter().filter(|event| {
        text(event, "/userAgent").starts_with("berth/")
            && text(event, "/objectRef/namespace") == "tenants"
            && text(event, "/objectRef/resource") != "events"
            && ["patch", "delete", "create", "update"].contains(&text(event, "/verb").as_str())
    });
    let users: std::collections::BTreeSet<String> =
        events.map(|event| text(&event, "/impersonatedUser/username")).collect();
    assert_eq!(Vec::from_iter(users), ["system:serviceaccount:tenants:deployer"]);

    // The right to remove is another one, and is missed alone.
    member.publish(&[in_namespace("tenants")]);
    let ran = member.sync(&tenant).expect(7);
    assert!(
        ran.err.contains("ConfigMap tenants/old: cannot be removed: the API server refuses it:"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("cannot delete resource \"configmaps\""), "{}", ran.err);
    grant("create,patch,delete");
    until("what is unwanted goes", || {
        member.sync(&tenant);
        member.get("configmap", "old").is_none()
    });

    // An account that is gone takes nothing along, although its rights are still written down.
    member.kubectl(&["delete", "serviceaccount", "deployer", "-n", "tenants"]);
    member.publish(&[in_namespace("tenants-bare")]);
    let ran = member.sync(&tenant).expect(7);
    assert!(
        ran.err.contains(
            "ConfigMap tenants/web: cannot be removed: the ServiceAccount tenants/deployer, which would write it, does not exist"
        ),
        "{}",
        ran.err
    );
    assert!(member.get("configmap", "web").is_some());
    member.kubectl(&["delete", "namespace", "tenants-poor", "tenants-bare", "tenants-new", "--wait=false"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_installed_syncer_needs_no_rights_of_its_own_where_tenants_have_them() {
    let Some(member) = Member::new("acting") else { return };
    enlist(&member);
    member.publish(&[member.config_map("web", "one")]);
    let folder = tempfile::tempdir().expect("a folder");
    let ran = install(&member, folder.path(), &["--tenant-service-account", "deployer"]).expect(0);
    assert!(ran.err.contains("The syncer itself only reads"), "{}", ran.err);
    for file in ["1-namespace.yaml", "2-access.yaml"] {
        member.kubectl(&["apply", "-f", folder.path().join(file).to_str().expect("a text path")]);
    }
    member.kubectl(&["create", "serviceaccount", "deployer", "-n", "acting"]);
    let role =
        ["create", "role", "deployer", "-n", "acting", "--resource=configmaps", "--verb=create,patch,delete"];
    member.kubectl(&role);
    member.kubectl(&[
        "create",
        "rolebinding",
        "deployer",
        "-n",
        "acting",
        "--role=deployer",
        "--serviceaccount=acting:deployer",
    ]);
    let pod = Pod::new(&member.plane, &token(&member, "acting-system", "berth-acting"));
    until("the rights are in force", || {
        sync(&pod, &member, "acting-system", &["--tenant-service-account", "deployer"]).code == 0
    });
    assert!(member.get("configmap", "web").is_some());
    // Without acting as the tenant it can do nothing there.
    member.publish(&[member.config_map("web", "two")]);
    let ran = sync(&pod, &member, "acting-system", &[]).expect(7);
    assert!(
        ran.err.contains("User \"system:serviceaccount:acting-system:berth-acting\" cannot patch"),
        "{}",
        ran.err
    );
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_token_file_that_ends_in_a_newline_is_read_as_kubectl_reads_it() {
    let Some(member) = Member::new("newline") else { return };
    member.kubectl(&["create", "serviceaccount", "syncer", "-n", "newline"]);
    let account = "--serviceaccount=newline:syncer";
    member.kubectl(&[
        "create",
        "clusterrolebinding",
        "newline-syncer",
        "--clusterrole=cluster-admin",
        account,
    ]);
    member.publish(&[member.config_map("web", "one")]);
    let pod = Pod::new(&member.plane, &format!("{}\n", token(&member, "newline", "syncer")));
    sync(&pod, &member, "berth-system", &[]).expect(0);

    // The same in a kubeconfig, with a token that is replaced by another one later.
    let view = member.kubectl(&["config", "view", "--raw", "--flatten", "-o", "json"]);
    let mut view: Json = serde_json::from_str(&view).expect("JSON");
    view["users"][0]["user"] = json!({ "tokenFile": pod.token() });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), view.to_string()).expect("a file");
    let kubeconfig = file.path().to_str().expect("a text path");
    let running = member.keep_in_sync(&["--kubeconfig", kubeconfig]);
    running.until_applied(1);
    member.kubectl(&["delete", "serviceaccount", "syncer", "-n", "newline"]);
    member.kubectl(&["create", "serviceaccount", "syncer", "-n", "newline"]);
    pod.set_token(&format!("{}\n", token(&member, "newline", "syncer")));
    member.publish(&[member.config_map("web", "two")]);
    running.until_applied(2);
    member.kubectl(&["delete", "clusterrolebinding", "newline-syncer"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_first_sync_asks_for_no_list_that_its_rights_do_not_allow() {
    let Some(member) = Member::new("modest") else { return };
    enlist(&member);
    member.publish(&[member.config_map("web", "one"), member.deployment("web", "example.com/web:1")]);
    let folder = tempfile::tempdir().expect("a folder");
    install(&member, folder.path(), &[]).expect(0);
    for file in ["1-namespace.yaml", "2-access.yaml"] {
        member.kubectl(&["apply", "-f", folder.path().join(file).to_str().expect("a text path")]);
    }
    let pod = Pod::new(&member.plane, &token(&member, "modest-system", "berth-modest"));
    let ran = sync(&pod, &member, "modest-system", &[]);
    assert!(member.get("configmap", "web").is_some(), "{}", ran.err);
    let refused: Vec<String> = member
        .plane
        .requests()
        .iter()
        .filter(|event| event["user"]["username"] == "system:serviceaccount:modest-system:berth-modest")
        .filter(|event| event["verb"] == "list" && event["responseStatus"]["code"] == 403)
        .map(|event| event["requestURI"].to_string())
        .collect();
    assert!(refused.is_empty(), "{} refused: {refused:?}", refused.len());
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_a_namespace_or_a_definition_takes_along_is_named_before_it_goes() {
    let Some(member) = Member::new("along") else { return };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "along-new"}});
    let ours = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ours", "namespace": "along-new"}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rafts.along.example.com"}, "spec": {"group": "along.example.com",
        "scope": "Namespaced", "names": {"kind": "Raft", "plural": "rafts", "singular": "raft"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    member.publish(&[namespace, ours, definition]);
    member.sync(&[]).expect(0);
    member.kubectl(&[
        "create",
        "secret",
        "generic",
        "theirs",
        "-n",
        "along-new",
        "--from-literal=word=hunter2",
    ]);
    let raft = json!({"apiVersion": "along.example.com/v1", "kind": "Raft",
        "metadata": {"name": "kontiki", "namespace": "along"}});
    member.kubectl_apply(&raft, &[]);

    let says = |ran: &Ran| {
        for said in [
            "Namespace along-new: also removes 1 object that berth does not own: Secret along-new/theirs",
            "rafts.along.example.com: also removes 1 object that berth does not own: Raft.along.example.com along/kontiki",
        ] {
            assert!(ran.err.contains(said), "{said}:\n{}", ran.err);
        }
        assert!(!ran.err.contains("hunter2") && !ran.err.contains("along-new/ours"), "{}", ran.err);
    };
    says(&typed(&member, &["--teardown", "--dry-run", "--allow-risky-prune"], "").expect(0));
    says(&typed(&member, &["--teardown", "--dry-run"], "").expect(5));
    // And where an approval lets them go.
    let definition = "_cluster/CustomResourceDefinition.apiextensions.k8s.io_rafts.along.example.com.yaml";
    member.publish_with(&[], &["_cluster/Namespace_along-new.yaml", definition]);
    says(&member.sync(&["--dry-run"]).expect(0));
    member.sync(&[]);
}
