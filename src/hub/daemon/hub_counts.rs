//! The metrics of a daemon's writes to a hub cluster.

use berth_telemetry::meter::{ByLabel, Counter, Later, Number, Registry};

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
