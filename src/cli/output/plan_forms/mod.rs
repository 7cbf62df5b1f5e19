//! The forms of a plan: text, JSON, Markdown for a comment, SARIF, and the forges' annotations.
//!
//! The title of a plan names problems first, then held workloads, then the effect of the change and its number of steps.

mod annotations;
pub(crate) mod json;
mod markdown;
mod outline;
pub(crate) mod reasons;
pub(crate) mod sections;
mod text;

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::held::{FEW_ALONE, approvals_text, held_title, how_to_approve};
use super::ui::{Tone, Ui};
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Diagnostics, Severity, harmless_line};
use berth_base::model::{Fleet, Key};
use berth_base::text::{counted, some_of};
use berth_engine::causes::Causes;
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::consequences::folded::{ClusterWords, listed};
use berth_engine::gate::{Deadline, Held};
use berth_engine::plan::{Counts, Plan};
use berth_hub::inputs::PolicyReport;
use berth_site::inputs::Remark;
use outline::{Line, Part, Sign};
use sections::Together;

pub(crate) use markdown::failure as failure_markdown;

/// The heading of added and removed clusters.
const FLEET: &str = "clusters that leave or join the fleet, as their ClusterProfiles in a hub cluster do";
/// The heading of deadlines.
const LATER: &str = "later, by deadlines of this change";

/// The content of a plan for all forms.
#[derive(Debug)]
pub(crate) struct PlanReport<'a> {
    /// A short description of the base and the change.
    pub words: &'a str,
    /// All changes that will happen in the end.
    pub published: &'a Plan,
    /// The changes of the first step. `None` if all have happened.
    pub now: Option<&'a Plan>,
    /// The changes of earlier edits that some clusters do not have yet.
    pub earlier: &'a Plan,
    /// The workloads that keep their last good form, because their files are broken.
    pub staying: &'a [Key],
    /// All changes, including held ones: as a list, and grouped.
    pub wanted: &'a Plan,
    pub folded: &'a FoldedPlan,
    pub causes: &'a Causes,
    pub fleet: &'a Fleet,
    pub held: &'a [Held],
    pub deadlines: &'a [Deadline],
    /// The rollouts that the change begins or affects.
    pub rollouts: &'a [sections::Rollout],
    /// The reasons why `run` would publish nothing.
    pub refused: &'a [CommandError],
    pub policy: &'a PolicyReport,
    pub diagnostics: &'a Diagnostics,
    /// The diagnostics from before the change.
    pub standing: &'a Diagnostics,
    /// The comparison with each branch alone, if several are planned.
    pub together: Option<&'a Together>,
}

