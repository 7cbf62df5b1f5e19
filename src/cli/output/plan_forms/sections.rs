//! The sections of a plan under a heading of their own: effects that only several branches together have, findings of
//! policy tests, and the rollouts that a change begins or affects. Each as lines, and as JSON.

use std::collections::BTreeSet;

use serde::Serialize;

use super::outline::{self, Line, Sign, line};
use crate::output::changes::{KeyForm, PlacementForm, PlanForm, WorkloadForm};
use crate::output::results::DiagnosticForm;
use berth_base::diag::{Diagnostics, harmless_line};
use berth_base::model::rollout::Strategy;
use berth_base::model::{Key, Timestamp, Workload};
use berth_base::text::{counted, some_of};
use berth_engine::causes::{Causes, InputKind};
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::consequences::folded::{ClusterWords, listed};
use berth_engine::pipeline::Built;
use berth_engine::plan::{Change, Plan};
use berth_engine::policy_tests::{Item, PolicyFinding};
use berth_engine::release::outlook::{Outlook, outlook};
use berth_engine::release::policy::{Closed, Orders};
use berth_engine::release::stages::ClusterLabels;
use berth_engine::state::State;
use berth_git::CommitId;
use berth_hub::inputs::PolicyReport;

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
pub(super) fn together_title(together: &Together) -> String {
    let names: Vec<String> = together.branches.iter().map(|(name, _)| format!("`{name}`")).collect();
    match together.is_quiet() {
        true => format!("{} together do what each does alone", listed(&names)),
        false => format!("only with {} together", listed(&names)),
    }
}

/// Lists the conflicts, then effects of the combination alone, then lost effects.
pub(super) fn together_lines(together: &Together, clusters: &ClusterWords<'_>) -> Vec<Line> {
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

/// The number of findings in a text.
const MOST: usize = 40;

/// Returns the heading: the number of tests, and of failed ones. `None` if there is nothing to report.
pub(super) fn policy_title(report: &PolicyReport) -> Option<String> {
    let PolicyReport { counting, findings, foreseen, .. } = report;
    let mut failed: Vec<&str> = findings.iter().map(|finding| &*finding.test).collect();
    failed.dedup();
    let verdict = match failed.len() {
        0 => "none failed".to_owned(),
        some => format!("{some} failed"),
    };
    let is_told = *counting > 0 || !foreseen.is_empty();
    is_told.then(|| format!("policy tests: {} ran, {verdict}", counted(*counting, "test")))
}

/// Lists the findings, each with its place.
pub(super) fn policy_lines(report: &PolicyReport) -> Vec<Line> {
    let counting = report.findings.iter().map(|one| (one, ""));
    let all = counting.chain(report.foreseen.iter().map(|one| (one, " (after the merge)")));
    let mut lines = Vec::new();
    for (finding, when) in all.clone().take(MOST) {
        let sign = Sign::Attention;
        let said = [
            (sign, 0, finding.words()),
            (Sign::More, 1, format!("{} at {}{when}", finding.severity.word(), finding.at)),
        ];
        lines.extend(said.map(|(sign, depth, words)| Line {
            sign,
            depth,
            words: harmless_line(&words).into_owned(),
        }));
    }
    let more = all.count().saturating_sub(MOST);
    if more > 0 {
        let words = format!("and {}: `-o json` has them all", counted(more, "other finding"));
        lines.push(Line { sign: Sign::More, depth: 0, words });
    }
    lines
}

/// A finding of a policy test as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct FindingForm<'a> {
    test: &'a str,
    severity: &'static str,
    item: String,
    kind: Option<&'a str>,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    message: &'a str,
    file: &'a str,
    line: u32,
    column: u32,
    holds: bool,
    /// True if the test is in force, and not only foreseen.
    counts: bool,
}

