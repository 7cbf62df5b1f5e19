//! `RolloutPolicy` documents → [`RolloutPolicy`], and the checks of them that need the whole fleet.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialects::{duration, written_strategy};
use berth_base::diag::{Diagnostic, Diagnostics, did_you_mean};
use berth_base::meta::{Metadata, label_selector, open};
use berth_base::model::rollout_policy::{
    Abort, Freeze, GateApproval, KIND, OnFailure, Pin, PolicyName, PolicyStrategy, Restart, RolloutPolicy,
    WorkloadPattern,
};
use berth_base::model::schedule::{self, Schedule};
use berth_base::model::staged::{Side, StageGate};
use berth_base::model::{Fleet, Key};
use berth_base::yaml::{Fields, Node, Scope};

/// A year, the longest window of a freeze.
const LONGEST_FREEZE: i64 = 366 * 24 * 3_600;

/// Reads one policy and reports its faults.
pub(super) fn read(scope: &Scope, root: &Node, key: &Key) -> Option<RolloutPolicy> {
    let (mut fields, metadata) = open(scope, root)?;
    let spec = fields.required_fields("spec");
    fields.finish();
    let mut spec = spec?;
    let workloads = spec.node("workloads").is_some().then(|| patterns(&mut spec, "workloads", &metadata));
    let on_failure = match spec.choice("onFailure", &OnFailure::WORDS) {
        Some("RollBack") => Some(OnFailure::RollBack),
        Some(_) => Some(OnFailure::Halt),
        None => None,
    };
    let paused = spec.fields("paused").map(|mut paused| {
        let reason = paused.required_str("reason").unwrap_or_default().to_owned();
        paused.finish();
        reason
    });
    let policy = RolloutPolicy {
        key: key.clone(),
        origin: scope.pos(root.at),
        workloads,
        strategy: spec.fields("strategy").and_then(written_strategy),
        on_failure,
        freezes: spec.each("freeze").into_iter().filter_map(freeze).collect(),
        paused,
        pins: spec.each("pins").into_iter().filter_map(pin).collect(),
        // A policy may wait for workloads of another namespace, because that does not affect them.
        after: patterns(&mut spec, "after", &Metadata::default()),
        together: spec.bool("together").unwrap_or(false),
        approved: records(&mut spec, "approved", &metadata, approval),
        aborted: records(&mut spec, "aborted", &metadata, abort),
        restarted: records(&mut spec, "restarted", &metadata, restart),
    };
    if policy.together && policy.workloads.is_none() {
        let message = "spec.together needs spec.workloads: the workloads that are one release";
        spec.error_at("together", message);
    }
    spec.finish();
    Some(policy)
}

/// Reads a list of patterns. A namespaced policy can only name workloads of its namespace.
fn patterns(spec: &mut Fields<'_>, key: &'static str, metadata: &Metadata) -> Vec<WorkloadPattern> {
    spec.each(key).into_iter().map(|fields| pattern(fields, metadata)).collect()
}

fn pattern(mut fields: Fields<'_>, metadata: &Metadata) -> WorkloadPattern {
    let at = fields.scope().pos(fields.at());
    let mut text = |key: &'static str| fields.str(key).map(str::to_owned);
    let (kind, mut namespace, name) = (text("kind"), text("namespace"), text("name"));
    if !metadata.namespace.is_empty() {
        if namespace.as_ref().is_some_and(|namespace| *namespace != metadata.namespace) {
            let message = format!(
                "{} is not `{}`, the namespace of this policy",
                fields.path_of("namespace"),
                metadata.namespace
            );
            let hint = "leave the namespace out, or put the policy in no namespace";
            let at = fields.scope().pos(fields.place_of("namespace"));
            fields.scope().report(Diagnostic::error(at, message).hint(hint));
        }
        namespace = Some(metadata.namespace.clone());
    }
    fields.finish();
    WorkloadPattern { at, kind, namespace, name }
}

