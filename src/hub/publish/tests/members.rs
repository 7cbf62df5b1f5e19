//! Cluster refs, statuses and the report.

use berth_git::shared_refs::ClusterRef;
use berth_git::shared_refs::read_cluster_ref;
use berth_git::shared_refs::{Statuses, read_statuses};

use super::ClusterRefCache;
use super::cluster_refs::{self, Repaired, WantedRefs, repair};
use super::*;
use crate::testing::{assert_clean, commit_files};
use berth_base::model::{Applier, Cluster, ClusterStatus, Map, Shared};
use berth_engine::report::{Detail, FleetSummary, SummaryInputs};
use berth_git::{CommitId, Identity, TreeId};

pub(super) fn fix(branch: &Branch, clusters: &[&str]) -> Repaired {
    fix_with_cache(branch, clusters, &mut ClusterRefCache::default())
}

fn fix_with_cache(branch: &Branch, clusters: &[&str], cache: &mut ClusterRefCache) -> Repaired {
    let rendered = &branch.current().unwrap();
    let clusters = &clusters.iter().map(|name| ((*name).to_owned(), Shared::new())).collect();
    let wanted = WantedRefs { rendered, clusters, identity: &Identity::default(), alive: None };
    repair(&branch.repo, &branch.refs, wanted, cache).unwrap()
}

fn of(branch: &Branch, cluster: &str) -> Option<ClusterRef> {
    let commit = branch.repo.read_ref(&branch.refs.cluster(cluster)).unwrap()?;
    read_cluster_ref(&branch.repo, commit)
}

#[test]
fn each_cluster_has_its_folder_and_one_without_objects_an_empty_tree() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a", "x.lock"], "1")]));
    let done = fix(&branch, &["a", "x.lock", "idle"]);
    assert_eq!(done.written, ["a", "idle", "x.lock"]);
    let current = branch.current().unwrap();
    assert_eq!(of(&branch, "a").unwrap().tree, current.trees["a"]);
    let locked = of(&branch, "x.lock").unwrap();
    assert_eq!((locked.cluster.as_str(), locked.tree), ("x.lock", current.trees["x.lock"]));
    assert_eq!(of(&branch, "idle").unwrap().tree, TreeId::EMPTY);
    assert_eq!(of(&branch, "unknown"), None);
    assert_clean(&branch.repo);
}

#[test]
fn clusters_have_a_branch_while_another_program_applies_their_folder() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a", "b"], "1")]));
    let rendered = &branch.current().unwrap();
    let mut going_on = ClusterRefCache::default();
    let mut branches_with = |clusters: &[(&str, Option<&str>)], cache: Option<&mut ClusterRefCache>| {
        let cluster = |applier: Option<&str>| Cluster {
            applier: applier.map(|name| Applier::named(name).unwrap()),
            ..Cluster::default()
        };
        let clusters: Map<String, Shared<Cluster>> =
            clusters.iter().map(|(name, applier)| ((*name).to_owned(), cluster(*applier).into())).collect();
        let identity = &Identity::default();
        let cache = cache.unwrap_or(&mut going_on);
        let wanted = WantedRefs { rendered, clusters: &clusters, identity, alive: None };
        repair(&branch.repo, &branch.refs, wanted, cache).unwrap();
        cluster_refs::repair_branches(&branch.repo, &branch.refs, cache.applied_by_others(), rendered)
            .unwrap();
        let branches = branch.repo.list_refs(&branch.refs.cluster_branches).unwrap();
        branches.keys().map(|name| name.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (clusters, expected) in [
        (&[("a", Some("flux")), ("b", None)][..], &["a"][..]),
        (&[("a", Some("flux")), ("b", Some("argocd"))], &["a", "b"]),
        (&[("a", Some("flux")), ("b", Some("argocd"))], &["a", "b"]),
        (&[("a", Some("berth")), ("b", Some("argocd"))], &["b"]),
        (&[("a", None), ("c", Some("flux"))], &["c"]),
        (&[("a", None)], &[]),
    ] {
        assert_eq!(branches_with(clusters, None), expected);
        assert_eq!(branches_with(clusters, Some(&mut ClusterRefCache::default())), expected);
    }
}

#[test]
fn only_refs_whose_folder_changed_are_written() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a", "b"], "1")]));
    fix(&branch, &["a", "b"]);
    assert_eq!(fix(&branch, &["a", "b"]), Repaired::default());
    branch.publish(&branch.state(&[("web", &["a", "b"], "1"), ("api", &["b"], "1")]));
    assert_eq!(fix(&branch, &["a", "b"]).written, ["b"]);
    assert_eq!((of(&branch, "a").unwrap().seq, of(&branch, "b").unwrap().seq), (1, 2));
}

