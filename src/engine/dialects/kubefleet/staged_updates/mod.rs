//! Staged updates: strategies, runs and approval requests, cluster-scoped and namespaced.
//!
//! A namespaced kind refers to objects of its namespace; its name lacks the prefix `Cluster`. Runs become
//! rollouts, approval requests the answer in their status. Both are checked for names of missing or
//! unsuitable objects. [`strategy`] reads stages, [`status`] shows a run as its hub does.

mod status;
mod strategy;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::PLACEMENT_GROUP;
use super::placement::PlacementSpec;
use crate::dialects::Document;
use berth_base::diag::{Diagnostic, Diagnostics, Pos, did_you_mean};
use berth_base::meta::{self, Metadata};
use berth_base::model::Key;
use berth_base::model::rollout::Strategy;
use berth_base::model::staged::{Run, RunState, Side, StageApproval, StageGate, StageStrategy};
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::{Node, Value};

pub(crate) use status::status;
pub(crate) use strategy::stages;

const LONGEST_NAME: usize = 63;
const LONGEST_PLACEMENT: usize = 255;

/// One of the three kinds of staged updates.
#[derive(Clone, Debug)]
pub(crate) enum StagedUpdate {
    Strategy(StageStrategy),
    Run(Run),
    Approval(StageApproval),
}

/// Returns the key of an object that another object names: in the same namespace, or in none.
fn beside(key: &Key, of_cluster: &str, of_namespace: &str, name: &str) -> Key {
    let kind = if key.namespace.is_empty() { of_cluster } else { of_namespace };
    Key::new(PLACEMENT_GROUP, kind, &key.namespace, name)
}

/// Returns the key that documents of a kind are known by: without a namespace for cluster-scoped kinds.
fn key_of(key: &Key) -> Key {
    let namespace = if key.kind.starts_with("Cluster") { "" } else { &*key.namespace };
    Key::new(PLACEMENT_GROUP, &key.kind, namespace, &key.name)
}

/// Reads a strategy, run or approval request. Faults go to the scope; if there are any, the result must not
/// be used.
pub(crate) fn read(scope: &Scope, root: &Node, key: &Key) -> Option<StagedUpdate> {
    let key = &key_of(key);
    let (mut fields, metadata) = meta::open(scope, root)?;
    if !key.kind.starts_with("Cluster") && metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    }
    let mut spec = fields.required_fields("spec")?;
    let origin = scope.pos(root.at);
    let read = match &*key.kind {
        "ClusterStagedUpdateStrategy" | "StagedUpdateStrategy" => {
            let stages = stages(&mut spec);
            Some(StagedUpdate::Strategy(StageStrategy { key: key.clone(), origin, stages }))
        }
        "ClusterStagedUpdateRun" | "StagedUpdateRun" => {
            check_length(scope, &metadata);
            read_run(&mut spec, key, origin).map(StagedUpdate::Run)
        }
        _ => {
            let status = root.get("status");
            read_approval(&mut spec, status, &metadata, (key, origin)).map(StagedUpdate::Approval)
        }
    };
    spec.finish();
    fields.finish();
    read
}

fn check_length(scope: &Scope, metadata: &Metadata) {
    if metadata.name.len() > LONGEST_NAME {
        let message = format!("metadata.name must not be longer than {LONGEST_NAME} characters");
        scope.error(metadata.name_at, message);
    }
}

fn read_run(spec: &mut Fields<'_>, key: &Key, origin: Pos) -> Option<Run> {
    let placement = spec.required_str("placementName");
    if placement.is_some_and(|name| name.len() > LONGEST_PLACEMENT) {
        let message = format!(
            "{} must not be longer than {LONGEST_PLACEMENT} characters",
            spec.path_of("placementName")
        );
        spec.error_at("placementName", message);
    }
    let workload_at = spec.scope().pos(spec.place_of("placementName"));
    let strategy = spec.required_str("stagedRolloutStrategyName");
    let strategy_at = spec.scope().pos(spec.place_of("stagedRolloutStrategyName"));
    let release = release(spec);
    let state = match spec.choice("state", &["Initialize", "Run", "Stop"]) {
        Some("Run") => RunState::Run,
        Some("Stop") => RunState::Stop,
        _ => RunState::Initialize,
    };
    Some(Run {
        key: key.clone(),
        origin,
        workload: beside(key, "ClusterResourcePlacement", "ResourcePlacement", placement?),
        workload_at,
        strategy: beside(key, "ClusterStagedUpdateStrategy", "StagedUpdateStrategy", strategy?),
        strategy_at,
        release,
        state,
    })
}

/// Reads the number of the content to roll out; an empty text means the newest.
fn release(spec: &mut Fields<'_>) -> Option<u64> {
    let text = spec.str("resourceSnapshotIndex").filter(|text| !text.is_empty())?;
    let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    if number.is_none() {
        let path = spec.path_of("resourceSnapshotIndex");
        let message = format!("{path} is `{text}`, but must be a whole number from 0, in quotes");
        let at = spec.scope().pos(spec.place_of("resourceSnapshotIndex"));
        let hint = "name a release by its number, or leave the field out to roll out the newest content";
        spec.scope().report(Diagnostic::error(at, message).hint(hint));
    }
    number
}

/// The conditions that mean approval; one of them must be True.
const APPROVED: [&str; 2] = ["Approved", "ApprovalAccepted"];

fn read_approval(
    spec: &mut Fields<'_>,
    status: Option<&Node>,
    metadata: &Metadata,
    (key, origin): (&Key, Pos),
) -> Option<StageApproval> {
    let run = spec.required_str("parentStageRollout");
    let stage = spec.required_str("targetStage");
    let (run, stage) = (run?, stage?);
    let names = [("before", Side::Before), ("after", Side::After)];
    let side = names.iter().find(|(word, _)| metadata.name == format!("{run}-{word}-{stage}"));
    let Some((_, side)) = side else {
        let message = format!(
            "metadata.name is `{}`, but must be `{run}-before-{stage}` or `{run}-after-{stage}`",
            metadata.name
        );
        let at = spec.scope().pos(metadata.name_at);
        let hint = "the name says whether the approval is for the beginning or the end of the stage";
        spec.scope().report(Diagnostic::error(at, message).hint(hint));
        return None;
    };
    Some(StageApproval {
        key: key.clone(),
        origin,
        run: beside(key, "ClusterStagedUpdateRun", "StagedUpdateRun", run),
        gate: StageGate { stage: stage.to_owned(), side: *side },
        approved: status.is_some_and(is_approved),
    })
}

fn is_approved(status: &Node) -> bool {
    let Some(Value::List(conditions)) = status.get("conditions").map(|node| &node.value) else {
        return false;
    };
    conditions.iter().any(|condition| {
        let text = |key: &str| condition.get(key).and_then(Node::as_str).unwrap_or_default();
        APPROVED.contains(&text("type")) && text("status") == "True"
    })
}

/// Everything that a run may name.
struct Known<'a> {
    /// The keys of all documents, readable or not: a faulty document has its own report.
    written: BTreeSet<Key>,
    placements: BTreeMap<&'a Key, &'a PlacementSpec>,
    strategies: BTreeMap<&'a Key, &'a StageStrategy>,
    runs: BTreeMap<&'a Key, &'a Run>,
}

/// Returns the faults of all references among staged updates.
pub(crate) fn check_references<'a>(
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
