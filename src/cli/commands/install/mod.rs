//! `berth install`: everything that runs a daemon or a syncer in a cluster, written as files or applied.

mod application_set;
mod common;
mod deploy_key;
mod forge_settings;
mod hub;
mod member;
mod place;

use clap::Subcommand;

use crate::output::ui::Ui;
use crate::process::exit::Outcome;

/// Install a daemon or a syncer in a cluster
///
/// Writes the manifests into a folder, which `kubectl apply -k` and Kustomize take, or applies them with --apply. A
/// second run with the same flags changes nothing.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth install hub --remote git@git.example.com:team/fleet.git --image registry.example.com/berth:0.1.0 --deploy-key --known-hosts known_hosts --apply\n  berth install member oslo --remote https://git.example.com/team/fleet.git --image registry.example.com/berth:0.1.0 --dir oslo"
)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    command: InstallCommand,
}

#[derive(Debug, Subcommand)]
enum InstallCommand {
    Hub(hub::HubArgs),
    Member(member::MemberArgs),
    ApplicationSet(application_set::ApplicationSetArgs),
}

pub(crate) fn cmd_install(args: &InstallArgs, ui: &Ui) -> Outcome {
    match &args.command {
        InstallCommand::Hub(args) => hub::cmd_hub(args, ui),
        InstallCommand::Member(args) => member::cmd_member(args, ui),
        InstallCommand::ApplicationSet(args) => application_set::cmd_application_set(args, ui),
    }
}
