//! The staged runs of a workload in a working tree, and the edits that steer them.

use serde_json::json;

use super::order::{OrderArgs, Steered};
use crate::editing::working_tree::{Edit, refused};
use crate::process::exit::CommandError;
use berth_base::edit::{self, keys};
use berth_base::model::staged::{Run, RunState, StageGate};
use berth_base::model::{Key, Timestamp};
use berth_base::yaml::emit;
use berth_engine::dialects::{DIALECTS, RunApproval, StagedRuns};
use berth_engine::release::runs::by_number;

/// Returns the workload's newest run, by name.
pub(super) fn newest_run(steered: &Steered) -> Option<&Run> {
    let runs = steered.tree.loaded.fleet.runs.values();
    runs.filter(|run| run.workload == steered.key).max_by(|a, b| by_number(&a.key, &b.key))
}

/// Puts a run into a state.
pub(super) fn set_state(steered: &Steered, run: &Run, state: RunState) -> Result<Edit, CommandError> {
    let kinds = staged_runs(&run.key)?;
    let (file, found) = steered.document(&run.key).ok_or_else(|| unknown(&run.key))?;
    let path = found.path_to(&keys(kinds.state));
    let text = edit::set(steered.tree.text(file)?, found.document, &path, &json!((kinds.word)(state)));
    let text = text.map_err(|error| refused(file, found, &error))?;
    Ok(Edit { path: file.to_string(), text: Some(text) })
}

/// Approves a gate of a run, in the existing request or in a new one.
pub(super) fn approve(
    steered: &Steered,
    args: &OrderArgs,
    given: &RunApproval<'_>,
) -> Result<Option<Edit>, CommandError> {
    let kinds = staged_runs(given.run)?;
    let document = (kinds.approval)(given);
    let fleet = &steered.tree.loaded.fleet;
    let existing =
        fleet.stage_approvals.values().find(|one| one.run == *given.run && one.gate == *given.gate);
    let Some(existing) = existing else {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let path = steered.tree.new_file(&args.dir, name)?;
        return Ok(Some(Edit { path, text: Some(emit(&document)) }));
    };
    if existing.approved {
        return Ok(None);
    }
    let (file, found) = steered.document(&existing.key).ok_or_else(|| unknown(&existing.key))?;
    let path = found.path_to(&keys(["status"]));
    let text = edit::set(steered.tree.text(file)?, found.document, &path, &document["status"]);
    let text = text.map_err(|error| refused(file, found, &error))?;
    Ok(Some(Edit { path: file.to_string(), text: Some(text) }))
}

/// An approval by a person.
pub(super) fn approval<'a>(
    run: &'a Run,
    gate: &'a StageGate,
    message: &'a str,
    now: Option<Timestamp>,
) -> RunApproval<'a> {
    RunApproval { run: &run.key, gate, message, now: now.unwrap_or_else(Timestamp::now) }
}

fn staged_runs(run: &Key) -> Result<&'static StagedRuns, CommandError> {
    let mut all = DIALECTS.iter().filter_map(|dialect| dialect.staged_runs);
    all.find(|one| *one.group == *run.group).ok_or_else(|| unknown(run))
}

fn unknown(key: &Key) -> CommandError {
    CommandError::usage(format!("no file of this fleet holds {key}"))
}
