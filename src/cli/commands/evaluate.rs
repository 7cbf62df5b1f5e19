//! A fleet's results without Git. `berth decide`: the clusters that each placement picks. `berth render --out DIR`: every
//! cluster's manifests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::flags::fleet::FleetArgs;
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use crate::process::files::{create_folder, write};
use berth_base::diag::harmless_line;
use berth_base::model::{Contents as _, Decision, Key, Map, path};
use berth_base::text::{counted, some_of};
use berth_engine::pipeline::Built;
use berth_engine::render::{self, OverriddenCopy};
use berth_engine::state::{DecisionList, State, decision, layout};
use berth_hub::inputs::{PassInputs, UnpublishedContents};

/// Decide which clusters get what
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth decide\n  berth decide --rev main -o json\n  berth decide --now 2026-01-01T00:00:00Z"
)]
pub(crate) struct DecideArgs {
    #[command(flatten)]
    fleet: FleetArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(crate) fn cmd_decide(args: &DecideArgs, ui: &Ui) -> Outcome {
    let inputs = args.fleet.read(ui)?;
    let (_, decided, diagnostics) = inputs.decide();
    ui.diagnostics(&diagnostics);
    match args.output {
        Format::Text => ui.out(&decisions_table(&decided.decisions, ui)),
        format => {
            format.write(ResultKind::DecisionList, &DecisionList::of(decided.decisions.values()), ui);
        }
    }
    Ok(exit_for(&diagnostics))
}

/// Returns a table with one row for each decision.
pub(crate) fn decisions_table(decisions: &Map<Key, Decision>, ui: &Ui) -> String {
    let row = |(key, decision): (&Key, &Decision)| {
        let condition = decision.condition.as_ref();
        vec![
            key.kind.to_string(),
            key.full_name(),
            decision.picks.len().to_string(),
            pick_names(decision, 8),
            condition.map(|condition| condition.reason.clone()).unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = decisions.iter().map(row).collect();
    if rows.is_empty() {
        return ui.tint("no placements in this fleet", Tone::Faint);
    }
    table(&["KIND", "NAME", "N", "CLUSTERS", "CONDITION"], &rows, ui)
}

/// Lists the picked clusters by name, cut after `most`.
pub(crate) fn pick_names(decision: &Decision, most: usize) -> String {
    let names = decision.picks.iter().map(|pick| match pick.replicas {
        Some(replicas) => format!("{}={replicas}", pick.cluster),
        None => pick.cluster.to_string(),
    });
    if decision.picks.is_empty() { "none".to_owned() } else { some_of(names, most) }
}

/// Write every cluster's manifests to a folder
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth render --out /tmp/rendered\n  berth render --out /tmp/rendered --annotate\n  kubectl diff -R -f /tmp/rendered/clusters/oslo"
)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Folder to write: an empty one, or that of an earlier render
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write what clusters get with the next step, in place of what they have when all rollouts are done
    #[arg(long)]
    step: bool,
    /// Comment at the top of each manifest which override touched which path
    #[arg(long)]
    annotate: bool,
}

pub(crate) fn cmd_render(args: &RenderArgs, ui: &Ui) -> Outcome {
    let inputs = args.fleet.read(ui)?;
    let mut contents = UnpublishedContents::keeping(&inputs)?;
    let built = ui.watching("rendering objects", || inputs.build(&mut contents))?;
    ui.diagnostics(&built.diagnostics);
    let state = &if args.step { built.state.clone() } else { built.end() };
    let notes = if args.annotate { Notes::of(&inputs, &built, state) } else { Notes::default() };
    prepare(&args.out)?;
    let objects = state.folders.values().map(|folder| folder.len()).sum();
    ui.watching("writing objects", || {
        ui.progress().begin_of("writing objects", objects);
        for (cluster, folder) in &state.folders {
            let folder_path = args.out.join("clusters").join(path::encode(cluster));
            create_folder(&folder_path)?;
            for (file, id) in folder {
                let bytes = contents.get(*id)?;
                write(&folder_path.join(&**file), notes.above(cluster, file, bytes))?;
                ui.progress().add(1);
            }
        }
        Ok::<(), CommandError>(())
    })?;
    for (key, decision) in &state.decisions {
        let text = decision::write_decision(decision);
        write(&args.out.join("decisions").join(path::of_key(key)), text.as_bytes())?;
    }
    write(&args.out.join(layout::MARKER), layout::marker().as_bytes())?;
    ui.status(&format!(
        "wrote {} for {} to {}",
        counted(objects, "object"),
        counted(state.folders.len(), "cluster"),
        args.out.display()
    ));
    if !notes.taken_away.is_empty() {
        ui.out(&notes.taken_away);
    }
    Ok(exit_for(&built.diagnostics))
}

/// The effects of overrides, for `--annotate`.
#[derive(Default)]
struct Notes {
    /// Comment lines by cluster and path.
    lines: BTreeMap<(String, Arc<str>), String>,
    /// Copies that an override removed.
    taken_away: String,
}

impl Notes {
    fn of(inputs: &PassInputs, built: &Built, state: &State) -> Notes {
        let previous =
            render::Previous { decisions: &inputs.current.decisions, folders: &inputs.current.folders };
        let mut notes = Notes::default();
        for touched in render::touched(&built.fleet, &state.decisions, previous) {
            let OverriddenCopy { cluster, path, object, by } = touched;
            if let Some(last) = by.last().filter(|last| last.operation.is_none()) {
                let line = format!("{cluster} gets no {object}: {last}");
                let before = if notes.taken_away.is_empty() { "" } else { "\n" };
                notes.taken_away.push_str(&format!("{before}{}", harmless_line(&line)));
                continue;
            }
            let lines = notes.lines.entry((cluster, path)).or_default();
            by.iter().for_each(|touch| {
                lines.push_str(&format!("# {}\n", harmless_line(&touch.to_string())));
            });
        }
        notes
    }

    fn above(&self, cluster: &str, path: &Arc<str>, manifest: Vec<u8>) -> Vec<u8> {
        match self.lines.get(&(cluster.to_owned(), path.clone())) {
            Some(lines) => [lines.as_bytes(), &manifest].concat(),
            None => manifest,
        }
    }
}

/// Empties the result of an earlier render. Refuses any other folder.
fn prepare(out: &Path) -> Result<(), CommandError> {
    if out.join(layout::MARKER).is_file() {
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
