//! Members' reports become verdicts on exactly the copies that the members applied.

use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health};
use berth_base::model::{ClusterStatus, Map, Shared, Timestamp};
use berth_engine::release::copies::{ObjectPaths, digest};
use berth_hub::inputs::{PassInputs, Search};
use berth_hub::publish;

use crate::support::removals::{GLOBAL_SET, feed, managed, report, work};
use crate::support::{RENDERED, Repo, namespace, run, small_fleet};

const PLACEMENT: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
     metadata: {name: web, namespace: shop}\nspec: {}\n";

/// A workload on three clusters, which goes there in waves of all of them.
fn fleet() -> Repo {
    let repo = Repo::new();
    for name in ["a", "b", "c"] {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, ""));
    }
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write("apps/placement.yaml", PLACEMENT);
    repo.write("apps/work.yaml", rolling(1));
    repo.commit("start");
    repo.publish().expect(0);
    repo
}

fn rolling(objects: usize) -> String {
    let strategy =
        "[{name: web, rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: \"100%\"}}}]";
    work(objects).replace("[{name: web}]", strategy)
}

fn tree(repo: &Repo, cluster: &str) -> String {
    repo.git(&["rev-parse", &format!("{RENDERED}:clusters/{cluster}")])
}

fn applied(tree: &str, more: &str) -> String {
    format!("applied:\n  sequence: 1\n  tree: {tree}\n  objects: 1\n{more}")
}

fn statuses(repo: &Repo) -> Map<String, Shared<ClusterStatus>> {
    let inputs = PassInputs::revision(repo.path(), "HEAD", None, None, &Search::default()).expect("inputs");
    inputs.reports.statuses
}

fn verdict(repo: &Repo, cluster: &str) -> Option<CopyReport> {
    let name = WorkloadName {
        kind: "ManifestWorkReplicaSet".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    };
    statuses(repo).remove(cluster)?.copies.remove(&name)
}

fn health(repo: &Repo, cluster: &str) -> Option<Health> {
    verdict(repo, cluster).map(|report| report.health)
}

/// The digest of the copies that the rendered branch holds for a cluster.
fn published(repo: &Repo, cluster: &str) -> berth_base::model::Digest {
    let git = berth_git::Repo::open(repo.path()).expect("a repository");
    let current = publish::read_current(&git, RENDERED).expect("read").expect("a state");
    let decision = current
        .state
        .decisions
        .values()
        .find(|one| &*one.key.kind == "ManifestWorkReplicaSet" && &*one.key.name == "web");
    let folder = &current.state.folders[cluster];
    let paths = ObjectPaths::of(&decision.expect("a workload").objects);
    let copies = paths.copies(|path| folder.get(path).copied());
    digest(copies.iter().map(|copy| (copy.path, copy.content)))
}

#[test]
fn a_report_on_the_current_folder_is_a_verdict_on_the_published_copies() {
    let repo = fleet();
    let object = "kind: ConfigMap, namespace: shop, name: web-0";
    report(&repo, "a", 1, &applied(&tree(&repo, "a"), ""));
    report(
        &repo,
        "b",
        1,
        &applied(&tree(&repo, "b"), &format!("  progressing: true\n  waiting: [{{{object}}}]\n")),
    );
    report(
        &repo,
        "c",
        1,
        &applied(&tree(&repo, "c"), &format!("  problems: [{{{object}, message: no room}}]\n")),
    );
    let [a, b, c] = ["a", "b", "c"].map(|cluster| verdict(&repo, cluster).expect("a verdict"));
    assert_eq!([a.health, b.health, c.health], [Health::Succeeded, Health::Progressing, Health::Failed]);
    assert_eq!(c.message, "ConfigMap shop/web-0: no room");
    assert!([&a, &b, &c].iter().all(|one| one.digest == published(&repo, "a") && one.since.is_none()));
    repo.publish().expect(0);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_report_on_an_earlier_folder_is_about_the_copies_of_that_folder() {
    let repo = fleet();
    let (old_tree, old) = (tree(&repo, "a"), published(&repo, "a"));
    report(&repo, "a", 1, &applied(&old_tree, ""));

    // Another workload's change gives another folder with the same copies of this one.
    repo.write(
        "apps/side.yaml",
        work(1).replace("web-0", "side").replace("name: web, namespace", "name: side, namespace"),
    );
    repo.commit("a workload beside it");
    repo.publish().expect(0);
    assert_ne!(tree(&repo, "a"), old_tree);
    let beside = verdict(&repo, "a").expect("a verdict");
    assert_eq!((beside.digest, beside.health), (old, Health::Succeeded));
    assert_eq!(beside.digest, published(&repo, "a"), "so the success counts");

    repo.write(
        "apps/work.yaml",
        rolling(1).replace("namespace: shop}\n", "namespace: shop}\n        data: {k: v}\n").replacen(
            "        data: {k: v}\n",
            "",
            1,
        ),
    );
    repo.commit("new content");
    repo.publish().expect(0);
    let behind = verdict(&repo, "a").expect("a verdict");
    assert_eq!(behind.digest, old);
    assert_ne!(behind.digest, published(&repo, "a"), "an old success says nothing of the new copies");
}

#[test]
fn a_report_on_a_folder_that_nobody_has_or_that_is_no_folder_is_no_verdict() {
    let repo = fleet();
    let blob = feed(&repo, &["hash-object", "-w", "--stdin"], "text");
    for odd in ["0123456789012345678901234567890123456789", &blob, "HEAD", "\"\""] {
        report(&repo, "a", 1, &applied(odd, ""));
        assert_eq!(verdict(&repo, "a"), None, "{odd}");
    }
    report(
        &repo,
        "a",
        2,
        &applied(&tree(&repo, "a"), "  failing: {since: \"2026-01-01T00:00:00Z\", message: down}\n"),
    );
    assert_eq!(verdict(&repo, "a"), None);
    report(&repo, "a", 3, &applied(&tree(&repo, "a"), "  suspended: {reason: holidays}\n"));
    assert_eq!(verdict(&repo, "a"), None);
    report(&repo, "a", 4, &applied(&tree(&repo, "a"), ""));
    assert_eq!(health(&repo, "a"), Some(Health::Succeeded));
}

#[test]
fn nobody_asks_for_verdicts_on_a_workload_that_goes_everywhere_at_once() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let cluster = repo.git(&["ls-tree", "--name-only", &format!("{RENDERED}:clusters")]);
    let cluster = cluster.lines().next().expect("a cluster");
    report(&repo, cluster, 1, &applied(&tree(&repo, cluster), ""));
    assert!(statuses(&repo)[cluster].copies.is_empty());
    let at_once = fleet();
    at_once.write("apps/work.yaml", work(1));
    at_once.commit("OCM's default, All");
    at_once.publish().expect(0);
    report(&at_once, "a", 1, &applied(&tree(&at_once, "a"), ""));
    assert!(statuses(&at_once)["a"].copies.is_empty());
}

