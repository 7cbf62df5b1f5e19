//! What a run did, on one screen: the whole plan where that is short, the largest parts of it otherwise.

use std::fmt::Write as _;

use super::plan_form::{Reasons, plan_text};
use super::ui::{Tone, Ui, counted};
use crate::model::Key;
use crate::plan::{Counts, Plan, count};

/// A plan of so many lines is shown whole.
const SCREEN: usize = 40;

/// How many workloads, and names of clusters, a summary shows.
const WORKLOADS: usize = 12;
const NAMES: usize = 5;

/// The plan, summed up where it would not fit a screen.
pub fn plan_summary(plan: &Plan, ui: &Ui) -> String {
    let counts = plan.counts();
    // Each change is a line: a plan with more of them need not be written to see that it is too long.
    if counts.added + counts.changed + counts.removed <= SCREEN {
        let text = plan_text(plan, &Reasons::default(), ui);
        if text.lines().count() <= SCREEN {
            return text;
        }
    }
    let mut text = format!("{} in {}\n", numbers(counts), counted(counts.clusters, "cluster"));
    for (what, names) in
        [("left with nothing", &plan.clusters.lost), ("with their first objects", &plan.clusters.gained)]
    {
        if !names.is_empty() {
            let _ = writeln!(text, "{} {what}: {}", counted(names.len(), "cluster"), some_of(names));
        }
    }
    let mut workloads: Vec<(&Key, Counts)> =
        plan.workloads.iter().map(|(key, changes)| (key, count(changes.iter()))).collect();
    // What is removed matters most, then what concerns most clusters.
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
    text.push_str("\nevery change: `git show --stat` of the commit below; or `-v` with `run`\n");
    text
}

fn numbers(counts: Counts) -> String {
    format!("{} removed, {} changed, {} added", counts.removed, counts.changed, counts.added)
}

fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
