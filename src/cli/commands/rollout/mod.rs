//! `berth rollout`: how changes reach the clusters.

mod approve;
mod list;
mod next;
mod order;
mod pause;
mod records;
mod runs;
mod stages;
mod standing;

use clap::Subcommand;

use crate::output::ui::Ui;
use crate::process::exit::Outcome;

/// Follow and steer how changes reach the clusters
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth rollout list\n  berth rollout next --works works.json\n  berth rollout pause shop/web --reason \"waiting for legal\""
)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,
}

#[derive(Debug, Subcommand)]
enum RolloutCommand {
    List(list::ListArgs),
    #[command(visible_alias = "status")]
    Show(list::ShowArgs),
    Next(next::NextArgs),
    Stages(stages::StagesArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Approve(approve::ApproveArgs),
    Abort(records::AbortArgs),
    Restart(records::RestartArgs),
}

pub(crate) fn cmd_rollout(args: &RolloutArgs, ui: &Ui) -> Outcome {
    match &args.command {
        RolloutCommand::List(args) => list::cmd_list(args, ui),
        RolloutCommand::Show(args) => list::cmd_show(args, ui),
        RolloutCommand::Next(args) => next::cmd_next(args, ui),
        RolloutCommand::Stages(args) => stages::cmd_stages(args, ui),
        RolloutCommand::Pause(args) => pause::cmd_pause(args, ui),
        RolloutCommand::Resume(args) => pause::cmd_resume(args, ui),
        RolloutCommand::Approve(args) => approve::cmd_approve(args, ui),
        RolloutCommand::Abort(args) => records::cmd_abort(args, ui),
        RolloutCommand::Restart(args) => records::cmd_restart(args, ui),
    }
}
