//! Checks of rollout policies that need the whole fleet.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::model::rollout_policy::{KIND, PolicyName, PolicyStrategy, RolloutPolicy, WorkloadPattern};
use berth_base::model::{Fleet, Key};

/// Checks the policies against the fleet's workloads.
pub(super) fn check(fleet: &Fleet) -> Diagnostics {
    let mut found = Diagnostics::new();
    found.extend(fleet.named_policies.iter().filter_map(|(workload, name)| missing(fleet, workload, name)));
    let mut released: BTreeMap<&Key, &RolloutPolicy> = BTreeMap::new();
    for policy in fleet.rollout_policies.values() {
        let reached: Vec<&Key> = fleet.workloads.keys().filter(|key| policy.is_for(key)).collect();
        let is_named = || {
            let named = fleet.named_policies.keys().filter_map(|key| fleet.named_policy(key));
            named.into_iter().any(|named| named.key == policy.key)
        };
        if reached.is_empty() && !policy.is_fleet_default() && !is_named() {
            let message = format!("the {KIND} `{}` matches no workload of the fleet", policy.key.full_name());
            found.push(Diagnostic::warning(policy.origin.clone(), message));
        }
        for pattern in &policy.after {
            if fleet.workloads_of(pattern).is_empty() {
                let message = format!("spec.after: no workload matches `{}`", pattern.describe());
                found.push(Diagnostic::warning(pattern.at.clone(), message).maybe_hint(near(fleet, pattern)));
            }
        }
        found.extend(missing_stages(fleet, policy));
        found.extend(records_of_others(fleet, policy));
        if policy.together {
            for key in reached {
                if let Some(other) = released.insert(key, policy) {
                    let message = format!(
                        "{key} is in two policies with `together: true`, `{}` and `{}`",
                        other.key.full_name(),
                        policy.key.full_name()
                    );
                    let hint = "remove it from one of the policies";
                    found.push(Diagnostic::error(policy.origin.clone(), message).hint(hint));
                }
            }
        }
    }
    found.extend(circles(fleet));
    found
}

fn missing(fleet: &Fleet, workload: &Key, name: &PolicyName) -> Option<Diagnostic> {
    if fleet.named_policy(workload).is_some() {
        return None;
    }
    let reachable = fleet.rollout_policies.values().filter(|policy| policy.may_reach(workload));
    let exists = fleet.rollout_policies.values().any(|policy| *policy.key.name == *name.name);
    let fault = if exists { "is in another namespace" } else { "does not exist" };
    let message = format!(
        "{workload} names the {KIND} `{}`, which {fault}; the workload is not rolled out until this is corrected",
        name.name
    );
    let hint = did_you_mean(&name.name, reachable.map(|policy| &*policy.key.name));
    Some(Diagnostic::error(name.at.clone(), message).maybe_hint(hint))
}

fn missing_stages(fleet: &Fleet, policy: &RolloutPolicy) -> Option<Diagnostic> {
    let Some(PolicyStrategy::Staged { name, at }) = &policy.strategy else { return None };
    if fleet.stages_named(name, &policy.key.namespace).is_some() {
        return None;
    }
    let message = format!("spec.strategy.stagedStrategy: there is no staged update strategy `{name}`");
    let hint = did_you_mean(name, fleet.stage_strategies.keys().map(|key| &*key.name));
    Some(Diagnostic::error(at.clone(), message).maybe_hint(hint))
}

/// Returns a hint with the workload whose name is nearest to a pattern's.
fn near(fleet: &Fleet, pattern: &WorkloadPattern) -> Option<String> {
    let names = fleet.workloads.keys().map(|key| &*key.name);
    did_you_mean(pattern.name.as_deref()?, names)
}

/// Warns of approvals, aborts and restarts for workloads outside the policy: they have no effect.
fn records_of_others(fleet: &Fleet, policy: &RolloutPolicy) -> Vec<Diagnostic> {
    let approved = policy.approved.iter().map(|one| ("approved", &one.workload));
    let aborted = policy.aborted.iter().map(|one| ("aborted", &one.workload));
    let restarted = policy.restarted.iter().map(|one| ("restarted", &one.workload));
    let has_effect = |pattern: &WorkloadPattern| {
        let keys = fleet.workloads_of(pattern);
        keys.iter().any(|key| fleet.policies_of(key).iter().any(|one| one.key == policy.key))
    };
    let all = approved.chain(aborted).chain(restarted);
    let idle = all.filter(|(_, pattern)| !has_effect(pattern)).map(|(field, pattern)| {
        let message = format!("spec.{field} has no effect: this policy is not for {}", pattern.describe());
        Diagnostic::warning(pattern.at.clone(), message)
    });
    idle.collect()
}

/// Reports workloads that wait for themselves, each circle once.
fn circles(fleet: &Fleet) -> Vec<Diagnostic> {
    if fleet.rollout_policies.values().all(|policy| policy.after.is_empty()) {
        return Vec::new();
    }
    let after: BTreeMap<&Key, BTreeSet<&Key>> =
        fleet.workloads.keys().map(|key| (key, fleet.rolls_out_after(key))).collect();
    let mut found = Vec::new();
    let mut done: BTreeSet<&Key> = BTreeSet::new();
    for start in after.keys() {
        // The path to the current workload, each with its workloads still to visit.
        let mut way: Vec<(&Key, Vec<&Key>)> = Vec::new();
        let mut next = Some(*start);
        loop {
            if let Some(key) = next.take().filter(|key| !done.contains(key)) {
                if let Some(index) = way.iter().position(|(on_way, _)| *on_way == key) {
                    let circle = way[index..].iter().map(|(key, _)| *key).chain([key]);
                    found.extend(circle_error(fleet, &circle.collect::<Vec<_>>()));
                } else {
                    let further = after.get(key).into_iter().flatten().rev().copied().collect();
                    way.push((key, further));
                }
            }
            let Some((key, further)) = way.last_mut() else { break };
            match further.pop() {
                Some(key) => next = Some(key),
                None => {
                    done.insert(*key);
                    way.pop();
                }
            }
        }
    }
    found
}

fn circle_error(fleet: &Fleet, circle: &[&Key]) -> Option<Diagnostic> {
    let (first, second) = (circle.first()?, circle.get(1)?);
    let policies = fleet.policies_of(first);
    let mut patterns = policies.iter().flat_map(|policy| &policy.after);
    let at = patterns.find(|pattern| pattern.matches(second)).map(|pattern| pattern.at.clone())?;
    let others: Vec<String> = circle.iter().skip(1).map(ToString::to_string).collect();
    let message = format!(
        "spec.after: the workloads wait for each other: {first} waits for {}",
        others.join(", which waits for ")
    );
    let hint = "remove one of them from `spec.after`";
    Some(Diagnostic::error(at, message).hint(hint))
}
