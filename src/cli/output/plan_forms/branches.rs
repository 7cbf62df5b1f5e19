//! Effects that only several branches together have, under their own heading.

use serde::Serialize;

use super::outline::{self, Line, Sign, line};
use crate::output::changes::{PlacementForm, PlanForm, WorkloadForm};
use crate::output::results::DiagnosticForm;
use berth_base::diag::Diagnostics;
use berth_base::model::Key;
use berth_base::text::{counted, some_of};
use berth_engine::consequences::folded::{ClusterWords, FoldedPlan, listed};
use berth_engine::plan::{Change, Plan};
use berth_git::CommitId;

/// The number of names in a line.
const NAMES: usize = 5;

/// Two branches with conflicting changes to files. The second is left out of the combination.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub between: [String; 2],
    pub files: Vec<String>,
}

/// The effects of the combination that no branch has alone, and the reverse.
#[derive(Debug)]
pub(crate) struct Together {
    /// The revisions, each a name and a commit.
    pub branches: Vec<(String, CommitId)>,
    pub conflicts: Vec<Conflict>,
    /// The changes that no branch makes alone: as a list, and grouped.
    pub only: Plan,
    pub folded: FoldedPlan,
    pub held: Vec<Key>,
    pub faults: Diagnostics,
    pub refused: Vec<String>,
    /// The changes that a branch makes alone and the combination does not, by branch.
    pub undone: Vec<(String, Plan)>,
}

impl Together {
    /// Reports whether the combination does exactly what the branches do alone.
    pub fn is_quiet(&self) -> bool {
        self.conflicts.is_empty()
            && self.only.is_empty()
            && self.held.is_empty()
            && self.faults.is_empty()
            && self.refused.is_empty()
            && self.undone.is_empty()
    }
}

/// Returns the heading: the branches, and whether the combination differs.
pub(super) fn title(together: &Together) -> String {
    let names: Vec<String> = together.branches.iter().map(|(name, _)| format!("`{name}`")).collect();
    match together.is_quiet() {
        true => format!("{} together do what each does alone", listed(&names)),
        false => format!("only with {} together", listed(&names)),
    }
}

/// Lists the conflicts, then effects of the combination alone, then lost effects.
pub(super) fn lines(together: &Together, clusters: &ClusterWords<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for conflict in &together.conflicts {
        let [a, b] = &conflict.between;
        let files = counted(conflict.files.len(), "file");
        lines.push(line(
            Sign::Attention,
            0,
            format!("`{a}` and `{b}` conflict in {files}; `{b}` is left out"),
        ));
        lines.push(line(Sign::More, 1, some_of(&conflict.files, NAMES)));
    }
    for refused in &together.refused {
        lines.push(line(Sign::Attention, 0, format!("`berth run` would publish nothing: {refused}")));
    }
    for fault in together.faults.iter() {
        lines.push(line(Sign::Attention, 0, fault.to_string()));
    }
    if !together.held.is_empty() {
        lines.push(line(Sign::Attention, 0, format!("held: {}", some_of(&together.held, NAMES))));
    }
    for part in outline::parts(&together.folded, clusters, false) {
        // A heading's edits are not the full cause: all branches are.
        lines.extend(part.lines);
    }
    for (branch, plan) in &together.undone {
        for (key, words) in undone(plan, clusters) {
            lines.push(line(
                Sign::Changed,
                0,
                format!("with `{branch}` alone and not together: {key} {words}"),
            ));
        }
    }
    lines
}

/// Describes the changes of each workload and placement.
fn undone<'p>(plan: &'p Plan, clusters: &ClusterWords<'_>) -> Vec<(&'p Key, String)> {
    let mut found = Vec::new();
    for (key, change) in &plan.placements {
        for (verb, names) in [("leaves", &change.lost), ("joins", &change.gained)] {
            if !names.is_empty() {
                let names = clusters.describe(names.iter().map(|name| &**name));
                found.push((key, format!("{verb} {names}")));
            }
        }
    }
    for (key, changes) in plan.workloads.iter().filter(|(key, _)| !plan.placements.contains_key(*key)) {
        for (change, verb) in
            [(Change::Removed, "loses"), (Change::Changed, "changes"), (Change::Added, "gets")]
        {
            let those: Vec<_> = changes.iter().filter(|one| one.change == change).collect();
            if !those.is_empty() {
                let names = clusters.describe(those.iter().map(|one| &*one.cluster));
                found.push((key, format!("{verb} {} in {names}", counted(those.len(), "object"))));
            }
        }
    }
    found
}

/// The comparison as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct TogetherForm<'a> {
    branches: Vec<BranchForm<'a>>,
    conflicts: Vec<ConflictForm<'a>>,
    only: ChangesForm<'a>,
    held: Vec<String>,
    refused: &'a [String],
    diagnostics: Vec<DiagnosticForm<'a>>,
    undone: Vec<UndoneForm<'a>>,
}

#[derive(Debug, Serialize)]
struct BranchForm<'a> {
    revision: &'a str,
    commit: String,
}

#[derive(Debug, Serialize)]
struct ConflictForm<'a> {
    between: &'a [String],
    files: &'a [String],
}

#[derive(Debug, Serialize)]
struct ChangesForm<'a> {
    workloads: Vec<WorkloadForm<'a>>,
    placements: Vec<PlacementForm<'a>>,
}

#[derive(Debug, Serialize)]
struct UndoneForm<'a> {
    branch: &'a str,
    #[serde(flatten)]
    changes: ChangesForm<'a>,
}

impl<'a> ChangesForm<'a> {
    fn of(plan: &'a Plan) -> ChangesForm<'a> {
        let PlanForm { workloads, placements, .. } = PlanForm::of(plan);
        ChangesForm { workloads, placements }
    }
}

impl<'a> TogetherForm<'a> {
    pub(crate) fn of(together: &'a Together) -> TogetherForm<'a> {
        let branches = together.branches.iter();
        let conflicts = together.conflicts.iter();
        let undone = together.undone.iter();
        TogetherForm {
            branches: branches
                .map(|(revision, commit)| BranchForm { revision, commit: commit.to_string() })
                .collect(),
            conflicts: conflicts
                .map(|one| ConflictForm { between: &one.between, files: &one.files })
                .collect(),
            only: ChangesForm::of(&together.only),
            held: together.held.iter().map(ToString::to_string).collect(),
            refused: &together.refused,
            diagnostics: DiagnosticForm::all(&together.faults),
            undone: undone
                .map(|(branch, plan)| UndoneForm { branch, changes: ChangesForm::of(plan) })
                .collect(),
        }
    }
}
