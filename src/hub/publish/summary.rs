//! The message of a rendered commit: a first line for logs, then a line per workload, and lines about
//! members: which became silent or returned, and which of their facts changed.
//!
//! The message describes a [`Plan`]. Only the plan compares states.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::rollout_steps::RolloutStep;
use berth_base::diag::{Diagnostics, Severity};
use berth_base::model::cluster::WorkloadName;
use berth_base::model::{ClusterStatus, Key, Map, Shared};
use berth_base::text::{counted, some_of};
use berth_engine::plan::{ClusterChange, Counts, ObjectChange, Plan, count};
use berth_engine::state::State;
use berth_git::shared_refs::trailers::one_line;

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
        self.members = short(&lines(&before.facts, &after.facts));
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

/// The number of clusters that a line names.
const SHOWN: usize = 5;

/// A change of one cluster's facts, in the order of the lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MemberChange<'f> {
    Silent,
    NoLongerSilent,
    Frozen,
    NoLongerFrozen,
    /// A new verdict on the copies.
    Verdict(&'f WorkloadName, &'static str),
    /// A changed value, such as `label zone`.
    Fact(String),
}

/// Returns a line for each change, with its clusters.
pub(super) fn lines(
    before: &Map<String, Shared<ClusterStatus>>,
    after: &Map<String, Shared<ClusterStatus>>,
) -> Vec<String> {
    let nothing = ClusterStatus::default();
    let mut clusters: BTreeMap<MemberChange<'_>, Vec<&str>> = BTreeMap::new();
    for one in before.changes(after) {
        let [before, after] = [one.before, one.after].map(|fact| fact.map_or(&nothing, |fact| &**fact));
        for change in changes(before, after) {
            clusters.entry(change).or_default().push(one.key);
        }
    }
    clusters.iter().map(|(change, clusters)| change.line(&some_of(clusters, SHOWN))).collect()
}

fn changes<'f>(before: &'f ClusterStatus, after: &'f ClusterStatus) -> BTreeSet<MemberChange<'f>> {
    let turns = [
        (MemberChange::Silent, before.silent.is_none() && after.silent.is_some()),
        (MemberChange::NoLongerSilent, before.silent.is_some() && after.silent.is_none()),
        (MemberChange::Frozen, before.frozen.is_none() && after.frozen.is_some()),
        (
            MemberChange::NoLongerFrozen,
            before.frozen.is_some() && after.frozen.is_none() && after.silent.is_some(),
        ),
    ];
    let turns = turns.into_iter().filter(|(_, is_so)| *is_so).map(|(change, _)| change);
    let mut found: BTreeSet<MemberChange<'f>> = turns.collect();
    let verdict =
        |status: &ClusterStatus, name| status.copies.get(name).map(|report| (report.digest, report.health));
    let said = after.copies.iter().filter(|(name, _)| verdict(before, name) != verdict(after, name));
    found.extend(said.map(|(name, report)| MemberChange::Verdict(name, report.health.word())));
    let mut fact = |words: String| found.extend([MemberChange::Fact(words)]);
    differing(&before.labels, &after.labels, |key| fact(format!("label {key}")));
    differing(&before.claims, &after.claims, |key| fact(format!("claim {key}")));
    differing(&before.properties, &after.properties, |key| fact(format!("property {key}")));
    differing(&before.scores, &after.scores, |(resource, _)| fact(format!("scores {resource}")));
    differing(&before.workloads, &after.workloads, |name| fact(format!("room for {}", words(name))));
    differing(&before.taints, &after.taints, |taint| fact(format!("taint {}", taint.key)));
    if after.heard != before.heard {
        fact("reports in place of its file".to_owned());
    }
    found
}

/// Returns the keys whose values differ.
fn differing<'f, K: Ord, V: PartialEq>(
    before: &'f BTreeMap<K, V>,
    after: &'f BTreeMap<K, V>,
    mut tell: impl FnMut(&'f K),
) {
    before.keys().filter(|key| !after.contains_key(*key)).for_each(&mut tell);
    after.iter().filter(|(key, value)| before.get(*key) != Some(*value)).for_each(|(key, _)| tell(key));
}

impl MemberChange<'_> {
    fn line(&self, clusters: &str) -> String {
        match self {
            MemberChange::Silent => format!("fell silent: {clusters}"),
            // The policies that consider silence may be gone, too, so it is unknown whether the member reports again.
            MemberChange::NoLongerSilent => format!("no longer counts as silent: {clusters}"),
            MemberChange::Frozen => format!("nothing moves away for now: {clusters}"),
            MemberChange::NoLongerFrozen => format!("workloads may move away again: {clusters}"),
            MemberChange::Verdict(name, health) => format!("{} reported {health}: {clusters}", words(name)),
            MemberChange::Fact(words) => format!("facts changed ({words}): {clusters}"),
        }
    }
}

/// Names a workload, as `ConfigMap shop/web`.
fn words(WorkloadName { kind, namespace, name }: &WorkloadName) -> String {
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::Timestamp;

    fn facts(of: &[(&str, ClusterStatus)]) -> Map<String, Shared<ClusterStatus>> {
        of.iter().map(|(name, status)| ((*name).to_owned(), status.clone().into())).collect()
    }

    fn silent(frozen: Option<Timestamp>) -> ClusterStatus {
        ClusterStatus { silent: Some(Timestamp::UNIX_EPOCH), frozen, ..ClusterStatus::default() }
    }

    #[test]
    fn a_change_that_many_clusters_share_is_one_line() {
        let labelled = |zone: &str| ClusterStatus {
            labels: [("zone".to_owned(), zone.to_owned())].into(),
            ..ClusterStatus::default()
        };
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let all = |status: &ClusterStatus| facts(&names.map(|name| (name, status.clone())));
        let (before, after) = (all(&labelled("1")), all(&labelled("2")));
        assert_eq!(lines(&before, &after), ["facts changed (label zone): a, b, c, d, e and 2 more"]);
        assert_eq!(lines(&before, &before), [""; 0]);
        let gone = lines(&before, &facts(&[("h", silent(None))]));
        assert_eq!(gone, ["fell silent: h", "facts changed (label zone): a, b, c, d, e and 2 more"]);
    }

    #[test]
    fn a_silence_that_ends_ends_its_freeze_without_a_word() {
        let [free, frozen] = [None, Some(Timestamp::UNIX_EPOCH)].map(|at| facts(&[("a", silent(at))]));
        assert_eq!(lines(&free, &frozen), ["nothing moves away for now: a"]);
        assert_eq!(lines(&frozen, &free), ["workloads may move away again: a"]);
        assert_eq!(lines(&frozen, &facts(&[])), ["no longer counts as silent: a"]);
    }
}
