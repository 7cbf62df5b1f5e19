//! The rollouts that a change begins: a line for each workload, and a form for programs.

use serde_json::{Value as Json, json};

use super::outline::{Line, Sign, line};
use berth_base::model::{Key, Timestamp};
use berth_engine::pipeline::Built;
use berth_engine::release::labels::ClusterLabels;
use berth_engine::release::outlook::{Outlook, outlook};
use berth_engine::release::policy::Orders;
use berth_engine::state::State;

/// The heading of the lines.
pub(super) const HEADING: &str = "rollouts that this change begins";

/// A release that the change makes, and how it will roll.
#[derive(Clone, Debug)]
pub(crate) struct Rollout {
    pub key: Key,
    pub release: u64,
    pub outlook: Outlook,
}

/// Returns the new releases. One that all its clusters have already is no rollout.
pub(crate) fn begun(current: &State, built: &Built, now: Timestamp) -> Vec<Rollout> {
    let is_new = |key: &Key| {
        let (before, after) = (current.releases.get(key), built.state.releases.get(key));
        after.is_some_and(|after| {
            let before = before.map(|before| (before.current.number, before.current.begun));
            !after.is_proven() && before != Some((after.current.number, after.current.begun))
        })
    };
    let labels = ClusterLabels::of(&built.fleet, &built.state.facts);
    let one = |key: &Key| {
        let release = built.state.releases.get(key)?.current.number;
        let outlook = outlook(&Orders::of(&built.fleet, key), &labels, &built.state.decisions, now)?;
        Some(Rollout { key: key.clone(), release, outlook })
    };
    built.fleet.workloads.keys().filter(|key| is_new(key)).filter_map(one).collect()
}

/// The lines of a plan.
pub(super) fn lines(rollouts: &[Rollout]) -> Vec<Line> {
    let one = |rollout: &Rollout| {
        let sign = if rollout.outlook.held.is_some() { Sign::Attention } else { Sign::More };
        line(sign, 0, format!("{}: {}", rollout.key, rollout.outlook.words()))
    };
    rollouts.iter().map(one).collect()
}

/// The form for programs.
pub(super) fn rollouts_json(rollouts: &[Rollout]) -> Json {
    let one = |rollout: &Rollout| {
        let Outlook { pace, waves, seconds, approvals, also, held } = &rollout.outlook;
        let Key { kind, namespace, name, .. } = &rollout.key;
        let held = held.as_ref().map(
            |closed| json!({"reason": closed.reason, "until": closed.until.map(|until| until.to_string())}),
        );
        json!({
            "kind": kind, "namespace": namespace, "name": name, "release": rollout.release,
            "words": rollout.outlook.words(), "pace": pace, "waves": waves, "seconds": seconds,
            "approvals": approvals, "also": also, "held": held,
        })
    };
    rollouts.iter().map(one).collect()
}
