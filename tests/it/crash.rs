//! Killed at any moment, beside another daemon, or after a process that left its locks: the branch is
//! always a complete state, nothing is lost, and the next run puts everything else right.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use crate::daemon::Daemon;
use crate::support::random::{Random, rounds};
use crate::support::wait::pause;
use crate::support::{
    RENDERED, Ran, Repo, berth, cluster, config_map, hermetic, namespace, run, small_fleet, ungated,
};

/// More clusters than berth keeps in single ref files.
const CLUSTERS: usize = 104;
const WORKLOADS: u64 = 12;

fn name(index: usize) -> String {
    format!("c{index:03}")
}

fn wide_fleet(value: u64) -> Repo {
    let repo = Repo::new();
    let clusters: Vec<String> = (0..CLUSTERS)
        .map(|index| cluster(&name(index), &[("half", if index % 2 == 0 { "even" } else { "odd" })]))
        .collect();
    repo.write("clusters.yaml", clusters.join("---\n"));
    repo.write("apps/shop.yaml", namespace("shop"));
    for workload in 0..WORKLOADS {
        edit(&repo, workload, value);
    }
    repo.commit("start");
    repo
}

fn edit(repo: &Repo, workload: u64, value: u64) {
    let placement = match value % 3 {
        0 => "{clusterSelector: {}}",
        1 => "{clusterSelector: {matchLabels: {half: even}}}",
        _ => "{clusterSelector: {matchLabels: {half: odd}}}",
    };
    let name = format!("map-{workload}");
    repo.write(&format!("apps/{name}.yaml"), config_map(&name, &value.to_string(), placement));
}

