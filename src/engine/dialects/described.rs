//! The inputs from which a dialect describes a placement in its own system's form.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::rollouts::RolloutView;
use berth_base::model::{Condition, Decision, Fleet, Key, Map, Member, MemberView, Pick};

/// A placement to describe. Facts that only a hub with a watch on members' objects could know are never
/// claimed.
#[derive(Debug)]
pub struct Described<'a> {
    pub decision: &'a Decision,
    /// The fleet behind the decision, if it can still be read.
    pub fleet: Option<&'a Fleet>,
    /// All decisions, if known, including those of followed placements.
    pub decisions: Option<&'a Map<Key, Decision>>,
    /// The decision's clusters, each with its member if known.
    pub placed: Vec<(&'a str, Option<&'a Member<'a>>)>,
    /// The workload's rollout, if it proceeds in steps.
    pub rollout: Option<RolloutView<'a>>,
    pub reported: Reported<'a>,
}

/// A workload of the fleet report, with the inputs of its line.
#[derive(Debug)]
pub struct Reported<'a> {
    pub decision: &'a Decision,
    /// The decision's picks, in their order.
    pub placed: Vec<Placed<'a>>,
    /// The members of other clusters that report problems with its objects, by name.
    pub elsewhere: Vec<MemberView<'a>>,
    pub detail: Detail,
}

/// A cluster in which a workload is placed.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    pub cluster: &'a str,
    /// `None` before its first folder and report.
    pub member: Option<&'a MemberView<'a>>,
    /// The cluster waits for its turn in a rollout.
    pub waits: bool,
}

impl<'a> Described<'a> {
    /// Returns the reason for each cluster that waits for its turn.
    pub(super) fn waits(&self) -> BTreeMap<&'a str, String> {
        let decision = self.decision;
        let first = || "no copy yet; waiting for a staged run".to_owned();
        let wait = |pick: &'a Pick| {
            let why = match self.rollout {
                Some(rollout) => rollout.wait(pick),
                None => pick.pending.then(first),
            };
            Some((&*pick.cluster, why?))
        };
        decision.picks.iter().filter_map(wait).collect()
    }
}

/// The detail of single clusters in a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Some clusters with problems: a text that every pass writes must not grow with the copies.
    #[default]
    Brief,
    /// Every cluster.
    Full,
}

/// Writes a condition as a hub shows it, with a prefix before its type.
pub(super) fn condition_json(condition: &Condition, prefix: &str) -> Json {
    json!({
        "type": format!("{prefix}{}", condition.kind),
        "status": if condition.status { "True" } else { "False" },
        "reason": condition.reason,
        "message": condition.message,
    })
}
