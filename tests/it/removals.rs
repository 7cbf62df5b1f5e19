//! The gate has a memory and knows causes: removals in many steps, by members' reports, beside edits.

use crate::support::removals::{WEB, copies, fleet_of, label, placement, report, work};
use crate::support::{RENDERED, Repo, cluster, config_map, namespace, run, run_at};

/// A config map on these clusters by name.
fn on(clusters: &[String]) -> String {
    let names: Vec<String> = clusters.iter().map(|name| format!("{{name: {name}}}")).collect();
    config_map("web", "one", &format!("{{clusters: [{}]}}", names.join(", ")))
}

/// Ten KubeFed clusters with a namespace, and a config map on all of them.
fn ten() -> (Repo, Vec<String>) {
    let repo = Repo::new();
    let names: Vec<String> = (0..10).map(|n| format!("c{n}")).collect();
    for name in &names {
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[]));
    }
    repo.write("apps/shop.yaml", namespace("shop"));
    repo.write("apps/web.yaml", on(&names));
    repo.commit("start");
    repo.publish().expect(0);
    (repo, names)
}

#[test]
fn a_workload_that_shrinks_commit_by_commit_is_held_where_one_commit_would_be() {
    let (repo, names) = ten();
    repo.write("apps/web.yaml", on(&names[..5]));
    repo.commit("ten to five");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", on(&names[..3]));
    repo.commit("five to three");
    run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5);
    let ran = repo.publish().expect(5);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "it would be removed from 7 of its 10 clusters, including 5 lost earlier within the window"
        ),
        "{}",
        ran.out
    );
    assert_eq!(copies(&repo, "ConfigMap_web.yaml"), 5);
    repo.write("apps/web.yaml", on(&names[..1]));
    repo.commit("three to one");
    repo.publish().expect(5);
    assert_eq!(copies(&repo, "ConfigMap_web.yaml"), 5);
    run(&["verify", "--repo", repo.arg()]).expect(0);

    repo.write("apps/web.yaml", on(&names));
    repo.commit("all ten again");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", on(&names[..6]));
    repo.commit("what came back gave its share back");
    repo.publish().expect(0);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn what_an_approval_let_go_does_not_count_against_the_next_removal() {
    let (repo, names) = ten();
    repo.write("apps/web.yaml", on(&names[..4]));
    repo.commit("ten to four");
    let ran = repo.publish().expect(5);
    let line = ran.approval();
    repo.commit(&format!("it may\n\n{line}"));
    repo.publish().expect(0);
    assert_eq!(copies(&repo, "ConfigMap_web.yaml"), 4);
    repo.write("apps/web.yaml", on(&names[..3]));
    repo.commit("four to three");
    repo.publish().expect(0);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn the_window_is_a_flag_and_part_of_the_commit() {
    let (repo, names) = ten();
    for count in [5, 3] {
        repo.write("apps/web.yaml", on(&names[..count]));
        repo.commit("fewer");
        run_at(repo.dated(), &["run", "--once", "--repo", repo.arg(), "--removal-window", "30s"]).expect(0);
    }
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(message.contains(" window=30s "), "{message}");
    run(&["verify", "--repo", repo.arg()]).expect(0);
    repo.write("apps/web.yaml", on(&names));
    repo.commit("all again, with the usual window");
    repo.publish_at(repo.dated()).expect(0);
    repo.write("apps/web.yaml", on(&names[..9]));
    repo.commit("and a shorter one");
    run_at(repo.dated(), &["run", "--once", "--repo", repo.arg(), "--removal-window", "30s"]).expect(0);
    let ran = run(&["verify", "--repo", repo.arg()]).expect(3);
    assert!(ran.out.contains("window=30s"), "a shorter window is a looser gate: {}", ran.out);
    run(&["verify", "--repo", repo.arg(), "--expect-gate", "any"]).expect(0);
    run(&["run", "--once", "--repo", repo.arg(), "--removal-window", "a day"]).expect(2);
}

#[test]
fn members_that_leave_one_report_at_a_time_are_held_like_all_at_once() {
    let (repo, names) = fleet_of(10, placement("size", "small"), 1);
    let mut held = None;
    for (pass, name) in names.iter().take(9).enumerate() {
        report(&repo, name, 60 + pass as u64, "claims: {size: small}\n");
        if repo.publish().code == 5 {
            held.get_or_insert(pass);
        }
    }
    assert_eq!(held, Some(3), "four of ten clusters are more than 30 %");
    assert_eq!(copies(&repo, WEB), 7);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_part_of_the_fleet_at_each_pass_adds_up() {
    let (repo, names) = fleet_of(20, placement("size", "small"), 1);
    for (pass, some) in names.chunks(6).enumerate() {
        for name in some {
            report(&repo, name, 60 + pass as u64, "claims: {size: small}\n");
        }
        repo.publish().expect(if pass == 0 { 0 } else { 5 });
    }
    assert_eq!(copies(&repo, WEB), 14, "six of twenty are no more than 30 %");
}

#[test]
fn ten_of_eleven_objects_of_each_of_fifty_clusters_are_held() {
    let (repo, _) = fleet_of(50, placement("size", "small"), 11);
    repo.write("apps/work.yaml", work(1));
    repo.commit("ten of eleven go");
    let ran = repo.publish().expect(5);
    assert!(ran.out.contains("would lose 10 of its 11 objects"), "{}", ran.out);
    assert_eq!(copies(&repo, ".yaml"), 550);
}

#[test]
fn a_commit_that_changes_nothing_releases_no_freeze() {
    let (repo, names) = fleet_of(10, placement("size", "small"), 1);
    for name in &names[..5] {
        report(&repo, name, 60, "claims: {size: small}\n");
    }
    repo.publish().expect(5);
    repo.write("README.md", "words\n");
    repo.commit("words");
    repo.publish().expect(5);
    assert_eq!(copies(&repo, WEB), 10, "still frozen");

    // Reports and a commit that come in one pass.
    let (repo, names) = fleet_of(10, placement("size", "small"), 1);
    for name in &names[..5] {
        report(&repo, name, 60, "claims: {size: small}\n");
    }
    repo.write("README.md", "words\n");
    repo.commit("words");
    let ran = repo.publish().expect(5);
    assert!(ran.out.contains("would lose objects or placements"), "{}", ran.out);
    assert_eq!(copies(&repo, WEB), 10, "frozen");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_namespace_is_held_whatever_takes_it_away() {
    let (repo, names) = fleet_of(10, placement("size", "small"), 1);
    repo.write("apps/work.yaml", work(1).replace("kind: ConfigMap", "kind: Namespace"));
    repo.commit("a namespace beside");
    repo.publish_ungated().expect(0);
    report(&repo, &names[0], 60, "claims: {size: small}\n");
    let ran = repo.publish().expect(5);
    assert!(ran.out.contains("it would remove Namespace"), "{}", ran.out);
}

#[test]
fn a_status_that_cannot_be_read_changes_nothing() {
    let (repo, names) = fleet_of(4, placement("size", "NotThere").replace("NotIn", "In"), 1);
    for name in &names {
        report(&repo, name, 60, "claims: {size: NotThere}\n");
    }
    repo.publish().expect(0);
    assert_eq!(copies(&repo, WEB), 4);
    let before = repo.id(RENDERED);
    report(&repo, &names[0], 61, "claims: [\n");
    report(&repo, &names[1], 61, "");
    let other = repo.id("refs/berth/status/c03");
    repo.git(&["update-ref", "refs/berth/status/c01", &other]);
    repo.git(&["symbolic-ref", "refs/berth/status/c02", "refs/heads/nowhere"]);
    let ran = repo.publish().expect(0);
    assert!(ran.err.contains("this status is ignored"), "{}", ran.err);
    assert_eq!(repo.id(RENDERED), before, "nobody is evicted");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn members_report_no_label_that_the_daemon_does_not_allow() {
    let (repo, names) = fleet_of(4, label("zone", "dark"), 1);
    for name in &names {
        report(&repo, name, 60, "labels: {zone: dark}\n");
    }
    repo.publish().expect(0);
    assert_eq!(copies(&repo, WEB), 4, "a label of no file does not count");
    let allowed = ["run", "--once", "--repo", repo.arg(), "--member-labels", "tier,zo*"];
    run(&allowed).expect(5);
    let ran = run(&["run", "--once", "--repo", repo.arg(), "--member-labels", "a b"]).expect(2);
    assert!(ran.err.contains("is not a label key"), "{}", ran.err);
}
