//! `berth convert`: KubeFleet's placements to its next API, with an empty plan after it.

use std::path::Path;

use serde_json::Value as Json;

use crate::archive::Archive;
use crate::support::{Ran, Repo, berth, fixtures, fleet_member, run};

fn converted(folder: &Path, more: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["convert", "-o", "json", "--repo"]).arg(folder).args(more);
    Ran::of(&mut command)
}

/// Every case that berth reads is converted without a change for any cluster, or says why not.
#[test]
fn each_case_is_converted_with_an_empty_plan_or_says_why_not() {
    let (mut done, mut reasons) = (0, std::collections::BTreeMap::<String, usize>::new());
    for part in ["kubefleet", "kubefleet-render", "kubefleet-rollout", "kubefleet-azure"] {
        for entry in std::fs::read_dir(fixtures(part)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "txtar") {
                continue;
            }
            let folder = tempfile::tempdir().expect("a folder");
            Archive::read(&path).unpack(folder.path());
            let fleet = folder.path().join("fleet");
            if !fleet.is_dir() {
                continue;
            }
            let ran = converted(&fleet, &["--dry-run"]);
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            assert!([0, 1, 3].contains(&ran.code), "{name}: {} {}", ran.code, ran.err);
            let form = ran.json();
            let all = form["placements"].as_array().expect("placements");
            let changes = &form["plan"]["counts"];
            let sum = |key: &str| changes[key].as_u64().unwrap_or_default();
            assert_eq!(sum("removed") + sum("changed") + sum("added"), 0, "{name}: {}", ran.out);
            for one in all {
                if one["converted"] == true {
                    done += 1;
                } else {
                    let why = one["reasons"][0].as_str().expect("a reason");
                    *reasons.entry(why.to_owned()).or_default() += 1;
                }
            }
        }
    }
    assert!(done > 30, "{done} are converted, others not: {reasons:#?}");
    for wanted in ["preferred affinity", "it picks 0 clusters", "its strategy is External", "it has errors"] {
        assert!(reasons.keys().any(|reason| reason.starts_with(wanted)), "{wanted}: {reasons:#?}");
    }
}

const OLD: &str = "\
# The shop.
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata:
  name: web   # its name
  uid: 6f1c
spec:
  resourceSelectors:
  - {group: '', version: v1, kind: Namespace, name: shop}
  policy:
    placementType: PickFixed
    clusterNames: [oslo, turin]
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 1}
status: {conditions: []}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: text, namespace: shop}
data: {greeting: hello}
";

fn fleet() -> Repo {
    let repo = Repo::new();
    for name in ["oslo", "rome", "turin"] {
        repo.write(&format!("clusters/{name}.yaml"), fleet_member(name, "prod"));
    }
    repo.write("web.yaml", OLD);
    repo.commit("the old API");
    repo
}