impl<'a> FindingForm<'a> {
    pub(crate) fn all(report: &'a PolicyReport) -> Vec<FindingForm<'a>> {
        let counting = report.findings.iter().map(|finding| FindingForm::of(finding, true));
        let foreseen = report.foreseen.iter().map(|finding| FindingForm::of(finding, false));
        counting.chain(foreseen).collect()
    }

    fn of(finding: &'a PolicyFinding, counts: bool) -> FindingForm<'a> {
        let (kind, namespace, name) = match &finding.item {
            Item::Workload(key) => (Some(&*key.kind), Some(&*key.namespace), Some(&*key.name)),
            Item::Cluster(name) => (Some("Cluster"), None, Some(name.as_str())),
            Item::Fleet => (None, None, None),
        };
        FindingForm {
            test: &finding.test,
            severity: finding.severity.word(),
            item: finding.item.to_string(),
            kind,
            namespace,
            name,
            message: &finding.message,
            file: &finding.at.file,
            line: finding.at.line,
            column: finding.at.column,
            holds: finding.holds,
            counts,
        }
    }
}

/// The headings of the lines.
pub(super) const BEGUN: &str = "rollouts that this change begins";
pub(super) const CONCERNED: &str = "workloads whose next rollout this change orders otherwise";

/// A workload's rollout that the change begins or affects.
#[derive(Clone, Debug)]
pub(crate) struct Rollout {
    pub key: Key,
    /// The new release. `None` if the change only affects how the next release will be rolled out.
    pub release: Option<u64>,
    pub outlook: Outlook,
}

/// Returns the new releases, and the workloads whose strategies or policies are edited. A release that all its
/// clusters already have needs no rollout.
pub(crate) fn rollouts_of(current: &State, built: &Built, causes: &Causes, now: Timestamp) -> Vec<Rollout> {
    let new_release = |key: &Key| {
        let (before, after) = (current.releases.get(key), built.state.releases.get(key)?);
        let before = before.map(|before| (before.current.number, before.current.begun));
        let is_new = !after.is_proven() && before != Some((after.current.number, after.current.begun));
        is_new.then_some(after.current.number)
    };
    let labels = ClusterLabels::of(&built.fleet, &built.state.facts);
    let edits = Edits::of(causes);
    let one = |workload: &Workload| {
        let (key, orders) = (&workload.key, Orders::of(&built.fleet, &workload.key));
        let release = new_release(key);
        if release.is_none() && !edits.concern(workload, &orders) {
            return None;
        }
        let outlook = outlook(&orders, &labels, &built.state.decisions, now)?;
        Some(Rollout { key: key.clone(), release, outlook })
    };
    built.fleet.workloads.values().filter_map(|workload| one(workload)).collect()
}

/// The files that a change edits, and those whose edits change no cluster.
struct Edits<'c> {
    all: BTreeSet<&'c str>,
    idle: BTreeSet<&'c str>,
}

impl<'c> Edits<'c> {
    fn of(causes: &'c Causes) -> Edits<'c> {
        let told: BTreeSet<usize> =
            causes.by_effect.values().flat_map(|blame| &blame.changes).copied().collect();
        let mut edits = Edits { all: BTreeSet::new(), idle: BTreeSet::new() };
        for (index, input) in causes.inputs.iter().enumerate() {
            let Some(at) = input.at.as_ref().filter(|_| input.kind == InputKind::Edit) else { continue };
            edits.all.insert(&at.file);
            if !told.contains(&index) {
                edits.idle.insert(&at.file);
            }
        }
        edits
    }

    /// Reports whether the change edits a workload's strategy or one of its policies.
    fn concern(&self, workload: &Workload, orders: &Orders<'_>) -> bool {
        let by_policy = orders.policies().iter().any(|policy| self.all.contains(&*policy.origin.file));
        let has_strategy = || *orders.strategy() != Strategy::AtOnce;
        by_policy || (self.idle.contains(&*workload.origin.file) && has_strategy())
    }
}

/// Returns the lines of a plan, below their headings.
pub(super) fn rollout_parts(rollouts: &[Rollout]) -> Vec<(&'static str, Vec<Line>)> {
    let lines = |begins: bool| {
        let some = rollouts.iter().filter(|rollout| rollout.release.is_some() == begins);
        some.map(rollout_line).collect::<Vec<_>>()
    };
    let mut parts = vec![(BEGUN, lines(true)), (CONCERNED, lines(false))];
    parts.retain(|(_, lines)| !lines.is_empty());
    parts
}

fn rollout_line(rollout: &Rollout) -> Line {
    let outlook = &rollout.outlook;
    let is_odd = outlook.held.is_some() || !outlook.empty.is_empty();
    let sign = if is_odd { Sign::Attention } else { Sign::More };
    line(sign, 0, format!("{}: {}", rollout.key, outlook.words()))
}

/// The course of a rollout as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RolloutForm<'a> {
    #[serde(flatten)]
    workload: KeyForm<'a>,
    release: Option<u64>,
    words: String,
    pace: &'a str,
    waves: usize,
    seconds: i64,
    approvals: usize,
    also: &'a [String],
    held: Option<&'a Closed>,
    empty_stages: &'a [String],
}

impl<'a> RolloutForm<'a> {
    pub(super) fn of(rollout: &'a Rollout) -> RolloutForm<'a> {
        let Outlook { pace, waves, seconds, approvals, also, held, empty } = &rollout.outlook;
        RolloutForm {
            workload: KeyForm::of(&rollout.key),
            release: rollout.release,
            words: rollout.outlook.words(),
            pace,
            waves: *waves,
            seconds: *seconds,
            approvals: *approvals,
            also,
            held: held.as_ref(),
            empty_stages: empty,
        }
    }
}
