//! The status of a staged update run, as its hub shows it.
//!
//! `stagesStatus` has every stage with its clusters, tasks and conditions. Approval requests are people's
//! files here, so a task shows only whether it is done.

use serde_json::{Value as Json, json};

use berth_base::model::Timestamp;
use berth_base::model::rollout::StageTask;
use berth_base::model::staged::{Run, RunProgress, Side, StageCluster, StageProgress, Standing};
use berth_base::text::some_of;

/// The number of cluster names in a message.
const SHOWN: usize = 3;

/// A condition before it is printed: type, status, reason and message.
type Said = (&'static str, &'static str, &'static str, String);

/// Returns the status of a run. `progress` is absent before the run begins.
pub(crate) fn status(run: &Run, progress: Option<&RunProgress>, standing: &Standing) -> Json {
    let conditions = of_run(run, standing).into_iter().map(|said| condition(said, None));
    let mut status = json!({ "conditions": conditions.collect::<Vec<_>>() });
    if let Some(progress) = progress {
        let current = progress.stages.iter().position(|stage| stage.finished.is_none());
        let stages = progress.stages.iter().enumerate();
        let stages =
            stages.map(|(index, stage)| of_stage(run, stage, (current == Some(index)).then_some(standing)));
        status["resourceSnapshotIndexUsed"] = json!(progress.release.to_string());
        status["stagesStatus"] = stages.collect();
    }
    status
}

fn condition((kind, status, reason, message): Said, since: Option<Timestamp>) -> Json {
    let mut condition = json!({"type": kind, "status": status, "reason": reason, "message": message});
    if let Some(since) = since {
        condition["lastTransitionTime"] = json!(since.to_string());
    }
    condition
}

fn of_run(run: &Run, standing: &Standing) -> Vec<Said> {
    if let Standing::Faulty(faults) = standing {
        return vec![("Initialized", "False", "UpdateRunInitializedFailed", faults.join("; "))];
    }
    let message = format!("{} initialized successfully", run.key.kind);
    let mut said = vec![("Initialized", "True", "UpdateRunInitializedSuccessfully", message)];
    let (status, reason, message) = match standing {
        Standing::Faulty(_) | Standing::Ready => return said,
        Standing::Going { .. } | Standing::Removing => {
            ("True", "UpdateRunProgressing", "The update run is making progress".to_owned())
        }
        Standing::Waiting { gate } => {
            let side = if gate.side == Side::Before { "before-stage" } else { "after-stage" };
            let stage = &gate.stage;
            let message = format!("The update run waits for the {side} tasks of stage {stage} to complete");
            ("False", "UpdateRunWaiting", message)
        }
        Standing::Stuck { stage, clusters } => {
            let clusters = some_of(clusters, SHOWN);
            let message = format!("The update run is stuck waiting for {clusters} in stage {stage}");
            ("False", "UpdateRunStuck", message)
        }
        Standing::Failing { stage, clusters } => {
            let message = format!("{} failed in stage {stage}", some_of(clusters, SHOWN));
            ("False", "UpdateRunStuck", message)
        }
        Standing::Stopping { .. } => {
            let message = "The update run lets its updating clusters finish before it stops".to_owned();
            ("Unknown", "UpdateRunStopping", message)
        }
        Standing::Stopped => ("False", "UpdateRunStopped", "The update run has been stopped".to_owned()),
        Standing::Replaced => {
            let message = "cannot continue the updateRun: a concurrent updateRun took its place".to_owned();
            ("False", "UpdateRunFailed", message)
        }
        Standing::Succeeded => ("False", "UpdateRunSucceeded", "All stages are completed".to_owned()),
    };
    said.push(("Progressing", status, reason, message.clone()));
    match standing {
        Standing::Succeeded => said.push(("Succeeded", "True", reason, message)),
        Standing::Replaced => said.push(("Succeeded", "False", reason, message)),
        _ => {}
    }
    said
}

/// Returns a stage's status. `standing` is the run's if the stage is the current one.
fn of_stage(run: &Run, stage: &StageProgress, standing: Option<&Standing>) -> Json {
    let failed = match standing {
        Some(Standing::Failing { clusters, .. }) => clusters.as_slice(),
        _ => &[],
    };
    let clusters = stage.clusters.iter().map(|cluster| of_cluster(cluster, failed.contains(&cluster.name)));
    let mut status = json!({"stageName": stage.name, "clusters": clusters.collect::<Vec<_>>()});
    let tasks = [
        ("beforeStageTaskStatus", &stage.before, Side::Before, stage.started),
        ("afterStageTaskStatus", &stage.after, Side::After, stage.finished),
    ];
    for (key, tasks, side, done) in tasks.into_iter().filter(|(_, tasks, ..)| !tasks.is_empty()) {
        let tasks = tasks.iter().map(|task| of_task(run, stage, *task, (side, done)));
        status[key] = tasks.collect();
    }
    for (key, at) in [("startTime", stage.started), ("endTime", stage.finished)] {
        if let Some(at) = at {
            status[key] = json!(at.to_string());
        }
    }
    let conditions = stage_conditions(stage, standing);
    if !conditions.is_empty() {
        status["conditions"] = json!(conditions);
    }
    status
}

fn stage_conditions(stage: &StageProgress, standing: Option<&Standing>) -> Vec<Json> {
    if let Some(finished) = stage.finished {
        let reason = "StageUpdatingSucceeded";
        let message = || "All clusters of the stage are updated, and its tasks are completed".to_owned();
        return vec![
            condition(("Progressing", "False", reason, message()), Some(finished)),
            condition(("Succeeded", "True", reason, message()), Some(finished)),
        ];
    }
    if standing == Some(&Standing::Replaced) {
        let (reason, message) =
            ("StageUpdatingFailed", "Stage update aborted due to a non-recoverable error");
        let kinds = ["Progressing", "Succeeded"];
        return kinds.map(|kind| condition((kind, "False", reason, message.to_owned()), None)).into();
    }
    let (status, reason, message, since) = match standing {
        Some(Standing::Waiting { gate }) if gate.side == Side::Before => {
            ("False", "StageUpdatingWaiting", "The stage waits for its before-stage tasks", None)
        }
        Some(Standing::Waiting { .. }) => {
            ("False", "StageUpdatingWaiting", "All clusters of the stage are updated", stage.updated)
        }
        Some(Standing::Stopping { .. }) => {
            ("Unknown", "StageUpdatingStopping", "The updating clusters of the stage finish", None)
        }
        Some(Standing::Stopped) => ("False", "StageUpdatingStopped", "The stage waits to be resumed", None),
        _ if stage.started.is_some() => {
            ("True", "StageUpdatingStarted", "Clusters of the stage started updating", stage.started)
        }
        _ => return Vec::new(),
    };
    vec![condition(("Progressing", status, reason, message.to_owned()), since)]
}

fn of_cluster(cluster: &StageCluster, failed: bool) -> Json {
    let mut conditions = Vec::new();
    if let Some(started) = cluster.started {
        let said = ("Started", "True", "ClusterUpdatingStarted", "Cluster update started".to_owned());
        conditions.push(condition(said, Some(started)));
    }
    if let Some(succeeded) = cluster.succeeded {
        let message = "Cluster update completed successfully".to_owned();
        conditions
            .push(condition(("Succeeded", "True", "ClusterUpdatingSucceeded", message), Some(succeeded)));
    } else if failed {
        let message = "Cluster update failed".to_owned();
        conditions.push(condition(("Succeeded", "False", "ClusterUpdatingFailed", message), None));
    }
    let mut status = json!({"clusterName": cluster.name});
    if !conditions.is_empty() {
        status["conditions"] = json!(conditions);
    }
    status
}

fn of_task(
    run: &Run,
    stage: &StageProgress,
    task: StageTask,
    (side, done): (Side, Option<Timestamp>),
) -> Json {
    let word = if side == Side::Before { "before" } else { "after" };
    let (mut status, kind, reason) = match task {
        StageTask::Approval => {
            let name = format!("{}-{word}-{}", run.key.name, stage.name);
            let status = json!({"type": "Approval", "approvalRequestName": name});
            (status, "ApprovalRequestApproved", "StageTaskApprovalRequestApproved")
        }
        StageTask::Wait(_) => (json!({"type": "TimedWait"}), "WaitTimeElapsed", "StageTaskWaitTimeElapsed"),
    };
    if let Some(done) = done {
        let said = (kind, "True", reason, "The task is completed".to_owned());
        status["conditions"] = json!([condition(said, Some(done))]);
    }
    status
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use berth_base::diag::Pos;
    use berth_base::model::Key;
    use berth_base::model::rollout::Amount;
    use berth_base::model::staged::{RunState, StageGate};

    fn run() -> Run {
        let at = Pos::file("run.yaml");
        let key = |kind: &str, name: &str| Key::new("placement.kubernetes-fleet.io", kind, "", name);
        Run {
            key: key("ClusterStagedUpdateRun", "web-2"),
            origin: at.clone(),
            workload: key("ClusterResourcePlacement", "web"),
            workload_at: at.clone(),
            strategy: key("ClusterStagedUpdateStrategy", "rings"),
            strategy_at: at,
            release: None,
            state: RunState::Run,
        }
    }

    fn at(hour: i8) -> Timestamp {
        format!("2026-06-01T{hour:02}:00:00Z").parse().expect("a moment")
    }

    fn progress() -> RunProgress {
        let cluster = |name: &str, started: Option<i8>, succeeded: Option<i8>| StageCluster {
            name: name.to_owned(),
            started: started.map(at),
            succeeded: succeeded.map(at),
        };
        let stage = |name: &str, clusters: Vec<StageCluster>| StageProgress {
            name: name.to_owned(),
            clusters,
            ..StageProgress::joined(Amount::Count(1))
        };
        let canary = StageProgress {
            after: vec![StageTask::Approval, StageTask::Wait(3600)],
            started: Some(at(1)),
            updated: Some(at(2)),
            finished: Some(at(3)),
            ..stage("canary", vec![cluster("amber", Some(1), Some(2))])
        };
        let prod = StageProgress {
            before: vec![StageTask::Approval],
            started: Some(at(4)),
            ..stage("prod", vec![cluster("beryl", Some(4), None), cluster("coral", None, None)])
        };
        RunProgress {
            run: Some(run().key),
            release: 7,
            begun: at(1),
            stages: vec![canary, prod, stage("late", Vec::new())],
            finished: None,
            ended: BTreeSet::new(),
        }
    }

    /// Returns type, status and reason of each condition.
    fn shown(conditions: &Json) -> Vec<String> {
        let text = |condition: &Json, key: &str| condition[key].as_str().unwrap_or_default().to_owned();
        let line =
            |one: &Json| format!("{}={} {}", text(one, "type"), text(one, "status"), text(one, "reason"));
        conditions.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(line).collect()
    }

    #[test]
    fn stages_clusters_and_tasks_are_told_in_the_hubs_words() {
        let failing = Standing::Failing { stage: "prod".to_owned(), clusters: vec!["beryl".to_owned()] };
        let status = status(&run(), Some(&progress()), &failing);
        assert_eq!(status["resourceSnapshotIndexUsed"], "7");
        let [canary, prod, late] = status["stagesStatus"].as_array().expect("stages").as_slice() else {
            panic!("three stages")
        };
        let succeeded = ["Progressing=False StageUpdatingSucceeded", "Succeeded=True StageUpdatingSucceeded"];
        assert_eq!(shown(&canary["conditions"]), succeeded);
        assert_eq!(
            shown(&canary["clusters"][0]["conditions"]),
            ["Started=True ClusterUpdatingStarted", "Succeeded=True ClusterUpdatingSucceeded"]
        );
        assert_eq!(canary["clusters"][0]["conditions"][1]["lastTransitionTime"], "2026-06-01T02:00:00Z");
        let [approval, wait] = canary["afterStageTaskStatus"].as_array().expect("tasks").as_slice() else {
            panic!("two tasks")
        };
        assert_eq!(approval["approvalRequestName"], "web-2-after-canary");
        assert_eq!(shown(&wait["conditions"]), ["WaitTimeElapsed=True StageTaskWaitTimeElapsed"]);
        assert_eq!(shown(&prod["conditions"]), ["Progressing=True StageUpdatingStarted"]);
        assert_eq!(
            shown(&prod["clusters"][0]["conditions"]),
            ["Started=True ClusterUpdatingStarted", "Succeeded=False ClusterUpdatingFailed"]
        );
        assert!(prod["clusters"][1].get("conditions").is_none() && late.get("conditions").is_none());
    }

    #[test]
    fn each_standing_of_a_run_has_its_conditions() {
        let stage = || "prod".to_owned();
        let waiting = |side| Standing::Waiting { gate: StageGate { stage: stage(), side } };
        let clusters = || vec!["beryl".to_owned()];
        for (standing, of_run, of_stage) in [
            (Standing::Ready, "", "Progressing=True StageUpdatingStarted"),
            (
                Standing::Going { stage: stage() },
                "Progressing=True UpdateRunProgressing",
                "Progressing=True StageUpdatingStarted",
            ),
            (
                waiting(Side::After),
                "Progressing=False UpdateRunWaiting",
                "Progressing=False StageUpdatingWaiting",
            ),
            (
                waiting(Side::Before),
                "Progressing=False UpdateRunWaiting",
                "Progressing=False StageUpdatingWaiting",
            ),
            (
                Standing::Stuck { stage: stage(), clusters: clusters() },
                "Progressing=False UpdateRunStuck",
                "Progressing=True StageUpdatingStarted",
            ),
            (
                Standing::Stopping { stage: stage() },
                "Progressing=Unknown UpdateRunStopping",
                "Progressing=Unknown StageUpdatingStopping",
            ),
            (
                Standing::Stopped,
                "Progressing=False UpdateRunStopped",
                "Progressing=False StageUpdatingStopped",
            ),
            (
                Standing::Replaced,
                "Progressing=False UpdateRunFailed Succeeded=False UpdateRunFailed",
                "Progressing=False StageUpdatingFailed Succeeded=False StageUpdatingFailed",
            ),
            (
                Standing::Succeeded,
                "Progressing=False UpdateRunSucceeded Succeeded=True UpdateRunSucceeded",
                "Progressing=True StageUpdatingStarted",
            ),
        ] {
            let status = status(&run(), Some(&progress()), &standing);
            let wanted = format!("Initialized=True UpdateRunInitializedSuccessfully {of_run}");
            assert_eq!(shown(&status["conditions"]).join(" "), wanted.trim_end(), "{standing:?}");
            assert_eq!(shown(&status["stagesStatus"][1]["conditions"]).join(" "), of_stage, "{standing:?}");
        }
        let faulty = status(&run(), None, &Standing::Faulty(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(shown(&faulty["conditions"]), ["Initialized=False UpdateRunInitializedFailed"]);
        assert_eq!(faulty["conditions"][0]["message"], "a; b");
    }
}
