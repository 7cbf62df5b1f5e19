//! Plans several open branches together: effects of the combination alone, and lost effects.

use std::collections::BTreeSet;

use super::planned::{PlanRequest, Planned, Revisions, StepArgs};
use super::rehearsal::{Change, Rehearsed, Revision};
use crate::output::plan_forms::sections::{Conflict, Together};
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::Key;
use berth_engine::consequences::folded::{FoldedPlan, listed};
use berth_engine::plan::{ClusterChange, Plan, plan};
use berth_git::{Merged, Repo};

/// The branches, each planned alone.
pub(crate) struct Alone {
    branches: Vec<Branch>,
    conflicts: Vec<Conflict>,
}

/// One branch and its effect alone.
struct Branch {
    change: Change,
    wanted: Plan,
    held: BTreeSet<Key>,
    faults: BTreeSet<FaultText>,
    refused: BTreeSet<String>,
}

/// A diagnostic without its line, which other edits of the file move.
type FaultText = (Severity, String, String);

/// Merges branches into a change, one after another, and rehearses each alone.
pub(crate) fn combine(
    args: &StepArgs,
    repo: &Repo,
    first: PlanRequest,
    (names, source): (&[String], Option<&str>),
    ui: &Ui,
) -> Result<(PlanRequest, Alone), CommandError> {
    let rehearse = |asked: &PlanRequest| -> Result<Branch, CommandError> {
        let rehearsed = ui.watching("planning each branch alone", || asked.rehearse(args, repo, ui.now()))?;
        Ok(Branch::of(&asked.change, &rehearsed))
    };
    let mut alone = Alone { branches: vec![rehearse(&first)?], conflicts: Vec::new() };
    let mut combined = first.change.source;
    for name in names {
        let head = Revision { name: name.clone(), commit: repo.require(name)? };
        let (located, base) = (first.located.clone(), first.base.clone());
        let revisions = Revisions { base, head: head.clone(), source, is_merged: true };
        let asked = PlanRequest::gather(located, revisions, repo, |_| ())?;
        let message = format!("Merge {name}\n");
        match repo.merge(combined, head.commit, &message)? {
            Merged::Contained(commit) | Merged::Merge(commit) => combined = commit,
            Merged::Conflicts(files) => {
                alone.conflicts.push(alone.conflict(repo, &head, files)?);
                continue;
            }
            Merged::Unrelated => {
                let message = format!("`{name}` has no commit in common with the other branches");
                return Err(CommandError::usage(message));
            }
        }
        alone.branches.push(rehearse(&asked)?);
    }
    let names: Vec<&str> = alone.branches.iter().map(|branch| branch.change.head.name.as_str()).collect();
    let head = Revision { name: listed(&names), commit: combined };
    let change = Change { head, source: combined, ..first.change };
    Ok((PlanRequest { change, subject: "merged in this order".to_owned(), ..first }, alone))
}

impl Branch {
    fn of(change: &Change, rehearsed: &Rehearsed) -> Branch {
        let Rehearsed { step, refusals } = rehearsed;
        Branch {
            change: change.clone(),
            wanted: plan(&step.inputs.current, &step.built.end()),
            held: step.held.iter().map(|held| held.key.clone()).collect(),
            faults: step.diagnostics.iter().chain(step.policy.diagnostics().iter()).map(fault).collect(),
            refused: refusals.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Alone {
    /// Finds the branch that another one conflicts with.
    fn conflict(&self, repo: &Repo, head: &Revision, files: Vec<String>) -> Result<Conflict, CommandError> {
        for branch in &self.branches {
            if let Merged::Conflicts(files) = repo.merge(branch.change.source, head.commit, "Merge\n")? {
                return Ok(Conflict { between: [branch.change.head.name.clone(), head.name.clone()], files });
            }
        }
        let names: Vec<&str> = self.branches.iter().map(|branch| branch.change.head.name.as_str()).collect();
        Ok(Conflict { between: [listed(&names), head.name.clone()], files })
    }

    /// Compares the combination with each branch alone.
    pub fn compared(self, repo: &Repo, planned: &Planned) -> Together {
        let Alone { branches, conflicts } = self;
        let plans: Vec<&Plan> = branches.iter().map(|branch| &branch.wanted).collect();
        let only = beyond(&planned.wanted, &plans);
        let is_new = |key: &&Key| branches.iter().all(|branch| !branch.held.contains(*key));
        let held = planned.step.held.iter().map(|held| &held.key).filter(is_new).cloned();
        let policy = planned.step.policy.diagnostics();
        let all = planned.step.diagnostics.iter().chain(policy.iter());
        let is_told = |one: &&Diagnostic| one.severity != Severity::Note;
        let is_new = |one: &&Diagnostic| branches.iter().all(|branch| !branch.faults.contains(&fault(one)));
        let mut faults = Diagnostics::new();
        faults.extend(all.filter(is_told).filter(is_new).cloned());
        let refused = planned.refused.iter().map(|refused| refused.message.clone());
        let is_new = |message: &String| branches.iter().all(|branch| !branch.refused.contains(message));
        let undone = branches
            .iter()
            .map(|branch| (branch.change.head.name.clone(), beyond(&branch.wanted, &[&planned.wanted])));
        Together {
            held: held.collect(),
            refused: refused.filter(is_new).collect(),
            undone: undone.filter(|(_, plan)| !plan.is_empty()).collect(),
            folded: FoldedPlan { idle: Vec::new(), ..planned.fold(repo, &only) },
            only,
            faults,
            branches: branches
                .into_iter()
                .map(|branch| (branch.change.head.name, branch.change.head.commit))
                .collect(),
            conflicts,
        }
    }
}

fn fault(one: &Diagnostic) -> FaultText {
    let file = one.at.as_ref().map_or_else(String::new, |at| at.file.to_string());
    (one.severity, file, one.message.clone())
}

/// Returns the changes of a plan that are in no other plan. An object changed by both does not count.
fn beyond(plan: &Plan, others: &[&Plan]) -> Plan {
    let mut found = plan.clone();
    let objects: BTreeSet<_> = others
        .iter()
        .flat_map(|other| other.changes())
        .map(|one| (one.change, &*one.cluster, &*one.path))
        .collect();
    for changes in found.workloads.values_mut().chain([&mut found.unaccounted]) {
        changes.retain(|one| !objects.contains(&(one.change, &*one.cluster, &*one.path)));
    }
    found.workloads.retain(|_, changes| !changes.is_empty());
    let without = |change: &mut ClusterChange, other: &ClusterChange| {
        change.lost.retain(|name| !other.lost.contains(name));
        change.gained.retain(|name| !other.gained.contains(name));
    };
    for other in others {
        without(&mut found.clusters, &other.clusters);
        for (key, change) in &mut found.placements {
            if let Some(other) = other.placements.get(key) {
                without(change, other);
            }
        }
    }
    found.placements.retain(|_, change| !change.is_empty());
    found
}
