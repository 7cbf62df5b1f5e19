//! Single moments of staged rollouts.

use super::*;
use crate::release::stages::{StageFault, plan};
use berth_base::model::Selector;
use berth_base::model::selector::Requirement;

fn stage(name: &str, at_a_time: usize, before: &[StageTask], after: &[StageTask]) -> Stage {
    Stage {
        name: name.to_owned(),
        selector: Some(Selector { requirements: vec![Requirement::Is("ring".to_owned(), name.to_owned())] }),
        sorted_by: None,
        at_a_time: Amount::Count(at_a_time),
        before: before.to_vec(),
        after: after.to_vec(),
    }
}

fn ring(name: &str) -> Labels {
    Labels::from([("ring".to_owned(), name.to_owned())])
}

fn at(minutes: i64) -> Timestamp {
    later("2026-06-01T12:00:00Z".parse().expect("a moment"), minutes * 60)
}

fn turn(cluster: &str, has: Version, health: Health, since: Option<Timestamp>) -> Turn<'_> {
    Turn { cluster, picked: true, has, health, since, ..Turn::default() }
}

fn old(cluster: &str) -> Turn<'_> {
    turn(cluster, Version::Old, Health::Succeeded, Some(at(-600)))
}

fn done(cluster: &str, minutes: i64) -> Turn<'_> {
    turn(cluster, Version::New, Health::Succeeded, Some(at(minutes)))
}

fn failed(cluster: &str) -> Turn<'_> {
    turn(cluster, Version::New, Health::Failed, Some(at(0)))
}

fn applying(cluster: &str) -> Turn<'_> {
    turn(cluster, Version::New, Health::Applying, None)
}

fn left(cluster: &str, has: Version) -> Turn<'_> {
    Turn { picked: false, ..turn(cluster, has, Health::Succeeded, Some(at(-600))) }
}

/// Returns the progress of a rollout that begins now.
pub(super) fn begun(stages: Vec<StageProgress>, now: Timestamp) -> RunProgress {
    RunProgress { run: None, release: 2, begun: now, stages, finished: None, ended: BTreeSet::new() }
}

/// A rollout over clusters that begin with the name of their ring.
struct Rollout {
    stages: Vec<Stage>,
    progress: RunProgress,
    approved: BTreeSet<StageGate>,
    state: RunState,
}

impl Rollout {
    fn new(stages: Vec<Stage>, clusters: &[&str]) -> Rollout {
        let labels: Vec<Labels> = clusters.iter().map(|name| ring(&name[..name.len() - 1])).collect();
        let planned = plan(&stages, clusters.iter().copied().zip(&labels)).expect("sound stages");
        let progress = begun(planned, at(0));
        Rollout { stages, progress, approved: BTreeSet::new(), state: RunState::Run }
    }

    fn approve(&mut self, stage: &str, side: Side) {
        self.approved.insert(StageGate { stage: stage.to_owned(), side });
    }

    fn step<'a>(&mut self, turns: &[Turn<'a>], minutes: i64) -> (Step<'a>, Standing) {
        let labels: BTreeMap<&str, Labels> =
            turns.iter().map(|turn| (turn.cluster, ring(&turn.cluster[..turn.cluster.len() - 1]))).collect();
        let labels_of = |cluster: &str| labels.get(cluster);
        let orders = StagedOrders {
            stages: &self.stages,
            approved: &self.approved,
            state: self.state,
            labels: &labels_of,
        };
        let stepped = step(orders, turns, &self.progress, at(minutes));
        self.progress = stepped.progress;
        (stepped.step, stepped.standing)
    }

    fn given(&mut self, turns: &[Turn<'_>], minutes: i64) -> Vec<String> {
        self.step(turns, minutes).0.give.into_iter().map(str::to_owned).collect()
    }

    fn clusters(&self, stage: usize) -> Vec<&str> {
        self.progress.stages[stage].clusters.iter().map(|cluster| cluster.name.as_str()).collect()
    }
}

fn waiting(stage: &str, side: Side) -> Standing {
    Standing::Waiting { gate: StageGate { stage: stage.to_owned(), side } }
}

fn two_stages() -> Vec<Stage> {
    vec![stage("a", 1, &[], &[]), stage("b", 2, &[], &[])]
}

