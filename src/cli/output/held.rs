//! The workloads that the gate holds, and the deadlines that it foresees, for people and programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::ui::{Tone, Ui};
use berth_base::model::Key;
use berth_base::text::{counted, some_of};
use berth_engine::gate::messages::stays;
use berth_engine::gate::{Deadline, Held, Why};

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

/// Returns the heading of the held workloads.
pub(crate) fn held_title(held: &[Held]) -> String {
    let workloads = counted(held.len(), "workload");
    format!("{workloads} held for approval: {}, the rest is published", stays(held))
}

/// Returns the way to approve what is held, and the line that does it. `None` where no approval is possible.
pub(crate) fn how_to_approve(held: &[Held]) -> Option<(&'static str, String)> {
    let one = held.iter().find(|one| one.has_own_reason())?;
    let how = "To reject, undo the change. To approve, end a commit's message on the source branch with this line \
               (`git commit --allow-empty` makes a commit without edits), or add a file under `approvals/` with its \
               digest:";
    Some((how, one.approval_of_all()))
}

/// The most approvals of single workloads that a text lists, and that one lists which is to fit a screen.
pub(crate) const MOST_ALONE: usize = 30;
pub(crate) const FEW_ALONE: usize = 5;

/// The lines that approve only some of the held workloads; empty where one line approves all or nothing.
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

/// Returns the deadlines as JSON.
pub(crate) fn deadlines_json(deadlines: &[Deadline]) -> Json {
    let one = |deadline: &Deadline| {
        let key = &deadline.key;
        json!({
            "at": deadline.at.to_string(),
            "kind": &*key.kind,
            "namespace": &*key.namespace,
            "name": &*key.name,
            "clusters": deadline.clusters(),
        })
    };
    deadlines.iter().map(one).collect()
}

/// The held workloads, for programs.
pub(crate) fn held_json(held: &[Held]) -> Json {
    let one = |held: &Held| {
        let removes = held
            .places
            .iter()
            .map(|(cluster, object)| json!({"cluster": cluster, "object": object.to_string()}));
        json!({
            "kind": &*held.key.kind,
            "namespace": &*held.key.namespace,
            "name": &*held.key.name,
            "why": held.why.iter().map(Why::words).collect::<Vec<_>>(),
            "removes": removes.collect::<Vec<_>>(),
            "digest": held.has_own_reason().then(|| held.digest.to_string()),
            "approval": held.has_own_reason().then(|| held.approval()),
            "approvalOfAll": held.has_own_reason().then(|| held.approval_of_all()),
            "source": held.source,
            "later": held.due.iter().map(|((cluster, object), at)| {
                json!({"at": at.to_string(), "cluster": cluster, "object": object.to_string()})
            }).collect::<Vec<_>>(),
            "goesOn": held.goes_on,
            "failedApprovals": held.failed_approvals(),
        })
    };
    held.iter().map(one).collect()
}
