//! Writing files and the folders they are in, with what was being done in every error.

use std::path::Path;

use super::exit::CommandError;

/// Writes a file, and makes the folders on the way to it.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    std::fs::write(path, bytes)
        .map_err(|error| CommandError::io(format!("writing {}", path.display()), &error))
}

pub fn create_folder(path: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(path)
        .map_err(|error| CommandError::io(format!("creating {}", path.display()), &error))
}
