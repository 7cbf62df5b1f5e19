//! A sync → the numbers that a syncer shows about itself.

use std::time::Duration;

use super::backends::NotAdmitted;
use super::SyncError;
use super::sync_loop::Sync;
use crate::metrics::{Kind, Metric, Metrics, number};
use berth_base::model::Timestamp;

const ROUNDS: &str = "berth_sync_rounds_total";
const FAILURES: &str = "berth_sync_failures_total";
const OBJECTS: &str = "berth_sync_objects";
const WRITES: &str = "berth_sync_writes_total";
const REMOVALS: &str = "berth_sync_removals_total";
const CORRECTIONS: &str = "berth_sync_corrections_total";
const SEQUENCE: &str = "berth_sync_sequence";
const SUCCESS: &str = "berth_sync_last_success_timestamp_seconds";
const SECONDS: &str = "berth_sync_round_seconds";
const LEASE: &str = "berth_sync_lease_held";
const SUSPENDED: &str = "berth_sync_suspended";
const BUILD: &str = "berth_build_info";

const VERSION: &str = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");

/// All of them.
pub const KNOWN: &[Metric] = &[
    Metric { name: BUILD, kind: Kind::Gauge, help: "The version of this berth." },
    Metric { name: ROUNDS, kind: Kind::Counter, help: "Rounds by result." },
    Metric { name: FAILURES, kind: Kind::Counter, help: "Rounds without work by reason." },
    Metric { name: SECONDS, kind: Kind::Seconds, help: "Duration of rounds." },
    Metric { name: OBJECTS, kind: Kind::Gauge, help: "Objects by state after the last round." },
    Metric { name: WRITES, kind: Kind::Counter, help: "Objects written." },
    Metric { name: REMOVALS, kind: Kind::Counter, help: "Objects removed." },
    Metric {
        name: CORRECTIONS,
        kind: Kind::Counter,
        help: "Objects written although the folder was unchanged.",
    },
    Metric { name: SEQUENCE, kind: Kind::Gauge, help: "The sequence number of the folder applied last." },
    Metric { name: SUCCESS, kind: Kind::Gauge, help: "Time of the last round without a problem." },
    Metric { name: LEASE, kind: Kind::Gauge, help: "1 if this process may write." },
    Metric { name: SUSPENDED, kind: Kind::Gauge, help: "1 if the member is suspended." },
];

/// A silence after which a syncer counts as stuck: longer than any pause and any but the largest syncs.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(3600);

/// Counts syncs.
#[derive(Debug)]
pub struct SyncMeter {
    metrics: Metrics,
    /// The folder of the sync before.
    tree: Option<String>,
}

impl SyncMeter {
    pub fn new(metrics: Metrics) -> SyncMeter {
        metrics.set(BUILD, VERSION, 1.0);
        for label in ["result=\"done\"", "result=\"problems\"", "result=\"failed\"", "result=\"standby\""] {
            metrics.add(ROUNDS, label, 0);
        }
        for name in [WRITES, REMOVALS, CORRECTIONS, LEASE, SUSPENDED] {
            metrics.set(name, "", 0.0);
        }
        SyncMeter { metrics, tree: None }
    }

    /// Hears that the loop goes on, sync or no sync.
    pub fn beat(&self) {
        self.metrics.beat();
    }

    /// Counts a sync. A duration is known of those that were begun.
    pub fn count(&mut self, sync: &Sync, took: Option<Duration>, now: Timestamp) {
        let metrics = &self.metrics;
        if let Some(took) = took {
            metrics.took(SECONDS, took);
        }
        metrics.set(LEASE, "", flag(!matches!(sync.result, Err(SyncError::NotAdmitted(_)))));
        let outcome = match &sync.result {
            Ok(outcome) => outcome,
            Err(SyncError::NotAdmitted(NotAdmitted::Standby(_))) => {
                metrics.add(ROUNDS, "result=\"standby\"", 1);
                metrics.is_alive(None);
                return;
            }
            Err(error) => {
                metrics.add(ROUNDS, "result=\"failed\"", 1);
                metrics.add(FAILURES, reason(error), 1);
                metrics.is_alive(Some("the last round failed"));
                return;
            }
        };
        let (applied, problems) = (&outcome.applied, outcome.applied.problems.len());
        let result = if problems == 0 { "result=\"done\"" } else { "result=\"problems\"" };
        metrics.add(ROUNDS, result, 1);
        metrics.add(WRITES, "", outcome.written);
        metrics.add(REMOVALS, "", outcome.pruned);
        if self.tree.as_ref() == Some(&applied.tree) {
            metrics.add(CORRECTIONS, "", outcome.written);
        }
        self.tree = Some(applied.tree.clone());
        for (label, count) in [
            ("state=\"applied\"", applied.objects),
            ("state=\"waiting\"", outcome.waiting.len()),
            ("state=\"problem\"", problems + applied.left_out),
            ("state=\"kept\"", outcome.held.len()),
        ] {
            metrics.set(OBJECTS, label, number(count));
        }
        metrics.set(SEQUENCE, "", number(usize::try_from(applied.sequence).unwrap_or(usize::MAX)));
        metrics.set(SUSPENDED, "", flag(applied.suspended.is_some()));
        if problems == 0 {
            metrics.set(SUCCESS, "", now.as_duration().as_secs_f64());
        }
        metrics.is_alive(None);
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn reason(error: &SyncError) -> &'static str {
    match error {
        SyncError::NotAdmitted(_) => "reason=\"lease\"",
        SyncError::Refused(_) => "reason=\"refused\"",
        SyncError::Refresh(_) => "reason=\"remote\"",
        SyncError::Overrides(_) => "reason=\"overrides\"",
        SyncError::Folder(_) => "reason=\"folder\"",
        SyncError::Apply(_) => "reason=\"target\"",
    }
}
