//! `berth status`: an overview of the fleet, or of some clusters.
//!
//! - [`fleet_status`]: the status as values, of the selected clusters. [`text`]: the status for people.

mod fleet_status;
mod text;

use std::time::{Duration, Instant};

use clap_complete::engine::ArgValueCandidates;

use crate::flags::fleet::RepoArg;
use crate::flags::names;
use crate::flags::state::{StateArgs, StateRepo};
use crate::output::results::{Format, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::backoff::pace::paced;
use berth_base::diag::harmless_line;
use berth_base::model::Map;
use berth_git::{CommitId, Repo};
use berth_hub::inputs::LocatedState;

pub(super) use fleet_status::{FleetStatus, Selection, ShownCluster, gather};

/// Show what is published and where members stand
///
/// The clusters that need somebody come first. With names or a selector it shows these clusters alone, each with the
/// workloads that it has and with what is wrong there. `berth wait` waits until all of them are in sync. With `--rendered`
/// and an address, no repository is needed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth status --repo /srv/fleet.git\n  berth status oslo\n  berth status -l region=eu\n  berth status --rendered https://git.example.com/fleet.git\n  berth status -o json\n  berth status --watch"
)]
pub(crate) struct StatusArgs {
    /// Show these clusters alone, with what is on them
    #[arg(value_name = "CLUSTER", add = ArgValueCandidates::new(names::clusters))]
    clusters: Vec<String>,
    #[command(flatten)]
    place: PlaceArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    /// Show it again each time that something is published or reported, until it is ended
    #[arg(long)]
    watch: bool,
}

/// The state to look at, and the clusters.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct PlaceArgs {
    /// Take the clusters with these labels: `env=prod,tier in (web, api)`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    state: StateArgs,
}

/// The interval of reading the refs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The interval of reading the refs of a remote.
const BETWEEN_FETCHES: Duration = Duration::from_secs(5);

/// Clears a terminal and moves to its first line.
const CLEARED: &str = "\x1b[2J\x1b[H";

impl PlaceArgs {
    pub fn open(&self) -> Result<StateRepo, CommandError> {
        self.state.open(&self.repo.path)
    }

    /// Finds the state. Fetches it if it is at an address.
    pub fn locate(&self, opened: &StateRepo) -> Result<LocatedState, CommandError> {
        Ok(LocatedState::find(&opened.repo, &self.state.search(&opened.path)?)?)
    }

    /// Reads the state, and again each time that a ref moves, until `look` returns a result. `None` if the time is up
    /// before.
    pub fn follow<T>(
        &self,
        opened: &StateRepo,
        end: Option<Instant>,
        mut look: impl FnMut(&LocatedState) -> Result<Option<T>, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        let pause = if self.state.address().is_some() { BETWEEN_FETCHES } else { BETWEEN_LOOKS };
        let mut seen = None;
        loop {
            // Fetches the state if it is at an address.
            self.locate(opened)?;
            let now = everything(&opened.repo)?;
            if seen.as_ref() != Some(&now) {
                // Refs that move after this are for the next look.
                if let Some(found) = look(&self.locate(opened)?)? {
                    return Ok(Some(found));
                }
                seen = Some(now);
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(None);
            }
            std::thread::sleep(paced(pause));
        }
    }
}

pub(crate) fn cmd_status(args: &StatusArgs, ui: &Ui) -> Outcome {
    let opened = args.place.open()?;
    if !args.watch {
        return show(args, &opened, &args.place.locate(&opened)?, ui);
    }
    let ended = args.place.follow(&opened, None, |located| {
        if ui.out_is_terminal() {
            ui.out(CLEARED);
        }
        show(args, &opened, located, ui)?;
        ui.write_failure().map_or(Ok(None), Err)
    })?;
    Ok(ended.unwrap_or(Exit::Done))
}

/// Returns every ref from which a status may be made.
fn everything(repo: &Repo) -> Result<Map<String, CommitId>, CommandError> {
    Ok(repo.list_refs("refs/")?)
}

fn show(args: &StatusArgs, opened: &StateRepo, located: &LocatedState, ui: &Ui) -> Outcome {
    let repo = &opened.repo;
    if located.current.is_some() {
        ui.status(&format!("reading {}", located.words()));
    }
    if let (Some(remote), None) = (&located.remote, &located.processed) {
        ui.status(&format!(
            "note: no member's status is in this clone; fetch them: git fetch {} \
             '+refs/berth/*:refs/berth/*'",
            harmless_line(remote)
        ));
    }
    let gathered = gather(repo, located, ui)?;
    let selection = Selection::of(&args.clusters, args.place.selector.as_deref(), repo, located, &gathered)?;
    let mut status = FleetStatus::of(repo, located, gathered, &selection)?;
    status.name_errors(&opened.path, repo);
    match args.output {
        Format::Text => ui.out(&status.text(ui)),
        format => format.write(ResultKind::FleetStatus, &status, ui),
    }
    Ok(Exit::Done)
}
