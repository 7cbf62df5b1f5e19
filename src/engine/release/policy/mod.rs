//! Rollout policies → the orders for one workload's rollout.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use berth_base::model::rollout::{Rolling, Rollout, Strategy};
use berth_base::model::rollout_policy::{
    Abort, Freeze, OnFailure, Pin, PolicyName, PolicyStrategy, RolloutPolicy, WorkloadPattern,
};
use berth_base::model::selector::Labels;
use berth_base::model::staged::StageGate;
use berth_base::model::{Fleet, Key, Timestamp, Workload};
use berth_base::text::fits;

/// Maximal number of windows that are joined into one. A longer freeze is checked again at the end of these.
const MOST_WINDOWS: usize = 400;

/// All orders for one workload's rollout.
#[derive(Clone, Debug)]
pub struct Orders<'f> {
    fleet: &'f Fleet,
    workload: &'f Key,
    /// The workload's own strategy.
    own: &'f Strategy,
    /// In order of precedence.
    policies: Vec<&'f RolloutPolicy>,
    /// A policy that the workload names but that does not exist.
    missing: Option<&'f PolicyName>,
}

/// The reason why no cluster may get anything new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Closed {
    pub reason: String,
    /// `None`: until an edit.
    pub until: Option<Timestamp>,
}

