//! The program of the renderer: beside berth, on the `PATH`, or where `BERTH_RENDERER` says.

use std::env;
use std::path::{Path, PathBuf};

/// The variable with the path of the program.
pub const VARIABLE: &str = "BERTH_RENDERER";

/// The name of the program.
pub const NAME: &str = "berth-renderer";

/// The result of a search for the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    Found(PathBuf),
    /// `BERTH_RENDERER` names no file.
    Wrong(PathBuf),
    Missing,
}

impl Program {
    /// Looks where the variable says, else beside berth's own program, else on the `PATH`.
    pub fn find() -> Program {
        if let Some(named) = env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
            let named = PathBuf::from(named);
            return absolute(&named).map_or(Program::Wrong(named), Program::Found);
        }
        let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = beside.into_iter().chain(env::split_paths(&path));
        let mut found = folders.filter(|folder| folder.is_absolute());
        let found =
            found.find_map(|folder| absolute(&folder.join(NAME).with_extension(env::consts::EXE_EXTENSION)));
        found.map_or(Program::Missing, Program::Found)
    }
}

/// Returns the path of a file without links.
fn absolute(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}
