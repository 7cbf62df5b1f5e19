//! Decisions and clusters in a hub cluster, with the published CRDs on a real API server: `berth run
//! --publish-decisions` and `--publish-profiles`, and the ClusterProperties that members report.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use crate::alerts;
use crate::doctor::Told;
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::pod::Pod;
use crate::support::programs::{made, skipped};
use crate::support::wait::eventually;
use crate::support::{Ran, Repo, berth, fleet_member, run, ungated};

const SIG: &str = "placementdecisions.multicluster.x-k8s.io";
const OCM: &str = "placementdecisions.cluster.open-cluster-management.io";
const PROFILES: &str = "clusterprofiles.multicluster.x-k8s.io";

/// A hub with the CRDs of both systems. `None`: something is missing, and the test is skipped.
fn hub() -> Option<ControlPlane> {
    let folder = match made(&["ready", "sig-apis"], "sig_apis") {
        Ok(folder) => folder,
        Err(why) => {
            skipped("the published CRDs", &why);
            return None;
        }
    };
    let hub = ControlPlane::start(Wanted::SERVER_ONLY)?;
    kubectl(&hub, &["apply", "--server-side", "-f", folder.to_str().expect("text")]);
    kubectl(&hub, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    Some(hub)
}

#[track_caller]
fn kubectl(hub: &ControlPlane, args: &[&str]) -> String {
    Ran::of(hub.kubectl().args(args)).expect(0).out
}

fn make(hub: &ControlPlane, object: &Json) {
    let mut kubectl = hub.kubectl();
    let mut child = kubectl.args(["create", "-f", "-"]).stdin(Stdio::piped()).spawn().expect("kubectl");
    child.stdin.take().expect("a pipe").write_all(object.to_string().as_bytes()).expect("an object");
    assert!(child.wait().expect("an end").success());
}

fn list(hub: &ControlPlane, kind: &str) -> Vec<Json> {
    let listed = kubectl(hub, &["get", kind, "--all-namespaces", "-o", "json"]);
    let listed: Json = serde_json::from_str(&listed).expect("JSON");
    listed["items"].as_array().expect("items").clone()
}

/// The versions of objects by kind, namespace and name.
fn versions(hub: &ControlPlane) -> BTreeMap<String, String> {
    let all = [SIG, OCM, PROFILES].map(|kind| list(hub, kind)).concat();
    let version = |object: &Json| {
        let metadata = &object["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        let group = object["apiVersion"].as_str().unwrap_or_default();
        (format!("{group} {}/{}", text("namespace"), text("name")), text("resourceVersion"))
    };
    all.iter().map(version).collect()
}

/// The names of what differs between two looks.
fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names = before.keys().chain(after.keys());
    let mut names: Vec<String> =
        names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect();
    names.sort();
    names.dedup();
    names
}

const PLACEMENT: &str = "\
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop, selectionScope: NamespaceOnly}]
  policy:
    placementType: PickAll
    affinity:
      clusterAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]
";

fn fleet_of(count: usize) -> Repo {
    let repo = Repo::new();
    for number in 0..count {
        let name = format!("c{number:03}");
        repo.write(&format!("clusters/{name}.yaml"), fleet_member(&name, "prod"));
    }
    repo.write("shop.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    repo.write("web.yaml", PLACEMENT);
    repo.commit("a fleet");
    repo
}

fn publish(repo: &Repo, kubeconfig: &Path, more: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["run", "--once", "--repo", repo.arg(), "--publish-decisions", "kube"]);
    command.args(["--publish-profiles", "kube", "--kubeconfig"]).arg(kubeconfig).args(more);
    Ran::of(ungated(&mut command))
}

/// The clusters of each slice, by name.
fn slices(hub: &ControlPlane) -> BTreeMap<String, usize> {
    let count = |object: &Json| {
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        (name, object["decisions"].as_array().expect("a list").len())
    };
    list(hub, SIG).iter().map(count).collect()
}

