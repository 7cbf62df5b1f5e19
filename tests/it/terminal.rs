//! Pictures in a terminal: the map of a fleet, and the progress of rollouts.

use crate::support::removals::report;
use crate::support::rollouts::Rollouts;
use crate::support::{Repo, cluster, config_map, namespace, run, small_fleet};

fn shown(repo: &Repo, args: &[&str]) -> String {
    run(&[args, &["--repo", repo.arg()]].concat()).expect(0).out
}

#[test]
fn a_map_has_a_mark_for_each_copy_by_label() {
    let repo = small_fleet();
    repo.publish().expect(0);
    for cluster in ["a", "b"] {
        let tree = repo.git(&["rev-parse", &format!("berth/rendered:clusters/{cluster}")]);
        report(&repo, cluster, 1, &format!("applied:\n  sequence: 1\n  tree: {tree}\n  objects: 2\n"));
    }
    let map = shown(&repo, &["map", "--ascii"]);
    let expected = "env:      dev prod\nshop/shop ?   oo\nshop/web  ?   oo\n\n? silent 2  o in sync 4\n";
    assert_eq!(map, expected);
    let signs = shown(&repo, &["map", "--by", "env", "--rows", "1"]);
    assert!(signs.contains("\nshop      ◌   ▪▪\n"), "{signs}");
    let refused = run(&["map", "--by", "region", "--repo", repo.arg()]).expect(2);
    assert!(refused.err.contains("clusters have env"), "{}", refused.err);
}

#[test]
fn a_map_of_hostile_names_stays_a_map() {
    let repo = small_fleet();
    repo.write("clusters/a.yaml", cluster("a", &[("env", "\\e[31m\\u202e")]));
    repo.commit("odd");
    repo.publish().expect(0);
    let map = shown(&repo, &["map"]);
    assert!(!map.contains(['\u{1b}', '\u{202e}']), "{map:?}");
}

const WAVES: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: waves, namespace: shop}
spec:
  workloads: [{kind: FederatedConfigMap, name: web}]
  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 10m}}}
";

#[test]
fn a_rollout_has_a_picture_of_its_progress() {
    let rollouts = Rollouts::of(Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
        ("waves.yaml", WAVES),
    ]));
    for _ in 0..2 {
        rollouts.succeed(&["a", "b"]);
        rollouts.publish();
        rollouts.wait(20);
    }
    assert!(shown(&rollouts.repo, &["rollout", "list"]).contains("2 of 2    ##"));
    rollouts.edit(&[("apps/web.yaml", &config_map("web", "two", "{clusterSelector: {}}"))]);
    assert!(shown(&rollouts.repo, &["rollout", "list"]).contains("1 of 2    >."));
}