#[test]
fn a_wait_counts_from_the_success_of_the_last_cluster() {
    let stages = vec![stage("a", 2, &[], &[StageTask::Wait(3600)]), stage("b", 1, &[], &[])];
    let mut rollout = Rollout::new(stages, &["a1", "a2", "b1"]);
    assert_eq!(rollout.given(&[old("a1"), old("a2"), old("b1")], 0), ["a1", "a2"]);
    let turns = [done("a1", 5), done("a2", 20), old("b1")];
    let (step, standing) = rollout.step(&turns, 30);
    assert_eq!((step.next, standing), (Some(at(80)), waiting("a", Side::After)));
    assert_eq!(&*step.waits["b1"], "stage `b` comes after stage `a`");
    assert_eq!(rollout.progress.stages[0].updated, Some(at(20)));
    // A cluster that fails meanwhile restarts the wait.
    let (step, standing) = rollout.step(&[failed("a1"), done("a2", 20), old("b1")], 70);
    assert_eq!(standing, Standing::Failing { stage: "a".to_owned(), clusters: vec!["a1".to_owned()] });
    assert_eq!(step.halted.map(|failures| failures.failed), Some(vec!["a1"]));
    let turns = [done("a1", 75), done("a2", 20), old("b1")];
    assert_eq!(rollout.step(&turns, 80).0.next, Some(at(135)));
    assert_eq!(rollout.given(&turns, 134), Vec::<String>::new());
    assert_eq!(rollout.given(&turns, 135), ["b1"]);
    // The stage has finished, so its clusters hold back no later stage. But the rollout is not done.
    let turns = |a1| [a1, done("a2", 20), done("b1", 140)];
    let (_, standing) = rollout.step(&turns(failed("a1")), 150);
    assert_eq!(standing, Standing::Failing { stage: "a".to_owned(), clusters: vec!["a1".to_owned()] });
    assert_eq!(rollout.step(&turns(done("a1", 160)), 160).1, Standing::Succeeded);
    // Once done, it stays done.
    assert_eq!(rollout.step(&turns(failed("a1")), 170).1, Standing::Succeeded);
}

#[test]
fn a_success_from_before_does_not_shorten_the_wait() {
    let mut rollout = Rollout::new(vec![stage("a", 1, &[], &[StageTask::Wait(3600)])], &["a1"]);
    let (step, standing) = rollout.step(&[done("a1", -600)], 0);
    assert_eq!((step.next, standing), (Some(at(60)), waiting("a", Side::After)));
    assert_eq!(rollout.step(&[done("a1", -600)], 60).1, Standing::Succeeded);
}

#[test]
fn approvals_open_the_beginning_and_the_end_of_a_stage() {
    let approval = [StageTask::Approval];
    let mut rollout =
        Rollout::new(vec![stage("a", 1, &approval, &approval), stage("b", 1, &[], &[])], &["a1", "b1"]);
    let turns = [old("a1"), old("b1")];
    let (step, standing) = rollout.step(&turns, 0);
    assert_eq!((step.give.len(), standing), (0, waiting("a", Side::Before)));
    assert_eq!(&*step.waits["a1"], "stage `a` begins when it is approved");
    rollout.approve("a", Side::Before);
    assert_eq!(rollout.given(&turns, 1), ["a1"]);
    let turns = [done("a1", 2), old("b1")];
    assert_eq!(rollout.step(&turns, 3).1, waiting("a", Side::After));
    rollout.approve("b", Side::After);
    assert_eq!(rollout.step(&turns, 4).1, waiting("a", Side::After));
    rollout.approve("a", Side::After);
    assert_eq!(rollout.given(&turns, 5), ["b1"]);
}

#[test]
fn a_stage_without_clusters_waits_for_its_tasks_too() {
    let stages = vec![stage("ask", 1, &[], &[StageTask::Approval]), stage("a", 1, &[], &[])];
    let mut rollout = Rollout::new(stages, &["a1"]);
    assert_eq!(rollout.step(&[old("a1")], 0).1, waiting("ask", Side::After));
    rollout.approve("ask", Side::After);
    assert_eq!(rollout.given(&[old("a1")], 1), ["a1"]);
}

#[test]
fn a_failure_holds_back_the_rest_of_its_stage_until_it_heals() {
    let mut rollout = Rollout::new(two_stages(), &["b1", "b2", "b3"]);
    let turns = |first| [first, old("b2"), old("b3")];
    assert_eq!(rollout.given(&turns(old("b1")), 0), ["b1", "b2"]);
    let (step, _) = rollout.step(&[failed("b1"), done("b2", 1), old("b3")], 2);
    assert!(step.give.is_empty());
    assert_eq!(&*step.waits["b3"], "stage `b` cannot proceed: `b1` failed");
    assert_eq!(rollout.given(&[done("b1", 3), done("b2", 1), old("b3")], 4), ["b3"]);
    // A failure of the old content holds back nothing: a fix must get through.
    let mut fix = Rollout::new(two_stages(), &["b1"]);
    assert_eq!(fix.given(&[turn("b1", Version::Old, Health::Failed, Some(at(0)))], 5), ["b1"]);
}

#[test]
fn a_cluster_that_takes_five_minutes_makes_the_run_stuck() {
    let mut rollout = Rollout::new(two_stages(), &["a1"]);
    assert_eq!(rollout.given(&[old("a1")], 0), ["a1"]);
    assert_eq!(rollout.step(&[applying("a1")], 5).1, Standing::Going { stage: "a".to_owned() });
    let stuck = Standing::Stuck { stage: "a".to_owned(), clusters: vec!["a1".to_owned()] };
    assert_eq!(rollout.step(&[applying("a1")], 6).1, stuck);
}

