//! `berth wait`: waits until clusters have the published folders, for scripts and pipelines.

use std::time::{Duration, Instant};

use clap_complete::engine::ArgValueCandidates;

use super::status::{FleetStatus, Selection, StatusSourceArgs, gather};
use crate::flags::names;
use crate::flags::state::StateRepo;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::text::{counted, some_of};
use berth_hub::inputs::LocatedState;

/// Wait until clusters are in sync with what is published
///
/// Ends with 0 as soon as every cluster reports that its folder is applied and healthy, and each workload has had its
/// turn everywhere; with names or a selector, these clusters alone count. With `--source` it first waits until that commit is
/// published. Ends with 7 when the time is over and names the clusters it waited for, and with 5 where removals of
/// the source wait for an approval.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth wait\n  berth wait --source HEAD --timeout 1800\n  berth wait oslo york\n  berth wait -l region=eu --rendered https://git.example.com/fleet.git"
)]
pub(crate) struct WaitArgs {
    /// Wait for these clusters alone
    #[arg(value_name = "CLUSTER", add = ArgValueCandidates::new(names::clusters))]
    clusters: Vec<String>,
    #[command(flatten)]
    place: StatusSourceArgs,
    /// Wait until this commit of the source, or a later one, is published
    #[arg(long, value_name = "REV")]
    source: Option<String>,
    /// Seconds until it gives up
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

/// The number of clusters that a message names.
const MOST_NAMED: usize = 5;

/// The result of one look.
enum Look {
    InSync(String),
    /// The clusters are in sync with everything except held workloads.
    Held(Vec<String>),
    Waiting(String),
}

pub(crate) fn cmd_wait(args: &WaitArgs, ui: &Ui) -> Outcome {
    let end = Instant::now() + Duration::from_secs(args.timeout);
    let opened = args.place.open()?;
    let mut shown = String::new();
    let found = args.place.follow(&opened, Some(end), |located| {
        Ok(match args.look(&opened, located, ui)? {
            Look::Waiting(message) => {
                if message != shown {
                    ui.status(&format!("waiting: {message}"));
                    shown = message;
                }
                None
            }
            found => Some(found),
        })
    })?;
    match found {
        Some(Look::InSync(message)) => {
            ui.out(&message);
            Ok(Exit::Done)
        }
        Some(Look::Held(workloads)) => {
            let message = format!("in sync, but held for approval: {}", some_of(&workloads, MOST_NAMED));
            Err(CommandError::new(Exit::Held, message).hint("`berth status` has the approvals"))
        }
        Some(Look::Waiting(_)) | None => {
            let error = CommandError::new(Exit::Unhealthy, format!("the time is over: {shown}"));
            Err(error.hint("`berth status CLUSTER` says what is wrong there"))
        }
    }
}

impl WaitArgs {
    fn look(&self, opened: &StateRepo, located: &LocatedState, ui: &Ui) -> Result<Look, CommandError> {
        let repo = &opened.repo;
        if located.current.is_none() {
            return Ok(Look::Waiting("nothing is published yet".to_owned()));
        }
        let gathered = gather(repo, located, ui)?;
        let selector = self.place.selector.as_deref();
        let selection = Selection::of(&self.clusters, selector, repo, located, &gathered)?;
        let status = FleetStatus::of(repo, located, gathered, &selection)?;
        if let Some(revision) = &self.source {
            let wanted = repo.require(revision)?;
            let seen = status.processed.as_ref().map(|processed| processed.commit);
            let seen = seen.filter(|seen| repo.has_commit(*seen));
            let is_published = seen.map(|seen| repo.is_same_or_after(seen, wanted)).transpose()?;
            if is_published != Some(true) {
                return Ok(Look::Waiting(format!(
                    "the daemon has not processed commit {} yet",
                    wanted.short()
                )));
            }
        }
        let waiting = status.waits();
        if let Some(message) = waiting {
            return Ok(Look::Waiting(message));
        }
        let held = status.processed.iter().flat_map(|processed| &processed.held);
        let held: Vec<String> = held.map(|held| held.workload.clone()).collect();
        if !held.is_empty() && selection == Selection::All {
            return Ok(Look::Held(held));
        }
        let clusters = counted(status.fleet.clusters.len(), "cluster");
        Ok(Look::InSync(format!("{clusters} in sync")))
    }
}

impl FleetStatus<'_> {
    /// Returns the reason to wait, if any: clusters out of sync, or copies whose turn has not come.
    fn waits(&self) -> Option<String> {
        let all = &self.fleet.clusters;
        let late: Vec<String> = all
            .iter()
            .filter(|cluster| !cluster.is_in_sync())
            .map(|cluster| cluster.line.name.clone())
            .collect();
        if !late.is_empty() {
            let (count, of) = (late.len(), all.len());
            let names = some_of(&late, MOST_NAMED);
            return Some(format!("{count} of {of} clusters not in sync ({}): {names}", self.totals()));
        }
        let late = self.fleet.workloads.iter().filter(|one| one.in_sync < one.placed);
        let late: Vec<String> =
            late.map(|one| format!("{} {} {}/{}", one.kind, one.name, one.in_sync, one.placed)).collect();
        (!late.is_empty()).then(|| format!("workloads not in sync: {}", some_of(&late, MOST_NAMED)))
    }
}
