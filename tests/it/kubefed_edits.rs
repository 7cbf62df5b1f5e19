//! The commands that edit a fleet's files, where the files are not as simple as they might be: several
//! control planes, comments, JSON, typed lists, files that can not be read.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Ran, Repo, berth, cluster, config_map, namespace, run, small_fleet};

fn text(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap()
}

/// A type config of ConfigMaps, as the control plane of a namespace has it.
fn config_of(plane: &str, propagation: &str) -> String {
    format!(
        "apiVersion: core.kubefed.io/v1beta1\nkind: FederatedTypeConfig\n\
         metadata: {{name: configmaps, namespace: {plane}}}\nspec:\n  \
         targetType: {{version: v1, kind: ConfigMap, pluralName: configmaps, scope: Namespaced}}\n  \
         federatedType: {{group: types.kubefed.io, version: v1beta1, kind: FederatedConfigMap, pluralName: federatedconfigmaps, scope: Namespaced}}\n  \
         propagation: {propagation}  # of {plane}\n"
    )
}

fn federate(input: &str, args: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["federate", "-"]).args(args).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_type_rests_in_every_control_plane_and_is_enabled_in_every_one() {
    let repo = small_fleet();
    let two = format!("{}---\n{}", config_of("north", "Enabled"), config_of("south", "Enabled"));
    repo.write("types/two.yaml", &two);
    repo.write("types/west.yaml", config_of("west", "Disabled"));
    repo.commit("three planes");
    let disable = |args: &[&str]| run(&[&["disable", "configmaps", "--repo", repo.arg()], args].concat());
    let enable = || run(&["enable", "configmaps", "--repo", repo.arg()]).expect(0);
    let shown = disable(&["--yes"]).expect(0);
    assert!(shown.out.contains("1 object stays unchanged in every member"), "{}", shown.out);
    assert_eq!(text(&repo, "types/two.yaml"), two.replace("Enabled", "Disabled"));
    assert!(disable(&["--yes"]).expect(0).out.contains("already disabled"));
    let again = enable();
    assert_eq!(again.out.matches("is enabled again").count(), 3, "{}", again.out);
    assert_eq!(text(&repo, "types/two.yaml"), two);
    assert_eq!(text(&repo, "types/west.yaml"), config_of("west", "Enabled"));
    assert_eq!(enable().out.matches("is enabled already").count(), 3);
}

#[test]
fn a_shipped_type_is_not_switched_on_by_the_removal_of_its_config() {
    let repo = small_fleet();
    repo.write("types/configmaps.yaml", config_of("kube-federation-system", "Disabled"));
    repo.commit("rests");
    let delete = || run(&["disable", "cm", "--delete", "--yes", "--repo", repo.arg()]);
    let refused = delete().expect(2);
    assert!(refused.err.contains("would leave configmaps enabled, with 1 object"), "{}", refused.err);
    assert!(refused.err.contains("apps/web.yaml:1:1"), "{}", refused.err);
    assert!(repo.path().join("types/configmaps.yaml").exists());
    std::fs::remove_file(repo.path().join("apps/web.yaml")).unwrap();
    let shown = delete().expect(0);
    assert!(shown.out.contains("it is enabled without a config"), "{}", shown.out);
    assert!(!repo.path().join("types/configmaps.yaml").exists());
}

#[test]
fn a_type_is_named_with_its_version_as_kubectl_names_it() {
    let repo = small_fleet();
    let shown = run(&["disable", "deployments.v1.apps", "--repo", repo.arg()]).expect(0);
    assert!(shown.out.contains("types/deployments.apps.yaml"), "{}", shown.out);
    assert!(shown.out.contains("it has no objects"), "{}", shown.out);
    let known = run(&["enable", "configmaps.v1.", "--repo", repo.arg()]).expect(0);
    assert!(known.out.contains("configmaps needs no type config"), "{}", known.out);
    run(&["enable", "deployments.v2.apps", "--repo", repo.arg()]).expect(2);
}

#[test]
fn a_comment_among_annotations_outlives_the_last_of_them() {
    let written = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata:\n  name: web\n  namespace: shop\n  annotations:\n    # Ask the shop team first.\n    kubefed.io/orphan: \"true\"\nspec:\n  template: {data: {a: b}}\n  placement: {clusterSelector: {}}\n";
    let repo = small_fleet();
    repo.write("apps/web.yaml", written);
    run(&["orphan", "disable", "cm", "web", "--repo", repo.arg()]).expect(0);
    let after = text(&repo, "apps/web.yaml");
    let gone = written.replace("    kubefed.io/orphan: \"true\"\n", "");
    assert_eq!(after, gone.replace("annotations:", "annotations: {}"));
    run(&["validate", repo.arg()]).expect(0);
}

#[test]
fn a_refused_edit_names_the_line_and_the_path_that_can_not_be_changed() {
    let shared = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata:\n  name: web\n  namespace: shop\n  labels: &both {team: shop}\n  annotations: *both\nspec:\n  template: {data: {a: b}}\n  placement: {clusterSelector: {}}\n";
    let repo = small_fleet();
    repo.write("apps/web.yaml", shared);
    let ran = run(&["orphan", "enable", "cm", "web", "--repo", repo.arg()]).expect(2);
    let wanted = "apps/web.yaml:7: `metadata.annotations[\"kubefed.io/orphan\"]` is written in a way";
    assert!(ran.err.contains(wanted), "{}", ran.err);
}

