//! Staged rollouts as users experience them.

use berth_base::diag::Pos;
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, Stage, StageTask, Strategy};
use berth_base::model::selector::Labels;
use berth_base::model::staged::{Run, RunState, Side, StageApproval, StageGate, StageStrategy};
use berth_base::model::{Cluster, ClusterStatus, Key, Requirement, Selector};

use super::world::{World, at, key};

fn stages() -> Vec<Stage> {
    let stage = |ring: &str, after: &[StageTask]| Stage {
        name: ring.to_owned(),
        selector: Some(Selector { requirements: vec![Requirement::Is("ring".to_owned(), ring.to_owned())] }),
        sorted_by: None,
        at_a_time: Amount::Count(1),
        before: Vec::new(),
        after: after.to_vec(),
    };
    vec![stage("canary", &[StageTask::Wait(600)]), stage("prod", &[StageTask::Approval])]
}

fn ring(world: &mut World, name: &str, ring: &str) {
    let labels = Labels::from([("ring".to_owned(), ring.to_owned())]);
    let cluster = Cluster { name: name.into(), labels, ..Cluster::default() };
    world.fleet.clusters.insert(name.to_owned(), cluster.into());
}

fn run(world: &mut World, name: &str, state: RunState) {
    let at = Pos::file("run.yaml");
    let run = Run {
        key: Key::new("", "Run", "", name),
        origin: at.clone(),
        workload: key(),
        workload_at: at.clone(),
        strategy: Key::new("", "Stages", "", "rings"),
        strategy_at: at,
        release: None,
        state,
    };
    world.fleet.runs.insert(run.key.clone(), run);
}

fn approve(world: &mut World, run: &str, stage: &str) {
    let approval = StageApproval {
        key: Key::new("", "Approval", "", &format!("{run}-after-{stage}")),
        origin: Pos::file("approval.yaml"),
        run: Key::new("", "Run", "", run),
        gate: StageGate { stage: stage.to_owned(), side: Side::After },
        approved: true,
    };
    world.fleet.stage_approvals.insert(approval.key.clone(), approval);
}

/// Returns a canary and two others, with stages for runs.
fn world() -> World {
    let mut world = World::new(Strategy::Runs, &[]);
    ring(&mut world, "a", "canary");
    ring(&mut world, "b", "prod");
    ring(&mut world, "c", "prod");
    let strategy = StageStrategy {
        key: Key::new("", "Stages", "", "rings"),
        origin: Pos::file("rings.yaml"),
        stages: stages(),
    };
    world.fleet.stage_strategies.insert(strategy.key.clone(), strategy);
    world.edit("1");
    world
}

/// Edits the workload, and begins a run for it.
fn begin(world: &mut World, version: &str) {
    world.edit(version);
    run(world, &format!("web-{version}"), RunState::Run);
    world.settle();
}

/// Lets time pass while members report success again and again.
fn go_on(world: &mut World) {
    for _ in 0..8 {
        world.report_all(Health::Succeeded);
        world.settle();
        world.now += 700;
        world.settle();
    }
}

/// Returns a world with all clusters on version 1, by a run.
fn proven() -> World {
    let mut world = world();
    run(&mut world, "web-1", RunState::Run);
    approve(&mut world, "web-1", "prod");
    world.settle();
    go_on(&mut world);
    assert_eq!(world.shown(), "a=1 b=1 c=1");
    assert!(world.releases().is_proven(), "{:?}", world.releases());
    world
}

#[test]
fn nothing_goes_before_a_run_begins() {
    let mut world = world();
    world.settle();
    run(&mut world, "web-1", RunState::Initialize);
    world.settle();
    assert_eq!(world.shown(), "a=- b=- c=-");
    run(&mut world, "web-1", RunState::Run);
    world.settle();
    assert_eq!(world.shown(), "a=1 b=- c=-");
}

#[test]
fn a_run_goes_stage_by_stage_with_waits_and_approvals() {
    let mut world = proven();
    world.edit("2");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=1 b=1 c=1", "an edit waits for a run");
    run(&mut world, "web-2", RunState::Run);
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    world.report_all(Health::Succeeded);
    world.settle();
    let until = world.next_change.expect("the end of the wait");
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    world.now = until.as_second() - 1;
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    world.now += 1;
    world.settle();
    assert_eq!(world.shown(), "a=2 b=2 c=1");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=2 b=2 c=2");
    assert!(!world.releases().is_proven(), "the last stage waits for its approval");
    approve(&mut world, "web-2", "prod");
    world.settle();
    assert!(world.releases().is_proven());
    // All runs are done: none begins again.
    world.edit("3");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=2 b=2 c=2");
}

