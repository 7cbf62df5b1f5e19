//! `berth man`: manual pages.

use std::path::PathBuf;

use super::command_line;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth man --out /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write all pages to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn cmd_man(args: &ManArgs, ui: &Ui) -> Outcome {
    let failed = |error: &std::io::Error| CommandError::io("writing the manual pages", error);
    match &args.out {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
            clap_mangen::generate_to(command_line(), folder).map_err(|error| failed(&error))?;
            ui.status(&format!("wrote the manual pages to {}", folder.display()));
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command_line()).render(&mut page).map_err(|error| failed(&error))?;
            ui.out(&String::from_utf8_lossy(&page));
        }
    }
    Ok(Exit::Done)
}
