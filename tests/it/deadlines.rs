//! Deadlines are part of the change that makes them: the ends of tolerations, dated taints.

use berth_base::model::Timestamp;
use berth_hub::daemon::{PassResult, Settings, pass};

use crate::support::removals::{WEB, copies, drained, fleet_of, managed, tolerating, work};
use crate::support::{RENDERED, Repo, run};

/// The moment of the tests' first commit, and so many minutes later.
fn minute(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + minutes * 60).expect("a moment")
}

#[track_caller]
fn pass_at(repo: &Repo, clock: Timestamp) -> PassResult {
    pass(&Settings::of(repo.path()), clock).expect("a pass")
}

fn held(passed: &PassResult) -> usize {
    passed.held.len()
}

/// Ten clusters with a workload that tolerates the taint that some of them have since minute 0.
fn tainted(count: usize) -> Repo {
    let (repo, names) = fleet_of(10, tolerating(None), 1);
    for name in &names[..count] {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, &drained(&minute(0).to_string())));
    }
    repo.commit("drain some");
    assert_eq!(held(&pass_at(&repo, minute(5))), 0);
    repo
}

#[test]
fn a_toleration_that_will_end_is_shown_and_held_before_it_does() {
    let (repo, names) = fleet_of(10, tolerating(None), 1);
    let hour_ago = Timestamp::from_second(Timestamp::now().as_second() - 3_600).expect("a moment");
    for name in &names[..9] {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, &drained(&hour_ago.to_string())));
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "drain nine"]);
    repo.publish().expect(0);
    repo.write("apps/placement.yaml", tolerating(Some(7_200)));
    repo.git(&["commit", "-q", "-a", "-m", "for two hours only"]);
    let plan = run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5);
    let end = Timestamp::from_second(hour_ago.as_second() + 7_200).expect("a moment");
    let words = plan.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("of these, at {end}: ConfigMap shop/web-0 in c00, c01")), "{words}");
    let ran = repo.publish().expect(5);
    let line = ran.approval();
    assert!(plan.out.contains(&line), "the same approval");
    assert!(repo.publish().expect(5).out.contains(&line), "and in the next pass");
    repo.git(&["commit", "-q", "--allow-empty", "-m", &format!("it may end\n\n{line}")]);
    repo.publish().expect(0);
    let ledger = &repo.files(RENDERED)["ledger/ledger.yaml"];
    assert!(ledger.contains("stage: permitted") && ledger.contains(&format!("due: \"{end}\"")), "{ledger}");
    assert_eq!(copies(&repo, WEB), 10, "it has not come yet");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn an_approved_deadline_is_not_held_again_when_it_comes() {
    let repo = tainted(9);
    repo.write("apps/placement.yaml", tolerating(Some(3_600)));
    repo.commit("for an hour only");
    let first = pass_at(&repo, minute(6));
    assert_eq!(held(&first), 1);
    let line = first.held[0].approval_of_all();
    repo.write("README.md", "words");
    repo.commit("words");
    let again = pass_at(&repo, minute(7));
    assert_eq!((held(&again), again.held[0].approval_of_all()), (1, line.clone()), "still held");
    repo.commit(&format!("it may end\n\n{line}"));
    assert_eq!(held(&pass_at(&repo, minute(8))), 0);
    assert_eq!(copies(&repo, WEB), 10);
    repo.write("apps/work.yaml", work(2));
    repo.commit("something else in between");
    assert_eq!(held(&pass_at(&repo, minute(20))), 0);
    assert_eq!(held(&pass_at(&repo, minute(61))), 0);
    assert_eq!(copies(&repo, WEB), 1);
    run(&["verify", "--repo", repo.arg()]).expect(0);

    // What came back and goes again is another removal.
    repo.write("apps/placement.yaml", tolerating(None));
    repo.write("apps/work.yaml", work(3));
    repo.commit("all of them again");
    pass_at(&repo, minute(70));
    assert_eq!(copies(&repo, WEB), 10);
    repo.write("apps/placement.yaml", tolerating(Some(60)));
    repo.commit("and off");
    assert_eq!(held(&pass_at(&repo, minute(80))), 1);
    assert_eq!(copies(&repo, WEB), 10);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_deadline_that_nobody_approved_stays_held_when_it_comes() {
    let repo = tainted(9);
    repo.write("apps/placement.yaml", tolerating(Some(3_600)));
    repo.commit("for an hour only");
    assert_eq!(held(&pass_at(&repo, minute(6))), 1);
    assert_eq!(held(&pass_at(&repo, minute(61))), 1);
    assert_eq!(copies(&repo, WEB), 10);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_deadline_below_the_limits_passes_and_passes_again_when_it_comes() {
    let repo = tainted(3);
    repo.write("apps/placement.yaml", tolerating(Some(3_600)));
    repo.commit("for an hour only");
    let plan = run(&["plan", "--repo", repo.arg(), "--diff", "--now", &minute(6).to_string()]).expect(0);
    assert!(plan.out.contains(&format!("at {}: ManifestWorkReplicaSet", minute(60))), "{}", plan.out);
    let (_, diff) = plan.out.split_once("--- c00/shop/ConfigMap_web-0.yaml").expect("the removed object");
    assert!(diff.contains(&format!("(3 clusters at {}, by a deadline)", minute(60))), "{}", plan.out);
    assert_eq!(held(&pass_at(&repo, minute(6))), 0);
    let ledger = &repo.files(RENDERED)["ledger/ledger.yaml"];
    assert!(ledger.contains(&format!("due: \"{}\"", minute(60))), "{ledger}");
    // Deadlines that are there already are no part of other changes.
    repo.write("README.md", "words");
    repo.commit("words");
    let before = repo.id(RENDERED);
    assert_eq!(held(&pass_at(&repo, minute(7))), 0);
    assert_eq!(repo.id(RENDERED), before);
    assert_eq!(held(&pass_at(&repo, minute(61))), 0);
    assert_eq!(copies(&repo, WEB), 7);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_dated_taint_is_part_of_the_change_that_writes_it() {
    let (repo, names) = fleet_of(10, tolerating(Some(3_600)), 1);
    for name in &names[..9] {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, &drained(&minute(1).to_string())));
    }
    repo.commit("drain nine");
    let passed = pass_at(&repo, minute(5));
    assert_eq!(held(&passed), 1);
    assert_eq!(passed.held[0].due.values().next(), Some(&minute(61)));
    assert_eq!(held(&pass_at(&repo, minute(90))), 1, "and stays so");
    assert_eq!(copies(&repo, WEB), 10);
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_deadline_that_passes_beside_one_that_is_held_is_recorded_once() {
    let (repo, names) = fleet_of(10, tolerating(None), 1);
    let since = minute(0).to_string();
    for (n, name) in names[..9].iter().enumerate() {
        let slow = format!("  - {{key: slow, effect: NoSelect, timeAdded: \"{since}\"}}\n");
        let more = if n < 2 { slow.as_str() } else { "" };
        repo.write(&format!("clusters/{name}.yaml"), managed(name, &format!("{}{more}", drained(&since))));
    }
    let both = |web: &str, side: &str| {
        let placement = |drain: &str, slow: &str| {
            format!(
                "{}  - {{key: slow, operator: Exists{slow}}}\n",
                tolerating(None).replace("Exists}", &format!("Exists{drain}}}"))
            )
        };
        repo.write("apps/placement.yaml", placement(web, ""));
        repo.write("apps/side-placement.yaml", placement("", side).replace("name: web", "name: side"));
    };
    both("", "");
    repo.write("apps/side.yaml", work(1).replace("name: web", "name: side"));
    repo.commit("two workloads");
    assert_eq!(held(&pass_at(&repo, minute(5))), 0);
    both(", tolerationSeconds: 3600", ", tolerationSeconds: 3600");
    repo.commit("both for an hour only");
    assert_eq!(held(&pass_at(&repo, minute(6))), 1, "nine of ten, but not two of ten");
    let published = repo.id(RENDERED);
    let ledger = &repo.files(RENDERED)["ledger/ledger.yaml"];
    assert_eq!(
        [ledger.matches("stage: held").count(), ledger.matches("stage: permitted").count()],
        [1, 1],
        "{ledger}"
    );
    for later in [7, 8] {
        assert_eq!(held(&pass_at(&repo, minute(later))), 1);
        assert_eq!(repo.id(RENDERED), published, "nothing new to say");
    }
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[test]
fn a_taint_that_counts_within_thirty_days_is_held_and_a_second_later_it_is_not() {
    for (more, count) in [(0, 1), (1, 0)] {
        let repo = tainted(9);
        repo.write("apps/placement.yaml", tolerating(Some(1)));
        let changed = repo.commit("to be dated");
        let date: i64 = repo.git(&["log", "-1", "--format=%ct", &changed]).parse().expect("a date");
        let seconds = date - minute(0).as_second() + 30 * 86_400 + more;
        repo.write("apps/placement.yaml", tolerating(Some(seconds)));
        repo.git(&["add", "-A"]);
        let same = ["commit", "-q", "--amend", "--no-edit", "--date", &format!("{date} +0000")];
        let mut amend = crate::support::hermetic("git");
        amend.current_dir(repo.path()).env("GIT_COMMITTER_DATE", format!("{date} +0000"));
        crate::support::Ran::of(amend.args(same)).expect(0);
        let passed = pass_at(&repo, Timestamp::from_second(date).expect("a moment"));
        assert_eq!(held(&passed), count, "{more}");
        assert_eq!(copies(&repo, WEB), 10);
    }
}
