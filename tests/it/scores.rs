//! Scores that members report: what uses them is decided again, and no further than it would by a file.

use crate::daemon::Daemon;
use crate::support::{RENDERED, Ran, Repo, berth, run};

fn managed(name: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}}}\nspec: {{hubAcceptsClient: true}}\n"
    )
}

/// Two placements of one cluster each: one by the score of the network and by what is there, one by name.
fn fleet() -> Repo {
    let placement = |name: &str, policy: &str| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec:\n  numberOfClusters: 1\n  prioritizerPolicy: {policy}\n---\n\
             apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec:\n  placementRefs: [{{name: {name}}}]\n  manifestWorkTemplate:\n    workload:\n      manifests:\n      \
             - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: shop}}}}\n"
        )
    };
    let near = "{mode: Exact, configurations: [{scoreCoordinate: {builtIn: Steady}, weight: 1}, {scoreCoordinate: {type: AddOn, addOn: {resourceName: network, scoreName: near}}, weight: 2}]}";
    let binding = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {name: global, namespace: shop}\nspec: {clusterSet: global}\n";
    let repo = Repo::with(&[
        ("clusters/oslo.yaml", &managed("oslo")),
        ("clusters/turin.yaml", &managed("turin")),
        ("binding.yaml", binding),
        ("near.yaml", &placement("near", near)),
        ("any.yaml", &placement("any", "{mode: Exact}")),
    ]);
    repo.publish().expect(0);
    repo
}

/// A member's round with this score in its file of facts.
fn report(repo: &Repo, cluster: &str, score: i64) -> Ran {
    let text = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: {cluster}}}\nscores:\n- {{resource: network, name: near, value: {score}}}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let facts = folder.path().join("facts.yaml");
    std::fs::write(&facts, text).expect("a file");
    repo.sync(cluster, &folder.path().join("target"), &["--facts", facts.to_str().expect("text")])
}

fn clusters_of(repo: &Repo, name: &str) -> Vec<String> {
    let path = format!("/shop/ConfigMap_{name}.yaml");
    repo.files(RENDERED)
        .keys()
        .filter_map(|file| Some(file.strip_prefix("clusters/")?.strip_suffix(&path)?.to_owned()))
        .collect()
}

#[test]
fn a_reported_score_moves_what_uses_it_and_only_as_far_as_what_is_there_allows() {
    let repo = fleet();
    assert_eq!(
        (clusters_of(&repo, "near"), clusters_of(&repo, "any")),
        (vec!["oslo".to_owned()], vec!["oslo".to_owned()])
    );
    // Twice 40 is less than the hundred for being there.
    report(&repo, "turin", 40).expect(0);
    repo.publish().expect(0);
    assert_eq!(clusters_of(&repo, "near"), ["oslo"]);
    assert!(repo.files(RENDERED)["facts/turin.yaml"].contains("value: 40"));
    let before = repo.files(RENDERED);
    report(&repo, "turin", 60).expect(0);
    repo.publish().expect(0);
    assert_eq!(clusters_of(&repo, "near"), ["turin"]);
    let after = repo.files(RENDERED);
    let of_any = |(path, _): &(&String, &String)| path.contains("_any");
    assert!(
        before.iter().filter(of_any).eq(after.iter().filter(of_any)),
        "who does not look at it stays as it is"
    );
    run(&["verify", "--repo", repo.arg()]).expect(0);
    let again = repo.id(RENDERED);
    report(&repo, "turin", 60).expect(0);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), again, "a report that says the same moves nothing");
}

#[test]
fn the_daemon_hears_of_a_score_by_itself() {
    let repo = fleet();
    let daemon = Daemon::start(&repo);
    daemon.wait_for(&["pass done"]);
    report(&repo, "turin", 100).expect(0);
    daemon.wait_for(&["\"published\""]);
    assert_eq!(clusters_of(&repo, "near"), ["turin"]);
    assert_eq!(clusters_of(&repo, "any"), ["oslo"]);
    assert_eq!(daemon.stop(), 0);
}

#[test]
fn facts_that_can_not_be_read_are_reported_and_the_earlier_ones_stay() {
    let repo = fleet();
    report(&repo, "turin", 60).expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let facts = folder.path().join("facts.yaml");
    std::fs::write(&facts, "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: oslo}\n")
        .expect("a file");
    let target = format!("dir:{}", folder.path().join("target").display());
    let args = ["sync", "--once", "--repo", repo.arg(), "--cluster", "turin", "--target", &target, "--facts"];
    Ran::of(berth().args(args).arg(&facts)).expect(0);
    let status = repo.git(&["cat-file", "-p", "refs/berth/status/turin:status.yaml"]);
    assert!(status.contains("value: 60"), "{status}");
    assert!(status.contains("this member is `turin`"), "{status}");
}
