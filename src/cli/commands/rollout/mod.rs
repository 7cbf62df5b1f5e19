//! `berth rollout`: how changes reach the clusters.
//!
//! - [`show`]: `list`, `show`, `next` and `stages`. [`steer`]: `pause`, `resume`, `approve`, `abort` and `restart`.
//! - [`progress`]: the progress of a rollout as values. [`timeline`]: a rollout over time. [`order`]: the edit of a policy or a staged run.

mod order;
mod progress;
mod show;
mod steer;
mod timeline;

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
    List(show::ListArgs),
    #[command(visible_alias = "status")]
    Show(show::ShowArgs),
    Next(show::NextArgs),
    Stages(show::StagesArgs),
    Pause(steer::PauseArgs),
    Resume(steer::ResumeArgs),
    Approve(steer::ApproveArgs),
    Abort(steer::AbortArgs),
    Restart(steer::RestartArgs),
}

pub(crate) fn cmd_rollout(args: &RolloutArgs, ui: &Ui) -> Outcome {
    match &args.command {
        RolloutCommand::List(args) => show::cmd_list(args, ui),
        RolloutCommand::Show(args) => show::cmd_show(args, ui),
        RolloutCommand::Next(args) => show::cmd_next(args, ui),
        RolloutCommand::Stages(args) => show::cmd_stages(args, ui),
        RolloutCommand::Pause(args) => steer::cmd_pause(args, ui),
        RolloutCommand::Resume(args) => steer::cmd_resume(args, ui),
        RolloutCommand::Approve(args) => steer::cmd_approve(args, ui),
        RolloutCommand::Abort(args) => steer::cmd_abort(args, ui),
        RolloutCommand::Restart(args) => steer::cmd_restart(args, ui),
    }
}
