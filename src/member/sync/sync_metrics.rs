//! A sync → the numbers that a syncer shows about itself.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

use super::SyncError;
use super::backends::NotAdmitted;
use super::sync_loop::Sync;
use crate::metrics::{ProcessHealth, serve};
use berth_base::model::Timestamp;

/// A silence after which a syncer counts as stuck: longer than any pause and any but the largest syncs.
const LONGEST_SILENCE: Duration = Duration::from_secs(3600);

/// The upper bounds of what durations are counted by, in seconds.
const BOUNDS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];

type Number = Gauge<u64, AtomicU64>;

/// A number for each value of one label.
type ByLabel<M> = Family<[(&'static str, &'static str); 1], M>;

/// A number that is absent until it is known.
#[derive(Clone, Debug, Default)]
struct Later<M>(Arc<OnceLock<M>>);

impl<M: EncodeMetric + Default> Later<M> {
    fn known(&self) -> &M {
        self.0.get_or_init(M::default)
    }
}

impl<M: EncodeMetric + TypedMetric> EncodeMetric for Later<M> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.0.get().map_or(Ok(()), |metric| metric.encode(encoder))
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }
}

/// Counts syncs.
#[derive(Debug)]
pub struct SyncMeter {
    health: ProcessHealth,
    rounds: ByLabel<Counter>,
    failures: ByLabel<Counter>,
    seconds: Histogram,
    objects: ByLabel<Number>,
    writes: Counter,
    removals: Counter,
    corrections: Counter,
    sequence: Later<Number>,
    last_success: Later<Gauge<f64, AtomicU64>>,
    lease_held: Number,
    suspended: Number,
    /// The folder of the sync before.
    tree: Option<String>,
}

impl SyncMeter {
    /// Counts, and answers at an address for as long as the process lives. Returns the address, too.
    pub fn serve(address: SocketAddr) -> std::io::Result<(SyncMeter, SocketAddr)> {
        let mut registry = Registry::default();
        let meter = SyncMeter::new(&mut registry);
        let address = serve(address, registry, meter.health.clone())?;
        Ok((meter, address))
    }

    fn new(registry: &mut Registry) -> SyncMeter {
        let meter = SyncMeter {
            health: ProcessHealth::new(LONGEST_SILENCE),
            rounds: Family::default(),
            failures: Family::default(),
            seconds: Histogram::new(BOUNDS),
            objects: Family::default(),
            writes: Counter::default(),
            removals: Counter::default(),
            corrections: Counter::default(),
            sequence: Later::default(),
            last_success: Later::default(),
            lease_held: Gauge::default(),
            suspended: Gauge::default(),
            tree: None,
        };
        for result in ["done", "problems", "failed", "standby"] {
            drop(meter.rounds.get_or_create(&[("result", result)]));
        }
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("berth_build", "The version of this berth", build);
        // The registry ends each text with a full stop, and the name of each counter with `_total`.
        let sync = registry.sub_registry_with_prefix("berth_sync");
        sync.register("rounds", "Rounds by result", meter.rounds.clone());
        sync.register("failures", "Rounds without work by reason", meter.failures.clone());
        sync.register("round_seconds", "Duration of rounds", meter.seconds.clone());
        sync.register("objects", "Objects by state after the last round", meter.objects.clone());
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

    /// Hears that the loop goes on, sync or no sync.
    pub fn beat(&self) {
        self.health.beat();
    }

    /// Counts a sync. A duration is known of those that were begun.
    pub fn count(&mut self, sync: &Sync, took: Option<Duration>, now: Timestamp) {
        if let Some(took) = took {
            self.seconds.observe(took.as_secs_f64());
        }
        self.lease_held.set(u64::from(!matches!(sync.result, Err(SyncError::NotAdmitted(_)))));
        let ended = |result: &'static str| {
            self.rounds.get_or_create(&[("result", result)]).inc();
        };
        let outcome = match &sync.result {
            Ok(outcome) => outcome,
            Err(SyncError::NotAdmitted(NotAdmitted::Standby(_))) => {
                ended("standby");
                self.health.is_alive(None);
                return;
            }
            Err(error) => {
                ended("failed");
                self.failures.get_or_create(&[("reason", reason(error))]).inc();
                self.health.is_alive(Some("the last round failed"));
                return;
            }
        };
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
        self.health.is_alive(None);
    }
}

fn number(count: usize) -> u64 {
    count as u64
}

fn reason(error: &SyncError) -> &'static str {
    match error {
        SyncError::NotAdmitted(_) => "lease",
        SyncError::Refused(_) => "refused",
        SyncError::Refresh(_) => "remote",
        SyncError::Overrides(_) => "overrides",
        SyncError::Folder(_) => "folder",
        SyncError::Apply(_) => "target",
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::sync::SyncOutcome;

    #[test]
    fn the_page_is_what_prometheus_reads() {
        let mut registry = Registry::default();
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
            meter.count(&Sync { result, reported: Ok(false) }, took, Timestamp::UNIX_EPOCH);
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
