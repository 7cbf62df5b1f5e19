//! `berth sync --teardown` and `--release`: end a member, after two confirmations.

use std::time::Duration;

use super::result::plan_text;
use crate::output::results::ResultKind;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::text::counted;
use berth_member::sync::backends::Backend;
use berth_member::sync::plan::HoldReason;
use berth_member::sync::teardown::{Teardown, TeardownMode};

/// The end of a member
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The end of a member")]
pub(crate) struct TeardownArgs {
    /// Remove everything that berth owns there, in the opposite of the order in which it is applied
    ///
    /// Namespaces, CRDs and volume claims go only with `--allow-risky-prune`; what is annotated `berth.dev/prune:
    /// disabled` stays. Nothing is fetched. Stop the syncer that runs, or it applies everything again.
    #[arg(long, conflicts_with = "release")]
    teardown: bool,
    /// Leave all objects unchanged and remove berth's marks, so that another tool may own them
    #[arg(long)]
    release: bool,
    /// Do not ask for the cluster's name to be typed
    #[arg(short, long)]
    yes: bool,
}

impl TeardownArgs {
    pub fn end(&self) -> Option<TeardownMode> {
        match (self.teardown, self.release) {
            (true, _) => Some(TeardownMode::Remove),
            (_, true) => Some(TeardownMode::Release),
            _ => None,
        }
    }
}

/// The values of the other flags.
#[derive(Clone, Debug)]
pub struct About<'a> {
    pub cluster: &'a str,
    pub fleet: &'a str,
    pub allow_risky_prune: bool,
    pub dry_run: bool,
    pub json: bool,
    pub patience: Duration,
}

pub(crate) fn end_member(
    args: &TeardownArgs,
    end: TeardownMode,
    about: &About<'_>,
    backend: &mut dyn Backend,
    ui: &Ui,
) -> Outcome {
    let teardown = Teardown {
        fleet: about.fleet.to_owned(),
        cluster: about.cluster.to_owned(),
        end,
        allow_risky_prune: about.allow_risky_prune,
        patience: about.patience,
    };
    let found = teardown.look(backend)?;
    if about.json {
        ui.json(&ResultKind::SyncPlan.of(&found.plan.to_json()));
    } else {
        ui.out(&plan_text(&found.plan, true, usize::MAX, ui));
    }
    for along in &found.along {
        ui.status(&format!("{}: {}", along.object, along.message));
    }
    let waits = found.plan.held.iter().any(|held| held.why == HoldReason::NeedsApproval);
    let exit = if waits { Exit::Held } else { Exit::Done };
    if about.dry_run {
        for problem in &found.plan.problems {
            ui.status(&format!("{}: {}", problem.object, problem.message));
        }
        return Ok(exit);
    }
    if !args.yes {
        confirm(about.cluster, end, ui)?;
    }
    let ended = teardown.carry_out(&found, backend)?;
    let let_go = format!("{} let go", counted(ended.let_go, "object"));
    ui.status(&match (end, ended.let_go) {
        (TeardownMode::Release, _) => let_go,
        (TeardownMode::Remove, 0) => format!("{} removed", counted(ended.removed, "object")),
        (TeardownMode::Remove, some) => {
            format!("{} removed, {some} let go", counted(ended.removed, "object"))
        }
    });
    if ended.is_whole {
        ui.status("only berth's namespace and its lease are left");
    }
    for problem in &ended.problems {
        ui.status(&format!("{}: {}", problem.object, problem.message));
    }
    Ok(if ended.problems.is_empty() { exit } else { exit.worst(Exit::Unhealthy) })
}

/// Continues only if the user types the cluster's name.
fn confirm(cluster: &str, end: TeardownMode, ui: &Ui) -> Result<(), CommandError> {
    let what = if end == TeardownMode::Remove { "remove all of this from" } else { "release all of this in" };
    ui.status(&format!("type the cluster's name to {what} `{cluster}`:"));
    let line = ui.line_of_input().map_err(|error| CommandError::io("reading the cluster's name", &error))?;
    if line.trim() == cluster {
        return Ok(());
    }
    Err(CommandError::usage("that is not the cluster's name; nothing was done")
        .hint("type the name, or use `--yes` in a script"))
}
