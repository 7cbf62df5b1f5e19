//! `berth rollout …`: how changes reach the clusters.

mod stages;

use clap::Subcommand;

use super::exit::Outcome;
use super::ui::Ui;

/// Show how changes reach the clusters
#[derive(Debug, clap::Args)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,
}

#[derive(Debug, Subcommand)]
enum RolloutCommand {
    Stages(stages::StagesArgs),
}

pub(crate) fn cmd_rollout(args: &RolloutArgs, ui: &Ui) -> Outcome {
    match &args.command {
        RolloutCommand::Stages(args) => stages::cmd_stages(args, ui),
    }
}