#[test]
fn verdicts_of_another_reporter_stay_and_none_is_from_the_future() {
    let repo = fleet();
    let copies = |since: &str| {
        format!(
            "copies:\n- {{kind: ManifestWorkReplicaSet, namespace: shop, name: web, health: failed, since: \"{since}\", \
             digest: 0123456789abcdef0123456789abcdef, message: Flux says no}}\n"
        )
    };
    report(&repo, "a", 1, &format!("{}{}", copies("2026-01-01T00:00:00Z"), applied(&tree(&repo, "a"), "")));
    let own = verdict(&repo, "a").expect("a verdict");
    assert_eq!((own.health, &*own.message), (Health::Failed, "Flux says no"));
    assert_eq!(own.since, Some("2026-01-01T00:00:00Z".parse::<Timestamp>().expect("a moment")));
    report(&repo, "a", 1, &copies("2126-01-01T00:00:00Z"));
    let inputs = PassInputs::revision(repo.path(), "HEAD", None, None, &Search::default()).expect("inputs");
    let since = inputs.reports.statuses["a"].copies.values().next().expect("a verdict").since;
    assert!(since.is_some_and(|since| since <= inputs.now), "{since:?}");
}

#[test]
fn a_status_in_the_source_is_no_verdict() {
    let repo = fleet();
    let digest = published(&repo, "a");
    repo.write(
        "status/a.yaml",
        format!(
            "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: a}}\nsilent: \"2026-01-01T00:00:00Z\"\n\
             copies:\n- {{kind: ManifestWorkReplicaSet, namespace: shop, name: web, health: succeeded, digest: {digest}}}\n"
        ),
    );
    repo.commit("a status by hand");
    repo.publish().expect(0);
    assert_eq!(verdict(&repo, "a"), None);
    assert!(!repo.files(RENDERED).keys().any(|path| path.starts_with("facts/")), "and no fact");
}

#[test]
fn a_report_on_earlier_copies_begins_no_rollout_that_nobody_asked_for() {
    let repo = fleet();
    let earlier = tree(&repo, "a");
    repo.write(
        "apps/front.yaml",
        "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: front}\nspec:\n  \
         resourceSelectors: [{group: '', version: v1, kind: Namespace, name: front}]\n---\n\
         apiVersion: v1\nkind: Namespace\nmetadata: {name: front}\n",
    );
    repo.commit("another workload");
    repo.publish().expect(0);
    report(&repo, "a", 65, &applied(&earlier, ""));
    repo.write("apps/note.yaml", namespace("shop"));
    repo.commit("a third one");
    repo.publish().expect(0);
    let releases = "releases/_cluster/ClusterResourcePlacement.placement.kubernetes-fleet.io_front.yaml";
    assert!(!repo.files(RENDERED).contains_key(releases), "nobody reported on it");
    report(&repo, "a", 66, &applied(&tree(&repo, "a"), ""));
    repo.publish().expect(0);
    assert!(repo.files(RENDERED).contains_key(releases), "a did");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}
