//! `berth completions`: a shell's completion script.

use super::exit::Exit;
use super::ui::Ui;
use super::{Outcome, command_line};

/// Print a shell's completion script
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth completions bash > /etc/bash_completion.d/berth")]
pub struct CompletionsArgs {
    shell: clap_complete::Shell,
}

pub fn cmd_completions(args: &CompletionsArgs, ui: &Ui) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line(), "berth", &mut script);
    ui.out(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
