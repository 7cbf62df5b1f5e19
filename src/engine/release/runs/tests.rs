//! The run that drives a workload, and the clusters that it assigns.

use super::*;
use crate::release::strategies::Version;
use berth_base::diag::Pos;
use berth_base::model::release::Release;
use berth_base::model::rollout::Amount;
use berth_base::model::staged::{Side, StageApproval, StageStrategy};
use berth_base::model::{Cluster, ContentId, Map, Pick, Requirement, Selector, Shared, Workload};

use RunState::{Initialize, Stop};

const RUNNING: RunState = RunState::Run;

fn key(kind: &str, name: &str) -> Key {
    Key::new("example.com", kind, "", name)
}

fn at() -> Pos {
    Pos::new("runs.yaml", 3, 1)
}

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a moment")
}

fn run(name: &str, state: RunState) -> Run {
    Run {
        key: key("Run", name),
        origin: at(),
        workload: key("Workload", "web"),
        workload_at: at(),
        strategy: key("Strategy", "rings"),
        strategy_at: at(),
        release: None,
        state,
    }
}

fn stage(ring: &str) -> Stage {
    Stage {
        name: ring.to_owned(),
        selector: Some(Selector { requirements: vec![Requirement::Is("ring".to_owned(), ring.to_owned())] }),
        sorted_by: None,
        at_a_time: Amount::Count(1),
        before: vec![berth_base::model::rollout::StageTask::Approval],
        after: Vec::new(),
    }
}

/// Returns a fleet with two clusters in two rings.
fn fleet(runs: &[Run]) -> Fleet {
    let strategy =
        StageStrategy { key: key("Strategy", "rings"), origin: at(), stages: vec![stage("a"), stage("b")] };
    let workload = Workload::new(key("Workload", "web"), at(), Vec::new());
    let workload = Workload { strategy: Strategy::Runs, ..workload };
    let cluster = |name: &str| {
        let labels = Labels::from([("ring".to_owned(), name[..1].to_owned())]);
        (name.to_owned(), Shared::from(Cluster { name: name.into(), labels, ..Cluster::default() }))
    };
    Fleet {
        clusters: ["a1", "b1"].map(cluster).into(),
        workloads: [(workload.key.clone(), workload.into())].into(),
        runs: runs.iter().map(|run| (run.key.clone(), run.clone())).collect(),
        stage_strategies: [(strategy.key.clone(), strategy)].into(),
        ..Fleet::default()
    }
}

/// Returns the labels of the files, for the lifetime of the fleet.
fn labels(fleet: &Fleet) -> &ClusterLabels<'_> {
    Box::leak(Box::new(ClusterLabels::of(fleet, &Map::new())))
}

fn decision() -> Decision {
    Decision {
        picks: vec![Pick::of("a1"), Pick::of("b1")].into(),
        ..Decision::new(key("Workload", "web"), "web.yaml")
    }
}

fn driven<'f>(fleet: &'f Fleet, recorded: Option<&RunProgress>) -> Driven<'f> {
    drive(fleet, labels(fleet), Some(&decision()), &releases(7, recorded), now())
}

fn releases(number: u64, recorded: Option<&RunProgress>) -> Releases {
    let current = Release { number, begun: now(), inputs: ContentId([1; 20]) };
    Releases { run: recorded.cloned(), ..Releases::of(key("Workload", "web"), current) }
}

/// Returns the name of the driving run, its content, and whether it begins.
fn drives(runs: &[Run], recorded: Option<&RunProgress>) -> Option<(String, RunContent, bool)> {
    let fleet = fleet(runs);
    let staged = driven(&fleet, recorded).staged?;
    Some((staged.run?.key.name.to_string(), staged.content, staged.begins))
}

fn recorded(name: &str, ended: &[&str]) -> RunProgress {
    RunProgress {
        run: Some(key("Run", name)),
        release: 3,
        begun: now(),
        stages: Vec::new(),
        finished: None,
        ended: ended.iter().map(|name| key("Run", name)).collect(),
    }
}

fn begins(name: &str) -> Option<(String, RunContent, bool)> {
    Some((name.to_owned(), RunContent::Files, true))
}

fn goes_on(name: &str) -> Option<(String, RunContent, bool)> {
    Some((name.to_owned(), RunContent::Release(3), false))
}

#[test]
fn a_run_begins_in_the_state_run_and_the_newest_name_drives() {
    assert_eq!(drives(&[], None), None);
    assert_eq!(drives(&[run("a", Initialize), run("b", Stop)], None), None);
    let runs = [run("web-9", RUNNING), run("web-10", RUNNING), run("web-11", Stop)];
    assert_eq!(drives(&runs, None), begins("web-10"));
    // Skipped older runs do not begin after it.
    let fleet = fleet(&runs);
    let staged = driven(&fleet, None).staged.expect("a run");
    assert_eq!(staged.progress.ended, BTreeSet::from([key("Run", "web-9")]));
    let done = RunProgress { finished: Some(now()), ..staged.progress };
    assert_eq!(drives(&runs, Some(&done)), None);
    let of_others = Run { workload: key("Workload", "api"), ..run("a", RUNNING) };
    assert_eq!(drives(&[of_others], None), None);
}