impl PlanReport<'_> {
    fn parts(&self, all_fields: bool) -> Vec<Part> {
        outline::parts(self.folded, &ClusterWords::of(self.fleet), all_fields)
    }

    fn cluster_lines(&self) -> Vec<Line> {
        outline::cluster_lines(&self.causes.of_fleet(self.fleet))
    }

    fn deadline_lines(&self) -> Vec<Line> {
        outline::deadline_lines(self.deadlines, &ClusterWords::of(self.fleet))
    }

    /// Splits the diagnostics into new ones and those from before the change.
    fn news(&self) -> (Vec<&Diagnostic>, Vec<&Diagnostic>) {
        self.diagnostics.iter().partition(|one| !self.is_standing(one))
    }

    fn is_standing(&self, one: &Diagnostic) -> bool {
        self.standing.iter().any(|standing| standing == one)
    }

    /// Returns a title of one line: problems, held workloads, and the effect of the change.
    pub fn title(&self) -> String {
        title(self)
    }

    /// Returns the plan for a terminal, complete or as much as fits on a screen.
    pub fn text(&self, whole: bool, ui: &Ui) -> String {
        let mut shown = String::new();
        if !self.refused.is_empty() {
            shown.push_str(&text::refusals_text(self.refused, ui));
        }
        let _ = writeln!(shown, "{}", text::wrapped(&self.title(), 0));
        if let Some(together) = self.together {
            let title = text::wrapped(&sections::together_title(together), 0);
            let _ = writeln!(shown, "\n{}", ui.tint(&title, Tone::Strong));
            self.together_lines(together).iter().for_each(|line| shown.push_str(&text::line_text(line, ui)));
        }
        shown.push_str(&text::text(&self.parts(whole), whole, ui));
        let others = self.published.unaccounted.len();
        if others > 0 {
            shown.push_str("\nother files\n");
        }
        for change in self.published.unaccounted.iter().take(if whole { others } else { 10 }) {
            let _ = writeln!(
                shown,
                "  {} {}: {}",
                change.change.sign(),
                change.cluster,
                harmless_line(&change.path)
            );
        }
        for (heading, lines) in self.more_parts() {
            let _ = writeln!(shown, "\n{}", ui.tint(&text::wrapped(&heading, 0), Tone::Strong));
            lines.iter().for_each(|line| shown.push_str(&text::line_text(line, ui)));
        }
        if !self.held.is_empty() {
            shown.push_str(&self.held_text(whole, ui));
        }
        shown
    }

    /// Returns what follows the changes, each with its heading: clusters that come and go, policy tests, rollouts,
    /// deadlines.
    fn more_parts(&self) -> Vec<(String, Vec<Line>)> {
        let clusters = [(FLEET.to_owned(), self.cluster_lines())];
        let policy = sections::policy_title(self.policy);
        let policy = policy.map(|title| (title, sections::policy_lines(self.policy)));
        let rollouts = sections::rollout_parts(self.rollouts);
        let rollouts = rollouts.into_iter().map(|(heading, lines)| (heading.to_owned(), lines));
        let later = [(LATER.to_owned(), self.deadline_lines())];
        let has_lines = |(_, lines): &(String, Vec<Line>)| !lines.is_empty();
        let [clusters, later] = [clusters, later].map(|part| part.into_iter().filter(has_lines));
        clusters.chain(policy).chain(rollouts).chain(later).collect()
    }

    /// Returns everything beside the changes and their causes, problems first.
    pub fn remarks(&self) -> Vec<Remark> {
        let refused = self.refused.iter().map(|refusal| outline::line(Sign::Attention, 0, &refusal.message));
        let problems = self.news().0.into_iter().map(|one| {
            let sign = if one.severity == Severity::Note { Sign::More } else { Sign::Attention };
            outline::line(sign, 0, one.to_string())
        });
        let parts = [
            ("`berth run` would publish nothing".to_owned(), refused.collect::<Vec<Line>>()),
            ("problems and notes".to_owned(), problems.collect()),
            (held_title(self.held), outline::held_lines(self.held)),
        ];
        let parts = parts.into_iter().filter(|(_, lines)| !lines.is_empty()).chain(self.more_parts());
        let line = |line: Line| (line.sign.mark(), format!("{}{}", "  ".repeat(line.depth), line.words));
        parts
            .map(|(heading, lines)| Remark { heading, lines: lines.into_iter().map(line).collect() })
            .collect()
    }

    fn together_lines(&self, together: &Together) -> Vec<Line> {
        sections::together_lines(together, &ClusterWords::of(self.fleet))
    }

    fn held_text(&self, whole: bool, ui: &Ui) -> String {
        let mut shown = format!("\n{}\n", ui.tint(&text::wrapped(&held_title(self.held), 0), Tone::Bad));
        for line in outline::held_lines(self.held) {
            shown.push_str(&text::line_text(&line, ui));
        }
        if let Some((how, approval)) = how_to_approve(self.held) {
            let _ = write!(shown, "\n{}\n\n{approval}\n", text::wrapped(how, 0));
            let most = if whole { usize::MAX } else { FEW_ALONE };
            shown.push_str(&approvals_text(self.held, most));
        }
        shown
    }

    /// Returns the plan as one comment for a pull request.
    pub fn markdown(&self) -> String {
        markdown::comment(self)
    }

    /// Returns the plan's diagnostics and causes as a SARIF log.
    pub fn sarif(&self) -> Json {
        annotations::sarif_log(&annotations::of(self))
    }

    /// Returns the plan's diagnostics and causes as workflow commands of GitHub and Gitea.
    pub fn workflow_commands(&self) -> String {
        annotations::workflow_commands(&annotations::of(self))
    }

    /// Returns the plan's diagnostics and causes as GitLab's code quality report.
    pub fn code_quality(&self) -> Json {
        annotations::code_quality(&annotations::of(self))
    }
}

impl Sign {
    /// Returns the mark of a line, the same in all forms. Forges use it to colour removals, additions and warnings.
    fn mark(self) -> char {
        match self {
            Sign::Removed => '-',
            Sign::Changed => '~',
            Sign::Added => '+',
            Sign::Held => '=',
            Sign::Attention => '!',
            Sign::More => ' ',
        }
    }
}

/// The number of names in a title.
const NAMES: usize = 2;

/// Returns the title in one line.
fn title(report: &PlanReport<'_>) -> String {
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
