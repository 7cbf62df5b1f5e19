//! `berth init [DIR]`: the beginnings of a fleet repository.

use std::path::PathBuf;

use super::Outcome;
use super::exit::{CommandError, Exit};
use super::files::write;
use super::ui::Ui;

/// Start a fleet repository
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth init fleet && cd fleet && berth decide")]
pub struct InitArgs {
    /// Where to start it
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

/// The files of a fresh fleet, by path.
const FILES: &[(&str, &str)] = &[
    ("berth.yaml", include_str!("../../fixtures/init/berth.yaml")),
    ("README.md", include_str!("../../fixtures/init/README.md")),
    ("clusters/oslo.yaml", include_str!("../../fixtures/init/clusters/oslo.yaml")),
    ("clusters/turin.yaml", include_str!("../../fixtures/init/clusters/turin.yaml")),
    ("apps/hello/namespace.yaml", include_str!("../../fixtures/init/apps/hello/namespace.yaml")),
    ("apps/hello/config.yaml", include_str!("../../fixtures/init/apps/hello/config.yaml")),
];

pub fn cmd_init(args: &InitArgs, ui: &Ui) -> Outcome {
    let there: Vec<&str> =
        FILES.iter().map(|(path, _)| *path).filter(|path| args.dir.join(path).exists()).collect();
    if !there.is_empty() {
        let message = format!("{} already has {}", args.dir.display(), there.join(", "));
        return Err(CommandError::new(Exit::Usage, message).hint("nothing was written; name another folder"));
    }
    for (path, text) in FILES {
        write(&args.dir.join(path), text)?;
    }
    if !args.dir.join(".git").exists() {
        crate::git::Repo::init(&args.dir)?;
    }
    ui.status(&format!(
        "started a fleet repository in {}\nnext: look around, `git add -A && git commit`, then `berth decide`, `berth run --once`",
        args.dir.display()
    ));
    Ok(Exit::Done)
}
