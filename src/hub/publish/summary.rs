//! The message of a rendered commit: a first line for logs, then a line per workload.
//!
//! The message describes a [`Plan`]. Only the plan compares states.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::member_lines;
use super::rollout_steps::RolloutStep;
use berth_base::diag::{Diagnostics, Severity};
use berth_base::model::Key;
use berth_base::text::counted;
use berth_engine::plan::{ClusterChange, Counts, ObjectChange, Plan, count};
use berth_engine::state::State;
use berth_git::protocol::trailers::one_line;

/// The number of workloads, or problems, listed by name.
const LONGEST_LIST: usize = 20;
const LONGEST_NAME: usize = 40;
const LONGEST_PROBLEM: usize = 200;

/// The changes by workload, and the problems found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub changes: Vec<Change>,
    /// Changed files that belong to no workload.
    pub others: Counts,
    /// The numbers of workloads and clusters in the first commit of a branch.
    pub first: Option<(usize, usize)>,
    /// A line for each workload whose rollout continued or halted.
    pub rollouts: Vec<String>,
    /// A line for each change of members' facts.
    pub members: Vec<String>,
    pub errors: usize,
    pub warnings: usize,
    pub problems: Vec<String>,
}

/// The change of one workload or placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    /// The numbers of clusters added to its decision, and removed from it.
    pub joined: usize,
    pub left: usize,
    /// The copies of its objects, and the number of their clusters.
    pub copies: Counts,
}

impl Summary {
    /// Counts the plan's changes. `first` is true for the first commit of a branch.
    pub fn of(plan: &Plan, first: bool) -> Summary {
        let keys: BTreeSet<&Key> = plan.workloads.keys().chain(plan.placements.keys()).collect();
        let change = |key: &Key| {
            let copies = plan.workloads.get(key).map_or(&[][..], Vec::as_slice);
            Change::of(key, plan.placements.get(key), copies)
        };
        Summary {
            changes: keys.into_iter().map(change).collect(),
            others: count(&plan.unaccounted),
            first: first.then_some((plan.workloads.len(), plan.clusters.gained.len())),
            ..Summary::default()
        }
    }

    /// Adds the steps of rollouts.
    #[must_use]
    pub fn with_rollouts(mut self, steps: &[RolloutStep]) -> Summary {
        self.rollouts = short(steps.iter().filter_map(|step| step.line.as_ref()));
        self
    }

    /// Adds the changes of members' facts between two states.
    #[must_use]
    pub fn with_members(mut self, before: &State, after: &State) -> Summary {
        self.members = short(&member_lines::lines(&before.facts, &after.facts));
        self
    }

    /// Adds the problems of the pass.
    #[must_use]
    pub fn with_problems(mut self, found: &Diagnostics) -> Summary {
        let count = |severity| found.iter().filter(|problem| problem.severity == severity).count();
        self.errors = count(Severity::Error);
        self.warnings = count(Severity::Warning);
        let serious = found.iter().filter(|problem| problem.severity != Severity::Note);
        self.problems = serious
            .take(LONGEST_LIST)
            .map(|problem| {
                let text = problem.to_string();
                shorten(&one_line(text.lines().next().unwrap_or_default()), LONGEST_PROBLEM)
            })
            .collect();
        self
    }

    /// Returns the message without its trailers.
    pub fn text(&self) -> String {
        let mut out = format!("berth: {}\n", self.first_line());
        if !self.changes.is_empty() || self.others != Counts::default() {
            out.push('\n');
        }
        for change in self.changes.iter().take(LONGEST_LIST) {
            let _ = writeln!(out, "{}", change.line());
        }
        if let Some(words) = copies_in_words(&self.others) {
            let _ = writeln!(out, "other files: {words}");
        }
        if let Some(more @ 1..) = self.changes.len().checked_sub(LONGEST_LIST) {
            let _ = writeln!(out, "and {more} more");
        }
        for (lines, (noun, of)) in
            [(&self.rollouts, ("more step", "rollouts")), (&self.members, ("more change", "facts"))]
        {
            if !lines.is_empty() {
                out.push('\n');
            }
            for line in lines.iter().take(LONGEST_LIST) {
                let _ = writeln!(out, "{line}");
            }
            if let Some(more @ 1..) = lines.len().checked_sub(LONGEST_LIST) {
                let _ = writeln!(out, "and {} of {of}", counted(more, noun));
            }
        }
        out.push_str(&self.problems_text());
        out
    }