/// The ids behind all refs below a prefix.
fn refs(repo: &Repo, prefix: &str) -> BTreeMap<String, String> {
    let lines = repo.git(&["for-each-ref", "--format=%(refname) %(objectname)", prefix]);
    lines.lines().filter_map(|line| line.split_once(' ')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// Every cluster's ref holds exactly its folder of the rendered branch, and no other cluster has one.
#[track_caller]
fn cluster_refs_are_right(repo: &Repo, clusters: &[String]) {
    let folders = repo.git(&["ls-tree", &format!("{RENDERED}:clusters")]);
    let folders: BTreeMap<&str, &str> = folders
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(about, name)| (name, about.rsplit(' ').next().unwrap_or_default()))
        .collect();
    let trees = repo.git(&["for-each-ref", "--format=%(refname:lstrip=3) %(tree)", "refs/berth/clusters/"]);
    let trees: BTreeMap<&str, &str> = trees.lines().filter_map(|line| line.split_once(' ')).collect();
    let nothing = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    let wanted: BTreeMap<&str, &str> =
        clusters.iter().map(|name| (&**name, folders.get(&**name).copied().unwrap_or(nothing))).collect();
    assert_eq!(trees, wanted);
}

/// Sequence numbers go up by one, each commit changes something, and none is made from an older source
/// than the one before it.
#[track_caller]
fn history_is_whole(repo: &Repo) {
    let log = repo.git(&[
        "log",
        "--reverse",
        "--first-parent",
        "--format=%T %(trailers:key=Berth-Seq,valueonly,separator=%x2C) %(trailers:key=Berth-Source,valueonly,separator=%x2C)",
        RENDERED,
    ]);
    let sources = repo.git(&["rev-list", "--reverse", "--first-parent", "HEAD"]);
    let order: BTreeMap<&str, usize> = sources.lines().enumerate().map(|(index, id)| (id, index)).collect();
    let (mut tree, mut source) = ("", 0);
    for (index, line) in log.lines().enumerate() {
        let parts: Vec<&str> = line.split(' ').collect();
        assert_ne!(parts[0], tree, "commit {index} changes nothing:\n{log}");
        assert_eq!(parts[1], (index + 1).to_string(), "{log}");
        let from = order[parts[2]];
        assert!(from >= source, "commit {index} goes back to an older source:\n{log}");
        (tree, source) = (parts[0], from);
    }
}

/// What a repository with the same source and no history would publish.
fn fresh_render(repo: &Repo) -> String {
    let fresh = Repo::new();
    fresh.git(&["fetch", "-q", repo.arg(), "+HEAD:refs/heads/main", "--update-head-ok"]);
    fresh.publish().expect(0);
    fresh.id(&format!("{RENDERED}:clusters"))
}

/// Runs one pass and kills it after a while, if it has not ended by then. Says whether it was killed.
fn run_and_kill(repo: &Repo, after: Duration) -> bool {
    let mut child = ungated(&mut berth())
        .args(["run", "--once", "--repo", repo.arg()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("berth starts");
    let begun = Instant::now();
    while begun.elapsed() < after {
        pause(Duration::from_micros(200), "the moment of the kill comes closer");
    }
    child.kill().expect("killed, or ended before");
    let status = child.wait().expect("it ends");
    assert!(status.signal() == Some(9) || status.code() == Some(0), "{status}");
    status.signal().is_some()
}

#[test]
fn a_kill_at_any_moment_leaves_a_complete_state_and_the_next_run_mends_the_rest() {
    let wanted = rounds("BERTH_CRASH_ROUNDS", 15);
    let mut random = Random::new(wanted);
    let clusters: Vec<String> = (0..CLUSTERS).map(name).collect();
    let mut repo = wide_fleet(0);
    // Warms the binary; its time is how long a run takes.
    let begun = Instant::now();
    repo.publish_ungated().expect(0);
    let (mut longest, mut killed, mut halfway) = (begun.elapsed(), 0, 0);
    for round in 0..wanted {
        let full = round % 7 == 0;
        if full {
            repo = wide_fleet(random.below(1000) * 3);
        } else {
            for _ in 0..=random.below(WORKLOADS) {
                edit(&repo, random.below(WORKLOADS), random.below(1000));
            }
            repo.commit(&format!("edit {round}"));
        }
        let before = refs(&repo, "refs/");
        let span = u64::try_from(longest.as_micros()).expect("not that long");
        let dead = run_and_kill(&repo, Duration::from_micros(random.below(span + span / 10)));
        killed += u64::from(dead);
        repo.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
        let rendered = refs(&repo, RENDERED);
        if rendered.contains_key(RENDERED) {
            run(&["verify", RENDERED, "--repo", repo.arg()]).expect(0);
        }
        let moved = refs(&repo, "refs/") != before;
        halfway += u64::from(dead && moved);

        let begun = Instant::now();
        repo.publish_ungated().expect(0);
        if full {
            longest = begun.elapsed();
        }
        cluster_refs_are_right(&repo, &clusters);
        history_is_whole(&repo);
        let processed = &repo.files("refs/berth/processed")["processed.json"];
        assert!(
            processed.contains(&repo.id("HEAD")) && processed.contains(&repo.id(RENDERED)),
            "{processed}"
        );
        let settled = |repo: &Repo| (refs(repo, "refs/berth/clusters/"), refs(repo, "refs/heads/"));
        let all = settled(&repo);
        repo.publish_ungated().expect(0);
        assert!(settled(&repo) == all, "something was left to do");
        if round + 1 == wanted || round % 7 == 6 {
            assert_eq!(repo.id(&format!("{RENDERED}:clusters")), fresh_render(&repo));
        }
    }
    assert!(killed * 3 >= wanted, "only {killed} of {wanted} runs were killed");
    eprintln!("{wanted} rounds: {killed} killed, {halfway} of them after they had moved a ref");
}

#[test]
fn two_daemons_on_one_repository_lose_nothing_and_do_nothing_twice() {
    let commits = rounds("BERTH_RACE_COMMITS", 30);
    let repo = small_fleet();
    let daemons = [Daemon::start(&repo), Daemon::start(&repo)];
    let mut random = Random::new(commits);
    for n in 0..commits {
        let name = format!("map-{}", random.below(12));
        let placement =
            ["{clusterSelector: {}}", "{clusters: [{name: b}]}"][usize::from(random.below(2) == 0)];
        repo.write(&format!("apps/{name}.yaml"), config_map(&name, &n.to_string(), placement));
        repo.commit(&format!("edit {n}"));
        // Now and then both must catch up, so that they also begin together.
        if random.below(4) == 0 {
            let last = repo.id("HEAD");
            daemons.iter().for_each(|daemon| drop(daemon.wait_for(&["pass done", &last])));
        }
    }
    let last = repo.commit("the last one");
    daemons.iter().for_each(|daemon| drop(daemon.wait_for(&["pass done", &last])));
    assert_eq!(daemons.map(Daemon::stop), [0, 0]);
    history_is_whole(&repo);
    cluster_refs_are_right(&repo, &["a", "b", "c"].map(str::to_owned));
    assert_eq!(repo.id(&format!("{RENDERED}:clusters")), fresh_render(&repo));
    run(&["verify", "--repo", repo.arg()]).expect(0);
    repo.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
}

#[test]
fn locks_of_dead_processes_are_removed_and_said() {
    let repo = small_fleet();
    repo.publish_ungated().expect(0);
    repo.git(&["pack-refs", "--all"]);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusters: [{name: b}]}"));
    // One cluster leaves the fleet, so that its packed ref must go.
    repo.git(&["rm", "-q", "clusters/c.yaml"]);
    repo.commit("two");
    let locks = [
        "refs/heads/berth/rendered.lock",
        "refs/berth/clusters/b.lock",
        "refs/berth/processed.lock",
        "packed-refs.lock",
    ];
    for lock in locks {
        let path = repo.path().join(".git").join(lock);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        File::create(path).expect("a lock").set_modified(SystemTime::UNIX_EPOCH).expect("old");
    }
    let ran = repo.publish_ungated().expect(0);
    for lock in locks {
        assert!(ran.err.contains(lock), "{lock} is not named: {}", ran.err);
        assert!(!repo.path().join(".git").join(lock).exists(), "{lock} is still there");
    }
    cluster_refs_are_right(&repo, &["a", "b"].map(str::to_owned));
    assert!(refs(&repo, "refs/").len() > 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_lock_in_use_is_left_alone_and_named() {
    let repo = small_fleet();
    repo.publish_ungated().expect(0);
    let before = repo.id(RENDERED);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    let lock = repo.path().join(".git/refs/heads/berth/rendered.lock");
    let holder = File::create(&lock).expect("a lock");
    holder.set_modified(SystemTime::UNIX_EPOCH).expect("old");
    let ran = repo.publish_ungated().expect(4);
    assert!(
        ran.err.contains("rendered.lock") && ran.err.contains("locked by another process"),
        "{}",
        ran.err
    );
    assert!(lock.exists());
    assert_eq!(repo.id(RENDERED), before);
    drop(holder);
    repo.publish_ungated().expect(0);
    assert!(!lock.exists());
}

#[test]
fn what_a_killed_process_left_among_the_objects_does_no_harm() {
    let repo = small_fleet();
    repo.publish_ungated().expect(0);
    for left in ["objects/tmp_object_git2_x1", "objects/pack/pack_git2_x2", "objects/pack/tmp_pack_x3"] {
        repo.write(&format!(".git/{left}"), "half an obj");
    }
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    repo.publish_ungated().expect(0);
    repo.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
    Ran::of(hermetic("git").current_dir(repo.path()).args(["gc", "-q", "--prune=now"])).expect(0);
    run(&["verify", "--repo", repo.arg()]).expect(0);
    repo.publish_ungated().expect(0);
}
