//! The metrics of publishing to a container registry.

use berth_base::model::Timestamp;
use berth_telemetry::meter::{ByLabel, Counter, Later, Moment, Number, Registry};

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