impl<'f> Orders<'f> {
    /// Returns the orders for a workload. Without a policy, the system's own strategy applies.
    pub fn of(fleet: &'f Fleet, workload: &'f Key) -> Orders<'f> {
        let own = fleet.workloads.get(workload).map(|workload| &workload.strategy);
        Orders::new(fleet, workload, own.unwrap_or(&Strategy::AtOnce))
    }

    /// Returns the same orders as [`Orders::of`], for a workload of the fleet.
    pub fn of_workload(fleet: &'f Fleet, workload: &'f Workload) -> Orders<'f> {
        Orders::new(fleet, &workload.key, &workload.strategy)
    }

    fn new(fleet: &'f Fleet, workload: &'f Key, own: &'f Strategy) -> Orders<'f> {
        let name = fleet.named_policies.get(workload);
        let missing = name.filter(|_| fleet.named_policy(workload).is_none());
        Orders { fleet, workload, own, policies: fleet.policies_of(workload), missing }
    }

    pub fn fleet(&self) -> &'f Fleet {
        self.fleet
    }

    pub fn workload(&self) -> &'f Key {
        self.workload
    }

    /// Returns the policies that apply to the workload.
    pub fn policies(&self) -> &[&'f RolloutPolicy] {
        &self.policies
    }

    /// Returns the strategy, by precedence: of the policy that the workload names; its own if a person chose
    /// it; of the first matching policy; of the fleet's default; of its system.
    pub fn strategy(&self) -> Cow<'f, Strategy> {
        match self.strategy_policy() {
            Some((_, PolicyStrategy::Written(strategy))) => match (strategy, self.own) {
                // Shares still refer to the number of clusters that the placement asks for.
                (Strategy::Rolling(rolling), Strategy::Rolling(own)) => {
                    Cow::Owned(Strategy::Rolling(Rolling { wanted: own.wanted, ..rolling.clone() }))
                }
                _ => Cow::Borrowed(strategy),
            },
            Some((policy, PolicyStrategy::Staged { name, .. })) => {
                let stages = self.fleet.stages_named(name, &policy.key.namespace);
                Cow::Owned(Strategy::Stages(stages.map(|found| found.stages.clone()).unwrap_or_default()))
            }
            None => Cow::Borrowed(self.own),
        }
    }

    /// Returns the policy whose strategy applies; `None` if the workload's own does.
    pub fn strategy_policy(&self) -> Option<(&'f RolloutPolicy, &'f PolicyStrategy)> {
        let named = self.fleet.named_policy(self.workload);
        let with_strategy = |policy: &'f RolloutPolicy| Some((policy, policy.strategy.as_ref()?));
        named.and_then(with_strategy).or_else(|| {
            let policies = || self.policies.iter().copied();
            policies().find_map(with_strategy).filter(|_| !is_asked(self.own))
        })
    }

    /// Returns the reason why no cluster may get anything new now.
    pub fn closed(&self, now: Timestamp) -> Option<Closed> {
        if let Some(missing) = self.missing {
            let reason = format!("the rollout policy `{}`, which it names, does not exist", missing.name);
            return Some(Closed { reason, until: None });
        }
        if let Some((policy, PolicyStrategy::Staged { name, .. })) = self.strategy_policy()
            && self.fleet.stages_named(name, &policy.key.namespace).is_none()
        {
            let reason = format!("the staged strategy `{name}`, which its policy names, does not exist");
            return Some(Closed { reason, until: None });
        }
        if let Some(reason) = self.policies.iter().find_map(|policy| policy.paused.as_ref()) {
            let reason = with_reason("paused".to_owned(), reason);
            return Some(Closed { reason, until: None });
        }
        let (freeze, until) = self.freezes().find_map(|freeze| Some((freeze, freeze.end(now)?)))?;
        let mut until = until;
        for _ in 0..MOST_WINDOWS {
            match self.freezes().filter_map(|freeze| freeze.end(until)).max() {
                Some(later) => until = later,
                None => break,
            }
        }
        let shown = until.to_zoned(freeze.zone.clone()).strftime("%a %Y-%m-%d %H:%M").to_string();
        let reason = format!("frozen until {shown} {}", freeze.zone_name);
        Some(Closed { reason: with_reason(reason, &freeze.reason), until: Some(until) })
    }

    /// Returns the next moment at which a freeze begins or ends.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        match self.closed(now) {
            Some(closed) => closed.until,
            None => self.freezes().filter_map(|freeze| freeze.next_start(now)).min(),
        }
    }

    fn freezes(&self) -> impl Iterator<Item = &'f Freeze> {
        self.policies.iter().flat_map(|policy| &policy.freezes)
    }

    /// Returns the pin of a cluster.
    pub fn pin(&self, cluster: &str, labels: &Labels) -> Option<&'f Pin> {
        let is_for = |pin: &&Pin| {
            pin.clusters.iter().any(|name| fits(name, cluster))
                || pin.selector.as_ref().is_some_and(|selector| selector.matches(labels))
        };
        self.policies.iter().flat_map(|policy| &policy.pins).find(is_for)
    }

    /// Returns the workloads that must be proven everywhere before this one rolls out.
    pub fn after(&self) -> BTreeSet<&'f Key> {
        self.fleet.rolls_out_after(self.workload)
    }

    /// Returns the workloads that roll out together with this one, itself included.
    pub fn together(&self) -> Option<BTreeSet<&'f Key>> {
        let policy = self.policies.iter().find(|policy| policy.together)?;
        let patterns = policy.workloads.as_ref()?;
        let mut group: BTreeSet<&Key> =
            patterns.iter().flat_map(|pattern| self.fleet.workloads_of(pattern)).collect();
        group.insert(self.workload);
        Some(group)
    }

    /// Returns the reaction to a release that fails.
    pub fn on_failure(&self) -> OnFailure {
        self.policies.iter().find_map(|policy| policy.on_failure).unwrap_or_default()
    }

    /// Returns the gates of a release that people approved.
    pub fn approved(&self, release: u64) -> BTreeSet<StageGate> {
        let all = self.policies.iter().flat_map(|policy| &policy.approved);
        let of_this = all.filter(|one| one.release == release && self.is_about(&one.workload));
        of_this.map(|one| one.gate.clone()).collect()
    }

    /// Returns the order to take a release back.
    pub fn aborted(&self, release: u64) -> Option<&'f Abort> {
        let mut all = self.policies.iter().flat_map(|policy| &policy.aborted);
        all.find(|abort| abort.release == release && self.is_about(&abort.workload))
    }

    /// Returns how often people restarted the deadlines and failures of a release.
    pub fn restarts(&self, release: u64) -> u64 {
        let all = self.policies.iter().flat_map(|policy| &policy.restarted);
        let of_this = all.filter(|one| one.release == release && self.is_about(&one.workload));
        of_this.map(|one| one.times).max().unwrap_or(0)
    }

    fn is_about(&self, pattern: &WorkloadPattern) -> bool {
        pattern.matches(self.workload)
    }
}

/// Reports whether a person chose the workload's own strategy. A system's defaults are no choice, even if its
/// hub wrote them out.
fn is_asked(strategy: &Strategy) -> bool {
    let is_default = |rollout: &Rollout| Rollout { placement: None, ..rollout.clone() } == Rollout::TOGETHER;
    match strategy {
        Strategy::AtOnce => false,
        Strategy::Progressive(rollouts) => !rollouts.iter().all(is_default),
        Strategy::Rolling(rolling) => rolling.asked,
        Strategy::Stages(_) | Strategy::Runs => true,
    }
}

fn with_reason(words: String, reason: &str) -> String {
    if reason.is_empty() { words } else { format!("{words}: {reason}") }
}
