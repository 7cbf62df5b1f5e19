//! The commands that edit a fleet's files as KubeFed's own command line did: what they write is valid,
//! goes where it should, and leaves everything else as it was.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Ran, Repo, berth, cluster, config_map, namespace, run, small_fleet};

const LIVE: &str = "\
# What kubectl gives.
apiVersion: v1
kind: Namespace
metadata: {name: store, uid: '1', labels: {team: store}}
spec: {finalizers: [kubernetes]}
status: {phase: Active}
---
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web
    namespace: store
    generation: 4
    annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', team: store}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {creationTimestamp: null, labels: {app: web}}
      spec: {containers: [{name: web, image: 'web:1'}]}
  status: {replicas: 2}
- apiVersion: v1
  kind: Endpoints
  metadata: {name: web, namespace: store}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: 'system:reader'}
  rules: []
";

/// The files of the working tree, so that nothing can change unseen.
fn git_status(repo: &Repo) -> String {
    repo.git(&["status", "--porcelain", "-uall"])
}

fn text(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap()
}

fn clusters_of(repo: &Repo, name: &str) -> Vec<String> {
    let json = run(&["decide", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let placements = json["placements"].as_array().unwrap().clone();
    let one = placements.into_iter().find(|one| one["name"] == name).expect("the placement");
    let name = |one: &serde_json::Value| one.as_str().or_else(|| one["name"].as_str()).unwrap().to_owned();
    one["clusters"].as_array().unwrap().iter().map(name).collect()
}

fn outside(name: &str, content: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn plain_objects_become_files_that_are_valid_placed_and_rendered_as_they_were() {
    let repo = small_fleet();
    let (_folder, live) = outside("live.yaml", LIVE);
    let out = format!("{}/federated", repo.arg());
    let args = [
        "federate",
        &live,
        "--repo",
        repo.arg(),
        "--selector",
        "env in (prod)",
        "--output-dir",
        &out,
        "-o",
        "json",
    ];
    let ran = run(&args).expect(0);
    assert_eq!(ran.json()["files"].as_array().unwrap().len(), 3, "{}", ran.out);
    assert!(ran.err.contains("Endpoints store/web is not federated"), "{}", ran.err);
    run(&["validate", repo.arg()]).expect(0);
    assert_eq!(clusters_of(&repo, "store"), ["a", "b"]);
    let rendered = tempfile::tempdir().unwrap();
    let to = rendered.path().join("out");
    run(&["render", "--repo", repo.arg(), "--out", to.to_str().unwrap()]).expect(0);
    let web = std::fs::read_to_string(to.join("clusters/a/store/Deployment.apps_web.yaml")).unwrap();
    assert!(
        web.contains("replicas: 2") && web.contains("team: store") && web.contains("kubefed.io/managed"),
        "{web}"
    );
    for gone in ["last-applied", "generation", "status", "creationTimestamp", "matchLabels: {}"] {
        assert!(!web.contains(gone), "{gone} is in\n{web}");
    }
    assert!(to.join("clusters/a/_cluster").exists() && !to.join("clusters/c/store").exists());
    // What is there already is no fault, and nothing is written over.
    assert!(run(&args).expect(0).err.contains("wrote 0 files"));
    let files = ran.json()["files"].as_array().unwrap().clone();
    std::fs::write(files[0]["file"].as_str().unwrap(), "# mine\n").unwrap();
    std::fs::remove_file(files[1]["file"].as_str().unwrap()).unwrap();
    let again = run(&args).expect(2);
    assert!(again.err.contains("already exists"), "{}", again.err);
    assert!(!Path::new(files[1]["file"].as_str().unwrap()).exists());
}

#[test]
fn the_standard_input_and_the_contents_of_a_namespace_are_federated_for_named_clusters() {
    let (_folder, live) = outside("live.yaml", LIVE);
    let ran = Ran::of(
        berth()
            .args(["federate", "-", "--contents", "-n", "store", "--clusters", "a,b", "-s", "deploy"])
            .current_dir("/")
            .stdin(Stdio::from(std::fs::File::open(&live).unwrap())),
    )
    .expect(0);
    assert!(
        ran.out.contains("kind: FederatedNamespace") && ran.out.contains("- name: a\n    - name: b"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("ClusterRole") && !ran.out.contains("Deployment"), "{}", ran.out);
    let json = run(&["federate", &live, "-o", "json", "-q"]).expect(0).json();
    assert_eq!(json["items"][0]["spec"]["placement"], json!({"clusterSelector": {"matchLabels": {}}}));
}

#[test]
fn a_type_without_a_federated_kind_costs_itself_alone_and_says_the_way_out() {
    let repo = small_fleet();
    let widgets = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: shop}\n---\n\
                   apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n";
    let (_folder, path) = outside("widgets.yaml", widgets);
    let out = format!("{}/federated", repo.arg());
    let refused =
        run(&["federate", &path, "--repo", repo.arg(), "-n", "shop", "--output-dir", &out]).expect(1);
    assert!(refused.err.contains("widgets.yaml:1:1: error: Widget shop/w"), "{}", refused.err);
    assert!(
        refused.err.contains("--enable-type") && refused.err.contains("--skip-api-resources"),
        "{}",
        refused.err
    );
    assert!(!Path::new(&out).exists());
    let printed = run(&["federate", &path, "--repo", repo.arg(), "-n", "shop"]).expect(1);
    assert!(printed.out.contains("FederatedConfigMap"), "{}", printed.out);
    run(&["federate", &path, "--repo", repo.arg(), "-n", "shop", "-t", "--output-dir", &out]).expect(0);
    run(&["validate", repo.arg()]).expect(0);
    assert_eq!(clusters_of(&repo, "w"), ["a", "b", "c"]);
    // The config counts from now on.
    let ran = run(&["federate", &path, "--repo", repo.arg(), "-n", "shop"]).expect(0);
    assert!(ran.out.contains("FederatedWidget") && !ran.out.contains("FederatedTypeConfig"), "{}", ran.out);
}

#[test]
fn what_can_not_be_federated_is_said_with_its_place() {
    let (_folder, path) = outside(
        "bad.yaml",
        "a: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\nvalues: 1\n",
    );
    let ran = run(&["federate", &path]).expect(1);
    assert!(
        ran.err.contains("bad.yaml:3:1: error: ConfigMap x: metadata.namespace is required"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("not YAML") && ran.err.contains("objects: 1"), "{}", ran.err);
    run(&["federate", "/nonexistent/x.yaml"]).expect(6);
    run(&["federate", &path, "--selector", "a b"]).expect(2);
    run(&["federate"]).expect(2);
}

#[test]
fn a_cluster_joins_and_gets_what_selectors_and_names_say() {
    let repo = small_fleet();
    repo.write("apps/named.yaml", config_map("named", "x", "{clusters: [{name: oslo}]}"));
    repo.commit("named");
    let endpoint = ["--api-endpoint", "https://oslo:6443"];
    let mut args =
        vec!["join", "oslo", "--repo", repo.arg(), "--label", "env=prod,tier=web", "--region", "north"];
    args.extend(endpoint);
    let ran = run(&args).expect(0);
    assert_eq!(ran.out.trim(), "clusters/oslo.yaml");
    assert!(
        ran.err.contains("oslo gets 3 objects") && ran.err.contains("apps/named.yaml:1:1"),
        "{}",
        ran.err
    );
    assert!(text(&repo, "clusters/oslo.yaml").contains("topology.kubernetes.io/region: north"));
    run(&["validate", repo.arg()]).expect(0);
    assert_eq!(clusters_of(&repo, "named"), ["oslo"]);
    assert!(run(&args).expect(2).err.contains("clusters/oslo.yaml:1:1"));
    assert_eq!(git_status(&repo), "?? clusters/oslo.yaml");
}

#[test]
fn the_other_systems_inventories_are_joined_too_and_printed_without_writing() {
    let repo = small_fleet();
    for (dialect, kind) in [("kubefleet", "MemberCluster"), ("ocm", "ManagedCluster")] {
        let args = ["join", dialect, "--dialect", dialect, "--label", "env=prod", "--repo", repo.arg()];
        let printed = run(&[&args[..], &["-o", "json"]].concat()).expect(0).json();
        assert_eq!(printed["kind"], kind);
        run(&args).expect(0);
    }
    run(&["validate", repo.arg()]).expect(0);
    assert_eq!(clusters_of(&repo, "web"), ["a", "b", "c", "kubefleet", "ocm"]);
}

#[test]
fn a_cluster_joins_by_its_name_alone() {
    let repo = small_fleet();
    let ran = run(&["join", "oslo", "--repo", repo.arg()]).expect(0);
    assert!(ran.err.contains("`https://oslo.invalid` is a placeholder"), "{}", ran.err);
    assert!(text(&repo, "clusters/oslo.yaml").contains("apiEndpoint: https://oslo.invalid"));
    run(&["validate", repo.arg()]).expect(0);
}

#[test]
fn a_cluster_that_can_not_join_leaves_no_file() {
    let repo = small_fleet();
    let join = |args: &[&str]| run(&[&["join", "oslo", "--repo", repo.arg()], args].concat());
    assert!(join(&["--api-endpoint", "ftp://x"]).expect(1).err.contains("clusters/oslo.yaml:"));
    join(&["--dialect", "ocm", "--label", "a b=c"]).expect(2);
    join(&["--dialect", "ocm", "--label", "a"]).expect(2);
    join(&["--dialect", "ocm", "--dir", "../outside"]).expect(2);
    join(&["--dialect", "ocm", "--dir", ".hidden"]).expect(2);
    run(&["join", "../oslo", "--dialect", "ocm", "--repo", repo.arg()]).expect(2);
    assert_eq!(git_status(&repo), "");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let repo = small_fleet();
    let outside = tempfile::tempdir().unwrap();
    let link = |path: &str, to: &Path| std::os::unix::fs::symlink(to, repo.path().join(path)).unwrap();
    link("linked", outside.path());
    let join = ["join", "oslo", "--dialect", "ocm", "--dir", "linked/x", "--repo", repo.arg()];
    assert!(run(&join).expect(2).err.contains("symbolic link"));
    let (_folder, live) = self::outside("live.yaml", LIVE);
    link("store", outside.path());
    run(&["federate", &live, "--output-dir", repo.arg()]).expect(2);
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    link("apps/.web.yaml.berth-new", &victim);
    run(&["orphan", "enable", "cm", "web", "--repo", repo.arg()]).expect(0);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(text(&repo, "apps/web.yaml").contains("kubefed.io/orphan"));
}

#[test]
fn a_plan_tells_objects_that_stay_from_objects_that_are_deleted() {
    let repo = small_fleet();
    run(&["orphan", "enable", "cm", "web", "--repo", repo.arg()]).expect(0);
    repo.commit("members keep web");
    repo.publish().expect(0);
    let plan = |json: bool| {
        let form = if json { "json" } else { "text" };
        run(&["plan", "--repo", repo.arg(), "-o", form]).expect(0)
    };
    let stays = "the objects stay there, and nobody owns them";
    std::fs::remove_file(repo.path().join("apps/web.yaml")).unwrap();
    repo.commit("no web");
    let kept = plan(false).out;
    assert!(kept.contains("web would leave") && kept.contains(stays), "{kept}");
    assert!(!kept.contains("takes the last copy"), "{kept}");
    assert_eq!(plan(true).json()["sections"][0]["consequences"][0]["orphaned"], true);
    repo.git(&["revert", "--no-edit", "HEAD~1..HEAD"]);
    run(&["orphan", "disable", "cm", "web", "--repo", repo.arg()]).expect(0);
    repo.commit("members delete web");
    repo.publish().expect(0);
    std::fs::remove_file(repo.path().join("apps/web.yaml")).unwrap();
    repo.commit("no web");
    assert!(!plan(false).out.contains(stays), "{}", plan(false).out);
}

#[test]
fn unjoin_shows_what_would_go_and_writes_only_when_told() {
    let two = format!("# Both.\n{}---\n# The second.\n{}", cluster("a", &[]), cluster("b", &[]));
    let named = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {name: named, namespace: shop}\nspec:\n  \
                 placement: {clusters: [{name: a}, {name: b}]}\n  overrides:\n  - clusterName: b\n    clusterOverrides:\n    \
                 - {op: add, path: /data, value: {x: y}}\n";
    let repo = Repo::with(&[
        ("clusters/two.yaml", &two),
        ("clusters/c.yaml", &cluster("c", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/named.yaml", named),
    ]);
    let shown = run(&["unjoin", "b", "--repo", repo.arg()]).expect(0);
    assert!(
        shown.out.contains("- b: ConfigMap shop/named") && shown.out.contains("clusters/two.yaml:"),
        "{}",
        shown.out
    );
    assert!(
        shown.out.contains("apps/named.yaml:1:1: FederatedConfigMap shop/named (placement)"),
        "{}",
        shown.out
    );
    assert!(
        shown.out.contains("apps/named.yaml:7:5: FederatedConfigMap shop/named (override)"),
        "{}",
        shown.out
    );
    assert_eq!(git_status(&repo), "");
    let ran = run(&["unjoin", "b", "--repo", repo.arg(), "--yes", "-o", "json"]).expect(0).json();
    assert_eq!(ran["files"], json!([{"file": "clusters/two.yaml", "deleted": false}]));
    assert_eq!((&ran["plan"]["counts"]["removed"], &ran["written"]), (&json!(2), &json!(true)));
    assert_eq!(text(&repo, "clusters/two.yaml"), format!("# Both.\n{}", cluster("a", &[])));
    assert_eq!(clusters_of(&repo, "named"), ["a"]);
    run(&["unjoin", "c", "--repo", repo.arg(), "--yes"]).expect(0);
    assert_eq!(git_status(&repo), " D clusters/c.yaml\n M clusters/two.yaml");
    let none = run(&["unjoin", "aa", "--repo", repo.arg()]).expect(2);
    assert!(none.err.contains("no cluster `aa`"), "{}", none.err);
}

#[test]
fn a_cluster_that_leaves_is_held_by_the_gate_until_somebody_approves() {
    let repo = small_fleet();
    repo.publish().expect(0);
    run(&["unjoin", "c", "--repo", repo.arg(), "--yes"]).expect(0);
    repo.commit("c leaves");
    let held = repo.publish().expect(5);
    assert!(
        held.err.contains("Berth-Allow-Delete") || held.out.contains("Berth-Allow-Delete"),
        "{}{}",
        held.out,
        held.err
    );
}

#[test]
fn an_item_of_a_list_leaves_and_the_list_stays_as_it_is_written() {
    let list = "apiVersion: v1\nkind: List\nitems:\n# North.\n- apiVersion: cluster.open-cluster-management.io/v1\n  kind: ManagedCluster\n  metadata: {name: a}\n  spec: {hubAcceptsClient: true}\n# South.\n- apiVersion: cluster.open-cluster-management.io/v1\n  kind: ManagedCluster\n  metadata: {name: b}\n  spec: {hubAcceptsClient: true}  # yes\n";
    let repo = Repo::with(&[("clusters.yaml", list)]);
    run(&["unjoin", "a", "--repo", repo.arg(), "--yes"]).expect(0);
    let left = text(&repo, "clusters.yaml");
    assert!(
        left.contains("# South.\n- apiVersion") && !left.contains("{name: a}") && left.contains("# yes"),
        "{left}"
    );
    run(&["validate", repo.arg()]).expect(0);
}

#[test]
fn a_type_is_enabled_disabled_and_enabled_again_without_moving_anything() {
    let repo = small_fleet();
    let enable = |args: &[&str]| run(&[&["enable", "--repo", repo.arg()], args].concat());
    let disable = |args: &[&str]| run(&[&["disable", "--repo", repo.arg()], args].concat());
    assert_eq!(enable(&["sts"]).expect(0).out.trim(), "types/statefulsets.apps.yaml");
    repo.write("apps/db.yaml", "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedStatefulSet\nmetadata: {name: db, namespace: shop}\nspec:\n  placement: {clusterSelector: {}}\n  template: {spec: {replicas: 1}}\n");
    repo.commit("a type");
    repo.publish().expect(0);
    let before = repo.files("refs/heads/berth/rendered");
    let shown = disable(&["sts"]).expect(0);
    assert!(
        shown.out.contains("members: no changes") && shown.out.contains("apps/db.yaml:1:1"),
        "{}",
        shown.out
    );
    assert_eq!(git_status(&repo), "");
    disable(&["statefulset", "--yes"]).expect(0);
    assert!(disable(&["sts", "-y"]).expect(0).out.contains("already disabled"));
    repo.write("apps/db.yaml", text(&repo, "apps/db.yaml").replace("replicas: 1", "replicas: 9"));
    repo.commit("disabled, and edited");
    repo.publish().expect(0);
    let copies = |files: &std::collections::BTreeMap<String, String>| {
        files
            .iter()
            .filter(|(path, _)| path.starts_with("clusters/"))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(copies(&repo.files("refs/heads/berth/rendered")), copies(&before));
    enable(&["statefulsets.apps"]).expect(0);
    assert!(text(&repo, "types/statefulsets.apps.yaml").contains("propagation: Enabled"));
    assert!(enable(&["sts"]).expect(0).out.contains("enabled already"));
    let refused = disable(&["sts", "--delete", "--yes"]).expect(2);
    assert!(refused.err.contains("apps/db.yaml:1:1"), "{}", refused.err);
    std::fs::remove_file(repo.path().join("apps/db.yaml")).unwrap();
    disable(&["sts", "--delete", "--yes"]).expect(0);
    assert!(!repo.path().join("types/statefulsets.apps.yaml").exists());
}

#[test]
fn custom_resources_are_enabled_by_their_definition_by_flags_and_by_a_directive() {
    let repo = small_fleet();
    repo.write("crd.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets, shortNames: [wd]}\n  versions: [{name: v1, storage: true, served: true}]\n");
    let enable = |args: &[&str]| run(&[&["enable", "--repo", repo.arg()], args].concat());
    enable(&["wd", "--federated-group", "fed.example.com"]).expect(0);
    let config = text(&repo, "types/widgets.example.com.yaml");
    assert!(config.contains("group: fed.example.com") && config.contains("pluralName: widgets"), "{config}");
    assert!(enable(&["wd", "--federated-group", "other.example.com"]).expect(2).err.contains("already"));
    assert!(enable(&["gizmos.example.com"]).expect(2).err.contains("--kind"));
    enable(&["gizmos.example.com", "--kind", "Gizmo", "--version", "v2", "--cluster-scoped"]).expect(0);
    assert!(
        enable(&["widgets.other.com", "--kind", "Widget", "--version", "v1"])
            .expect(0)
            .out
            .contains("types/")
    );
    let clash = enable(&["widgets.third.com", "--kind", "Widget", "--version", "v1"]).expect(2);
    assert!(clash.err.contains("--federated-group"), "{}", clash.err);
    let directive = "apiVersion: core.kubefed.io/v1beta1\nkind: EnableTypeDirective\nmetadata: {name: cronjobs.batch}\nspec: {federatedVersion: v1alpha1}\n";
    let (_folder, path) = outside("directive.yaml", directive);
    enable(&["-f", &path]).expect(0);
    assert!(text(&repo, "types/cronjobs.batch.yaml").contains("version: v1alpha1"));
    run(&["validate", repo.arg()]).expect(0);
    assert!(enable(&["deploy"]).expect(0).out.contains("needs no type config"));
    assert_eq!(enable(&["sts", "-o", "json"]).expect(0).json()["metadata"]["name"], "statefulsets.apps");
    assert!(enable(&["ev"]).expect(2).err.contains("events.events.k8s.io"));
}

#[test]
fn orphaning_is_switched_in_place_and_reaches_the_members() {
    let written = "# Two things.\napiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {name: web, namespace: shop}  # here\nspec:\n  template: {data: {a: b}}\n  placement: {clusterSelector: {}}\n---\napiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata:\n  name: api\n  namespace: shop\n  annotations:\n    team: shop # ours\nspec:\n  template: {data: {a: b}}\n  placement: {clusterSelector: {}}\n";
    let repo = small_fleet();
    repo.write("apps/web.yaml", written);
    let orphan = |args: &[&str]| run(&[&["orphan"], args, &["--repo", repo.arg()]].concat());
    orphan(&["enable", "cm", "web"]).expect(0);
    orphan(&["enable", "FederatedConfigMap", "api", "-n", "shop"]).expect(0);
    assert_eq!(
        text(&repo, "apps/web.yaml"),
        written
            .replace(
                "{name: web, namespace: shop}",
                "{name: web, namespace: shop, annotations: {kubefed.io/orphan: \"true\"}}"
            )
            .replace("    team: shop # ours\n", "    team: shop # ours\n    kubefed.io/orphan: \"true\"\n")
    );
    assert_eq!(orphan(&["status", "configmaps", "web", "-o", "json"]).expect(0).json()["orphan"], true);
    let out = tempfile::tempdir().unwrap();
    let to = out.path().join("out");
    run(&["render", "--repo", repo.arg(), "--out", to.to_str().unwrap()]).expect(0);
    let copy = std::fs::read_to_string(to.join("clusters/a/shop/ConfigMap_web.yaml")).unwrap();
    assert!(copy.contains("berth.dev/orphan: \"true\""), "{copy}");
    orphan(&["disable", "cm", "web"]).expect(0);
    orphan(&["disable", "cm", "api"]).expect(0);
    assert_eq!(text(&repo, "apps/web.yaml"), written);
    assert!(orphan(&["disable", "cm", "api"]).expect(0).out.contains("already"));
    assert!(orphan(&["status", "cm", "wob"]).expect(2).err.contains("did you mean `web`?"));
    assert!(orphan(&["status", "secret", "web"]).expect(2).err.contains("apps/web.yaml:2"));
}

#[test]
fn an_edit_that_can_not_be_made_in_place_is_refused_with_its_place() {
    let shared = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata:\n  name: web\n  namespace: shop\n  labels: &both {team: shop}\n  annotations: *both\nspec:\n  template: {data: {a: b}}\n  placement: {clusterSelector: {}}\n";
    let repo = small_fleet();
    repo.write("apps/web.yaml", shared);
    let ran = run(&["orphan", "enable", "cm", "web", "--repo", repo.arg()]).expect(2);
    assert!(ran.err.contains("apps/web.yaml:7:") && ran.err.contains("by hand"), "{}", ran.err);
    assert_eq!(text(&repo, "apps/web.yaml"), shared);
}
