//! `berth label`, `taint`, `cordon` and `uncordon`: one line of a file changes, and the decisions follow.

use crate::support::{Ran, Repo, cluster, run};

const OSLO: &str = "# The first of the north.\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: oslo\n  labels:\n    env: prod   # since the move\nspec:\n  hubAcceptsClient: true\n";

const TURIN: &str = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata: {name: turin, labels: {env: prod}}\nspec:\n  identity: {kind: ServiceAccount, name: turin}\n";

const SHOP: &str = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {name: global, namespace: shop}\nspec: {clusterSet: global}\n---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: everywhere, namespace: shop}\nspec: {}\n---\napiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {name: web, namespace: shop}\nspec:\n  placementRefs: [{name: everywhere}]\n  manifestWorkTemplate:\n    workload:\n      manifests:\n      - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, data: {a: b}}\n";

/// A ManagedCluster, a MemberCluster, a KubeFedCluster, and one that two kinds describe.
fn fleet() -> Repo {
    let bergen = OSLO.replace("oslo", "bergen");
    Repo::with(&[
        ("clusters/oslo.yaml", OSLO),
        ("clusters/turin.yaml", TURIN),
        ("clusters/paris.yaml", &cluster("paris", &[("env", "dev")])),
        ("clusters/bergen.yaml", &bergen),
        ("clusters/bergen-kubefed.yaml", &cluster("bergen", &[("env", "prod")])),
        ("apps/shop.yaml", SHOP),
    ])
}

fn text(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap()
}

fn go(repo: &Repo, args: &[&str]) -> Ran {
    run(&[args, &["--repo", repo.arg()]].concat())
}

#[test]
fn a_label_is_one_line_and_says_what_follows() {
    let repo = fleet();
    repo.publish().expect(0);
    let ran = go(&repo, &["label", "oslo", "region=north"]).expect(0);
    assert_eq!(ran.out, "oslo: label region=north (clusters/oslo.yaml)\n");
    assert!(ran.err.contains("changes no objects\nnext: commit, and look at `berth plan`"), "{}", ran.err);
    let wanted = OSLO.replace("# since the move\n", "# since the move\n    region: north\n");
    assert_eq!(text(&repo, "clusters/oslo.yaml"), wanted);
    let refused = go(&repo, &["label", "oslo", "env=test"]).expect(2);
    assert!(
        refused.err.contains("oslo: the label `env` is `prod`; use --overwrite to set `test`"),
        "{}",
        refused.err
    );
    go(&repo, &["label", "oslo", "env=test", "--overwrite"]).expect(0);
    go(&repo, &["label", "oslo", "env=prod", "region-", "--overwrite"]).expect(0);
    assert_eq!(text(&repo, "clusters/oslo.yaml"), OSLO);
    let idle = go(&repo, &["label", "oslo", "env=prod", "gone-"]).expect(0);
    assert!(idle.err.contains("there is no label `gone`\nnothing to change"), "{}", idle.err);
}

