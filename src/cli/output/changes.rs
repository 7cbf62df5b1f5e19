//! A plan as a list of changes, as text or JSON: complete, on one screen, or line by line for one object.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;
use similar::TextDiff;

use super::results::ResultKind;
use super::ui::{Tone, Ui};
use berth_base::model::{Key, ObjectId, path};
use berth_base::text::{counted, some_of};
use berth_engine::plan::{Change, ClusterChange, Counts, ObjectChange, Plan, count};

/// Returns the complete plan as text.
pub(crate) fn plan_text(plan: &Plan, ui: &Ui) -> String {
    if plan.is_empty() {
        return "no changes\n".to_owned();
    }
    let counts = plan.counts();
    let mut text = format!(
        "{} removed, {} changed, {} added in {}\n",
        counts.removed,
        counts.changed,
        counts.added,
        counted(counts.clusters, "cluster")
    );
    for (what, names) in
        [("loses its last objects", &plan.clusters.lost), ("gets its first objects", &plan.clusters.gained)]
    {
        for name in names {
            let _ = writeln!(text, "cluster {name} {what}");
        }
    }
    // Workloads with removals come first.
    let mut workloads: Vec<_> = plan.workloads.iter().collect();
    workloads.sort_by_key(|(_, changes)| count(changes.iter()).removed == 0);
    for (key, changes) in workloads {
        let _ = writeln!(text, "\n{}", ui.tint(&key.to_string(), Tone::Strong));
        changes.iter().for_each(|change| text.push_str(&change_line(change, ui)));
    }
    if !plan.unaccounted.is_empty() {
        text.push_str("\nother files\n");
        plan.unaccounted.iter().for_each(|change| text.push_str(&change_line(change, ui)));
    }
    let without_objects = plan.placements.iter().filter(|(key, _)| !plan.workloads.contains_key(*key));
    for (key, change) in without_objects {
        let signed = |sign: &str, names: &[Arc<str>]| {
            names.iter().map(|name| format!(" {sign}{name}")).collect::<String>()
        };
        let _ =
            writeln!(text, "\n{key}: decision{}{}", signed("-", &change.lost), signed("+", &change.gained));
    }
    text
}

fn change_line(change: &ObjectChange, ui: &Ui) -> String {
    let tone = match change.change {
        Change::Removed => Tone::Bad,
        Change::Changed => Tone::Warn,
        Change::Added => Tone::Good,
    };
    let object = change.object.as_ref().map_or_else(|| change.path.to_string(), ToString::to_string);
    let line = format!("  {} {}: {object}", change.change.sign(), change.cluster);
    format!("{}\n", ui.tint(&line, tone))
}

/// Returns the conflicts of a merge as JSON.
pub(crate) fn conflicts_json(files: &[String]) -> Json {
    #[derive(Serialize)]
    struct MergeConflict<'a> {
        conflicts: &'a [String],
    }
    ResultKind::MergeConflict.of(&MergeConflict { conflicts: files })
}

/// A plan as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct PlanForm<'a> {
    pub(crate) counts: Counts,
    clusters: &'a ClusterChange,
    pub(crate) workloads: Vec<WorkloadForm<'a>>,
    other: Vec<ChangeForm<'a>>,
    pub(crate) placements: Vec<PlacementForm<'a>>,
}

/// A workload's changes as JSON. Only reports have the optional fields.
#[derive(Debug, Serialize)]
pub(crate) struct WorkloadForm<'a> {
    #[serde(flatten)]
    pub(crate) key: KeyForm<'a>,
    pub(crate) changes: Vec<ChangeForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(crate) struct PlacementForm<'a> {
    #[serde(flatten)]
    pub(crate) key: KeyForm<'a>,
    #[serde(flatten)]
    clusters: &'a ClusterChange,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<bool>,
    /// The reason for each added or removed cluster, if reasons are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasons: Option<Option<&'a BTreeMap<String, String>>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ChangeForm<'a> {
    change: &'static str,
    cluster: &'a str,
    path: &'a str,
    object: Option<String>,
    before: Option<String>,
    after: Option<String>,
    /// True if the change comes after the first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) later: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct KeyForm<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> KeyForm<'a> {
    pub(crate) fn of(key: &'a Key) -> KeyForm<'a> {
        KeyForm { kind: &key.kind, namespace: &key.namespace, name: &key.name }
    }
}