#[test]
fn files_that_can_not_be_read_are_named_by_who_looks_for_something() {
    let repo = small_fleet();
    repo.write("apps/broken.yaml", "a: [\n");
    let (orphan, unjoin) = (["orphan", "status", "cm", "wab"], ["unjoin", "bb"]);
    for args in [&orphan[..], &unjoin[..]] {
        let ran = run(&[args, &["--repo", repo.arg()]].concat()).expect(2);
        assert!(ran.err.contains("these files cannot be read: apps/broken.yaml:"), "{}", ran.err);
    }
    let sound = small_fleet();
    assert!(!run(&["unjoin", "b", "--repo", sound.arg()]).expect(0).err.contains("cannot be read"));
}

#[test]
fn the_words_of_an_old_error_in_another_object_are_a_new_error() {
    // One cluster is at fault already; another with the same fault is refused all the same.
    let repo = small_fleet();
    repo.write("clusters/old.yaml", cluster("old", &[]).replace("https://", "ftp://"));
    let join = ["join", "new", "--api-endpoint", "ftp://old.example.com", "--repo", repo.arg()];
    let refused = run(&join).expect(1);
    assert!(refused.err.contains("clusters/new.yaml:"), "{}", refused.err);
    assert!(!repo.path().join("clusters/new.yaml").exists());
    // The old one is in nobody's way, also where it moves to another line.
    let both = format!("{}---\n{}", cluster("first", &[]), cluster("old", &[]).replace("https://", "ftp://"));
    repo.write("clusters/old.yaml", both);
    run(&["unjoin", "first", "--yes", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_cluster_does_not_join_where_berth_keeps_its_own_files_or_under_a_bad_account() {
    let repo = small_fleet();
    let join =
        |args: &[&str]| run(&[&["join", "--dialect", "kubefleet", "--repo", repo.arg()], args].concat());
    assert!(join(&["berth", "--dir", "."]).expect(2).err.contains("`berth.yaml`"));
    assert!(join(&["oslo", "--dir", "approvals"]).expect(2).err.contains("`approvals/oslo.yaml`"));
    let bad = join(&["oslo", "--secret-name", "BAD name", "-o", "yaml"]).expect(2);
    assert!(bad.out.is_empty() && bad.err.contains("`BAD name`"), "{}{}", bad.out, bad.err);
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "");
}

#[test]
fn json_in_a_yaml_file_stays_json() {
    let object = serde_json::json!({
        "apiVersion": "types.kubefed.io/v1beta1", "kind": "FederatedConfigMap",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"data": {"a": "b"}}, "placement": {"clusterSelector": {}}},
    });
    let repo = small_fleet();
    let written = serde_json::to_string_pretty(&object).unwrap() + "\n";
    repo.write("apps/web.yaml", &written);
    run(&["orphan", "enable", "cm", "web", "--repo", repo.arg()]).expect(0);
    let after: serde_json::Value = serde_json::from_str(&text(&repo, "apps/web.yaml")).expect("JSON");
    assert_eq!(after["metadata"]["annotations"]["kubefed.io/orphan"], "true");
    run(&["orphan", "disable", "cm", "web", "--repo", repo.arg()]).expect(0);
    assert_eq!(text(&repo, "apps/web.yaml"), written);
}

#[test]
fn a_typed_list_is_read_decided_and_edited() {
    let items = |text: String| {
        // As the API server lists them: an item does not repeat what the list is of.
        let lines = text.lines().skip(2).map(|line| format!("  {line}\n")).collect::<String>();
        format!("- {}", lines.trim_start())
    };
    let list = format!(
        "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedClusterList\nmetadata: {{resourceVersion: '9'}}\nitems:\n{}{}",
        items(cluster("a", &[])),
        items(cluster("b", &[]))
    );
    let repo = Repo::with(&[
        ("clusters.yaml", &list),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
    ]);
    run(&["validate", repo.arg()]).expect(0);
    let shown = run(&["unjoin", "a", "--yes", "--repo", repo.arg()]).expect(0);
    assert!(shown.out.contains("- a: ConfigMap shop/web"), "{}", shown.out);
    let left = text(&repo, "clusters.yaml");
    assert!(left.contains("name: b") && !left.contains("name: a\n"), "{left}");
    run(&["validate", repo.arg()]).expect(0);
}

#[test]
fn nothing_is_federated_that_validate_would_refuse() {
    let good = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: fine, namespace: shop}\n";
    let bad = [
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: 'a b', namespace: shop}\n",
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a/b, namespace: shop}\n",
        "apiVersion: example.com/v1\nkind: Wid get\nmetadata: {name: a, namespace: shop}\n",
        "apiVersion: example.com/V 1\nkind: Gadget\nmetadata: {name: a, namespace: shop}\n",
        "apiVersion: Ex ample.com/v1\nkind: Gizmo\nmetadata: {name: a, namespace: shop}\n",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: Not.One}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop, labels: {app: 1}}\n",
    ];
    for one in bad {
        let ran = federate(&format!("{one}---\n{good}"), &["-t"]);
        assert_eq!(ran.code, 1, "{one}\n{}\n{}", ran.out, ran.err);
        assert!(ran.err.contains("standard input:1:1: error:"), "{one}\n{}", ran.err);
        let repo = small_fleet();
        repo.write("made.yaml", &ran.out);
        assert!(ran.out.contains("name: fine"), "{one}\n{}", ran.out);
        run(&["validate", repo.arg()]).expect(0);
    }
}
