//! The moment of a pass: the daemon's own where the outcome depends on it, and never a commit's date.

use berth_base::model::Timestamp;
use berth_hub::daemon::{Cache, PassResult, Settings, pass, pass_with_cache};

use crate::support::removals::{WEB, copies, fleet_of, placement, report};
use crate::support::{RENDERED, Repo, cluster, config_map, git, namespace, run};

/// The date of the tests' first commit.
const START: i64 = 1_767_225_600;

const HOUR: i64 = 3_600;

fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).expect("a moment")
}

/// A commit of all files that is dated so many seconds after the start, and a pass at another moment.
#[track_caller]
fn commit_and_pass(repo: &Repo, dated: i64, at: i64) -> PassResult {
    git::commit_all(repo.path(), "an edit", START + dated);
    pass_at(repo, at)
}

#[track_caller]
fn pass_at(repo: &Repo, at: i64) -> PassResult {
    pass(&Settings::of(repo.path()), moment(at)).expect("a pass")
}

/// `Berth-Now` of the last publication, in seconds after the start.
#[track_caller]
fn published_for(repo: &Repo) -> i64 {
    let now = repo.git(&["log", "-1", "--format=%(trailers:key=Berth-Now,valueonly)", RENDERED]);
    now.trim().parse::<Timestamp>().expect("a moment").as_second() - START
}

fn of_some(clusters: usize) -> String {
    placement("none", "none").replace("spec:\n", &format!("spec:\n  numberOfClusters: {clusters}\n"))
}

/// Three clusters with `web`, one after the other, each for ten minutes.
fn in_waves(freeze: &str) -> Repo {
    let policy = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: waves, namespace: shop}}\nspec:\n\
         \x20 workloads: [{{kind: FederatedConfigMap, name: web}}]\n\
         \x20 strategy: {{rolloutStrategy: {{type: Progressive, progressive: {{maxConcurrency: 1, minSuccessTime: 10m}}}}}}\n\
         {freeze}"
    );
    Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
        ("waves.yaml", &policy),
    ])
}

/// The clusters whose copy of `web` has this text.
fn with_text(repo: &Repo, text: &str) -> Vec<String> {
    let files = repo.files(RENDERED);
    let has = |(path, content): (&String, &String)| {
        let cluster = path.strip_prefix("clusters/")?.strip_suffix("/shop/ConfigMap_web.yaml")?;
        content.contains(text).then(|| cluster.to_owned())
    };
    files.iter().filter_map(has).collect()
}

