//! Readings beyond the fixtures.

use super::super::testing::{lower_text, messages};
use crate::dialects::Lowered;
use berth_base::model::rollout::{Amount, StageTask};
use berth_base::model::staged::{RunState, Side};

const GROUP: &str = "placement.kubernetes-fleet.io/v1beta1";

fn documents(parts: &[(&str, &str, &str)]) -> Lowered {
    let text = |(kind, metadata, rest): &(&str, &str, &str)| {
        format!("apiVersion: {GROUP}\nkind: {kind}\nmetadata: {{{metadata}}}\n{rest}\n")
    };
    lower_text(&parts.iter().map(text).collect::<Vec<_>>().join("---\n"))
}

const PLACEMENT: (&str, &str, &str) = (
    "ClusterResourcePlacement",
    "name: web",
    "spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}], strategy: {type: External}}",
);
const STRATEGY: (&str, &str, &str) = (
    "ClusterStagedUpdateStrategy",
    "name: rings",
    "spec: {stages: [{name: canary, labelSelector: {matchLabels: {env: canary}}, maxConcurrency: 10%, \
     afterStageTasks: [{type: Approval}, {type: TimedWait, waitTime: 1h}]}, {name: prod, sortingLabelKey: order}]}",
);
const RUN: (&str, &str, &str) = (
    "ClusterStagedUpdateRun",
    "name: web-2",
    "spec: {placementName: web, stagedRolloutStrategyName: rings, resourceSnapshotIndex: '7', state: Stop}",
);

fn approval<'a>(name: &'a str, rest: &'a str) -> (&'a str, &'a str, &'a str) {
    ("ClusterApprovalRequest", name, rest)
}

#[test]
fn strategies_runs_and_approvals_are_read() {
    let lowered = documents(&[
        PLACEMENT,
        STRATEGY,
        RUN,
        approval(
            "name: web-2-after-canary",
            "spec: {parentStageRollout: web-2, targetStage: canary}\n\
             status: {conditions: [{type: Other, status: 'True'}, {type: Approved, status: 'True'}]}",
        ),
        approval(
            "name: web-2-before-prod",
            "spec: {parentStageRollout: web-2, targetStage: prod}\n\
             status: {conditions: [{type: Approved, status: 'False'}]}",
        ),
    ]);
    assert_eq!(lowered.diagnostics.errors().count(), 0, "{:?}", messages(&lowered));
    let [canary, prod] = lowered.stage_strategies[0].stages.as_slice() else { panic!("two stages") };
    assert_eq!((canary.at_a_time, prod.at_a_time), (Amount::Percent(10), Amount::Count(1)));
    assert_eq!(canary.after, [StageTask::Approval, StageTask::Wait(3600)]);
    assert!(canary.selector.is_some() && prod.selector.is_none());
    assert_eq!(prod.sorted_by.as_deref(), Some("order"));
    let run = &lowered.runs[0];
    assert_eq!((run.release, run.state), (Some(7), RunState::Stop));
    assert_eq!(run.workload.to_string(), "ClusterResourcePlacement web");
    assert_eq!(run.strategy.to_string(), "ClusterStagedUpdateStrategy rings");
    let read: Vec<_> =
        lowered.stage_approvals.iter().map(|one| (&*one.gate.stage, one.gate.side, one.approved)).collect();
    assert_eq!(read, [("canary", Side::After, true), ("prod", Side::Before, false)]);
    assert!(lowered.stage_approvals.iter().all(|one| one.run == run.key));
}

#[test]
fn a_namespace_in_a_kind_of_clusters_means_nothing() {
    let with_namespace = |(kind, metadata, rest): (&'static str, &'static str, &'static str)| {
        let metadata: &'static str = Box::leak(format!("{metadata}, namespace: shop").into_boxed_str());
        (kind, metadata, rest)
    };
    let lowered = documents(&[PLACEMENT, STRATEGY, with_namespace(RUN)]);
    assert_eq!(lowered.diagnostics.errors().count(), 0, "{:?}", messages(&lowered));
    assert_eq!(lowered.runs[0].key.to_string(), "ClusterStagedUpdateRun web-2");
}

#[test]
fn references_to_nothing_are_named_with_the_nearest_name() {
    let run = |spec: &'static str| ("ClusterStagedUpdateRun", "name: web-2", spec);
    let rolling = (
        "ClusterResourcePlacement",
        "name: web",
        "spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]}",
    );
    for (parts, wanted) in [
        (
            vec![PLACEMENT, STRATEGY, run("spec: {placementName: wbe, stagedRolloutStrategyName: rings}")],
            "error: ClusterStagedUpdateRun web-2: there is no ClusterResourcePlacement `wbe`",
        ),
        (
            vec![PLACEMENT, STRATEGY, run("spec: {placementName: web, stagedRolloutStrategyName: ring}")],
            "error: ClusterStagedUpdateRun web-2: there is no ClusterStagedUpdateStrategy `ring`",
        ),
        (vec![rolling, STRATEGY, RUN], "is not External"),
        (
            vec![
                ("ClusterResourcePlacement", "name: web", "spec: {strategy: {type: External}}"),
                STRATEGY,
                RUN,
            ],
            "selects no objects",
        ),
        (
            vec![approval(
                "name: web-1-after-canary",
                "spec: {parentStageRollout: web-1, targetStage: canary}",
            )],
            "warning: ClusterApprovalRequest web-1-after-canary: there is no ClusterStagedUpdateRun `web-1`",
        ),
        (
            vec![
                PLACEMENT,
                STRATEGY,
                RUN,
                approval("name: web-2-after-canry", "spec: {parentStageRollout: web-2, targetStage: canry}"),
            ],
            "has no stage `canry`",
        ),
    ] {
        let found = messages(&documents(&parts));
        assert!(found.iter().any(|one| one.contains(wanted)), "{wanted}: {found:?}");
        let lowered = documents(&parts);
        let hinted =
            lowered.diagnostics.iter().filter(|one| one.message.contains(wanted)).all(|one| one.at.is_some());
        assert!(hinted, "{wanted}");
    }
    // A faulty document exists, and has its own report.
    let faulty = ("ClusterStagedUpdateStrategy", "name: rings", "spec: {stages: [{name: A}]}");
    let found = messages(&documents(&[PLACEMENT, faulty, RUN]));
    assert!(found.iter().all(|one| !one.contains("there is no")), "{found:?}");
}
