//! The title of a plan: problems first, then held workloads, then the effect of the change and its number of steps.

use super::PlanReport;
use berth_base::diag::Severity;
use berth_base::model::Key;
use berth_base::text::{counted, some_of};
use berth_engine::consequences::folded::listed;
use berth_engine::plan::{Counts, Plan};

/// The number of names in a title.
const NAMES: usize = 2;

/// Returns the title in one line.
pub(super) fn title(report: &PlanReport<'_>) -> String {
    let held = report.held.len();
    let held = (held > 0).then(|| format!("{} held", counted(held, "workload")));
    let effects: Vec<String> =
        [changes(report), decisions(report), clusters(report), later(report)].into_iter().flatten().collect();
    let effects = if effects.is_empty() { vec!["no changes".to_owned()] } else { effects };
    let parts: Vec<String> =
        faults(report).into_iter().chain(held).chain(effects).chain(earlier(report.earlier)).collect();
    parts.join("; ")
}

/// Describes the errors, and the workloads that keep their last good form because of them.
fn faults(report: &PlanReport<'_>) -> Option<String> {
    let policy = report.policy.diagnostics();
    let all = report.diagnostics.iter().chain(policy.iter());
    let errors = all.filter(|one| one.severity == Severity::Error).count();
    let staying: Vec<&Key> = report.staying.iter().collect();
    let stays = match staying.as_slice() {
        [] => String::new(),
        [one] => format!("; {} stays as it is", one.full_name()),
        several => {
            format!("; {} stay as they are", some_of(several.iter().map(|key| key.full_name()), NAMES))
        }
    };
    (errors > 0).then(|| format!("{}{stays}", counted(errors, "error")))
}

/// Describes the objects that change in the end, the number of steps, and the objects that change at once.
fn changes(report: &PlanReport<'_>) -> Option<String> {
    let counts = report.published.counts();
    let numbers = [(counts.removed, "removed"), (counts.changed, "changed"), (counts.added, "added")];
    let mut told = Vec::new();
    for (number, word) in numbers.into_iter().filter(|(number, _)| *number > 0) {
        told.push(match told.is_empty() {
            true => format!("{} {word}", counted(number, "object")),
            false => format!("{number} {word}"),
        });
    }
    let of = report.fleet.clusters.len();
    let pace = report.now.map(|now| pace(report, counts, now.counts())).unwrap_or_default();
    (!told.is_empty()).then(|| format!("{} in {} of {of} clusters{pace}", listed(&told), counts.clusters))
}

fn pace(report: &PlanReport<'_>, end: Counts, now: Counts) -> String {
    if now == end {
        return if end.clusters > 1 { ", all at once" } else { "" }.to_owned();
    }
    let begun = report.rollouts.iter().filter(|rollout| rollout.release.is_some());
    let steps = begun.map(|rollout| rollout.outlook.waves).max().unwrap_or_default();
    let steps = if steps > 1 { format!("in {steps} steps") } else { "step by step".to_owned() };
    match now.clusters {
        0 => format!(", {steps}, none now"),
        all if all == end.clusters => {
            format!(", {steps}, {} of them now", now.removed + now.changed + now.added)
        }
        some => format!(", {steps}, now in {some}"),
    }
}

/// Describes decisions without workloads, which other systems read.
fn decisions(report: &PlanReport<'_>) -> Option<String> {
    let PlanReport { published, fleet, .. } = report;
    let followed = fleet.followed();
    let is_workload = |key: &Key| published.workloads.contains_key(key) || fleet.workloads.contains_key(key);
    let read = published.placements.iter().filter(|(key, _)| !is_workload(key) && !followed.contains(key));
    let (mut decisions, mut lost, mut gained) = (0, 0, 0);
    for (_, change) in read {
        decisions += 1;
        lost += change.lost.len();
        gained += change.gained.len();
    }
    let moves = [(lost, "leaves"), (gained, "joins")];
    let moves: Vec<String> = moves
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{word} {}", counted(number, "cluster")))
        .collect();
    match decisions {
        0 => None,
        1 => Some(format!("a placement {}", moves.join(" and "))),
        several => Some(format!("{several} placements change: {lost} clusters lost, {gained} gained")),
    }
}

/// Describes the clusters that leave and join the fleet.
fn clusters(report: &PlanReport<'_>) -> Option<String> {
    let change = report.causes.of_fleet(report.fleet);
    let told =
        [(&change.lost, "leave"), (&change.gained, "join")].map(|(names, verb)| match names.as_slice() {
            [] => None,
            [one] => Some(format!("{one} {verb}s the fleet")),
            several => Some(format!("{} {verb} the fleet", counted(several.len(), "cluster"))),
        });
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| listed(&told))
}

/// Describes the removals by deadlines.
fn later(report: &PlanReport<'_>) -> Option<String> {
    let clusters: usize = report.deadlines.iter().map(|one| one.clusters().len()).sum();
    (clusters > 0).then(|| format!("{} later, by deadlines", counted(clusters, "removal")))
}

/// Describes the changes of earlier edits.
fn earlier(earlier: &Plan) -> Option<String> {
    let counts = earlier.counts();
    (counts.clusters > 0)
        .then(|| format!("earlier edits are on their way to {}", counted(counts.clusters, "cluster")))
}
