//! Pictures in a terminal: the map of a fleet, and the progress of rollouts.

use crate::support::removals::report;
use crate::support::rollouts::Rollouts;
use crate::support::{Repo, cluster, config_map, run, small_fleet};

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

#[test]
fn a_rollout_has_pictures_of_its_progress_and_of_its_time() {
    let rollouts = Rollouts::with_a_proven_release();
    assert!(shown(&rollouts.repo, &["rollout", "list"]).contains("2 of 2    ##"));
    rollouts.edit(&[("apps/web.yaml", &config_map("web", "two", "{clusterSelector: {}}"))]);
    assert!(shown(&rollouts.repo, &["rollout", "list"]).contains("1 of 2    >."));
    // The second release came to `a` first, which then fails; `b` waits all the time.
    rollouts.wait(20);
    rollouts.fail("a", "web", "broken");
    rollouts.pass();
    rollouts.wait(20);
    let now = rollouts.now().to_string();
    let shown = shown(&rollouts.repo, &["rollout", "show", "web", "--now", &now]);
    let marks = |name: &str| {
        let line = shown.lines().find(|line| line.starts_with(&format!("  {name} ")));
        line.and_then(|line| line.split_whitespace().nth(1)).unwrap_or_else(|| panic!("no {name}: {shown}"))
    };
    let [a, b] = ["a", "b"].map(marks);
    assert_eq!(a.len(), 59, "{shown}");
    assert!(a.starts_with('>') && a.ends_with('x') && a.trim_matches(['>', 'x']).is_empty(), "{shown}");
    assert_eq!(b, ".".repeat(59), "{shown}");
    assert!(shown.lines().all(|line| !line.starts_with("  a ") || line.len() <= 80), "{shown}");
}