#[test]
#[ignore = "needs definitions of others"]
fn an_installed_daemon_writes_to_its_cluster_with_the_rights_that_it_was_given_and_no_others() {
    let Some(hub) = hub() else { return };
    let repo = fleet_of(3);
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().to_str().expect("a text path");
    let install = |more: &[&str]| {
        let remote = "https://git.example.com/team/fleet.git";
        let all = ["install", "hub", "--remote", remote, "--image", "example.com/berth:1"];
        run(&[&all[..], more].concat()).expect(0)
    };
    install(&["--publish-decisions", "kube", "--publish-profiles", "kube", "--dir", dir]);
    kubectl(&hub, &["apply", "-k", dir]);
    let token = kubectl(&hub, &["create", "token", "berth-hub", "-n", "berth-hub"]);
    let pod = Pod::new(&hub, token.trim());
    let pass = |more: &[&str]| {
        let mut command = berth();
        pod.set_credentials(&mut command);
        command.args(["run", "--once", "--repo", repo.arg()]).args(more);
        Ran::of(ungated(&mut command))
    };
    let both = ["--publish-decisions", "kube", "--publish-profiles", "kube"];
    let doctor = |more: &[&str]| {
        let mut command = berth();
        pod.set_credentials(&mut command);
        command.args(["doctor", "daemon", "--no-push", "--remote", repo.arg()]).args(more);
        Told::of(&mut command)
    };
    let before = versions(&hub);
    let whole = doctor(&both);
    whole.has("good", "the hub cluster answers at https://").counts("fault", 0);
    whole.has("good", &format!("may list, create, update, delete `{OCM}`"));
    whole.has("good", &format!("may update `{PROFILES}/status`"));
    whole.has("good", "may list, update `namespaces/fleet`");
    let events = doctor(&["--events", "deployment/berth-hub/berth-hub"]);
    events.has("fault", "may not create `events.events.k8s.io` in `berth-hub`").counts("fault", 2);
    assert_eq!((versions(&hub), events.code), (before, 1), "asking changes nothing");
    pass(&both).expect(0);
    assert_eq!((list(&hub, SIG).len(), list(&hub, OCM).len(), list(&hub, PROFILES).len()), (1, 1, 3));
    assert!(list(&hub, PROFILES).iter().all(|profile| profile["status"]["conditions"].is_array()));
    // A cluster set changes the namespace that is there, and a cluster that leaves takes objects along.
    repo.write("clusters/c002.yaml", "");
    repo.commit("without c002");
    pass(&[&both[..], &["--profiles-cluster-set", "eu"]].concat()).expect(0);
    assert_eq!(list(&hub, PROFILES).len(), 2);
    let may = |what: &[&str]| {
        let account = "--as=system:serviceaccount:berth-hub:berth-hub";
        Ran::of(hub.kubectl().args(["auth", "can-i"]).args(what).arg(account)).code == 0
    };
    assert!(may(&["update", "namespaces/fleet"]) && may(&["delete", PROFILES, "-A"]));
    for what in [
        &["update", "namespaces/kube-system"][..],
        &["delete", "namespaces/fleet"],
        &["list", "namespaces"],
        &["list", "secrets", "-A"],
        &["create", "placements.cluster.open-cluster-management.io", "-A"],
        &["get", "secrets", "-n", "berth-hub"],
    ] {
        assert!(!may(what), "{what:?}");
    }
    // With fewer flags, an earlier run's rights are taken away.
    let kubeconfig = hub.kubeconfig().to_str().expect("a text path");
    let flags = ["--kubeconfig", kubeconfig, "--apply", "--force-conflicts"];
    let ocm = ["--publish-decisions", "kube", "--decision-kinds", "ocm"];
    let narrow = install(&[&ocm[..], &flags].concat());
    assert!(narrow.out.contains("configured ClusterRole"), "{}", narrow.out);
    let decided = [&ocm[..], &["--decisions-namespace", "fleet"]].concat();
    pass(&decided).expect(0);
    doctor(&decided).counts("fault", 0);
    let lacking = doctor(&both);
    lacking.has("fault", &format!("may not list, create, update, delete `{SIG}`"));
    lacking.has("fault", "may not create `namespaces`").counts("fault", 5);
    kubectl(&hub, &["delete", "crd", SIG]);
    doctor(&decided).counts("fault", 0);
    doctor(&both).lacks(SIG).has("fault", &format!("may not update `{PROFILES}/status`"));
    doctor(&["--publish-decisions", "kube", "--decision-kinds", "sig"])
        .has("fault", &format!("serves no `{SIG}`"));
    assert!(!may(&["list", PROFILES, "-A"]) && !may(&["update", "namespaces/fleet"]));
    let none = install(&flags);
    assert!(
        none.out.contains("removed    ClusterRoleBinding.rbac.authorization.k8s.io berth-hub"),
        "{}",
        none.out
    );
    assert!(!may(&["list", OCM, "-A"]));
}

