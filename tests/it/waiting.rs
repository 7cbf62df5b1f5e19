//! The status of some clusters, and `berth wait` until they have what is published.

use std::process::Stdio;

use crate::support::{Ran, Repo, berth, run, small_fleet};

fn published() -> (Repo, tempfile::TempDir) {
    let repo = small_fleet();
    repo.publish().expect(0);
    (repo, tempfile::tempdir().expect("a folder"))
}

fn ask(repo: &Repo, args: &[&str]) -> Ran {
    run(&[args, &["--repo", repo.arg()]].concat())
}

#[test]
fn a_wait_ends_with_the_last_cluster() {
    let (repo, target) = published();
    let ran = ask(&repo, &["wait", "--timeout", "0"]).expect(7);
    assert!(ran.err.contains("3 of 3 clusters not in sync (3 never reported): a, b, c"), "{}", ran.err);
    repo.sync("a", &target.path().join("a"), &[]).expect(0);
    assert_eq!(ask(&repo, &["wait", "a", "--timeout", "0"]).expect(0).out, "1 cluster in sync\n");
    ask(&repo, &["wait", "-l", "env=prod", "--timeout", "0"]).expect(7);
    assert!(ask(&repo, &["wait", "d"]).expect(2).err.contains("no cluster `d` in the published state"));
    // Each look sees what was reported since the last one.
    let waiting = berth()
        .args(["wait", "--source", "main", "--repo", repo.arg()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("berth runs");
    for cluster in ["b", "c"] {
        repo.sync(cluster, &target.path().join(cluster), &[]).expect(0);
    }
    let (source, rendered) = (repo.id("main"), format!("file://{}", repo.arg()));
    let elsewhere = ["wait", "--source", &source, "--timeout", "60", "--rendered", &rendered];
    assert_eq!(ask(&repo, &elsewhere).expect(0).out, "3 clusters in sync\n");
    let ended = waiting.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), &b"3 clusters in sync\n"[..]));
    // A commit that no pass has read is not there yet, however well the clusters are.
    repo.write("apps/more.yaml", crate::support::namespace("more"));
    repo.commit("more");
    let late = ask(&repo, &["wait", "--source", "main", "--timeout", "0"]).expect(7);
    assert!(late.err.contains("the daemon has not processed commit"), "{}", late.err);
    ask(&repo, &["wait", "--timeout", "0"]).expect(0);
}

#[test]
fn a_wait_for_what_is_held_does_not_end_well() {
    let (repo, target) = published();
    for cluster in ["a", "b", "c"] {
        repo.sync(cluster, &target.path().join(cluster), &[]).expect(0);
    }
    std::fs::remove_file(repo.path().join("apps/web.yaml")).expect("a file");
    repo.commit("no web");
    repo.publish().expect(5);
    let held = ask(&repo, &["wait", "--timeout", "0"]).expect(5);
    assert!(held.err.contains("held for approval") && held.err.contains("web"), "{}", held.err);
    ask(&repo, &["wait", "a", "--timeout", "0"]).expect(0);
}

#[test]
fn a_status_shows_the_worst_first_and_some_clusters_in_full() {
    let (repo, target) = published();
    repo.sync("a", &target.path().join("a"), &[]).expect(0);
    let all = ask(&repo, &["status"]).expect(0).out;
    assert!(all.contains("3 clusters: 2 never reported, 1 in sync\n"), "{all}");
    let at = |name: &str| all.find(&format!("\n{name} ")).unwrap_or_else(|| panic!("no {name}: {all}"));
    assert!(at("b") < at("c") && at("c") < at("a"), "{all}");
    let one = ask(&repo, &["status", "a"]).expect(0).out;
    assert!(one.contains("1 cluster: 1 in sync") && one.contains("on a: 2 workloads\n"), "{one}");
    assert!(one.contains("FederatedConfigMap  shop/web   1        in sync"), "{one}");
    assert!(!one.contains("\nb "), "{one}");
    let prod = ask(&repo, &["status", "-l", "env in (prod)", "-o", "json"]).expect(0).json();
    let clusters = prod["fleet"]["clusters"].as_array().expect("a list");
    assert_eq!(clusters.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(clusters[1]["has"]["workloads"][1]["state"], "not applied");
    assert!(ask(&repo, &["status", "-l", "env in"]).expect(2).err.contains("--selector"));
    // The same as an object, with its labels and its file.
    for name in ["cluster/a", "KubeFedCluster/a", "a"] {
        let described = ask(&repo, &["describe", name, "-o", "json"]).expect(0).json()["items"][0].take();
        assert_eq!(described["metadata"]["labels"]["env"], "prod");
        assert_eq!(described["source"], "clusters/a.yaml:1");
        assert_eq!(described["status"]["has"]["workloads"][0]["name"], "web");
    }
    assert!(ask(&repo, &["describe", "cluster/aa"]).expect(2).err.contains("did you mean `a`?"));
    assert!(ask(&repo, &["describe", "wob"]).expect(2).err.contains("no placement `wob`"));
}

#[test]
fn a_status_names_the_errors_of_the_source() {
    let (repo, _) = published();
    repo.write("apps/web.yaml", "apiVersion: types.kubefed.io/v1beta1\nkind: [\n");
    repo.commit("a slip");
    repo.publish().expect(1);
    let ran = ask(&repo, &["status"]).expect(0);
    assert!(ran.out.contains("1 error") && ran.out.contains("\n  apps/web.yaml:"), "{}", ran.out);
    let json = ask(&repo, &["status", "-o", "json"]).expect(0).json();
    assert_eq!(json["processed"]["messages"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_state_at_an_address_needs_no_repository() {
    let (repo, target) = published();
    repo.sync("a", &target.path().join("a"), &[]).expect(0);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", repo.arg());
    let ask =
        |args: &[&str]| Ran::of(berth().current_dir(elsewhere.path()).args(args).args(["--rendered", &url]));
    let status = ask(&["status"]).expect(0);
    assert!(status.out.contains("published number 1") && status.out.contains("1 in sync"), "{}", status.out);
    ask(&["wait", "a", "--timeout", "0"]).expect(0);
    assert!(ask(&["describe", "cluster/a"]).expect(0).out.contains("in sync"));
    assert!(
        ask(&["status", "-l", "env=prod"]).expect(2).err.contains("the labels of clusters are not known")
    );
    let without = Ran::of(berth().current_dir(elsewhere.path()).arg("status")).expect(6);
    assert!(without.err.contains("is not a Git repository"), "{}", without.err);
}
