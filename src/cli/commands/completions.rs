//! `berth completions`: a shell's completion script.

use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::flags::names::COMPLETE;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};

/// Print a shell's completion script
///
/// The script asks berth itself, which also completes the names of clusters and placements: of the fleet
/// in the current folder, or of the one that BERTH_REPO names.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth completions bash > /etc/bash_completion.d/berth\n  berth completions zsh > ~/.zfunc/_berth"
)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

pub(crate) fn cmd_completions(args: &CompletionsArgs, ui: &Ui) -> Outcome {
    let completer: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        _ => return Err(CommandError::usage("no completions exist for this shell")),
    };
    let mut script = Vec::new();
    completer
        .write_registration(COMPLETE, "berth", "berth", "berth", &mut script)
        .map_err(|error| CommandError::io("writing the script", &error))?;
    ui.out(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