#[test]
#[ignore = "needs definitions of others"]
fn a_hub_gets_decisions_in_slices_and_profiles_and_a_change_touches_one_slice() {
    let Some(hub) = hub() else { return };
    let foreign = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"name": "c007", "namespace": "fleet", "labels": {"x-k8s.io/cluster-manager": "other"}},
        "spec": {"clusterManager": {"name": "other"}},
    });
    kubectl(&hub, &["create", "namespace", "fleet"]);
    make(&hub, &foreign);
    make(
        &hub,
        &json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "PlacementDecision",
            "metadata": {"name": "web-0", "namespace": "fleet"}, "decisions": [],
        }),
    );
    let repo = fleet_of(250);
    let ran = publish(&repo, hub.kubeconfig(), &["--profiles-cluster-set", "eu"]).expect(0);
    assert!(ran.out.contains("`fleet/c007` of another manager"), "{}", ran.out);
    let namespace: Json =
        serde_json::from_str(&kubectl(&hub, &["get", "namespace", "fleet", "-o", "json"])).expect("JSON");
    assert_eq!(namespace["metadata"]["labels"]["multicluster.x-k8s.io/clusterset"], "eu");
    let expected = [("web-0", 0), ("web-1", 100), ("web-2", 100), ("web-3", 50)];
    assert_eq!(slices(&hub), expected.map(|(name, count)| (name.to_owned(), count)).into());
    let profiles = list(&hub, PROFILES);
    assert_eq!(profiles.len(), 250);
    assert_eq!(profiles[0]["spec"], json!({"clusterManager": {"name": "berth"}, "displayName": "c000"}));
    assert_eq!(profiles[0]["status"]["conditions"][1]["type"], "Joined");
    let ocm = list(&hub, OCM);
    let label = &ocm[0]["metadata"]["labels"]["cluster.open-cluster-management.io/placement"];
    assert_eq!((ocm.len(), label), (3, &json!("web")));
    assert_eq!(ocm[0]["status"]["decisions"][0], json!({"clusterName": "c000", "reason": ""}));

    // Nothing is written when nothing changed.
    let before = versions(&hub);
    let again = publish(&repo, hub.kubeconfig(), &["--profiles-cluster-set", "eu"]).expect(0);
    assert!(again.out.contains("wrote 0 objects to the hub cluster"), "{}", again.out);
    assert_eq!(changed(&before, &versions(&hub)), Vec::<String>::new());

    // A cluster that leaves changes the slice that has it, in each of the two kinds, and takes its profile along.
    repo.git(&["rm", "-q", "clusters/c120.yaml"]);
    repo.commit("one leaves");
    publish(&repo, hub.kubeconfig(), &[]).expect(0);
    let after = versions(&hub);
    let one_each = [
        "cluster.open-cluster-management.io/v1beta1 fleet/web-decision-2",
        "multicluster.x-k8s.io/v1alpha1 fleet/c120",
        "multicluster.x-k8s.io/v1alpha1 fleet/web-2",
    ];
    assert_eq!(changed(&before, &after), one_each);

    // What somebody else deletes and changes is put right.
    kubectl(&hub, &["delete", SIG, "web-3", "-n", "fleet"]);
    kubectl(&hub, &["delete", PROFILES, "c000", "-n", "fleet"]);
    kubectl(&hub, &["label", SIG, "web-1", "-n", "fleet", "multicluster.x-k8s.io/decision-key-"]);
    publish(&repo, hub.kubeconfig(), &[]).expect(0);
    assert_eq!(slices(&hub).values().sum::<usize>(), 249);
    assert_eq!(list(&hub, PROFILES).len(), 249);

    // A placement that ends takes its decisions along, and nothing of others.
    repo.git(&["rm", "-q", "web.yaml"]);
    repo.commit("no placement");
    publish(&repo, hub.kubeconfig(), &["--allow-empty"]).expect(0);
    assert_eq!(slices(&hub), BTreeMap::from([("web-0".to_owned(), 0)]));
    assert!(list(&hub, OCM).is_empty());
    let kept = list(&hub, PROFILES).into_iter().find(|one| one["metadata"]["name"] == "c007").expect("it");
    assert_eq!(kept["spec"], foreign["spec"]);
}

#[test]
#[ignore = "needs Prometheus"]
fn a_hub_that_cannot_be_reached_holds_up_no_publication() {
    let repo = fleet_of(2);
    let kubeconfig = repo.path().join("../unreachable-kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "hub",
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "hub"}}],
        "clusters": [{"name": "hub", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "hub", "user": {}}],
    });
    std::fs::write(&kubeconfig, config.to_string()).expect("a file");
    let mut doctor = berth();
    doctor.args(["doctor", "--no-push", "--remote", repo.arg(), "--publish-decisions", "kube"]);
    let told = Told::of(doctor.arg("--kubeconfig").arg(&kubeconfig));
    told.has("fault", "the API server http://127.0.0.1:9 cannot be reached");
    assert_eq!(told.code, 6);
    let ran = publish(&repo, &kubeconfig, &[]).expect(6);
    assert!(ran.out.contains("published "), "{}", ran.out);
    assert!(ran.err.contains("the hub cluster does not show the state"), "{}", ran.err);
    let more = ["--repo", repo.arg(), "--metrics", "0", "--publish-decisions", "kube", "--kubeconfig"];
    let daemon = crate::daemon::Daemon::start_with(
        &[&more[..], &[kubeconfig.to_str().expect("a text path")]].concat(),
    );
    let address = alerts::address(&daemon.wait_for(&["serving /metrics"]));
    let outage = alerts::page_with(&address, "berth_run_hub_current 0");
    alerts::fires(&outage, &outage, 60, &["BerthHubIsNotCurrent"]);
    alerts::shows_what_is_documented(&outage, &["berth_run_hub_"]);
    drop(daemon);

    std::fs::remove_file(&kubeconfig).expect("the file");
    let wrong = run(&["run", "--once", "--repo", repo.arg(), "--publish-decisions", "cube"]).expect(2);
    assert!(wrong.err.contains("`kube:CONTEXT`"), "{}", wrong.err);
}

