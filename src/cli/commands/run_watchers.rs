//! Those who hear of a daemon's passes, for `berth run`.

use std::time::Duration;

use super::hub_cluster::HubWorker;
use super::notices::Notices;
use super::publish::Publishing;
use super::rollout_events::RolloutEvents;
use crate::flags::telemetry::Telemetry;
use berth_base::model::Timestamp;
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_hub::daemon::{PassEnd, PassHooks};

/// The listeners to the daemon's passes.
pub(super) struct Watchers {
    pub meter: Option<PassMeter>,
    pub telemetry: Option<Telemetry>,
    pub events: Option<RolloutEvents>,
    pub notices: Option<Notices>,
    pub hubs: Vec<HubWorker>,
    pub publishing: Option<Publishing>,
}

impl PassHooks for Watchers {
    fn leads(&mut self, leads: bool) {
        if let Some(meter) = &self.meter {
            meter.leads(leads);
        }
        if let Some(publishing) = &self.publishing {
            publishing.leads(leads);
        }
    }

    fn begins(&mut self) {
        if let Some(meter) = &self.meter {
            meter.beat();
        }
    }

    fn reloaded(&mut self, well: bool) {
        if let Some(meter) = &self.meter {
            meter.reloaded(well);
        }
    }

    fn ended(&mut self, end: PassEnd<'_>, took: Duration) {
        if let Some(meter) = &mut self.meter {
            meter.count(end, took, Timestamp::now());
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.passed(end, took);
        }
        if let (Some(events), PassEnd::Done(passed)) = (&self.events, end) {
            events.tell(passed);
        }
        if let Some(notices) = &mut self.notices {
            notices.tell(end);
        }
        self.hubs.iter().for_each(|hub| hub.ended(end));
        if let Some(publishing) = &mut self.publishing {
            publishing.hear(end);
        }
    }
}