#[test]
fn commits_dated_a_day_apart_share_the_window_of_the_day_they_are_seen_in() {
    let (repo, _) = fleet_of(12, of_some(12), 1);
    let mut left = Vec::new();
    for (step, clusters) in [6, 4, 2, 1].into_iter().enumerate() {
        repo.write("apps/placement.yaml", of_some(clusters));
        let step = i64::try_from(step).expect("a small number") + 1;
        commit_and_pass(&repo, step * 25 * HOUR, 200 * HOUR + step * 60);
        left.push(copies(&repo, WEB));
    }
    assert_eq!(left, [6, 6, 6, 6], "half of them, and no more within a day");
    assert_eq!(published_for(&repo), 200 * HOUR + 240, "what is held is written down as well");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn an_expired_approval_stays_expired_in_a_commit_that_is_dated_back() {
    let (repo, _) = fleet_of(12, of_some(12), 1);
    repo.write("apps/placement.yaml", of_some(1));
    let held = commit_and_pass(&repo, 60, 120);
    let digest = held.held[0].digest;
    let approval = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: Approval\nmetadata: {{name: gone}}\n\
         spec: {{digest: \"{digest}\", expires: \"{}\"}}\n",
        moment(HOUR)
    );
    repo.write("approvals/gone.yaml", approval);
    for at in [2 * HOUR, 3 * HOUR] {
        assert_eq!(commit_and_pass(&repo, 180, at).held.len(), 1);
        // Reports of before it expired do not bring it back.
        report(&repo, "c00", 2, "");
        assert_eq!(pass_at(&repo, at + 60).held.len(), 1);
        repo.write("README.md", at.to_string());
    }
    assert_eq!(copies(&repo, WEB), 12);
}

#[test]
fn a_pass_over_a_held_commit_goes_on_from_the_moment_it_was_seen() {
    let (repo, _) = fleet_of(12, of_some(12), 1);
    repo.write("apps/placement.yaml", of_some(1));
    commit_and_pass(&repo, 60, 5 * HOUR);
    let processed = || repo.git(&["log", "-1", "--format=%ct", "refs/berth/processed"]);
    assert_eq!(processed(), (START + 5 * HOUR).to_string());
    pass_at(&repo, 6 * HOUR);
    assert_eq!(processed(), (START + 5 * HOUR).to_string(), "nothing has changed since");
}

#[test]
fn a_freeze_holds_for_a_commit_that_is_dated_before_it() {
    // From 06:00 to 18:00.
    let repo = in_waves("  freeze: [{schedule: 0 6 * * *, for: 12h}]\n");
    pass_at(&repo, 60);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    let passed = commit_and_pass(&repo, 120, 7 * HOUR);
    assert_eq!(with_text(&repo, "two"), Vec::<String>::new(), "it is frozen");
    assert_eq!(passed.next_change, Some(moment(18 * HOUR)));
    pass_at(&repo, 18 * HOUR);
    assert_eq!(with_text(&repo, "two"), ["a"]);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_commit_that_is_dated_ahead_ends_no_wait() {
    let repo = in_waves("");
    let mut cache = Cache::default();
    let settings = Settings::of(repo.path());
    let mut pass_at = |at: i64| pass_with_cache(&settings, moment(at), &mut cache).expect("a pass");
    let copied = |repo: &Repo, cluster: &str| {
        let tree = repo.git(&["rev-parse", &format!("{RENDERED}:clusters/{cluster}")]);
        let applied = format!("applied: {{seq: 1, tree: {tree}}}\nstate: {{synced: true}}\n");
        report(repo, cluster, 2, &applied);
    };
    pass_at(60);
    copied(&repo, "a");
    pass_at(120);
    repo.write("README.md", "words");
    git::commit_all(repo.path(), "dated ahead", START + 180 + 595);
    let passed = pass_at(180);
    assert_eq!(with_text(&repo, "one"), ["a"], "b waits for ten minutes, not for a date");
    assert!(passed.next_change.is_none_or(|at| at >= moment(700)), "{:?}", passed.next_change);
}

#[test]
fn two_machines_make_the_same_commit_where_no_moment_matters() {
    let (repo, _) = fleet_of(3, of_some(3), 1);
    let made_at = |at: i64| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().to_str().expect("a text path");
        repo.git(&["clone", "-q", "--mirror", repo.arg(), path]);
        pass(&Settings::of(folder.path()), moment(at)).expect("a pass");
        let made =
            repo.git(&["-C", path, "log", "-1", "--format=%H %(trailers:key=Berth-Now,valueonly)", RENDERED]);
        let (commit, now) = made.split_once(' ').expect("two words");
        (commit.to_owned(), now.trim().parse::<Timestamp>().expect("a moment").as_second() - START)
    };
    repo.write("apps/work.yaml", crate::support::removals::work(2));
    git::commit_all(repo.path(), "one more object", START + 60);
    assert_eq!(made_at(HOUR), made_at(2 * HOUR));
    assert_eq!(made_at(HOUR).1, 60, "the commit's own date");
    repo.write("apps/placement.yaml", of_some(2));
    git::commit_all(repo.path(), "one cluster less", START + 120);
    assert_eq!((made_at(HOUR).1, made_at(2 * HOUR).1), (HOUR, 2 * HOUR), "a removal counts for a day");
}

#[test]
fn a_clock_that_was_ahead_is_named_until_time_has_caught_up() {
    let (repo, _) = fleet_of(3, of_some(3), 1);
    repo.write("apps/placement.yaml", of_some(2));
    commit_and_pass(&repo, 60, 100 * HOUR);
    repo.write("README.md", "words");
    let passed = commit_and_pass(&repo, 120, HOUR);
    let warning = passed.diagnostics.iter().find(|one| one.message.contains("this machine's clock says"));
    assert!(warning.is_some(), "{:?}", passed.diagnostics);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}
