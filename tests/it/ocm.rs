//! Open Cluster Management through the whole loop: decisions in its own form, first waves, taints in time.

use crate::support::{RENDERED, Repo, run};

const CLUSTER: &str = "cluster.open-cluster-management.io";

fn managed(name: &str, spec: &str) -> String {
    format!("apiVersion: {CLUSTER}/v1\nkind: ManagedCluster\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

fn placement(spec: &str) -> String {
    format!(
        "apiVersion: {CLUSTER}/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {{name: global, namespace: shop}}\n\
         spec: {{clusterSet: global}}\n---\napiVersion: {CLUSTER}/v1beta1\nkind: Placement\n\
         metadata: {{name: web, namespace: shop}}\nspec: {spec}\n"
    )
}

fn work(strategy: &str, value: &str) -> String {
    format!(
        "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
         metadata: {{name: web, namespace: shop}}\nspec:\n  placementRefs:\n  - name: web\n    rolloutStrategy: {strategy}\n\
         \x20 manifestWorkTemplate:\n    workload:\n      manifests:\n      - apiVersion: v1\n        kind: ConfigMap\n\
         \x20       metadata: {{name: web, namespace: shop}}\n        data: {{value: \"{value}\"}}\n"
    )
}

fn three(spec: &str, strategy: &str) -> Repo {
    let clusters = ["a", "b", "c"].map(|name| managed(name, "{}"));
    Repo::with(&[
        ("a.yaml", &clusters[0]),
        ("b.yaml", &clusters[1]),
        ("c.yaml", &clusters[2]),
        ("placement.yaml", &placement(spec)),
        ("work.yaml", &work(strategy, "one")),
    ])
}

/// The clusters that have the object.
fn served(repo: &Repo) -> String {
    let files = repo.files(RENDERED);
    let of = |path: &String| {
        path.strip_prefix("clusters/")?.strip_suffix("/shop/ConfigMap_web.yaml").map(str::to_owned)
    };
    files.keys().filter_map(of).collect()
}

fn verify_all(repo: &Repo) {
    // Removals are let through on the way, which is a looser gate than the commit before had.
    run(&["verify", "--repo", repo.arg(), "--expect-gate", "any"]).expect(0);
}

const DECISION_1: &str =
    "decisions/shop/PlacementDecision.cluster.open-cluster-management.io_web-decision-1.yaml";

#[test]
fn decisions_stand_beside_in_the_form_of_their_own_system() {
    let groups = "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 2}}}";
    let repo = three(groups, "{type: All}");
    repo.publish().expect(0);
    let files = repo.files(RENDERED);
    assert_eq!(
        files[DECISION_1],
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\nmetadata:\n  \
         name: web-decision-1\n  namespace: shop\n  labels:\n    \
         cluster.open-cluster-management.io/decision-group-index: \"0\"\n    \
         cluster.open-cluster-management.io/decision-group-name: \"\"\n    \
         cluster.open-cluster-management.io/placement: web\nstatus:\n  decisions:\n  - clusterName: a\n    reason: \"\"\n  \
         - clusterName: b\n    reason: \"\""
    );
    let second = DECISION_1.replace("-1.yaml", "-2.yaml");
    assert!(files[&second].contains("clusterName: c"), "{}", files[&second]);
    // Nothing of it is foreign, and nothing moves it.
    let before = repo.id(RENDERED);
    let again = repo.publish().expect(0);
    assert!(!again.err.contains("berth did not write"), "{}", again.err);
    assert_eq!(repo.id(RENDERED), before);
    // A cluster that joins changes its own object, and one that is not needed any more goes.
    repo.write("d.yaml", managed("d", "{}"));
    repo.commit("one more");
    repo.publish().expect(0);
    let changed = repo.changed(&before, RENDERED);
    assert!(changed.contains(&second) && !changed.iter().any(|path| path == DECISION_1), "{changed:?}");
    std::fs::remove_file(repo.path().join("c.yaml")).expect("a file");
    std::fs::remove_file(repo.path().join("d.yaml")).expect("a file");
    repo.commit("two less");
    repo.publish_ungated().expect(0);
    assert!(!repo.files(RENDERED).contains_key(&second));
    verify_all(&repo);
}

#[test]
fn an_object_beside_decisions_that_no_decision_has_is_foreign() {
    let repo = three("{}", "{type: All}");
    repo.publish().expect(0);
    let stranger = DECISION_1.replace("web-decision-1", "other-decision-1");
    repo.git(&["checkout", "-q", "berth/rendered"]);
    repo.write(&stranger, "kind: PlacementDecision\n");
    repo.commit("a stranger's");
    repo.git(&["checkout", "-q", "main"]);
    let ran = repo.publish().expect(0);
    assert!(ran.err.contains(&stranger) && ran.err.contains("berth did not write this"), "{}", ran.err);
    assert!(!repo.files(RENDERED).contains_key(&stranger));
}

#[test]
fn a_progressive_rollout_serves_its_first_wave_and_takes_nothing_away() {
    let repo = three("{}", "{type: Progressive, progressive: {maxConcurrency: 2}}");
    let ran = repo.publish().expect(0);
    assert_eq!(served(&repo), "ab");
    assert!(ran.err.contains("release 1: 1 of 3 clusters wait"), "{}", ran.err);
    let before = repo.id(RENDERED);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), before, "a second run changes nothing");
    repo.write("work.yaml", work("{type: All}", "one"));
    repo.commit("all");
    repo.publish().expect(0);
    assert_eq!(served(&repo), "abc");
    // Once all have it, a slower strategy keeps nobody waiting but newcomers, who go one at a time.
    repo.write("work.yaml", work("{type: Progressive, progressive: {maxConcurrency: 1}}", "one"));
    for name in ["d", "e"] {
        repo.write(&format!("{name}.yaml"), managed(name, "{}"));
    }
    repo.commit("slower, and two more");
    repo.publish().expect(0);
    assert_eq!(served(&repo), "abcd");
    verify_all(&repo);
}

#[test]
fn a_taint_without_a_date_counts_from_when_it_was_first_seen() {
    let repo = three("{tolerations: [{key: slow, operator: Exists, tolerationSeconds: 300}]}", "{type: All}");
    let tainted = managed("b", "{taints: [{key: slow, effect: NoSelect}]}");
    repo.publish().expect(0);
    repo.write("b.yaml", &tainted);
    repo.commit("b is slow");
    repo.publish_at(repo.dated()).expect(0);
    assert_eq!(served(&repo), "abc");
    // The deadline is an event of its own, long passed by now.
    repo.publish_ungated().expect(0);
    let facts = repo.files(RENDERED)["facts/b.yaml"].clone();
    assert!(facts.contains("key: slow") && facts.contains("since: \"2026-01-01T00:02:00Z\""), "{facts}");
    assert_eq!(served(&repo), "ac");
    let placed = |now: &str| {
        let args = ["decide", "--repo", repo.arg(), "--rev", "main", "-o", "json", "--now", now];
        let decided = run(&args).expect(0).json();
        let of_placement = decided["placements"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["kind"] == "Placement"));
        of_placement.and_then(|one| one["clusters"].as_array()).map_or(0, Vec::len)
    };
    assert_eq!(placed("2026-01-01T00:06:59Z"), 3, "almost");
    assert_eq!(placed("2026-01-01T00:07:00Z"), 2, "five minutes after it was first seen");
    repo.commit("something else, later");
    repo.publish_ungated().expect(0);
    assert_eq!(repo.files(RENDERED)["facts/b.yaml"], facts);
    // A taint that goes is forgotten.
    repo.write("b.yaml", managed("b", "{}"));
    repo.commit("b is well");
    repo.publish_ungated().expect(0);
    assert!(!repo.files(RENDERED).contains_key("facts/b.yaml"));
    assert_eq!(served(&repo), "abc");
    verify_all(&repo);
}

#[test]
fn a_condition_in_a_file_is_a_taint_until_the_member_reports() {
    let repo = three("{}", "{type: All}");
    let condition =
        "status:\n  conditions:\n  - {type: ManagedClusterConditionAvailable, status: \"False\"}\n";
    repo.write("b.yaml", managed("b", "{}") + condition);
    repo.commit("as the hub showed it");
    repo.publish().expect(0);
    assert_eq!(served(&repo), "ac");
    let folder = tempfile::tempdir().expect("a folder");
    repo.sync("b", folder.path(), &[]).expect(0);
    repo.publish().expect(0);
    assert_eq!(served(&repo), "abc");
    verify_all(&repo);
}

#[test]
fn a_work_of_one_cluster_comes_goes_and_stays_with_it() {
    let work = |cluster: &str, value: &str| {
        format!(
            "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {{name: own, namespace: {cluster}}}\nspec:\n  \
             workload:\n    manifests:\n    - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: own, namespace: shop}}, data: {{a: {value}}}}}\n"
        )
    };
    let repo = Repo::with(&[
        ("a.yaml", &managed("a", "{hubAcceptsClient: true}")),
        ("b.yaml", &managed("b", "{hubAcceptsClient: true}")),
        ("other.yaml", &work("b", "one").replace("own", "other")),
        ("work.yaml", &work("a", "one")),
    ]);
    repo.publish().expect(0);
    let at = |cluster: &str| {
        repo.files(RENDERED).get(&format!("clusters/{cluster}/shop/ConfigMap_own.yaml")).cloned()
    };
    assert!(at("a").is_some_and(|text| text.contains("a: one")) && at("b").is_none());
    repo.write("work.yaml", work("a", "two"));
    repo.commit("another value");
    repo.publish().expect(0);
    assert!(at("a").is_some_and(|text| text.contains("a: two")));
    repo.write("work.yaml", work("c", "two"));
    repo.commit("a cluster that there is not");
    let ran = repo.publish_ungated().expect(0);
    assert!(ran.err.contains("names `c`, which is not a cluster of the fleet"), "{}", ran.err);
    assert!(at("a").is_none());
    verify_all(&repo);
}
