//! `RolloutPolicy` documents → [`RolloutPolicy`].

use crate::dialects::{duration, written_strategy};
use berth_base::diag::Diagnostic;
use berth_base::meta::{Metadata, label_selector, open};
use berth_base::model::Key;
use berth_base::model::rollout_policy::{
    Abort, Freeze, GateApproval, OnFailure, Pin, Restart, RolloutPolicy, WorkloadPattern,
};
use berth_base::model::schedule::{self, Schedule};
use berth_base::model::staged::{Side, StageGate};
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