/// Argo CD once rolled out production before development, because it read a status about something else.
#[test]
fn production_does_not_go_before_the_canary_by_a_stale_status() {
    let mut world = proven();
    let of_old = (*world.statuses["a"]).clone();
    begin(&mut world, "2");
    for _ in 0..5 {
        world.now += 700;
        let late = ClusterStatus { reported: Some(at(world.now)), ..of_old.clone() };
        world.statuses.insert("a".to_owned(), late.into());
        world.settle();
        assert_eq!(world.shown(), "a=2 b=1 c=1", "success with version 1 says nothing of version 2");
    }
    world.report("a", Health::Succeeded, "");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1", "the wait begins with the success");
    world.now += 600;
    world.settle();
    assert_eq!(world.shown(), "a=2 b=2 c=1");
}

#[test]
fn an_edit_in_the_middle_never_enters_a_run_that_goes_on() {
    let mut world = proven();
    begin(&mut world, "2");
    world.edit("3");
    approve(&mut world, "web-2", "prod");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=2 b=2 c=2");
    run(&mut world, "web-3", RunState::Run);
    approve(&mut world, "web-3", "prod");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=3 b=3 c=3");
}

#[test]
fn a_fix_does_not_wait_for_the_run_that_it_mends() {
    let mut world = proven();
    begin(&mut world, "2");
    world.report("a", Health::Failed, "ImagePullBackOff");
    go_on_without(&mut world);
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    assert!(world.releases().halted.as_ref().is_some_and(|halt| halt.reason.contains("ImagePullBackOff")));
    begin(&mut world, "3");
    approve(&mut world, "web-3", "prod");
    assert_eq!(world.shown(), "a=3 b=1 c=1");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=3 b=3 c=3");
    assert!(world.releases().is_proven());
}

/// Lets time pass without a new report.
fn go_on_without(world: &mut World) {
    for _ in 0..4 {
        world.now += 700;
        world.settle();
    }
}

/// On a KubeFleet hub, a member that joins or leaves breaks the run (kubefleet#733).
#[test]
fn members_that_join_and_leave_do_not_break_a_run() {
    let mut world = proven();
    begin(&mut world, "2");
    approve(&mut world, "web-2", "prod");
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    // A cluster joins for a later stage, and another one leaves before its turn.
    ring(&mut world, "d", "prod");
    world.leave("b");
    world.settle();
    assert_eq!(world.shown(), "a=2 c=1 d=1", "a newcomer begins with the proven release");
    go_on(&mut world);
    // A cluster joins for a stage that has finished, and another one for none.
    ring(&mut world, "e", "canary");
    ring(&mut world, "f", "elsewhere");
    go_on(&mut world);
    go_on(&mut world);
    assert_eq!(world.shown(), "a=2 c=2 d=2 e=2 f=2");
    assert!(world.releases().is_proven(), "{:#?}", world.releases());
}

#[test]
fn a_stopped_run_stays_where_it_is() {
    let mut world = proven();
    begin(&mut world, "2");
    run(&mut world, "web-2", RunState::Stop);
    go_on(&mut world);
    assert_eq!(world.shown(), "a=2 b=1 c=1");
    run(&mut world, "web-2", RunState::Run);
    approve(&mut world, "web-2", "prod");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=2 b=2 c=2");
}

#[test]
fn a_run_whose_stages_do_not_fit_begins_when_they_do() {
    let mut world = proven();
    world.edit("2");
    ring(&mut world, "c", "elsewhere");
    run(&mut world, "web-2", RunState::Run);
    world.settle();
    assert_eq!(world.shown(), "a=1 b=1 c=1");
    assert!(world.warnings.iter().any(|one| one.contains("no stage selects `c`")), "{:?}", world.warnings);
    ring(&mut world, "c", "prod");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1 c=1");
}

#[test]
fn each_release_goes_through_stages_of_its_own() {
    let mut first = stages();
    first[1].after.clear();
    let mut world = World::new(Strategy::Stages(first), &[]);
    ring(&mut world, "a", "canary");
    ring(&mut world, "b", "prod");
    world.edit("1");
    world.settle();
    assert_eq!(world.shown(), "a=1 b=-");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=1 b=1");
    assert!(world.releases().is_proven(), "{:#?}", world.releases());
    world.edit("2");
    world.settle();
    assert_eq!(world.shown(), "a=2 b=1");
    // A newer release begins from the first stage.
    world.edit("3");
    world.settle();
    assert_eq!(world.shown(), "a=3 b=1");
    go_on(&mut world);
    assert_eq!(world.shown(), "a=3 b=3");
}
