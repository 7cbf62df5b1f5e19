//! The rollouts that a change begins or affects: as a line for each workload, and as JSON.

use std::collections::BTreeSet;

use serde::Serialize;

use super::outline::{Line, Sign, line};
use crate::output::changes::KeyForm;
use berth_base::model::rollout::Strategy;
use berth_base::model::{Key, Timestamp, Workload};
use berth_engine::causes::{Causes, InputKind};
use berth_engine::pipeline::Built;
use berth_engine::release::outlook::{Outlook, outlook};
use berth_engine::release::policy::{Closed, Orders};
use berth_engine::release::stages::ClusterLabels;
use berth_engine::state::State;

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
pub(crate) fn of(current: &State, built: &Built, causes: &Causes, now: Timestamp) -> Vec<Rollout> {
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
pub(super) fn parts(rollouts: &[Rollout]) -> Vec<(&'static str, Vec<Line>)> {
    let lines = |begins: bool| {
        let some = rollouts.iter().filter(|rollout| rollout.release.is_some() == begins);
        some.map(told).collect::<Vec<_>>()
    };
    let mut parts = vec![(BEGUN, lines(true)), (CONCERNED, lines(false))];
    parts.retain(|(_, lines)| !lines.is_empty());
    parts
}

fn told(rollout: &Rollout) -> Line {
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
