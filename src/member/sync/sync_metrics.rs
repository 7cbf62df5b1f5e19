//! The metrics of a syncer.

use std::time::Duration;

use super::backends::NotAdmitted;
use super::cluster_folder::FolderError;
use super::sync_loop::{Freshness, Sync};
use super::{ApplyError, SyncError};
use berth_base::model::Timestamp;
use berth_telemetry::meter::{
    ByLabel, Counter, Histogram, Later, Moment, Number, Registry, SECONDS, registry,
};
use berth_telemetry::{Page, ProcessHealth};

/// The silence after which a syncer counts as stuck: longer than any pause and all but the largest syncs.
const LONGEST_SILENCE: Duration = Duration::from_secs(3600);

/// Counts syncs.
#[derive(Debug)]
pub struct SyncMeter {
    health: ProcessHealth,
    rounds: ByLabel<Counter>,
    failures: ByLabel<Counter>,
    seconds: Histogram,
    objects: ByLabel<Number>,
    folder: ByLabel<Number>,
    writes: Counter,
    removals: Counter,
    corrections: Counter,
    sequence: Later<Number>,
    last_success: Later<Moment>,
    lease_held: Number,
    suspended: Number,
    /// The folder of the previous sync.
    tree: Option<String>,
}

impl SyncMeter {
    /// Returns the meter and the page that shows its numbers.
    pub fn with_page() -> (SyncMeter, Page) {
        let mut registry = registry();
        let meter = SyncMeter::new(&mut registry);
        let page = Page::new(registry, meter.health.clone());
        (meter, page)
    }

    fn new(registry: &mut Registry) -> SyncMeter {
        let meter = SyncMeter {
            health: ProcessHealth::new("round", LONGEST_SILENCE),
            rounds: ByLabel::default(),
            failures: ByLabel::default(),
            seconds: Histogram::new(SECONDS),
            objects: ByLabel::default(),
            folder: ByLabel::default(),
            writes: Counter::default(),
            removals: Counter::default(),
            corrections: Counter::default(),
            sequence: Later::default(),
            last_success: Later::default(),
            lease_held: Number::default(),
            suspended: Number::default(),
            tree: None,
        };
        for result in ["done", "problems", "failed", "standby"] {
            drop(meter.rounds.get_or_create(&[("result", result)]));
        }
        // A counter must first appear as 0: monitoring sees no increase if it first appears as 1.
        for reason in REASONS {
            drop(meter.failures.get_or_create(&[("reason", reason)]));
        }
        let sync = registry.sub_registry_with_prefix("berth_sync");
        sync.register("rounds", "Rounds by result", meter.rounds.clone());
        sync.register(
            "failures",
            "Rounds without work, or with a refused folder, by reason",
            meter.failures.clone(),
        );
        sync.register("round_seconds", "Duration of rounds", meter.seconds.clone());
        sync.register("objects", "Objects by state after the last round", meter.objects.clone());
        let help = "1 for what the last round worked on: the newest folder, or the last good one, because the newest \
                    one is unreachable or refused";
        sync.register("folder", help, meter.folder.clone());
        sync.register("writes", "Objects written", meter.writes.clone());
        sync.register("removals", "Objects removed", meter.removals.clone());
        let help = "Objects written although the folder was unchanged";
        sync.register("corrections", help, meter.corrections.clone());
        let help = "The sequence number of the folder applied last";
        sync.register("sequence", help, meter.sequence.clone());
        let help = "Time of the last round without a problem";
        sync.register("last_success_timestamp_seconds", help, meter.last_success.clone());
        sync.register("lease_held", "1 if this process may write", meter.lease_held.clone());
        sync.register("suspended", "1 if the member is suspended", meter.suspended.clone());
        meter
    }

    /// Records that the loop is running, with or without a sync.
    pub fn beat(&self) {
        self.health.beat();
    }

