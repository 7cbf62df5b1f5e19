//! The outputs of a daemon's passes, such as Kubernetes Events about rollouts, and the previews of a single pass.

use std::path::PathBuf;
use std::time::Duration;

use super::artifacts::Publishing;
use super::hub_cluster::HubWorker;
use super::notices::Notices;
use super::page::PageKeeper;
use crate::flags::telemetry::Telemetry;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Diagnostics, harmless_line};
use berth_base::model::Timestamp;
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_hub::daemon::{
    Mirror, PassEnd, PassHooks, PassOutcome, PassResult, PreviewChange, Previews, Settings,
};
use berth_hub::inputs::current_state::short;
use berth_hub::publish::rollout_steps::{RolloutStep, Turn};
use berth_member::cluster_events::{ClusterEvent, EventPlace, EventWriter};
use berth_member::live::Access;

/// The outputs that each pass is reported to.
pub(crate) struct Watchers {
    pub meter: Option<PassMeter>,
    pub telemetry: Option<Telemetry>,
    pub events: Option<RolloutEvents>,
    pub notices: Option<Notices>,
    pub hubs: Vec<HubWorker>,
    pub publishing: Option<Publishing>,
    pub page: Option<PageKeeper>,
}

impl PassHooks for Watchers {
    fn leads(&mut self, leads: bool) {
        if let Some(meter) = &self.meter {
            meter.leads(leads);
        }
        if let Some(publishing) = &self.publishing {
            publishing.leads(leads);
        }
        if let Some(page) = &self.page {
            page.leads(leads);
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
        if let Some(page) = &self.page {
            page.hear(end);
        }
    }
}

/// The Events of a daemon
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events")]
pub(crate) struct EventArgs {
    /// Write a Kubernetes Event about this object when a rollout halts, is taken back or continues, as `deployment/NAMESPACE/NAME`
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

    /// Returns the object of the Events, if Events are requested.
    pub fn place(&self) -> Option<&EventPlace> {
        self.events.as_ref()
    }

    /// Returns the access to its cluster.
    pub fn access(&self) -> Access {
        Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            patience: Duration::from_secs(10),
            pod: self.pod_credentials.clone(),
        }
    }

    /// Starts to write Events, if requested.
    pub fn start(&self) -> Result<Option<RolloutEvents>, CommandError> {
        let Some(place) = self.events.clone() else { return Ok(None) };
        let writer = EventWriter::start(self.access(), place);
        let writer = writer.map_err(|error| CommandError::io("starting to write Events", &error))?;
        Ok(Some(RolloutEvents(writer)))
    }
}

/// Writes Events about rollouts.
#[derive(Debug)]
pub(crate) struct RolloutEvents(EventWriter);

impl RolloutEvents {
    /// Writes Events about the effects of a publication on rollouts.
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
                    Turn::Continues | Turn::Replaces(_) => "RolloutGoesOn",
                },
                action: "RollOut",
                note: harmless_line(&format!("{}: {halt}", step.key)).into_owned(),
            })
        };
        self.0.tell(passed.rollout_steps.iter().filter_map(event));
    }
}

/// Updates the previews, and reports the changes.
pub(crate) fn show_previews(
    settings: &Settings,
    now: Timestamp,
    mirror: Option<&mut Mirror>,
    ui: &Ui,
) -> Result<(), CommandError> {
    let mut faults = Diagnostics::new();
    for change in Previews::default().follow(settings, now, mirror, true)? {
        match change {
            PreviewChange::Made { of, on, commit } => {
                ui.out(&format!("previewed {} on {} ({})", short(&of), short(&on), commit.short()));
            }
            PreviewChange::Removed { on } => ui.out(&format!("removed the preview {}", short(&on))),
            PreviewChange::Failed { of, why } => {
                faults.push(Diagnostic::note(format!("`{}` has no preview: {why}", short(&of))));
            }
        }
    }
    ui.diagnostics(&faults);
    Ok(())
}
