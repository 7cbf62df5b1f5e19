//! `berth render --out DIR`: every cluster's manifests, without Git.

use std::path::{Path, PathBuf};

use super::Outcome;
use super::exit::{CommandError, Exit};
use super::files::{create_folder, write};
use super::fleet::{FleetArgs, exit_for};
use super::ui::{Ui, counted};
use crate::model::path;
use crate::render::MemoryContents;
use crate::state;

/// Write every cluster's manifests to a folder
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth render --out /tmp/rendered\n  kubectl diff -R -f /tmp/rendered/clusters/oslo"
)]
pub struct RenderArgs {
    #[command(flatten)]
    fleet: FleetArgs,
    /// The folder to write; must be empty, or the result of an earlier render
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub fn cmd_render(args: &RenderArgs, ui: &Ui) -> Outcome {
    let reading = args.fleet.read(ui)?;
    let mut contents = MemoryContents::default();
    let built = reading.build(&mut contents)?;
    ui.diagnostics(&built.diagnostics);
    prepare(&args.out)?;
    let mut written = 0;
    for (cluster, folder) in &built.state.folders {
        let folder_path = args.out.join("clusters").join(path::encode(cluster));
        create_folder(&folder_path)?;
        for (file, id) in folder {
            // A copy that keeps its last good form has its bytes in the repository, not in this run.
            let bytes = match contents.bytes(id) {
                Some(bytes) => bytes.to_vec(),
                None => reading.earlier_content(id)?,
            };
            write(&folder_path.join(&**file), &bytes)?;
            written += 1;
        }
    }
    for (key, decision) in &built.state.decisions {
        let text = state::record::write_decision(decision);
        write(&args.out.join("decisions").join(path::of_key(key)), text.as_bytes())?;
    }
    write(&args.out.join(state::layout::MARKER), state::layout::marker().as_bytes())?;
    ui.status(&format!(
        "wrote {} for {} to {}",
        counted(written, "object"),
        counted(built.state.folders.len(), "cluster"),
        args.out.display()
    ));
    Ok(exit_for(&built.diagnostics))
}

/// Empties the result of an earlier render; refuses a folder that is anything else.
fn prepare(out: &Path) -> Result<(), CommandError> {
    if out.join(state::layout::MARKER).is_file() {
        for ours in ["clusters", "decisions"] {
            let folder = out.join(ours);
            if folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                std::fs::remove_dir_all(&folder)
                    .map_err(|error| CommandError::io(format!("emptying {}", folder.display()), &error))?;
            }
        }
        return Ok(());
    }
    let has_entries = match std::fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(CommandError::io(format!("opening {}", out.display()), &error)),
    };
    if has_entries {
        let message = format!("{} is not empty and was not written by berth", out.display());
        return Err(CommandError::new(Exit::Usage, message).hint("name a new folder"));
    }
    Ok(())
}
