//! Descriptions of berth for other programs: `berth schema` (JSON Schemas for editors), `berth completions` (a shell's
//! completion script) and `berth man` (manual pages).

use std::path::{Path, PathBuf};

use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use serde_json::Value as Json;

use super::command_line;
use crate::flags::names::COMPLETE;
use crate::output::table::table;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use crate::process::files::write;
use crate::schema::{ALL, Kind, all, kinds};
use berth_base::diag::did_you_mean;

/// Print the JSON Schema of a kind, or write those of all
///
/// Editors with a YAML language server show errors and complete names while one writes. Without arguments,
/// lists the kinds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  berth schema Placement
  berth schema berth.dev/v1alpha1/FleetConfig
  berth schema --write .schemas

A first line in a document of the fleet, `# yaml-language-server: $schema=../.schemas/all.json`, makes an
editor use them.")]
pub(crate) struct SchemaArgs {
    /// A kind, or GROUP/KIND or GROUP/VERSION/KIND
    #[arg(conflicts_with = "write")]
    kind: Option<String>,
    /// Write the schemas of all kinds to this folder, and all.json, which chooses among them
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

pub(crate) fn cmd_schema(args: &SchemaArgs, ui: &Ui) -> Outcome {
    let kinds = kinds();
    match (&args.kind, &args.write) {
        (Some(wanted), _) => ui.json(&find(&kinds, wanted)?.schema()),
        (None, Some(folder)) => {
            write_json(folder, ALL, &all(&kinds))?;
            for kind in &kinds {
                write_json(folder, &kind.file(), &kind.schema())?;
            }
            ui.status(&format!("wrote the schemas of {} kinds to {}", kinds.len(), folder.display()));
        }
        (None, None) => {
            let row = |one: &Kind| {
                let kind = &one.kind;
                vec![kind.kind.to_owned(), kind.group.to_owned(), kind.versions.join(", ")]
            };
            ui.out(&table(&["KIND", "GROUP", "VERSIONS"], &kinds.iter().map(row).collect::<Vec<_>>(), ui));
        }
    }
    Ok(Exit::Done)
}

fn find<'k>(kinds: &'k [Kind], wanted: &str) -> Result<&'k Kind, CommandError> {
    let is_wanted = |one: &&Kind| {
        let (group, kind) = (one.kind.group, one.kind.kind);
        let mut versions = one.kind.versions.iter();
        wanted == kind
            || wanted == format!("{group}/{kind}")
            || versions.any(|version| wanted == format!("{group}/{version}/{kind}"))
    };
    kinds.iter().find(is_wanted).ok_or_else(|| {
        let name = wanted.rsplit('/').next().unwrap_or_default();
        let near = did_you_mean(name, kinds.iter().map(|one| one.kind.kind));
        let hint = near.unwrap_or_else(|| "`berth schema` lists the kinds".to_owned());
        CommandError::new(Exit::Usage, format!("berth reads no kind `{wanted}`")).hint(hint)
    })
}

fn write_json(folder: &Path, file: &str, schema: &Json) -> Result<(), CommandError> {
    write(&folder.join(file), format!("{schema:#}\n"))
}

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
