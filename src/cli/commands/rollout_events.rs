//! Rollouts that halt, are taken back or go on again → Kubernetes Events.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::exit::CommandError;
use berth_base::diag::harmless_line;
use berth_base::model::Timestamp;
use berth_hub::daemon::{PassOutcome, PassResult};
use berth_hub::publish::rollout_steps::{RolloutStep, Turn};
use berth_member::cluster_events::{ClusterEvent, EventPlace, EventWriter};
use berth_member::live::Access;

/// The Events of a daemon
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events")]
pub(crate) struct EventArgs {
    /// Write a Kubernetes Event about this object when a rollout halts, is taken back or goes on, as `deployment/NAMESPACE/NAME`
    #[arg(long, value_name = "OBJECT", env = "BERTH_EVENTS")]
    events: Option<EventPlace>,
    /// Kubeconfig of the cluster with the object, and with the Lease of `--standby`; default: the usual places, or a pod's own credentials
    #[arg(long, value_name = "FILE", requires = "in_cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME", requires = "in_cluster")]
    context: Option<String>,
    /// Folder of a pod's own credentials, in place of the usual one
    #[arg(long, value_name = "DIR", env = "BERTH_POD_CREDENTIALS", hide = true)]
    pod_credentials: Option<PathBuf>,
}

impl EventArgs {
    pub fn are_wanted(&self) -> bool {
        self.events.is_some()
    }

    /// The object that the Events are about, if somebody wants them.
    pub fn place(&self) -> Option<&EventPlace> {
        self.events.as_ref()
    }

    /// The cluster that is asked.
    pub fn access(&self) -> Access {
        Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            patience: Duration::from_secs(10),
            pod: self.pod_credentials.clone(),
        }
    }

    /// Begins to write, if somebody wants Events.
    pub fn start(&self) -> Result<Option<RolloutEvents>, CommandError> {
        let Some(place) = self.events.clone() else { return Ok(None) };
        let writer = EventWriter::start(self.access(), place);
        let writer = writer.map_err(|error| CommandError::io("starting to write Events", &error))?;
        Ok(Some(RolloutEvents(writer)))
    }
}

/// Tells of rollouts by Events.
#[derive(Debug)]
pub(crate) struct RolloutEvents(EventWriter);

impl RolloutEvents {
    /// Tells what a publication did to rollouts.
    pub fn tell(&self, passed: &PassResult) {
        let PassOutcome::Published { commit, .. } = passed.outcome else { return };
        let at = Timestamp::now();
        let event = |step: &RolloutStep| {
            let halt = step.halt.as_ref()?;
            Some(ClusterEvent {
                cause: commit.to_string(),
                at,
                workload: step.key.clone(),
                is_warning: halt.is_warning(),
                reason: match halt.turn {
                    Turn::Halted { .. } => "RolloutHalted",
                    Turn::TakenBack { .. } => "RolloutTakenBack",
                    Turn::GoesOn | Turn::GoesOnInsteadOf(_) => "RolloutGoesOn",
                },
                action: "RollOut",
                note: harmless_line(&format!("{}: {halt}", step.key)).into_owned(),
            })
        };
        self.0.tell(passed.rollout_steps.iter().filter_map(event));
    }
}