#[test]
fn a_cluster_that_is_gone_loses_its_ref_unless_it_still_has_objects() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a"], "1")]));
    fix(&branch, &["a", "b"]);
    assert_eq!(fix(&branch, &[]).deleted, ["refs/berth/clusters/b"]);
    assert!(of(&branch, "a").is_some());
}

#[test]
fn deleted_and_garbled_refs_come_back_with_the_same_commits() {
    let branch = Branch::new();
    let clusters = ["a", "b", "c", "d"];
    branch.publish(&branch.state(&[("web", &clusters, "1")]));
    fix(&branch, &clusters);
    for content in ["2", "3"] {
        branch.publish(&branch.state(&[("web", &clusters, "1"), ("api", &["b"], content)]));
        fix(&branch, &clusters);
    }
    let before = branch.repo.list_refs(&branch.refs.clusters).unwrap();
    assert_eq!((of(&branch, "a").unwrap().seq, of(&branch, "b").unwrap().seq), (1, 3));
    branch.repo.delete_ref(&branch.refs.cluster("a"), before[&branch.refs.cluster("a")]).unwrap();
    commit_files(&branch.repo, &branch.refs.cluster("b"), &[("evil.yaml", "kind: Secret")]);
    let path = branch.repo.path().join(branch.refs.cluster("c"));
    std::fs::write(path, "").unwrap();
    let swapped = before[&branch.refs.cluster("a")];
    branch
        .repo
        .move_ref(&branch.refs.cluster("d"), Some(before[&branch.refs.cluster("d")]), swapped)
        .unwrap();
    assert_eq!(fix(&branch, &clusters).written, clusters);
    assert_eq!(branch.repo.list_refs(&branch.refs.clusters).unwrap(), before);
}

/// Three commits with two clusters: `b` returns to its first folder, `a` never changes.
fn there_and_back() -> (Branch, [CommitId; 3]) {
    let branch = Branch::new();
    let refs = ["1", "2", "1"].map(|content| {
        branch.publish(&branch.state(&[("web", &["a"], "1"), ("api", &["b"], content)]));
        fix(&branch, &["a", "b"]);
        branch.repo.read_ref(&branch.refs.cluster("b")).unwrap().unwrap()
    });
    (branch, refs)
}

#[test]
fn a_ref_from_before_its_folder_changed_and_came_back_is_written_anew() {
    let (branch, [first, _, last]) = there_and_back();
    let name = branch.refs.cluster("b");
    branch.repo.move_ref(&name, Some(last), first).unwrap();
    assert_eq!(fix(&branch, &["a", "b"]).written, ["b"]);
    assert_eq!(branch.repo.read_ref(&name).unwrap(), Some(last));
    assert_eq!((of(&branch, "a").unwrap().seq, of(&branch, "b").unwrap().seq), (1, 3));
    assert_eq!(fix(&branch, &["a", "b"]), Repaired::default());
}

#[test]
fn a_ref_that_was_right_once_is_compared_with_what_others_published_since() {
    let (branch, [first, ..]) = there_and_back();
    let name = branch.refs.cluster("b");
    let mut cache = ClusterRefCache::default();
    let mut fix = || fix_with_cache(&branch, &["a", "b"], &mut cache);
    assert_eq!(fix(), Repaired::default());
    let right = branch.repo.read_ref(&name).unwrap().unwrap();
    assert_ne!(right, first);
    // Another daemon published twice, and its refs were then moved back.
    for content in ["2", "1"] {
        branch.publish(&branch.state(&[("web", &["a"], "1"), ("api", &["b"], content)]));
    }
    assert_eq!(fix().written, ["b"]);
    assert_eq!(of(&branch, "b").unwrap().seq, 5);
    assert_eq!(fix(), Repaired::default());
}

