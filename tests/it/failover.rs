//! Workloads that leave a silent cluster while the removal of their copies is held: their copies elsewhere do not wait.

use crate::support::removals::{managed, work};
use crate::support::silence::{World, placement};
use crate::support::{RENDERED, run};

const NAMESPACE: &str = "      - apiVersion: v1\n        kind: Namespace\n        metadata: {name: shop}\n";

/// Managed clusters, with a workload that carries its Namespace on two of them.
fn carrying() -> World {
    World::with(8, &placement(2, Some(600)), &(work(1) + NAMESPACE))
}

/// The line that approves what is held, from `berth status`.
fn approval(world: &World) -> Option<String> {
    let status = run(&["status", "--repo", world.repo.arg()]).expect(0).out;
    let line = status.lines().find(|line| line.starts_with("held for approval: "))?;
    assert!(line.contains("ManifestWorkReplicaSet shop/web"), "{line}");
    Some(line.split_once('(')?.1.trim_end_matches(')').to_owned())
}

fn folder(world: &World, cluster: &str) -> Vec<(String, String)> {
    let own = format!("clusters/{cluster}/");
    world.repo.files(RENDERED).into_iter().filter(|(path, _)| path.starts_with(&own)).collect()
}

fn decision(world: &World) -> String {
    let files = world.repo.files(RENDERED);
    let of_work = |path: &&String| path.starts_with("decisions/") && path.contains("ManifestWorkReplicaSet");
    files[files.keys().find(of_work).expect("a decision")].clone()
}

#[test]
fn a_workload_with_its_namespace_comes_at_once_and_only_the_removal_is_held() {
    let mut world = carrying();
    world.minutes(20);
    let before = folder(&world, "c00");
    assert_eq!(before.len(), 2);
    world.kill("c00");
    // Silent from minute 50 on, and tolerated for ten minutes more.
    world.minutes(39);
    assert_eq!((world.placed(), approval(&world)), (vec!["c00".to_owned(), "c01".to_owned()], None));
    world.minutes(1);
    assert_eq!(world.placed(), ["c00", "c01", "c02"]);
    assert_eq!(folder(&world, "c00"), before);
    assert_eq!(folder(&world, "c02").len(), 2);
    assert!(decision(&world).contains("held: true"), "{}", decision(&world));
    let line = approval(&world).expect("held");
    let warned = world.warnings();
    assert!(
        warned.iter().any(|said| said.contains("its removals are held back: it would remove Namespace shop")),
        "{warned:?}"
    );
    let tip = world.tip();
    world.minutes(120);
    assert_eq!((world.tip(), approval(&world)), (tip, Some(line.clone())), "it stays so");
    let plan = run(&["plan", "--repo", world.repo.arg(), "--now", "2026-01-01T03:00:00Z"]).expect(0).out;
    assert!(plan.contains("1 workload held for approval: only the removals are held"), "{plan}");
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plan.contains("its other copies are published without waiting for the removals"), "{plan}");
    world.verify();

    // An edit reaches the clusters that are picked, and no other.
    world.repo.write("apps/work.yaml", work(2) + NAMESPACE);
    world.repo.commit("one more");
    world.minutes(10);
    assert_eq!(folder(&world, "c00"), before);
    assert_eq!((folder(&world, "c01").len(), folder(&world, "c02").len()), (3, 3));
    assert_eq!(approval(&world), Some(line.clone()));

    world.repo.commit(&format!("c00 is gone for good\n\n{line}"));
    world.minutes(10);
    assert_eq!((world.placed().contains(&"c00".to_owned()), approval(&world)), (false, None));
    let allowed = world.repo.git(&["log", "-1", "--format=%B", "refs/berth/clusters/c00"]);
    assert!(allowed.contains("Berth-Allow-Prune: "), "{allowed}");
    assert!(!decision(&world).contains("held"), "{}", decision(&world));
    world.verify();
}