/// Reads records of people's orders, each about one workload.
fn records<T>(
    spec: &mut Fields<'_>,
    key: &'static str,
    metadata: &Metadata,
    read: fn(&mut Fields<'_>, WorkloadPattern, u64) -> Option<T>,
) -> Vec<T> {
    let one = |mut fields: Fields<'_>| {
        let workload = fields.required_fields("workload").map(|inner| pattern(inner, metadata));
        if let Some(workload) = workload.as_ref().filter(|workload| !workload.is_exact()) {
            let message = format!(
                "{} must spell out one workload, not `{}`",
                fields.path_of("workload"),
                workload.describe()
            );
            let at = fields.scope().pos(fields.place_of("workload"));
            fields.scope().report(Diagnostic::error(at, message).hint("give kind, namespace and name"));
        }
        fields.require("release");
        let release = number(&mut fields, "release");
        let record = workload.zip(release).map(|(workload, release)| read(&mut fields, workload, release));
        if record.is_none() {
            // Reading once more registers the other fields as known.
            read(&mut fields, WorkloadPattern::any(), 0);
        }
        fields.finish();
        record.flatten()
    };
    spec.each(key).into_iter().filter_map(one).collect()
}

fn number(fields: &mut Fields<'_>, key: &'static str) -> Option<u64> {
    fields.int_in(key, 1..=i64::MAX).and_then(|number| u64::try_from(number).ok())
}

fn approval(fields: &mut Fields<'_>, workload: WorkloadPattern, release: u64) -> Option<GateApproval> {
    let stage = fields.required_str("stage").map(str::to_owned);
    fields.require("task");
    let side = match fields.choice("task", &Side::WORDS)? {
        "before" => Side::Before,
        _ => Side::After,
    };
    Some(GateApproval { workload, release, gate: StageGate { stage: stage?, side } })
}

fn abort(fields: &mut Fields<'_>, workload: WorkloadPattern, release: u64) -> Option<Abort> {
    let reason = fields.str("reason").unwrap_or_default().to_owned();
    Some(Abort { workload, release, reason })
}

fn restart(fields: &mut Fields<'_>, workload: WorkloadPattern, release: u64) -> Option<Restart> {
    let times = number(fields, "times").unwrap_or(1);
    Some(Restart { workload, release, times })
}

fn freeze(mut fields: Fields<'_>) -> Option<Freeze> {
    let schedule = fields.required_str("schedule").and_then(|text| {
        let schedule = Schedule::parse(text);
        if let Err(fault) = &schedule {
            let message = format!("{} `{text}` {fault}", fields.path_of("schedule"));
            let hint = "a schedule is in the form of cron, such as `0 14 * * FRI`";
            let at = fields.scope().pos(fields.place_of("schedule"));
            fields.scope().report(Diagnostic::error(at, message).hint(hint));
        }
        schedule.ok()
    });
    fields.require("for");
    let seconds = duration(&mut fields, "for").filter(|seconds| {
        let is_sound = (60..=LONGEST_FREEZE).contains(seconds);
        if !is_sound {
            let message = format!("{} must be from a minute to a year, such as `66h`", fields.path_of("for"));
            fields.error_at("for", message);
        }
        is_sound
    });
    let zone_name = fields.str("timeZone").unwrap_or("UTC").to_owned();
    let zone = schedule::time_zone(&zone_name);
    if zone.is_none() {
        let message = format!("{} `{zone_name}` is not a known time zone", fields.path_of("timeZone"));
        let hint = schedule::nearest_time_zone(&zone_name).unwrap_or_else(|| {
            "use a name of the IANA time zone database, such as `Europe/Berlin`".to_owned()
        });
        let at = fields.scope().pos(fields.place_of("timeZone"));
        fields.scope().report(Diagnostic::error(at, message).hint(hint));
    }
    let reason = fields.str("reason").unwrap_or_default().to_owned();
    fields.finish();
    Some(Freeze { schedule: schedule?, zone: zone?, zone_name, seconds: seconds?, reason })
}

fn pin(mut fields: Fields<'_>) -> Option<Pin> {
    let at = fields.scope().pos(fields.at());
    let clusters: Vec<String> =
        fields.strings("clusters").unwrap_or_default().into_iter().map(str::to_owned).collect();
    let node = fields.node("labelSelector");
    let path = fields.path_of("labelSelector");
    let selector = node.and_then(|node| label_selector(fields.scope(), node, &path));
    if clusters.is_empty() && node.is_none() {
        let message = format!("{} needs clusters or a labelSelector", fields.path());
        fields.scope().error(fields.at(), message);
    }
    let release = number(&mut fields, "release");
    let reason = fields.str("reason").unwrap_or_default().to_owned();
    fields.finish();
    Some(Pin { at, clusters, selector, release, reason })
}

/// Checks the policies against the fleet's workloads.
pub(super) fn check_policies(fleet: &Fleet) -> Diagnostics {
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