#[test]
fn a_run_may_name_a_release_that_is_kept() {
    let of_release = |number| Run { release: Some(number), ..run("web-2", RUNNING) };
    assert_eq!(drives(&[of_release(7)], None), Some(("web-2".to_owned(), RunContent::Release(7), true)));
    let fleet = fleet(&[run("web-1", RUNNING), of_release(6)]);
    let driven = driven(&fleet, None);
    let errors: Vec<String> = driven.faults.iter().map(ToString::to_string).collect();
    assert!(
        errors.len() == 1
            && errors[0]
                .starts_with("runs.yaml:3:1: error: Run web-2: release 6 of Workload web is not kept")
    );
    // A run that cannot begin does not block others.
    assert_eq!(driven.staged.and_then(|staged| Some(&*staged.run?.key.name)), Some("web-1"));
}

#[test]
fn a_run_that_has_begun_goes_on_until_it_is_finished_replaced_or_gone() {
    let two = recorded("web-2", &["web-1"]);
    let ended = run("web-1", RUNNING);
    for state in [RUNNING, Stop, Initialize] {
        assert_eq!(drives(&[ended.clone(), run("web-2", state)], Some(&two)), goes_on("web-2"));
    }
    assert_eq!(drives(&[run("web-2", RUNNING), run("web-3", Initialize)], Some(&two)), goes_on("web-2"));
    let runs = [ended.clone(), run("web-2", RUNNING), run("web-3", RUNNING)];
    assert_eq!(drives(&runs, Some(&two)), begins("web-3"));
    let fleet = fleet(&runs);
    let ended_now = driven(&fleet, Some(&two)).staged.expect("a run").progress.ended;
    assert_eq!(ended_now, BTreeSet::from([key("Run", "web-1"), key("Run", "web-2")]));
    assert_eq!(drives(std::slice::from_ref(&ended), Some(&two)), None);
    let done = RunProgress { finished: Some(now()), ..two };
    assert_eq!(drives(&[ended, run("web-2", RUNNING)], Some(&done)), None);
}

#[test]
fn a_new_run_whose_stages_are_faulty_does_not_stop_the_one_that_goes_on() {
    let faulty = Run { strategy: key("Strategy", "faulty"), ..run("web-3", RUNNING) };
    let mut fleet = fleet(&[run("web-2", RUNNING), faulty]);
    let strategy =
        StageStrategy { key: key("Strategy", "faulty"), origin: at(), stages: vec![stage("a"), stage("a")] };
    fleet.stage_strategies.insert(strategy.key.clone(), strategy);
    let driven = driven(&fleet, Some(&recorded("web-2", &[])));
    assert_eq!(driven.faults.errors().count(), 2);
    assert_eq!(driven.staged.and_then(|staged| Some(&*staged.run?.key.name)), Some("web-2"));
}

#[test]
fn approvals_of_the_run_itself_count() {
    let approval = |run: &str, stage: &str, approved: bool| StageApproval {
        key: key("Approval", &format!("{run}-before-{stage}")),
        origin: at(),
        run: key("Run", run),
        gate: StageGate { stage: stage.to_owned(), side: Side::Before },
        approved,
    };
    let turns =
        ["a1", "b1"].map(|cluster| Turn { cluster, picked: true, has: Version::Old, ..Turn::default() });
    for (given, told) in [
        (vec![], false),
        (vec![approval("web-1", "a", true), approval("web-2", "b", true)], false),
        (vec![approval("web-2", "a", false)], false),
        (vec![approval("web-2", "a", true)], true),
    ] {
        let mut fleet = fleet(&[run("web-2", RUNNING)]);
        fleet.stage_approvals = given.iter().map(|one| (one.key.clone(), one.clone())).collect();
        let mut staged = driven(&fleet, None).staged.expect("a run");
        let (step, _) = staged.step(&turns, now());
        assert_eq!(step.give.contains("a1"), told, "{given:?}");
    }
}

#[test]
fn each_release_goes_through_stages_without_a_run() {
    let fleet = fleet(&[]);
    let stages = [stage("a"), stage("b")];
    let open = |sides: &[&str]| -> BTreeSet<StageGate> {
        sides.iter().map(|stage| StageGate { stage: (*stage).to_owned(), side: Side::Before }).collect()
    };
    let go = |recorded: Option<&RunProgress>, release: u64, approved: BTreeSet<StageGate>| {
        let releases = releases(release, recorded);
        by_stages(labels(&fleet), (stages.to_vec(), approved), Some(&decision()), &releases, now())
            .expect("sound stages")
    };
    let mut first = go(None, 1, open(&["a"]));
    assert!(first.begins && first.progress.release == 1);
    let turns = ["a1", "b1"].map(|cluster| Turn { cluster, picked: true, ..Turn::default() });
    assert_eq!(first.step(&turns, now()).0.give, BTreeSet::from(["a1"]));
    assert!(!go(Some(&first.progress), 1, open(&[])).begins);
    // The next release begins with the first stage, and needs its own approvals.
    let mut second = go(Some(&first.progress), 2, open(&[]));
    assert!(second.begins && second.step(&turns, now()).0.give.is_empty());
    let one = (stages[..1].to_vec(), open(&[]));
    let faults = by_stages(labels(&fleet), one, Some(&decision()), &releases(1, None), now());
    assert_eq!(faults.expect_err("a fault"), [StageFault::InNoStage { clusters: vec!["b1".to_owned()] }]);
}
