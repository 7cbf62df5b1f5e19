//! A run after one that had nothing to do.

use berth_base::model::Timestamp;
use berth_hub::daemon::Settings;

use super::cases::{step, with};
use super::sides::Sides;
use crate::support::{cluster, namespace};

/// A repository whose last run had nothing to do. Its cluster's file cannot be read any more, and is not cached.
fn idle() -> crate::support::Repo {
    let repo = crate::support::Repo::new();
    repo.write("clusters/a.yaml", crate::support::removals::managed("a", ""));
    repo.commit("start");
    for _ in 0..2 {
        repo.publish().expect(0);
    }
    let blob = repo.git(&["rev-parse", "HEAD:clusters/a.yaml"]);
    std::fs::remove_file(repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    repo
}

#[test]
fn a_run_after_one_that_had_nothing_to_do_reads_nothing() {
    let repo = idle();
    assert!(repo.publish().expect(0).out.contains("nothing to publish"));
}

#[test]
fn a_run_looks_again_once_anything_differs() {
    let flags = idle();
    let other = crate::support::run(&["run", "--once", "--repo", flags.arg(), "--max-removed-clusters", "7"]);
    assert_ne!(other.code, 0);
    for name in ["refs/berth/report", "refs/berth/processed"] {
        let repo = idle();
        repo.git(&["update-ref", "-d", name]);
        assert_ne!(repo.publish().code, 0, "without {name}");
    }
    let reported = idle();
    crate::support::removals::report(&reported, "a", 1, "");
    assert_ne!(reported.publish().code, 0);
    let damaged = idle();
    let file = damaged.path().join(".git/berth/cache/idle.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"made\":\"2", "\"made\":\"1", 1)).unwrap();
    assert_ne!(damaged.publish().code, 0);
}

/// A member's clock is ahead: what it reports counts once its moment has come, and tells then that another one is silent.
#[test]
fn a_report_from_later_on_is_waited_for() {
    let at = |time: &str| -> Timestamp { format!("2026-01-01T{time}Z").parse().unwrap() };
    let files = with(&[
        ("shop.yaml", &namespace("shop")),
        ("a.yaml", &cluster("a", &[])),
        ("b.yaml", &cluster("b", &[])),
    ]);
    let mut sides = Sides::new(&Settings::of(""));
    for (name, reported, due) in [("a", "00:10:00", "00:11:00"), ("b", "00:00:30", "00:01:00")] {
        let (reported, due) = (at(reported), at(due));
        let status = format!(
            "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: {name}}}\n\
             reported: \"{reported}\"\nnextDue: \"{due}\"\n"
        );
        sides.report(name, Some(status));
    }
    step(&mut sides, &files, 1, at("00:01:10"));
    (0..2).for_each(|_| drop(sides.pass(at("00:01:10"))));
    assert!(!sides.pass(at("05:00:00")).is_idle);
}
