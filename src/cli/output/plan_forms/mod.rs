//! The forms of a plan: text, JSON, Markdown for a comment, SARIF, and the forges' annotations.

mod annotations;
pub(crate) mod branches;
pub(crate) mod json;
mod markdown;
mod outline;
pub(crate) mod policy;
pub(crate) mod reasons;
pub(crate) mod rollouts;
mod text;
mod title;

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::held::{FEW_ALONE, approvals_text, held_title, how_to_approve};
use super::ui::{Tone, Ui};
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Diagnostics, harmless_line};
use berth_base::model::{Fleet, Key};
use berth_engine::causes::Causes;
use berth_engine::consequences::folded::{ClusterWords, FoldedPlan};
use berth_engine::gate::{Deadline, Held};
use berth_engine::plan::Plan;
use berth_hub::inputs::PolicyReport;
use branches::Together;
pub(crate) use markdown::failure as failure_markdown;
use outline::{Line, Part, Sign};

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
    pub rollouts: &'a [rollouts::Rollout],
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
        title::title(self)
    }

    /// Returns the plan for a terminal, complete or as much as fits on a screen.
    pub fn text(&self, whole: bool, ui: &Ui) -> String {
        let mut shown = String::new();
        if !self.refused.is_empty() {
            shown.push_str(&text::refusals_text(self.refused, ui));
        }
        let _ = writeln!(shown, "{}", text::wrapped(&self.title(), 0));
        if let Some(together) = self.together {
            let title = text::wrapped(&branches::title(together), 0);
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
        let clusters = self.cluster_lines();
        if !clusters.is_empty() {
            let _ = writeln!(shown, "\n{}", ui.tint(&text::wrapped(FLEET, 0), Tone::Strong));
            clusters.iter().for_each(|line| shown.push_str(&text::line_text(line, ui)));
        }
        if let Some(title) = policy::title(self.policy) {
            let _ = writeln!(shown, "\n{}", ui.tint(&text::wrapped(&title, 0), Tone::Strong));
            policy::lines(self.policy).iter().for_each(|line| shown.push_str(&text::line_text(line, ui)));
        }
        for (heading, lines) in rollouts::parts(self.rollouts) {
            let _ = writeln!(shown, "\n{}", ui.tint(heading, Tone::Strong));
            lines.iter().for_each(|line| shown.push_str(&text::line_text(line, ui)));
        }
        if !self.deadlines.is_empty() {
            let _ = writeln!(shown, "\n{}", ui.tint(LATER, Tone::Strong));
            self.deadline_lines().iter().for_each(|line| shown.push_str(&text::line_text(line, ui)));
        }
        if !self.held.is_empty() {
            shown.push_str(&self.held_text(whole, ui));
        }
        shown
    }

    fn together_lines(&self, together: &Together) -> Vec<Line> {
        branches::lines(together, &ClusterWords::of(self.fleet))
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