    /// Returns the problems after an empty line; an empty text if there are none.
    pub(crate) fn problems_text(&self) -> String {
        let mut out = String::new();
        if self.errors + self.warnings > 0 {
            let (errors, warnings) = (counted(self.errors, "error"), counted(self.warnings, "warning"));
            let _ = writeln!(out, "\n{errors} and {warnings}");
            for problem in &self.problems {
                let _ = writeln!(out, "- {problem}");
            }
        }
        out
    }

    fn first_line(&self) -> String {
        if let Some((workloads, clusters)) = self.first {
            return format!(
                "first state, {} on {}",
                counted(workloads, "workload"),
                counted(clusters, "cluster")
            );
        }
        // A policy's clusters are already shown by its workloads.
        let main = self.changes.iter().find(|change| change.has_copies()).or(self.changes.first());
        match (main, copies_in_words(&self.others)) {
            (Some(main), _) if self.changes.len() > 1 => {
                format!("{} and {} more", main.headline(), self.changes.len() - 1)
            }
            (Some(main), _) => main.headline(),
            (None, Some(others)) => format!("other files: {others}"),
            (None, None) => {
                let told = if self.rollouts.is_empty() { &self.members } else { &self.rollouts };
                match told.as_slice() {
                    [] => "state brought up to date".to_owned(),
                    [only] => shorten(only, LONGEST_NAME * 2),
                    [first, ..] => format!("{} and {} more", shorten(first, LONGEST_NAME), told.len() - 1),
                }
            }
        }
    }
}

impl Change {
    fn of(key: &Key, clusters: Option<&ClusterChange>, copies: &[ObjectChange]) -> Change {
        Change {
            key: key.clone(),
            joined: clusters.map_or(0, |clusters| clusters.gained.len()),
            left: clusters.map_or(0, |clusters| clusters.lost.len()),
            copies: count(copies),
        }
    }

    fn has_copies(&self) -> bool {
        self.copies != Counts::default()
    }

    /// Returns a text such as `web changed in 2 clusters`, `web added to 1 cluster`, `web 1 removed, 1 added in 2
    /// clusters`.
    fn headline(&self) -> String {
        let name = shorten(&one_line(&self.key.name), LONGEST_NAME);
        let clusters = counted(self.copies.clusters, "cluster");
        match self.copies {
            Counts { removed: 0, changed: 0, added: 0, .. } => {
                format!("{name} decided again{}", self.moves())
            }
            Counts { removed: 0, changed: 0, .. } => format!("{name} added to {clusters}"),
            Counts { removed: 0, added: 0, .. } => format!("{name} changed in {clusters}"),
            Counts { changed: 0, added: 0, .. } => format!("{name} removed from {clusters}"),
            _ => format!("{name} {}", copies_in_words(&self.copies).unwrap_or_default()),
        }
    }

    fn line(&self) -> String {
        let name = shorten(&one_line(&self.key.to_string()), 2 * LONGEST_NAME);
        match copies_in_words(&self.copies) {
            Some(words) => format!("{name}: {words}{}", self.moves()),
            None => format!("{name}: decided again{}", self.moves()),
        }
    }

    fn moves(&self) -> String {
        match (self.joined, self.left) {
            (0, 0) => String::new(),
            (joined, 0) => format!(" (+{joined})"),
            (0, left) => format!(" (-{left})"),
            (joined, left) => format!(" (+{joined} -{left})"),
        }
    }
}

/// Returns a text such as `1 removed, 2 added in 3 clusters`; `None` if there are no copies.
pub fn copies_in_words(copies: &Counts) -> Option<String> {
    let sorts = [(copies.removed, "removed"), (copies.changed, "changed"), (copies.added, "added")];
    let sorts = sorts.into_iter().filter(|(count, _)| *count > 0);
    let words = sorts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ");
    (!words.is_empty()).then(|| format!("{words} in {}", counted(copies.clusters, "cluster")))
}

fn short<'a>(lines: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    lines.into_iter().map(|line| shorten(&one_line(line), LONGEST_PROBLEM)).collect()
}

fn shorten(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest - 1).chain(['…']).collect()
}
