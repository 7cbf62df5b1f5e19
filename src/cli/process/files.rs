//! Writing files and their folders. Every error names the failed action.

use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::exit::CommandError;
use berth_base::backoff::chance;

/// The end of the name of a file that is not written completely yet. The name begins with a dot.
pub(crate) const ASIDE: &str = ".berth-new";

/// Writes a file, and creates its parent folders.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    std::fs::write(path, bytes)
        .map_err(|error| CommandError::io(format!("writing {}", path.display()), &error))
}

pub(crate) fn create_folder(path: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(path)
        .map_err(|error| CommandError::io(format!("creating {}", path.display()), &error))
}

/// Writes a new file. Fails if it exists, and leaves it unchanged.
pub(crate) fn write_new(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
    write_new_with(std::fs::OpenOptions::new(), path, bytes)
}

/// Like [`write_new`], for a file that only its owner can read.
pub(crate) fn write_private(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    write_new_with(options, path, bytes)
}

fn write_new_with(
    mut options: std::fs::OpenOptions,
    path: &Path,
    bytes: impl AsRef<[u8]>,
) -> Result<(), CommandError> {
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    let doing = format!("writing {}", path.display());
    let file = options.write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => already_there(path),
        _ => CommandError::io(&doing, &error),
    })?;
    file.write_all(bytes.as_ref()).map_err(|error| CommandError::io(&doing, &error))
}

pub(crate) fn already_there(path: &Path) -> CommandError {
    let error = CommandError::usage(format!("{} already exists", path.display()));
    error.hint("move it, or write to another place; nothing was written to it")
}

/// Replaces the bytes of a file, if it is unchanged since it was read. A crash leaves either the old or the new
/// bytes.
pub fn replace(path: &Path, before: &[u8], after: impl AsRef<[u8]>) -> Result<(), CommandError> {
    unchanged(path, before)?;
    let failed = |error: std::io::Error| CommandError::io(format!("writing {}", path.display()), &error);
    let permissions = std::fs::metadata(path).map_err(failed)?.permissions();
    write_aside(path, after.as_ref(), Some(permissions)).map_err(failed)
}

/// Writes a file whole, new or not: a crash leaves the old bytes or the new ones.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    if let Some(parent) = path.parent() {
        create_folder(parent)?;
    }
    let failed = |error: std::io::Error| CommandError::io(format!("writing {}", path.display()), &error);
    write_aside(path, bytes, None).map_err(failed)
}

/// Writes bytes to a new file beside a path, and moves it there. Never writes through a link.
fn write_aside(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> std::io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let aside = path.with_file_name(format!(".{name}{ASIDE}"));
    // Removes a leftover of an earlier crash or another process.
    let _ = std::fs::remove_file(&aside);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&aside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| {
            permissions.map_or(Ok(()), |permissions| std::fs::set_permissions(&aside, permissions))
        })
        .and_then(|()| std::fs::rename(&aside, path));
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(&aside);
    })
}

/// Deletes a file, if it is unchanged since it was read.
pub fn delete(path: &Path, before: &[u8]) -> Result<(), CommandError> {
    unchanged(path, before)?;
    std::fs::remove_file(path)
        .map_err(|error| CommandError::io(format!("deleting {}", path.display()), &error))
}

fn unchanged(path: &Path, before: &[u8]) -> Result<(), CommandError> {
    let now = std::fs::read(path)
        .map_err(|error| CommandError::io(format!("reading {}", path.display()), &error))?;
    if now == before {
        return Ok(());
    }
    let message = format!("{} was changed by another process", path.display());
    Err(CommandError::new(super::exit::Exit::Raced, message).hint("try again; nothing was written to it"))
}

/// Refuses a path below a folder that leads through a symbolic link, whose target could be anywhere.
pub(crate) fn refuse_links(folder: &Path, below: &str) -> Result<(), CommandError> {
    let mut at = folder.to_owned();
    for part in Path::new(below) {
        at.push(part);
        if at.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            let error = CommandError::usage(format!("{} is a symbolic link", at.display()));
            return Err(error.hint("name another folder: berth does not write through links"));
        }
    }
    Ok(())
}

/// A temporary folder of this process, removed when dropped.
#[derive(Debug)]
pub(crate) struct OwnFolder(PathBuf);

impl OwnFolder {
    pub fn make() -> Result<OwnFolder, CommandError> {
        let folder = std::env::temp_dir().join(format!("berth-{:016x}", chance()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // Fails if somebody else created it.
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
