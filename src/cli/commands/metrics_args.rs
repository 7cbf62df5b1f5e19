//! The flag of a command that keeps running: where its numbers are read.

use std::io;
use std::net::SocketAddr;

use tracing::info;

use super::exit::CommandError;

/// The page of numbers
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Serve /metrics, /healthz and /readyz at this address; a port alone listens on this machine only
    #[arg(long, value_name = "ADDR", env = "BERTH_METRICS", value_parser = berth_metrics::address)]
    metrics: Option<SocketAddr>,
}

impl MetricsArgs {
    pub fn address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Makes a meter that answers for as long as the process lives, if somebody wants one.
    pub fn meter<M>(
        &self,
        serve: impl FnOnce(SocketAddr) -> io::Result<(M, SocketAddr)>,
    ) -> Result<Option<M>, CommandError> {
        let Some(address) = self.metrics else { return Ok(None) };
        let listening = |error| CommandError::io(format!("listening at {address}"), &error);
        let (meter, address) = serve(address).map_err(listening)?;
        info!(%address, "serving /metrics, /healthz and /readyz");
        Ok(Some(meter))
    }
}
