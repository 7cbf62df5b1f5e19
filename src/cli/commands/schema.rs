//! `berth schema`: JSON Schemas for editors.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

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