#[test]
fn a_member_that_comes_back_before_the_approval_keeps_its_copies_and_nothing_moves() {
    let mut world = carrying();
    world.minutes(20);
    let before = folder(&world, "c00");
    world.kill("c00");
    world.minutes(60);
    assert_eq!(world.placed(), ["c00", "c01", "c02"]);
    let line = approval(&world);
    world.revive("c00");
    world.minutes(120);
    assert_eq!(world.facts("c00"), None, "it is heard");
    assert_eq!(world.placed(), ["c00", "c01", "c02"]);
    assert_eq!((folder(&world, "c00"), approval(&world)), (before.clone(), line.clone()));
    // Edits go on without it still, and whoever takes the workload from the others has it held as a whole.
    world.repo.write("apps/work.yaml", work(2) + NAMESPACE);
    world.repo.commit("one more");
    world.minutes(10);
    assert_eq!((folder(&world, "c00"), folder(&world, "c02").len()), (before.clone(), 3));
    world.repo.write("apps/placement.yaml", placement(1, Some(600)));
    world.repo.commit("one is enough");
    world.minutes(10);
    assert_eq!(
        (folder(&world, "c00"), folder(&world, "c01").len(), folder(&world, "c02").len()),
        (before, 3, 3)
    );
    world.verify();
}

#[test]
fn a_cluster_that_is_picked_again_keeps_its_copies_for_good() {
    let mut world = World::with(3, &placement(2, Some(600)), &(work(1) + NAMESPACE));
    world.minutes(20);
    world.kill("c00");
    world.minutes(60);
    world.revive("c00");
    world.minutes(60);
    assert!(approval(&world).is_some());
    world.kill("c01");
    world.minutes(60);
    // c01 is held now, and c00 took its place with what it had.
    assert_eq!(world.placed(), ["c00", "c01", "c02"]);
    let line = approval(&world).expect("held");
    world.verify();
    world.repo.commit(&format!("c01 is gone\n\n{line}"));
    world.minutes(10);
    assert_eq!((world.placed(), approval(&world)), (vec!["c00".to_owned(), "c02".to_owned()], None));
    world.verify();
}

#[test]
fn copies_that_came_elsewhere_make_a_held_removal_no_smaller() {
    let predicate =
        "  predicates:\n  - requiredClusterSelector: {labelSelector: {matchLabels: {web: here}}}\n";
    let mut world = World::with(30, &(placement(3, Some(600)) + predicate), &work(1));
    for name in ["c00", "c10", "c20", "c21", "c22", "c23"] {
        let labelled = managed(name, "").replace("}", ", labels: {web: here}}");
        world.repo.write(&format!("clusters/{name}.yaml"), labelled);
    }
    world.repo.commit("where web may be");
    world.minutes(20);
    // These report in the same minute, and are too few for an outage.
    for name in ["c00", "c10", "c20"] {
        world.kill(name);
    }
    assert_eq!(world.placed(), ["c00", "c10", "c20"]);
    world.minutes(60);
    assert_eq!(world.placed(), ["c00", "c10", "c20", "c21", "c22", "c23"]);
    let line = approval(&world);
    assert!(line.is_some());
    world.minutes(60);
    assert_eq!(approval(&world), line);
    world.repo.write("apps/work.yaml", work(2));
    world.repo.commit("one more");
    world.minutes(60);
    assert_eq!(world.placed().len(), 9, "two in each of three, and one in each of the others");
    world.verify();
    // A limit that lets it go does so.
    world.settings.limits.clusters.share = berth_engine::gate::Percent::new(100);
    world.minutes(10);
    assert_eq!((world.placed().len(), approval(&world)), (6, None));
}

#[test]
fn a_move_by_an_edit_is_held_as_a_whole() {
    let mut world = carrying();
    world.minutes(20);
    for name in ["c00", "c01"] {
        let taint = "  taints:\n  - {key: retired, effect: NoSelect}\n";
        world.repo.write(&format!("clusters/{name}.yaml"), managed(name, taint));
    }
    world.repo.commit("c00 and c01 retire");
    world.minutes(10);
    assert_eq!(world.placed(), ["c00", "c01"]);
    assert!(approval(&world).is_some());
    world.verify();
}