#[test]
fn clusters_are_selected_by_labels_and_a_dry_run_shows_the_lines() {
    let repo = fleet();
    let ran = go(&repo, &["label", "-l", "env=prod", "wave=1", "--dry-run"]).expect(0);
    for line in [
        "--- clusters/oslo.yaml",
        "+    wave: \"1\"",
        "+metadata: {name: turin, labels: {env: prod, wave: \"1\"}}",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    assert!(
        !ran.out.contains("paris") && ran.err.contains("nothing was written"),
        "{}\n{}",
        ran.out,
        ran.err
    );
    assert_eq!(text(&repo, "clusters/oslo.yaml"), OSLO);
    let json = go(&repo, &["label", "-l", "env=prod", "wave=1", "-o", "json"]).expect(0).json();
    assert_eq!(json["written"], true);
    let files: Vec<&str> =
        json["clusters"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect();
    assert_eq!(
        files,
        ["clusters/bergen-kubefed.yaml", "clusters/bergen.yaml", "clusters/oslo.yaml", "clusters/turin.yaml"]
    );
    run(&["validate", repo.arg()]).expect(0);
}

#[test]
fn a_taint_takes_workloads_away_and_the_plan_is_foretold() {
    let repo = fleet();
    repo.publish().expect(0);
    let ran = go(&repo, &["taint", "oslo", "gpu=broken:NoSelect", "--now", "2026-01-31T12:00:00Z"]).expect(0);
    assert_eq!(ran.out, "oslo: taint gpu=broken:NoSelect added (clusters/oslo.yaml)\n");
    assert!(ran.err.contains("removes 1 object in 1 cluster"), "{}", ran.err);
    let added = "  taints:\n  - effect: NoSelect\n    key: gpu\n    timeAdded: \"2026-01-31T12:00:00Z\"\n    value: broken\n";
    assert_eq!(text(&repo, "clusters/oslo.yaml"), format!("{OSLO}{added}"));
    let again =
        go(&repo, &["taint", "oslo", "gpu=broken:NoSelect", "--now", "2027-01-01T00:00:00Z"]).expect(0);
    assert!(again.err.contains("already exists"), "{}", again.err);
    assert_eq!(text(&repo, "clusters/oslo.yaml"), format!("{OSLO}{added}"), "since when it is there stays");
    go(&repo, &["taint", "oslo", "gpu-"]).expect(0);
    assert_eq!(text(&repo, "clusters/oslo.yaml"), OSLO);
}

#[test]
fn a_cordon_keeps_new_work_away_and_leaves_what_is_there() {
    let repo = fleet();
    repo.publish().expect(0);
    let ran = go(&repo, &["cordon", "oslo", "turin", "bergen"]).expect(0);
    assert!(ran.out.contains("oslo: taint berth.dev/cordoned:NoSelectIfNew added"), "{}", ran.out);
    assert!(ran.out.contains("turin: taint berth.dev/cordoned:NoSchedule added"), "{}", ran.out);
    assert!(ran.err.contains("bergen: KubeFedCluster has no taints"), "{}", ran.err);
    assert!(ran.err.contains("changes no objects"), "{}", ran.err);
    repo.write(
        "apps/new.yaml",
        SHOP.split_once("---\n").unwrap().1.replace("everywhere", "late").replace("name: web", "name: late"),
    );
    repo.commit("cordoned, and a new workload");
    let plan = go(&repo, &["plan", "--head", "main"]).expect(0);
    let changes = plan.out.split("edits that change no cluster now").next().unwrap();
    let joins = "+ ManifestWorkReplicaSet shop/late joins paris (1 object)";
    assert!(changes.contains(joins) && !changes.contains("oslo"), "{}", plan.out);
    assert!(!changes.contains("  - "), "what is there stays: {}", plan.out);
    go(&repo, &["uncordon", "oslo", "turin", "bergen"]).expect(0);
    assert_eq!(text(&repo, "clusters/oslo.yaml"), OSLO);
    assert_eq!(text(&repo, "clusters/turin.yaml"), TURIN);
    assert!(
        go(&repo, &["uncordon", "oslo"]).expect(0).err.contains("there is no taint `berth.dev/cordoned`")
    );
}

#[test]
fn what_a_kind_refuses_is_refused_with_what_it_would_take() {
    let repo = fleet();
    for (args, said) in [
        (&["taint", "turin", "gpu:NoSelect"][..], "a MemberCluster's taints have the effect NoSchedule"),
        (&["taint", "oslo", "gpu:NoSchedule"], "NoSelect, PreferNoSelect, NoSelectIfNew"),
        (&["taint", "paris", "gpu:NoSelect"], "a KubeFedCluster has labels and no taints; `berth label`"),
        (&["taint", "oslo", "gpu:NoSelekt"], "did you mean `NoSelect`?"),
        (&["taint", "oslo", "gpu"], "no taint is given"),
        (&["taint", "oslo", "gpu=x"], "`gpu=x` names no effect"),
        (&["taint", "oslo", "gpu:NoSelect", "gpu-"], "is both set and removed"),
        (&["taint", "turin", "a=x y:NoSchedule"], "is not a valid taint value"),
        (&["cordon", "paris"], "a KubeFedCluster has no taints"),
        (&["cordon"], "name clusters, or select them"),
        (&["label", "osla", "a=b"], "did you mean `oslo`?"),
        (&["label", "oslo", "a=b c"], "`b c` is not a valid label value"),
        (&["label", "oslo", "a=b", "a-"], "the label `a` is given twice"),
        (&["label", "-l", "env=nowhere", "a=b"], "no cluster has the labels `env=nowhere`"),
        (&["label", "oslo", "-l", "env=prod", "a=b"], "not both"),
    ] {
        let ran = go(&repo, args);
        let code = if said.contains("not a valid taint") { 1 } else { 2 };
        assert!(ran.code == code && ran.err.contains(said), "{args:?}: {}", ran.err);
    }
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "nothing was written");
}

#[test]
fn one_cluster_that_can_not_be_marked_stops_them_all() {
    let repo = fleet();
    let aliased = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: lyon, labels: &both {env: prod}, annotations: *both}\nspec: {}\n";
    repo.write("clusters/lyon.yaml", aliased);
    repo.commit("an alias");
    let ran = go(&repo, &["label", "oslo", "lyon", "wave=1"]).expect(2);
    assert!(
        ran.err.contains("clusters/lyon.yaml:3") && ran.err.contains("edit the file by hand"),
        "{}",
        ran.err
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "nothing was written");
}

#[test]
fn a_file_of_several_documents_and_a_cluster_described_twice() {
    let repo = fleet();
    let two = format!("{}---\n{}", OSLO.replace("oslo", "nice"), OSLO.replace("oslo", "lyon"));
    repo.write("clusters/south.yaml", &two);
    go(&repo, &["label", "nice", "lyon", "region=south"]).expect(0);
    let wanted = two.replace("# since the move\n", "# since the move\n    region: south\n");
    assert_eq!(text(&repo, "clusters/south.yaml"), wanted);
    go(&repo, &["cordon", "bergen", "--now", "2026-01-01T00:00:00Z"]).expect(0);
    assert_eq!(text(&repo, "clusters/bergen-kubefed.yaml"), cluster("bergen", &[("env", "prod")]));
    repo.write("clusters/more.yaml", OSLO.replace("oslo", "nice"));
    let ran = go(&repo, &["label", "nice", "x=y"]).expect(2);
    assert!(
        ran.err.contains(
            "ManagedCluster nice is described twice: clusters/more.yaml:2:1 and clusters/south.yaml:2:1"
        ),
        "{}",
        ran.err
    );
}
