//! The flags of a command that keeps running: where its numbers are read, and where they and its work are sent.

use std::net::SocketAddr;

use tracing::info;

use super::telemetry::{Telemetry, TelemetryArgs};
use crate::process::exit::CommandError;
use berth_base::progress::Progress;
use berth_metrics::Page;

/// The page of numbers
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Serve /metrics, /healthz and /readyz at this address; a port alone listens on this machine only
    #[arg(long, value_name = "ADDR", env = "BERTH_METRICS", value_parser = berth_metrics::address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

impl MetricsArgs {
    pub fn address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns a handle for the progress of work, which remembers its stages if a collector is to hear of them.
    pub fn progress(&self) -> Progress {
        if self.telemetry.is_wanted() { Progress::remembering() } else { Progress::default() }
    }

    /// Makes a meter whose numbers are served or sent for as long as the process lives, if somebody wants them.
    pub fn meter<M>(
        &self,
        progress: Progress,
        about: &[(&str, &str)],
        make: impl FnOnce() -> (M, Page),
    ) -> Result<(Option<M>, Option<Telemetry>), CommandError> {
        if self.metrics.is_none() && !self.telemetry.is_wanted() {
            return Ok((None, None));
        }
        let (meter, page) = make();
        let telemetry = self.telemetry.start(page.clone(), progress, about)?;
        if let Some(address) = self.metrics {
            let listening = |error| CommandError::io(format!("listening at {address}"), &error);
            let address = page.serve(address).map_err(listening)?;
            info!(%address, "serving /metrics, /healthz and /readyz");
        }
        Ok((Some(meter), telemetry))
    }
}
