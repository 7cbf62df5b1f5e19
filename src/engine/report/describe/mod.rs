//! One placement as its own system would describe it: metadata and a status, in that system's words.

use serde_json::{Value as Json, json};

use crate::dialects::{Described, Detail, Dialects};
use crate::report::inputs::ReportInputs;
use berth_base::model::member::placed;
use berth_base::model::staged::{Run, RunProgress, Standing};
use berth_base::model::{Decision, Key};

/// The object with its status.
pub fn describe(decision: &Decision, known: ReportInputs<'_>) -> Json {
    let members = known.members();
    let placed = placed(decision, &members).collect();
    let with_problems: Vec<_> = members.iter().filter(|member| !member.problems().is_empty()).collect();
    let (fleet, decisions, rollout) = (known.fleet, known.decisions(), known.rollout(&decision.key));
    let waits = |pick| rollout.is_some_and(|rollout| rollout.waits(pick));
    let waiting = decision.picks.iter().map(waits).collect();
    let (with_problems, detail) = (with_problems.as_slice(), Detail::Full);
    let described = Described { decision, fleet, decisions, with_problems, placed, waiting, rollout, detail };
    let status = known.dialects.iter().find_map(|dialect| (dialect.describe)(&described));
    let clusters = || decision.picks.iter().map(|pick| &pick.cluster).collect::<Vec<_>>();
    let status = status.unwrap_or_else(|| json!({"clusters": clusters()}));
    object(&decision.key, &decision.source, &status)
}

/// A staged run with its status. `progress` is absent before the run begins.
pub fn describe_run(
    run: &Run,
    progress: Option<&RunProgress>,
    standing: &Standing,
    dialects: Dialects,
) -> Json {
    let status = dialects.iter().find_map(|dialect| (dialect.describe_run)(run, progress, standing));
    object(&run.key, &run.origin.file, &status.unwrap_or_default())
}

fn object(key: &Key, source: &str, status: &Json) -> Json {
    let mut metadata = json!({"name": &*key.name});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(&*key.namespace);
    }
    json!({
        "kind": &*key.kind,
        "group": &*key.group,
        "metadata": metadata,
        "source": source,
        "status": status,
    })
}

#[cfg(test)]
mod tests;
