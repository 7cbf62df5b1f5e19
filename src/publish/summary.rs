//! What a commit changes, in words: a first line that a log can show, then one line per workload.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::trailers::one_line;
use crate::diag::{Diagnostics, Severity};
use crate::model::{Decision, Key, path};
use crate::state::State;

/// How many workloads and problems are named one by one.
const LONGEST_LIST: usize = 20;
const LONGEST_NAME: usize = 40;
const LONGEST_PROBLEM: usize = 200;

/// The difference between two states, by workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub changes: Vec<Change>,
    /// Clusters and workloads in the next state, for the first commit of a branch.
    pub first: Option<(usize, usize)>,
    pub errors: usize,
    pub warnings: usize,
    pub problems: Vec<String>,
}

/// What changes for one workload or placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    /// Clusters afterwards, and how many came and went.
    pub clusters: usize,
    pub joined: usize,
    pub left: usize,
    /// Copies of its objects.
    pub copies: Copies,
    pub has_objects: bool,
}

/// Copies of objects, over all clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
}

impl Summary {
    /// Compares two states. Costs what changed: clusters with equal folders are passed over.
    pub fn between(previous: Option<&State>, next: &State) -> Summary {
        let nothing = State::default();
        let before = previous.unwrap_or(&nothing);
        let touched = touched_paths(before, next);
        let keys: BTreeSet<&Key> = before.decisions.keys().chain(next.decisions.keys()).collect();
        let change = |key| change_of(key, before, next, &touched);
        let filled = next.folders.values().filter(|folder| !folder.is_empty()).count();
        let placed = next.decisions.values().filter(|decision| !decision.objects.is_empty()).count();
        Summary {
            changes: keys.into_iter().filter_map(change).collect(),
            first: previous.is_none().then_some((placed, filled)),
            ..Summary::default()
        }
    }

    /// Adds what was wrong on the way.
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

    /// The message, without what it was made from.
    pub fn text(&self) -> String {
        let mut out = format!("berth: {}\n", self.first_line());
        if !self.changes.is_empty() {
            out.push('\n');
        }
        for change in self.changes.iter().take(LONGEST_LIST) {
            let _ = writeln!(out, "{}", change.line());
        }
        if let Some(more @ 1..) = self.changes.len().checked_sub(LONGEST_LIST) {
            let _ = writeln!(out, "and {more} more");
        }
        if self.errors + self.warnings > 0 {
            let _ = writeln!(
                out,
                "\n{} and {}",
                counted(self.errors, "error"),
                counted(self.warnings, "warning")
            );
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
        // A policy's clusters are shown by the workloads that follow it.
        let main = self.changes.iter().find(|change| change.has_objects).or(self.changes.first());
        let Some(main) = main else { return "state brought up to date".to_owned() };
        match self.changes.len() - 1 {
            0 => main.headline(),
            more => format!("{} and {more} more", main.headline()),
        }
    }
}

impl Change {
    fn headline(&self) -> String {
        let name = shorten(&one_line(&self.key.name), LONGEST_NAME);
        let clusters = counted(self.clusters, "cluster");
        match (self.clusters, self.joined, self.left) {
            (_, 0, 0) if self.copies == Copies::default() => format!("{name} decided again"),
            (_, 0, 0) => format!("{name} changed on {clusters}"),
            (0, ..) => format!("{name} now on no cluster (-{})", self.left),
            _ => format!("{name} now on {clusters}{}", self.moves()),
        }
    }

    fn line(&self) -> String {
        let Copies { added, changed, removed } = self.copies;
        let name = shorten(&one_line(&self.key.to_string()), 2 * LONGEST_NAME);
        let mut line = format!("{name}: {}{}", counted(self.clusters, "cluster"), self.moves());
        let counts = [(added, "added"), (changed, "changed"), (removed, "removed")];
        for (count, word) in counts.into_iter().filter(|(count, _)| *count > 0) {
            let _ = write!(line, ", {count} {word}");
        }
        line
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

/// By path, the clusters in which its content differs, and how.
type Touched<'s> = BTreeMap<&'s str, Vec<(&'s str, Copies)>>;

fn touched_paths<'s>(before: &'s State, next: &'s State) -> Touched<'s> {
    let mut touched = Touched::new();
    let names: BTreeSet<&'s String> = before.folders.keys().chain(next.folders.keys()).collect();
    for name in names {
        let (old, new) = (before.folders.get(name), next.folders.get(name));
        if old == new {
            continue;
        }
        let mut touch = |path: &'s str, copies| touched.entry(path).or_default().push((name, copies));
        for (path, id) in new.into_iter().flatten() {
            match old.and_then(|old| old.get(path)) {
                None => touch(path, Copies { added: 1, ..Copies::default() }),
                Some(old) if old != id => touch(path, Copies { changed: 1, ..Copies::default() }),
                Some(_) => {}
            }
        }
        for path in old.into_iter().flat_map(|old| old.keys()) {
            if new.is_none_or(|new| !new.contains_key(path)) {
                touch(path, Copies { removed: 1, ..Copies::default() });
            }
        }
    }
    touched
}

fn change_of(key: &Key, before: &State, next: &State, touched: &Touched<'_>) -> Option<Change> {
    let (old, new) = (before.decisions.get(key), next.decisions.get(key));
    let objects: BTreeSet<_> =
        [old, new].into_iter().flatten().flat_map(|decision| &decision.objects).collect();
    let has_objects = !objects.is_empty();
    let mut cursors = [old.map(Decision::cursor), new.map(Decision::cursor)];
    let mut copies = Copies::default();
    for (cluster, one) in objects.into_iter().filter_map(|id| touched.get(&*path::of_object(id))).flatten() {
        if cursors.iter_mut().flatten().any(|picks| picks.has(cluster)) {
            copies.added += one.added;
            copies.changed += one.changed;
            copies.removed += one.removed;
        }
    }
    if old == new && copies == Copies::default() {
        return None;
    }
    let (old_clusters, new_clusters) = (picked(old), picked(new));
    Some(Change {
        key: key.clone(),
        clusters: new_clusters.len(),
        joined: new_clusters.difference(&old_clusters).count(),
        left: old_clusters.difference(&new_clusters).count(),
        copies,
        has_objects,
    })
}

fn picked(decision: Option<&Decision>) -> BTreeSet<&str> {
    decision.into_iter().flat_map(|decision| &decision.picks).map(|pick| pick.cluster.as_str()).collect()
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

fn shorten(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest - 1).chain(['…']).collect()
}