impl<'a> ChangeForm<'a> {
    fn of(change: &'a ObjectChange) -> ChangeForm<'a> {
        ChangeForm {
            change: change.change.word(),
            cluster: &change.cluster,
            path: &change.path,
            object: change.object.as_ref().map(ToString::to_string),
            before: change.before.map(|id| id.to_string()),
            after: change.after.map(|id| id.to_string()),
            later: None,
        }
    }
}

impl<'a> PlanForm<'a> {
    pub(crate) fn of(plan: &'a Plan) -> PlanForm<'a> {
        let workload = |(key, changes): (&'a Key, &'a Vec<ObjectChange>)| WorkloadForm {
            key: KeyForm::of(key),
            changes: changes.iter().map(ChangeForm::of).collect(),
            held: None,
        };
        let placement = |(key, clusters): (&'a Key, &'a ClusterChange)| PlacementForm {
            key: KeyForm::of(key),
            clusters,
            held: None,
            reasons: None,
        };
        PlanForm {
            counts: plan.counts(),
            clusters: &plan.clusters,
            workloads: plan.workloads.iter().map(workload).collect(),
            other: plan.unaccounted.iter().map(ChangeForm::of).collect(),
            placements: plan.placements.iter().map(placement).collect(),
        }
    }
}

/// Returns one object's difference, line by line, without the data of Secrets.
pub(crate) fn object_diff(
    change: &ObjectChange,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    ui: &Ui,
) -> String {
    // A file without a decision has only its path.
    let is_secret =
        change.object.as_deref().is_some_and(ObjectId::is_secret) || path::is_of_secret(&change.path);
    let title = format!("{}/{}", change.cluster, change.path);
    if is_secret {
        return format!("--- {title}\n(the data of a Secret is not shown)\n");
    }
    let text = |bytes: Option<Vec<u8>>| {
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    let (before, after) = (text(before), text(after));
    coloured(&before, &after, &title, ui)
}

/// Returns the unified difference under a title.
pub(crate) fn coloured(before: &str, after: &str, title: &str, ui: &Ui) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut shown = String::new();
    for line in diff.unified_diff().context_radius(2).header(title, title).to_string().lines() {
        let tone = match line.as_bytes().first() {
            Some(b'-') => Some(Tone::Bad),
            Some(b'+') => Some(Tone::Good),
            _ => None,
        };
        shown.push_str(&tone.map_or_else(|| line.to_owned(), |tone| ui.tint(line, tone)));
        shown.push('\n');
    }
    shown
}

/// A plan of up to this many lines is shown completely.
const SCREEN: usize = 40;

/// The number of workloads, and of clusters' names, in a summary.
const WORKLOADS: usize = 12;
const NAMES: usize = 5;

/// The length of a printed plan.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    Whole,
    /// Sums a long plan up, and ends with this hint on where every change is found
    Screen(&'static str),
}

/// Returns the plan, or a summary if it does not fit on a screen.
pub(crate) fn plan_of_length(plan: &Plan, length: Length, ui: &Ui) -> String {
    let Length::Screen(hint) = length else { return plan_text(plan, ui) };
    let counts = plan.counts();
    // Each change takes a line, so the counts alone can show that the plan is too long.
    if counts.added + counts.changed + counts.removed <= SCREEN {
        let text = plan_text(plan, ui);
        if text.lines().count() <= SCREEN {
            return text;
        }
    }
    let mut text = format!("{} in {}\n", numbers(counts), counted(counts.clusters, "cluster"));
    for (what, names) in [
        ("losing their last objects", &plan.clusters.lost),
        ("with their first objects", &plan.clusters.gained),
    ] {
        if !names.is_empty() {
            let _ = writeln!(text, "{} {what}: {}", counted(names.len(), "cluster"), some_of(names, NAMES));
        }
    }
    let mut workloads: Vec<(&Key, Counts)> =
        plan.workloads.iter().map(|(key, changes)| (key, count(changes.iter()))).collect();
    // Most removals first, then most clusters.
    workloads.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.removed, counts.clusters)));
    text.push('\n');
    for (key, counts) in workloads.iter().take(WORKLOADS) {
        let tone = if counts.removed > 0 { Tone::Bad } else { Tone::Good };
        let line = format!("{} in {}", numbers(*counts), counted(counts.clusters, "cluster"));
        let _ = writeln!(text, "  {key}: {}", ui.tint(&line, tone));
    }
    if workloads.len() > WORKLOADS {
        let _ = writeln!(text, "  and {}", counted(workloads.len() - WORKLOADS, "other workload"));
    }
    let decisions = plan.placements.keys().filter(|key| !plan.workloads.contains_key(*key)).count();
    if decisions > 0 {
        let _ = writeln!(text, "  and {} without objects", counted(decisions, "changed decision"));
    }
    if !plan.unaccounted.is_empty() {
        let _ = writeln!(text, "  and {}", counted(plan.unaccounted.len(), "other file"));
    }
    let _ = writeln!(text, "\nevery change: {hint}");
    text
}

fn numbers(counts: Counts) -> String {
    format!("{} removed, {} changed, {} added", counts.removed, counts.changed, counts.added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::shell::Shell;
    use berth_engine::plan::ChangeDetails;

    #[test]
    fn a_secret_nobody_accounts_for_is_not_shown_either() {
        let ui = Ui::new(&Shell::of_process(), true, crate::output::ui::ColourChoice::Never);
        let diff = |path: &str| {
            let details = ChangeDetails {
                change: Change::Removed,
                path: path.into(),
                object: None,
                before: None,
                after: None,
            };
            let change = ObjectChange { cluster: "a".into(), details: details.into() };
            object_diff(&change, Some(b"data: hunter2\n".to_vec()), None, &ui)
        };
        assert!(!diff("shop/Secret_x.yaml").contains("hunter2"), "{}", diff("shop/Secret_x.yaml"));
        assert!(diff("shop/ConfigMap_x.yaml").contains("hunter2"));
    }
}