#[test]
fn many_new_refs_are_packed_into_one_file() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a"], "1")]));
    let many: Vec<String> = (0..150).map(|index| format!("c{index}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(fix(&branch, &many).written.len(), 151);
    assert!(branch.repo.path().join("packed-refs").exists());
    assert_eq!(fix(&branch, &many), Repaired::default());
    assert_eq!(fix(&branch, &many[..100]).deleted.len(), 50);
}

#[test]
fn a_status_counts_for_its_own_name_only() {
    let branch = Branch::new();
    let (repo, refs) = (&branch.repo, &branch.refs);
    let status = |name: &str| ClusterStatus { cluster: name.to_owned(), ..ClusterStatus::default() };
    for name in ["a", "x.lock"] {
        let text = berth_base::status::write_status(&status(name));
        commit_files(repo, &refs.status_of(name), &[("status.yaml", &text)]);
    }
    let forged = berth_base::status::write_status(&status("a"));
    commit_files(repo, &refs.status_of("liar"), &[("status.yaml", &forged)]);
    commit_files(repo, &refs.status_of("empty"), &[("other.yaml", "x")]);
    let Statuses { by_cluster: statuses, diagnostics: found, .. } = read_statuses(repo, refs).unwrap();
    assert_eq!(statuses.keys().collect::<Vec<_>>(), ["a", "x.lock"]);
    let said = texts(&found);
    assert_eq!(said.len(), 2);
    assert!(said.iter().any(|line| line.contains("it is a status of `a`")), "{said:?}");
}

/// Writes the report of a fleet with these workloads.
fn write(branch: &Branch, workloads: &[&str], earlier: Option<WrittenReport>) -> WrittenReport {
    let decisions = workloads.iter().map(|name| decision("FederatedDeployment", "shop", name, &["a"]));
    let inputs = SummaryInputs {
        statuses: [("a".to_owned(), ClusterStatus::default().into())].into(),
        decisions: decisions.map(|decision| (decision.key.clone(), decision)).collect(),
        ..SummaryInputs::default()
    };
    let summary = FleetSummary::of(inputs, Detail::Brief);
    write_report(&branch.repo, &branch.refs, &summary, earlier, (&Identity::default(), 1)).unwrap()
}

#[test]
fn the_report_is_one_commit_that_is_replaced() {
    let branch = Branch::new();
    let now = || branch.repo.read_ref(&branch.refs.report).unwrap().unwrap();
    let first = write(&branch, &["web"], None).commit;
    let written = write(&branch, &["web"], None);
    assert_eq!((written.commit, now()), (first, first));
    let more = write(&branch, &["web", "db"], Some(written));
    assert_ne!(now(), first);
    assert!(branch.repo.commit(now()).unwrap().parents.is_empty());
    let other = Branch::new();
    assert_eq!(write(&other, &["db", "web"], None).commit, more.commit, "as from nothing");
    let less = write(&branch, &["web"], Some(more));
    assert_eq!((less.commit, now()), (first, first));
}

#[test]
fn a_report_that_somebody_else_wrote_is_not_gone_on_from() {
    let branch = Branch::new();
    let mut written = write(&branch, &["web"], None);
    let good = written.commit;
    let forged = commit_files(&branch.repo, &branch.refs.report, &[("clusters/b.json", "{}")]);
    assert_ne!(forged, good);
    written = write(&branch, &["web"], Some(written));
    assert_eq!((written.commit, branch.repo.read_ref(&branch.refs.report).unwrap()), (good, Some(good)));
    branch.repo.delete_ref(&branch.refs.report, good).unwrap();
    written = write(&branch, &["web"], Some(written));
    assert_eq!((written.commit, branch.repo.read_ref(&branch.refs.report).unwrap()), (good, Some(good)));
}
