//! `berth init [DIR]`: creates a fleet repository.

use std::path::{Path, PathBuf};

use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use crate::process::files::write;
use berth_base::diag::{Pos, Severity};
use berth_base::model::Timestamp;
use berth_hub::inputs::{PassInputs, Search};

/// Start a fleet repository
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth init fleet && cd fleet && berth decide")]
pub(crate) struct InitArgs {
    /// Folder of the new fleet
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

/// The files of a new fleet, by path.
const FILES: &[(&str, &str)] = &[
    ("berth.yaml", include_str!("../../../fixtures/init/berth.yaml")),
    ("README.md", include_str!("../../../fixtures/init/README.md")),
    ("clusters/oslo.yaml", include_str!("../../../fixtures/init/clusters/oslo.yaml")),
    ("clusters/turin.yaml", include_str!("../../../fixtures/init/clusters/turin.yaml")),
    ("apps/hello/namespace.yaml", include_str!("../../../fixtures/init/apps/hello/namespace.yaml")),
    ("apps/hello/config.yaml", include_str!("../../../fixtures/init/apps/hello/config.yaml")),
];

/// Returns the evidence of an existing fleet in the folder, with its place.
fn existing_fleet(dir: &Path) -> Option<String> {
    if !dir.is_dir() {
        return None;
    }
    let inputs = PassInputs::folder(dir, Timestamp::now(), None, &Search::leniently()).ok()?;
    let (loaded, _, diagnostics) = inputs.decide();
    let fleet = &loaded.fleet;
    let cluster = fleet.clusters.iter().next();
    let cluster = cluster.map(|(name, it)| (format!("cluster {name}"), it.origins.first().cloned()));
    let placement =
        fleet.placements.iter().next().map(|(key, it)| (key.to_string(), Some(it.origin.clone())));
    let place = |at: Option<Pos>| at.map(|at| format!(" in {at}")).unwrap_or_default();
    if let Some((what, at)) = cluster.or(placement) {
        return Some(format!("already describes a fleet: {what}{}", place(at)));
    }
    let fault = diagnostics.iter().find(|one| one.severity == Severity::Error)?;
    let at = place(fault.at.clone());
    Some(format!("may describe a fleet already, in a file that cannot be read{at}: {}", fault.message))
}

pub(crate) fn cmd_init(args: &InitArgs, ui: &Ui) -> Outcome {
    let there: Vec<&str> =
        FILES.iter().map(|(path, _)| *path).filter(|path| args.dir.join(path).exists()).collect();
    if !there.is_empty() {
        let message = format!("{} already has {}", args.dir.display(), there.join(", "));
        return Err(CommandError::new(Exit::Usage, message).hint("name another folder; nothing was written"));
    }
    if let Some(found) = existing_fleet(&args.dir) {
        let message = format!("{} {found}", args.dir.display());
        return Err(CommandError::new(Exit::Usage, message).hint(
            "check the fleet with `berth validate`, add clusters with `berth join`, or name a new folder; \
             nothing was written",
        ));
    }
    for (path, text) in FILES {
        write(&args.dir.join(path), text)?;
    }
    if !args.dir.join(".git").exists() {
        berth_git::Repo::init(&args.dir)?;
    }
    ui.status(&format!(
        "started a fleet repository in {}\nnext: look at the files, `git add -A && git commit`, then \
         `berth decide` and `berth run --once`",
        args.dir.display()
    ));
    Ok(Exit::Done)
}