    /// Counts a sync. Only a sync that was begun has a duration.
    pub fn count(&mut self, sync: &Sync, took: Option<Duration>, now: Timestamp) {
        if let Some(took) = took {
            self.seconds.observe(took.as_secs_f64());
        }
        self.lease_held.set(u64::from(!matches!(sync.result, Err(SyncError::NotAdmitted(_)))));
        let ended = |result: &'static str| {
            self.rounds.get_or_create(&[("result", result)]).inc();
        };
        self.look_at(&sync.freshness);
        let outcome = match &sync.result {
            Ok(outcome) => outcome,
            Err(SyncError::NotAdmitted(NotAdmitted::Standby(_))) => {
                ended("standby");
                self.health.ended(true);
                return;
            }
            Err(error) => {
                ended("failed");
                self.failures.get_or_create(&[("reason", reason(error))]).inc();
                self.health.ended(false);
                return;
            }
        };
        if matches!(sync.freshness, Freshness::Refused(_)) {
            self.failures.get_or_create(&[("reason", "refused")]).inc();
        }
        let (applied, problems) = (&outcome.applied, outcome.applied.problems.len());
        ended(if problems == 0 { "done" } else { "problems" });
        self.writes.inc_by(number(outcome.written));
        self.removals.inc_by(number(outcome.pruned));
        if self.tree.as_ref() == Some(&applied.tree) {
            self.corrections.inc_by(number(outcome.written));
        }
        self.tree = Some(applied.tree.clone());
        for (state, count) in [
            ("applied", applied.objects),
            ("waiting", outcome.waiting.len()),
            ("problem", problems + applied.left_out),
            ("kept", outcome.held.len()),
        ] {
            self.objects.get_or_create(&[("state", state)]).set(number(count));
        }
        self.sequence.known().set(applied.sequence);
        self.suspended.set(u64::from(applied.suspended.is_some()));
        if problems == 0 {
            self.last_success.known().set(now.as_duration().as_secs_f64());
        }
        self.health.ended(true);
    }

    fn look_at(&self, freshness: &Freshness) {
        let present = match freshness {
            Freshness::Newest => "newest",
            Freshness::Unreachable(_) => "unreachable",
            Freshness::Refused(_) => "refused",
        };
        for state in ["newest", "unreachable", "refused"] {
            self.folder.get_or_create(&[("state", state)]).set(u64::from(state == present));
        }
    }
}

fn number(count: usize) -> u64 {
    count as u64
}

/// All results of [`reason`].
const REASONS: [&str; 6] = ["lease", "refused", "remote", "overrides", "folder", "target"];

fn reason(error: &SyncError) -> &'static str {
    match error {
        SyncError::NotAdmitted(_) => "lease",
        SyncError::Refused(_) | SyncError::Folder(FolderError::NotOurs { .. }) => "refused",
        SyncError::Apply(
            ApplyError::Foreign { .. }
            | ApplyError::Rewound { .. }
            | ApplyError::Emptied(_)
            | ApplyError::OtherApplier { .. },
        ) => "refused",
        SyncError::Refresh(_) => "remote",
        SyncError::Overrides(_) => "overrides",
        SyncError::Folder(_) => "folder",
        SyncError::Apply(ApplyError::Backend(_)) => "target",
    }
}

#[cfg(test)]
mod tests {
    use berth_telemetry::meter::encode;

    use super::*;
    use crate::sync::SyncOutcome;

    #[test]
    fn the_page_is_what_prometheus_reads() {
        let mut registry = registry();
        let mut meter = SyncMeter::new(&mut registry);
        let page = || {
            let mut page = String::new();
            encode(&mut page, &registry).expect("a page");
            page
        };
        assert!(!page().contains("berth_sync_sequence") && !page().contains("berth_sync_last_success"));
        let mut outcome = SyncOutcome { written: 3, ..SyncOutcome::default() };
        outcome.applied.sequence = 7;
        let mut count = |result| {
            let took = Some(Duration::from_millis(200));
            meter.count(
                &Sync { result, freshness: Freshness::Newest, reported: Ok(false) },
                took,
                Timestamp::UNIX_EPOCH,
            );
        };
        count(Ok(outcome));
        count(Err(SyncError::Refused("forged".to_owned())));
        let page = page();
        for line in [
            concat!("berth_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "# HELP berth_sync_rounds Rounds by result.",
            "# TYPE berth_sync_rounds counter",
            "berth_sync_rounds_total{result=\"done\"} 1",
            "berth_sync_rounds_total{result=\"standby\"} 0",
            "berth_sync_failures_total{reason=\"refused\"} 1",
            "# TYPE berth_sync_round_seconds histogram",
            "berth_sync_round_seconds_bucket{le=\"0.1\"} 0",
            "berth_sync_round_seconds_bucket{le=\"0.5\"} 2",
            "berth_sync_round_seconds_bucket{le=\"1800.0\"} 2",
            "berth_sync_round_seconds_bucket{le=\"+Inf\"} 2",
            "berth_sync_round_seconds_sum 0.4",
            "berth_sync_round_seconds_count 2",
            "# TYPE berth_sync_objects gauge",
            "berth_sync_objects{state=\"applied\"} 0",
            "berth_sync_writes_total 3",
            "berth_sync_removals_total 0",
            "berth_sync_corrections_total 0",
            "berth_sync_sequence 7",
            "berth_sync_last_success_timestamp_seconds 0.0",
            "berth_sync_lease_held 1",
            "berth_sync_suspended 0",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
        assert!(page.ends_with("# EOF\n"), "{page}");
    }
}
