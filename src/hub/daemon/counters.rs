//! The metrics of a daemon's writes outside of Git: to a hub cluster, and to a container registry.

use berth_base::model::Timestamp;
use berth_telemetry::meter::{ByLabel, Counter, Later, Moment, Number, Registry};

/// Counts the writes to a hub cluster, and shows whether it is up to date.
#[derive(Clone, Debug, Default)]
pub struct HubCounts {
    rounds: ByLabel<Counter>,
    writes: Counter,
    current: Later<Number>,
}

impl HubCounts {
    pub(super) fn register(&self, run: &mut Registry) {
        for result in ["done", "failed"] {
            drop(self.rounds.get_or_create(&[("result", result)]));
        }
        let help = "Comparisons of a hub cluster's objects with the state, by result";
        run.register("hub_rounds", help, self.rounds.clone());
        run.register("hub_writes", "Writes to the objects of a hub cluster", self.writes.clone());
        let help = "1 if the hub cluster shows the state, 0 if the last round with it failed";
        run.register("hub_current", help, self.current.clone());
    }

    /// Counts a round after which the hub cluster is up to date.
    pub fn written(&self, writes: usize) {
        self.rounds.get_or_create(&[("result", "done")]).inc();
        self.writes.inc_by(writes as u64);
        self.current.known().set(1);
    }

    /// Counts a round that failed.
    pub fn failed(&self) {
        self.rounds.get_or_create(&[("result", "failed")]).inc();
        self.current.known().set(0);
    }
}

const RESULTS: [&str; 2] = ["done", "failed"];

/// Counts rounds of publishing. Clones share the numbers with the page that shows them.
#[derive(Clone, Debug, Default)]
pub struct RegistryNumbers {
    rounds: ByLabel<Counter>,
    behind: Later<Number>,
    last_success: Later<Moment>,
}

impl RegistryNumbers {
    /// Shows the numbers on a page.
    pub(super) fn register(&self, run: &mut Registry) {
        let help = "Rounds of publishing to the registry by result";
        run.register("registry_rounds", help, self.rounds.clone());
        let help = "Clusters whose newest folder is not in the registry";
        run.register("registry_behind_clusters", help, self.behind.clone());
        let help = "Time of the last round after which the registry had everything";
        run.register("registry_last_success_timestamp_seconds", help, self.last_success.clone());
    }

    /// Starts the metrics, if there is a registry.
    pub fn begin(&self) {
        // A counter must first appear as 0: monitoring sees no increase if it first appears as 1.
        for result in RESULTS {
            drop(self.rounds.get_or_create(&[("result", result)]));
        }
    }

    /// Sets the number of clusters' folders that are not published yet.
    pub fn behind(&self, clusters: usize) {
        self.behind.known().set(clusters as u64);
    }

    /// Counts a round. `behind` clusters' folders are still not in the registry.
    pub fn ended(&self, behind: usize, went_well: bool, now: Timestamp) {
        self.rounds.get_or_create(&[("result", if went_well { "done" } else { "failed" })]).inc();
        self.behind(behind);
        if behind == 0 && went_well {
            self.last_success.known().set(now.as_duration().as_secs_f64());
        }
    }
}
