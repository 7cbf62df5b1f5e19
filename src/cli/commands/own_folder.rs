//! A temporary folder of this process.

use std::path::{Path, PathBuf};

use super::exit::CommandError;
use berth_base::backoff::chance;

/// A folder for this process, removed at its end.
#[derive(Debug)]
pub(crate) struct OwnFolder(PathBuf);

impl OwnFolder {
    pub fn make() -> Result<OwnFolder, CommandError> {
        let folder = std::env::temp_dir().join(format!("berth-{:016x}", chance()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // Fails where somebody else made it.
        let made = builder.create(&folder);
        made.map_err(|error| CommandError::io(format!("making {}", folder.display()), &error))?;
        Ok(OwnFolder(folder))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
