//! The flags that name a live cluster.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::exit::CommandError;
use berth_member::live::{Access, Cluster};

/// The flags that name the cluster to read.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct HostArgs {
    /// Kubeconfig of the hub; default: KUBECONFIG, or the file in the home folder
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default: the current one
    #[arg(long, value_name = "NAME", alias = "host-cluster-context")]
    context: Option<String>,
    /// Give up on an answer after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
}

impl HostArgs {
    pub fn connect(&self) -> Result<Cluster, CommandError> {
        let patience = Duration::from_secs(self.timeout);
        let (kubeconfig, context) = (self.kubeconfig.clone(), self.context.clone());
        let access = Access { kubeconfig, context, patience, pod: None };
        Ok(Cluster::connect(&access)?)
    }
}
