//! Checks of runs and approval requests that name missing or unsuitable objects.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::Key;
use berth_base::model::rollout::Strategy;
use berth_base::model::staged::{Run, StageApproval, StageStrategy};

use super::super::placement::PlacementSpec;
use super::{StagedUpdate, key_of};
use crate::dialects::Document;

/// Everything that a run may name.
struct Known<'a> {
    /// The keys of all documents, readable or not: a faulty document has its own report.
    written: BTreeSet<Key>,
    placements: BTreeMap<&'a Key, &'a PlacementSpec>,
    strategies: BTreeMap<&'a Key, &'a StageStrategy>,
    runs: BTreeMap<&'a Key, &'a Run>,
}

/// Returns the faults of all references among staged updates.
pub(crate) fn check<'a>(
    documents: &[&Document],
    placements: impl Iterator<Item = &'a PlacementSpec>,
    read: &[&'a StagedUpdate],
) -> Diagnostics {
    let (mut strategies, mut runs, mut approvals) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for one in read {
        match one {
            StagedUpdate::Strategy(strategy) => drop(strategies.insert(&strategy.key, strategy)),
            StagedUpdate::Run(run) => drop(runs.insert(&run.key, run)),
            StagedUpdate::Approval(approval) => approvals.push(approval),
        }
    }
    let mut found = Diagnostics::new();
    if runs.is_empty() && approvals.is_empty() {
        return found;
    }
    let written = documents.iter().map(|document| key_of(&document.key)).collect();
    let placements = placements.map(|spec| (&spec.key, spec)).collect();
    let known = Known { written, placements, strategies, runs };
    for run in known.runs.values() {
        found.extend(known.check_placement(run));
        if !known.written.contains(&run.strategy) {
            let message = format!("{}: there is no {}", run.key, quoted(&run.strategy));
            let hint = known.similar(&run.strategy);
            found.push(Diagnostic::error(run.strategy_at.clone(), message).maybe_hint(hint));
        }
    }
    for approval in approvals {
        found.extend(known.check_approval(approval));
    }
    found
}

fn quoted(key: &Key) -> String {
    format!("{} `{}`", key.kind, key.full_name())
}

impl Known<'_> {
    fn similar(&self, wanted: &Key) -> Option<String> {
        let siblings =
            self.written.iter().filter(|key| key.kind == wanted.kind && key.namespace == wanted.namespace);
        did_you_mean(&wanted.name, siblings.map(|key| &*key.name))
    }

    fn check_placement(&self, run: &Run) -> Option<Diagnostic> {
        let error = |message: String| Diagnostic::error(run.workload_at.clone(), message);
        let wanted = &run.workload;
        if !self.written.contains(wanted) {
            let message = format!("{}: there is no {}", run.key, quoted(wanted));
            return Some(error(message).maybe_hint(self.similar(wanted)));
        }
        let spec = self.placements.get(wanted)?;
        if spec.selectors.is_none() {
            let message = format!("{}: {} selects no objects to roll out", run.key, quoted(wanted));
            return Some(error(message).hint("give the placement `resourceSelectors`"));
        }
        if spec.strategy == Strategy::Runs {
            return None;
        }
        let message = format!(
            "{}: the strategy of {} is not External, so it rolls out by itself",
            run.key,
            quoted(wanted)
        );
        Some(error(message).hint("set `spec.strategy.type: External` in the placement"))
    }

    /// Warns of an approval without a run or a stage: it has no effect.
    fn check_approval(&self, approval: &StageApproval) -> Option<Diagnostic> {
        let warning = |message: String| Diagnostic::warning(approval.origin.clone(), message);
        if !self.written.contains(&approval.run) {
            let message =
                format!("{}: there is no {}, so it has no effect", approval.key, quoted(&approval.run));
            return Some(warning(message).maybe_hint(self.similar(&approval.run)));
        }
        let strategy = self.strategies.get(&self.runs.get(&approval.run)?.strategy)?;
        let names = || strategy.stages.iter().map(|stage| stage.name.as_str());
        let stage = approval.gate.stage.as_str();
        if names().any(|name| name == stage) {
            return None;
        }
        let message = format!(
            "{}: {} has no stage `{stage}`, so the approval has no effect",
            approval.key,
            quoted(&strategy.key)
        );
        Some(warning(message).maybe_hint(did_you_mean(stage, names())))
    }
}