#[test]
fn a_stopped_run_lets_its_clusters_finish_and_tells_no_other() {
    let mut rollout = Rollout::new(two_stages(), &["a1", "a2"]);
    assert_eq!(rollout.given(&[old("a1"), old("a2")], 0), ["a1"]);
    rollout.state = RunState::Stop;
    let (_, standing) = rollout.step(&[applying("a1"), old("a2")], 1);
    assert_eq!(standing, Standing::Stopping { stage: "a".to_owned() });
    let (step, standing) = rollout.step(&[done("a1", 2), old("a2")], 3);
    assert_eq!((step.give.len(), standing), (0, Standing::Stopped));
    assert_eq!(&*step.waits["a2"], "the run is stopped");
    rollout.state = RunState::Run;
    assert_eq!(rollout.given(&[done("a1", 2), old("a2")], 4), ["a2"]);
}

#[test]
fn a_cluster_that_joins_goes_in_its_own_stage_or_after_the_last_one() {
    let mut rollout = Rollout::new(two_stages(), &["a1", "b1"]);
    assert_eq!(rollout.given(&[old("a1"), old("b1")], 0), ["a1"]);
    // a0 is first by name, but follows the planned clusters.
    let turns = [old("a0"), applying("a1"), old("b1")];
    assert_eq!(rollout.given(&turns, 1), Vec::<String>::new());
    assert_eq!(rollout.clusters(0), ["a1", "a0"]);
    assert_eq!(rollout.given(&[old("a0"), done("a1", 2), old("b1")], 3), ["a0"]);
    assert_eq!(rollout.given(&[done("a0", 4), done("a1", 2), old("b1")], 5), ["b1"]);
    // The stage of a2 has finished.
    let turns = [done("a0", 4), done("a1", 2), old("a2"), applying("b1")];
    assert_eq!(rollout.given(&turns, 6), Vec::<String>::new());
    assert_eq!((rollout.clusters(1), rollout.clusters(2)), (vec!["b1"], vec!["a2"]));
    let turns = [done("a0", 4), done("a1", 2), old("a2"), done("b1", 7)];
    assert_eq!(rollout.given(&turns, 8), ["a2"]);
    let turns = [done("a0", 4), done("a1", 2), done("a2", 9), done("b1", 7)];
    assert_eq!(rollout.step(&turns, 10).1, Standing::Succeeded);
}

#[test]
fn a_cluster_that_leaves_is_skipped_and_loses_its_copy_last() {
    let mut rollout = Rollout::new(two_stages(), &["a1", "b1"]);
    let turns = [left("a1", Version::Old), old("b1")];
    let (step, _) = rollout.step(&turns, 0);
    assert_eq!((step.give, step.remove), (BTreeSet::from(["b1"]), BTreeSet::new()));
    // a1 is picked again after its stage: it goes last, and keeps its copy.
    let (step, standing) = rollout.step(&[old("a1"), applying("b1")], 1);
    assert_eq!((step.give.len(), standing), (0, Standing::Going { stage: "b".to_owned() }));
    assert_eq!(rollout.clusters(2), ["a1"]);
    let (step, standing) = rollout.step(&[left("a1", Version::Old), done("b1", 2)], 3);
    assert_eq!((step.remove, standing), (BTreeSet::from(["a1"]), Standing::Removing));
    let removing = Turn { removing: true, ..left("a1", Version::Old) };
    let (step, standing) = rollout.step(&[removing, done("b1", 2)], 4);
    assert_eq!((step.remove.len(), standing), (0, Standing::Removing));
    assert_eq!(rollout.step(&[done("b1", 2)], 5).1, Standing::Succeeded);
    assert_eq!(rollout.progress.finished, Some(at(5)));
}

#[test]
fn a_relabelled_cluster_stays_where_it_was_planned() {
    let mut rollout = Rollout::new(two_stages(), &["a1", "b1"]);
    rollout.stages.swap(0, 1);
    rollout.stages[0].selector = Some(Selector::default());
    assert_eq!(rollout.given(&[old("a1"), old("b1")], 0), ["a1"]);
    assert_eq!((rollout.clusters(0), rollout.clusters(1)), (vec!["a1"], vec!["b1"]));
}

#[test]
fn all_faults_of_stages_are_found_at_once() {
    let mut stages = two_stages();
    stages[1].selector = Some(Selector { requirements: vec![Requirement::Exists("ring".to_owned())] });
    stages[1].sorted_by = Some("order".to_owned());
    let labels = [ring("a"), ring("b"), Labels::new()];
    let faults = plan(&stages, ["a1", "b1", "c1"].into_iter().zip(&labels)).expect_err("faults");
    let no_integer = |cluster: &str| StageFault::NoInteger {
        cluster: cluster.to_owned(),
        stage: "b".to_owned(),
        label: "order".to_owned(),
        value: None,
    };
    let in_two =
        StageFault::InTwoStages { cluster: "a1".to_owned(), stages: ["a".to_owned(), "b".to_owned()] };
    let in_none = StageFault::InNoStage { clusters: vec!["c1".to_owned()] };
    assert_eq!(faults, [in_two, no_integer("a1"), no_integer("b1"), in_none]);
}
