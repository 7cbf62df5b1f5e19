//! The workloads held by the gate and the deadlines that it foresees, as text and JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::changes::KeyForm;
use super::ui::{Tone, Ui};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::Key;
use berth_base::text::{counted, some_of};
use berth_engine::gate::messages::stays;
use berth_engine::gate::{Deadline, Held, Why};
use berth_engine::state::ledger::Place;

/// Describes the held workloads and the line that approves them.
pub(crate) fn held_text(held: &[Held], ui: &Ui) -> String {
    let mut text = format!("\n{}\n", ui.tint(&held_title(held), Tone::Bad));
    for one in held {
        let (key, source) = (ui.tint(&one.key.to_string(), Tone::Strong), &one.source);
        let gone = if one.is_gone { "was in" } else { "in" };
        let _ = writeln!(text, "\n{key} ({gone} {source})");
        for line in one.why.iter().map(Why::words).chain(one.notes()) {
            let _ = writeln!(text, "  {line}");
        }
        if !one.places.is_empty() {
            let _ = writeln!(text, "  removes {}", one.losses());
        }
        for deadline in one.deadlines() {
            let _ = writeln!(text, "  {deadline}");
        }
    }
    if let Some((how, approval)) = how_to_approve(held) {
        let _ = write!(text, "\n{how}\n\n{approval}\n");
        text.push_str(&approvals_text(held, MOST_ALONE));
    }
    text
}

/// Returns the diagnostics without those of held workloads, which have a text of their own.
pub(crate) fn without_held(diagnostics: &Diagnostics, held: &[Held]) -> Diagnostics {
    let held: Vec<Diagnostic> = held.iter().map(Held::diagnostic).collect();
    let mut others = diagnostics.clone();
    others.retain(|one| !held.contains(one));
    others
}

/// Returns the heading of the held workloads.
pub(crate) fn held_title(held: &[Held]) -> String {
    let workloads = counted(held.len(), "workload");
    format!("{workloads} held for approval: {}, the rest is published", stays(held))
}

/// Returns the way to approve the held workloads, and the line to use. `None` if no approval is possible.
pub(crate) fn how_to_approve(held: &[Held]) -> Option<(&'static str, String)> {
    let one = held.iter().find(|one| one.has_own_reason())?;
    let how = "To reject, undo the change. To approve, end a commit's message on the source branch with this line \
               (`git commit --allow-empty` makes a commit without edits), or add a file under `approvals/` with its \
               digest:";
    Some((how, one.approval_of_all()))
}

/// The number of approvals for single workloads listed in a full text, and in one that must fit on a screen.
pub(crate) const MOST_ALONE: usize = 30;
pub(crate) const FEW_ALONE: usize = 5;

/// Returns the lines that approve only some of the held workloads; empty if one line approves all or nothing.
pub(crate) fn approvals_text(held: &[Held], most: usize) -> String {
    let mut alone: BTreeMap<String, Vec<&Key>> = BTreeMap::new();
    for one in held.iter().filter(|one| one.has_own_reason()) {
        alone.entry(one.approval()).or_default().push(&one.key);
    }
    if alone.len() < 2 {
        return String::new();
    }
    let mut alone: Vec<_> = alone.into_iter().collect();
    alone.sort_by(|a, b| a.1.cmp(&b.1));
    let mut text = "\nTo approve only some of them, take their lines instead:\n\n".to_owned();
    for (approval, keys) in alone.iter().take(most) {
        let _ = writeln!(text, "{}\n  {approval}", some_of(keys, most));
    }
    if alone.len() > most {
        let _ = writeln!(text, "and {} more: `-v` and `-o json` list them", alone.len() - most);
    }
    text
}

/// A deadline that removes copies of a workload, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct DeadlineForm<'a> {
    at: String,
    #[serde(flatten)]
    workload: KeyForm<'a>,
    clusters: BTreeSet<&'a str>,
}

impl<'a> DeadlineForm<'a> {
    pub(crate) fn of(deadline: &'a Deadline) -> DeadlineForm<'a> {
        DeadlineForm {
            at: deadline.at.to_string(),
            workload: KeyForm::of(&deadline.key),
            clusters: deadline.clusters(),
        }
    }
}

/// A held workload as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldForm<'a> {
    #[serde(flatten)]
    workload: KeyForm<'a>,
    why: Vec<String>,
    removes: Vec<RemovedForm<'a>>,
    digest: Option<String>,
    approval: Option<String>,
    approval_of_all: Option<String>,
    source: &'a str,
    later: Vec<DueForm<'a>>,
    goes_on: bool,
    failed_approvals: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RemovedForm<'a> {
    cluster: &'a str,
    object: String,
}

#[derive(Debug, Serialize)]
struct DueForm<'a> {
    at: String,
    #[serde(flatten)]
    removed: RemovedForm<'a>,
}

impl<'a> RemovedForm<'a> {
    fn of((cluster, object): &'a Place) -> RemovedForm<'a> {
        RemovedForm { cluster, object: object.to_string() }
    }
}

impl<'a> HeldForm<'a> {
    pub(crate) fn of(held: &'a Held) -> HeldForm<'a> {
        let has_own_reason = held.has_own_reason();
        let later = held.due.iter();
        let later = later.map(|(place, at)| DueForm { at: at.to_string(), removed: RemovedForm::of(place) });
        HeldForm {
            workload: KeyForm::of(&held.key),
            why: held.why.iter().map(Why::words).collect(),
            removes: held.places.iter().map(RemovedForm::of).collect(),
            digest: has_own_reason.then(|| held.digest.to_string()),
            approval: has_own_reason.then(|| held.approval()),
            approval_of_all: has_own_reason.then(|| held.approval_of_all()),
            source: &held.source,
            later: later.collect(),
            goes_on: held.goes_on,
            failed_approvals: held.failed_approvals(),
        }
    }
}
