//! The flag of the fleet repository: the given one, or the one around the current folder.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

use berth_engine::load::config::CONFIG_PATH;

/// The flag of the fleet repository.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RepoArg {
    /// The fleet repository or folder; `.` finds the one around the current folder
    #[arg(id = "repo", long, value_name = "PATH", default_value = ".", value_parser = parser(), env = "BERTH_REPO")]
    pub path: PathBuf,
}

/// Reads a path on the command line. The default, `.`, is the fleet around the current folder, as for git and cargo.
pub fn parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| if path == Path::new(".") { here_or_above() } else { path })
}

/// Returns the fleet around the current folder, or that folder itself.
pub fn here_or_above() -> PathBuf {
    around_here().unwrap_or_else(|| PathBuf::from("."))
}

/// Returns the nearest fleet from the current folder upwards: a folder with a `.git` or a berth.yaml.
pub fn around_here() -> Option<PathBuf> {
    let is_fleet = |folder: &Path| folder.join(".git").exists() || folder.join(CONFIG_PATH).is_file();
    let here = PathBuf::from(".");
    if is_fleet(&here) {
        return Some(here);
    }
    let here = here.canonicalize().ok()?;
    here.ancestors().skip(1).find(|folder| is_fleet(folder)).map(Path::to_owned)
}