#[test]
fn a_converted_placement_keeps_its_decision_and_its_copies() {
    let repo = fleet();
    repo.publish();
    let before = repo.files("berth/rendered");
    let ran = run(&["convert", "--repo", repo.arg()]).expect(0);
    assert!(
        ran.out.contains("web.yaml:2: ClusterResourcePlacement web becomes a ClusterPlacementPolicy"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("clusters: no changes"), "{}", ran.out);
    let text = std::fs::read_to_string(repo.path().join("web.yaml")).expect("a file");
    for line in [
        "# The shop.",
        "kind: ClusterPlacementPolicy",
        "  name: web   # its name",
        "berth.dev/replaces: ClusterResourcePlacement/web",
        "whenAlreadyExists: AlwaysTakeOver",
        "kubefleet.dev/cluster-alias",
        "kind: ConfigMap\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("uid") && !text.contains("status"), "{text}");
    let policy = std::fs::read_to_string(repo.path().join("web-rolling-update.yaml")).expect("a policy");
    assert!(policy.contains("maxUnavailable: 1"), "{policy}");
    run(&["validate", repo.arg()]).expect(0);
    repo.commit("the next API");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(plan.out.contains("no changes"), "{}", plan.out);
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    let after = repo.files("berth/rendered");
    let copies = |files: &std::collections::BTreeMap<String, String>| {
        let of_clusters = files.iter().filter(|(path, _)| path.starts_with("clusters/"));
        of_clusters.map(|(path, id)| (path.clone(), id.clone())).collect::<Vec<_>>()
    };
    assert_eq!(copies(&before), copies(&after), "no cluster sees a change");
    // From here on it is a policy like any other.
    let fewer = text.replace("- oslo\n", "").replace("count: 2", "count: 1");
    assert_ne!(fewer, text);
    repo.write("web.yaml", fewer);
    let why = run(&["explain", "web", "--repo", repo.arg()]).expect(0);
    assert!(why.out.contains("picks 1 of 3 clusters"), "{}", why.out);
    // The document is of the new kind, and what is published of the old one: people name it by either.
    for name in ["ClusterPlacementPolicy/web", "ClusterResourcePlacement/web"] {
        assert_eq!(run(&["explain", name, "--repo", repo.arg()]).expect(0).out, why.out, "{name}");
    }
    let told = run(&["describe", "web", "--repo", repo.arg()]).expect(0);
    assert!(told.out.contains("ResourceCollected"), "{}", told.out);
}

#[test]
fn a_placement_is_replaced_once_and_only_when_it_is_gone() {
    let repo = fleet();
    let policy = |name: &str, replaces: &str| {
        format!(
            "apiVersion: placement.kubefleet.dev/v1alpha1\nkind: ClusterPlacementPolicy\n\
             metadata: {{name: {name}, annotations: {{berth.dev/replaces: {replaces}}}}}\n\
             spec: {{resourceSelectors: [{{apiGroup: '', apiVersion: v1, kind: Namespace, name: shop}}]}}\n"
        )
    };
    let errors = || run(&["validate", repo.arg()]).expect(1).err;
    repo.write("new.yaml", policy("new", "ClusterResourcePlacement/web"));
    assert!(errors().contains("ClusterResourcePlacement web is still there"), "{}", errors());
    let rest = OLD.split_once("---\n").expect("two parts").1;
    repo.write("web.yaml", rest);
    run(&["validate", repo.arg()]).expect(0);
    repo.write("other.yaml", policy("other", "ClusterResourcePlacement/web"));
    assert!(errors().contains("replaces ClusterResourcePlacement web already"), "{}", errors());
    for wrong in ["web", "ResourcePlacement/web", "ClusterResourcePlacement/", "ClusterResourcePlacement/a/b"]
    {
        repo.write("other.yaml", policy("other", wrong));
        assert!(errors().contains("must name the placement that this policy takes the place of"), "{wrong}");
    }
}

#[test]
fn what_the_next_api_cannot_say_is_converted_only_where_somebody_accepts_it() {
    let repo = fleet();
    let preferred = "policy:\n    placementType: PickN\n    numberOfClusters: 2\n    affinity:\n      clusterAffinity:\n        \
        preferredDuringSchedulingIgnoredDuringExecution:\n        - {weight: 5, preference: {labelSelector: {matchLabels: {env: prod}}}}\n";
    let old =
        OLD.replace("policy:\n    placementType: PickFixed\n    clusterNames: [oslo, turin]\n", preferred);
    repo.write("web.yaml", old.as_str());
    let ran = run(&["convert", "--repo", repo.arg()]).expect(1);
    assert!(ran.out.contains("preferred affinity has no counterpart"), "{}", ran.out);
    assert_eq!(std::fs::read_to_string(repo.path().join("web.yaml")).expect("a file"), old);
    let ran = converted(repo.path(), &["--accept-differences"]).expect(0);
    let form: Json = ran.json();
    assert_eq!(form["written"], true);
    assert_eq!(form["placements"][0]["object"]["spec"]["clusterSelectors"][0]["count"], 2);
    let none = run(&["convert", "web", "--repo", repo.arg()]).expect(2);
    assert!(none.err.contains("no placement of the old API is named `web`"), "{}", none.err);
}
