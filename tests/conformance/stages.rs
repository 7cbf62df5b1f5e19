//! Cases of staged runs, whose `expected.json` has `stages`, or `stages_error`: the error that stands in their way.

use berth_base::diag::Diagnostics;
use berth_base::model::Map;
use berth_base::model::rollout::StageTask;
use berth_base::model::staged::StageProgress;
use berth_engine::release::runs;
use berth_engine::release::stages::ClusterLabels;
use serde_json::{Value as Json, json};

use crate::archive::Archive;
use crate::run::decide_fleet;

/// Reports whether a case is of this form.
pub fn is_one(case: &Archive) -> bool {
    let expected = expected(case);
    expected.get("stages").is_some() || expected.get("stages_error").is_some()
}

fn expected(case: &Archive) -> Json {
    case.file("expected.json").map(|text| serde_json::from_str(text).expect("JSON")).unwrap_or_default()
}

/// Compares, and puts what was found into the case where it differs.
pub fn check(case: &mut Archive) -> Result<(), String> {
    let expected = expected(case);
    let (stages, diagnostics) = planned(case);
    let said: String = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
    let found = match (&expected["stages_error"], diagnostics.has_errors()) {
        (Json::String(part), true) if said.contains(part.as_str()) => return Ok(()),
        (_, true) => json!({"stages_error": diagnostics.errors().next().map(|error| &error.message)}),
        (_, false) => json!({"stages": stages.iter().map(shown).collect::<Vec<_>>()}),
    };
    if found == expected {
        return Ok(());
    }
    let file = case.files.iter_mut().find(|(path, _)| path == "expected.json").expect("it was read");
    file.1 = format!("{found:#}\n");
    Err(format!("{found:#}\n{said}"))
}

fn planned(case: &Archive) -> (Vec<StageProgress>, Diagnostics) {
    let (loaded, decided, mut diagnostics) = decide_fleet(case, None);
    let run = loaded.fleet.runs.values().next().expect("a run");
    let labels = ClusterLabels::of(&loaded.fleet, &Map::new());
    let stages = runs::plan_run(&loaded.fleet, &labels, decided.decisions.get(&run.workload), run);
    diagnostics
        .extend(stages.as_ref().err().into_iter().flatten().map(|fault| fault.diagnostic(&run.origin)));
    (stages.unwrap_or_default(), diagnostics)
}

fn shown(stage: &StageProgress) -> Json {
    let clusters: Vec<&str> = stage.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    let word = |task: &StageTask| match task {
        StageTask::Approval => "Approval",
        StageTask::Wait(_) => "TimedWait",
    };
    json!({
        "name": stage.name,
        "clusters": clusters,
        "maxConcurrency": stage.most_at_a_time(),
        "afterStageTasks": stage.after.iter().map(word).collect::<Vec<_>>(),
    })
}
