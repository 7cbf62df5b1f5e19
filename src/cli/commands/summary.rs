//! A plan on one screen: a short plan is printed whole, a long plan by its largest parts.

use std::fmt::Write as _;

use super::changes::plan_text;
use super::ui::{Tone, Ui};
use berth_base::model::Key;
use berth_base::text::{counted, some_of};
use berth_engine::plan::{Counts, Plan, count};

/// A plan of so many lines is shown whole.
const SCREEN: usize = 40;

/// The most workloads, and names of clusters, in a summary.
const WORKLOADS: usize = 12;
const NAMES: usize = 5;

/// The length of a printed plan.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    Whole,
    /// Sums a long plan up, and ends with this hint on where every change is found
    Screen(&'static str),
}

/// Renders the plan, and sums it up where it would not fit a screen.
pub(crate) fn plan_of_length(plan: &Plan, length: Length, ui: &Ui) -> String {
    let Length::Screen(hint) = length else { return plan_text(plan, ui) };
    let counts = plan.counts();
    // Each change is a line: a plan with more of them need not be written to see that it is too long.
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
    let _ = writeln!(text, "\nevery change: {hint}");
    text
}

fn numbers(counts: Counts) -> String {
    format!("{} removed, {} changed, {} added", counts.removed, counts.changed, counts.added)
}