#[test]
#[ignore = "needs definitions of others"]
fn a_daemon_goes_on_where_the_hub_or_it_was_killed() {
    let Some(mut hub) = hub() else { return };
    kubectl(&hub, &["create", "namespace", "fleet"]);
    let repo = fleet_of(3);
    publish(&repo, hub.kubeconfig(), &[]).expect(0);
    hub.kill();
    repo.git(&["rm", "-q", "clusters/c002.yaml"]);
    repo.commit("while the hub is away");
    let kubeconfig = hub.kubeconfig().to_owned();
    let start = || {
        let mut command = berth();
        command.args(["run", "--repo", repo.arg(), "--poll", "1", "--publish-decisions", "kube"]);
        command.args(["--decision-kinds", "sig", "--hub-interval", "1", "--kubeconfig"]).arg(&kubeconfig);
        Daemon(ungated(&mut command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a daemon"))
    };
    let daemon = start();
    let published = || repo.git(&["log", "-1", "--format=%B", "berth/rendered"]).contains("Berth-Seq: 2");
    eventually("the publication", || published().then_some(()));
    drop(daemon);
    hub.start_again();
    let _daemon = start();
    let count = || slices(&hub).get("web-0").copied();
    eventually("the slice", || (count() == Some(2)).then_some(()));
    kubectl(&hub, &["delete", SIG, "web-0", "-n", "fleet"]);
    eventually("the repair", || (count() == Some(2)).then_some(()));
}

/// A daemon that is killed at the end.
struct Daemon(std::process::Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// ClusterProperty as its API has it. The group's module cannot be had, so that this is made from its types.
fn property_definition() -> Json {
    let spec = json!({"type": "object", "required": ["value"], "properties": {"value": {"type": "string", "minLength": 1}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "clusterproperties.about.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/2149"},
        },
        "spec": {
            "group": "about.k8s.io", "scope": "Cluster",
            "names": {"kind": "ClusterProperty", "plural": "clusterproperties", "singular": "clusterproperty"},
            "versions": [
                {"name": "v1alpha1", "served": true, "storage": false, "schema": {"openAPIV3Schema": schema}},
                {"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    })
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_reports_the_properties_of_its_cluster() {
    let Some(member) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let repo = fleet_of(1);
    repo.publish();
    let sync = || {
        let mut command: Command = berth();
        command.args(["sync", "--cluster", "c000", "--target", "kube", "--once", "--repo", repo.arg()]);
        command.args(["--cluster-properties", "--no-lease", "--kubeconfig"]).arg(member.kubeconfig());
        Ran::of(&mut command).expect(0);
        repo.git(&["show", "refs/berth/status/c000:status.yaml"])
    };
    // A cluster without the kind has no properties.
    assert!(!sync().contains("claims"));
    make(&member, &property_definition());
    kubectl(&member, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    let property = |name: &str, value: &str| {
        let object = json!({"apiVersion": "about.k8s.io/v1alpha1", "kind": "ClusterProperty", "metadata": {"name": name}, "spec": {"value": value}});
        eventually("the kind", || {
            let mut kubectl = member.kubectl();
            let mut child = kubectl
                .args(["create", "-f", "-"])
                .stdin(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("kubectl");
            let written = child.stdin.take().expect("a pipe").write_all(object.to_string().as_bytes());
            let ended = child.wait().expect("an end");
            (written.is_ok() && ended.success()).then_some(())
        });
    };
    property("cluster.clusterset.k8s.io", "turin-1");
    property("long.example.com", &"x".repeat(1025));
    let status = sync();
    assert!(status.contains("claims:\n  cluster.clusterset.k8s.io: turin-1\n"), "{status}");
    assert!(status.contains("properties:\n  cluster.clusterset.k8s.io: turin-1\n"), "{status}");
    assert!(!status.contains("long.example.com"), "{status}");
}
