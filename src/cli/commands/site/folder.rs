//! The page's folder. A file is written whole, and only if its content changed; the head, which names all others, is
//! written last, and stale files are removed after it.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use crate::process::files::{create_folder, refuse_links, write_whole};
use berth_base::model::Timestamp;
use berth_site::{Site, SiteFile};

/// Makes the folder, and waits for other runs that write it: until the returned file is closed, they wait for this one.
/// `None` where folders cannot be locked.
pub(super) fn take_turn(folder: &Path, ui: &Ui) -> Result<Option<File>, CommandError> {
    create_folder(folder)?;
    let Ok(file) = File::open(folder) else { return Ok(None) };
    let is_locked = match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            ui.status(&format!("waiting for another run that writes {}", folder.display()));
            file.lock().is_ok()
        }
        tried => tried.is_ok(),
    };
    Ok(Some(file).filter(|_| is_locked))
}

/// Lists the files of a folder that is empty or an earlier page. Refuses any other folder.
pub(super) fn existing(folder: &Path) -> Result<BTreeSet<String>, CommandError> {
    let mut found = BTreeSet::new();
    list(folder, "", &mut found)?;
    // A first run that was interrupted leaves a page without its head.
    let is_page = || std::fs::read(folder.join(Site::HEAD)).is_ok_and(|text| Site::is_head(&text));
    if !found.iter().all(|path| Site::is_own(path)) && !is_page() {
        let message = format!("{} contains files that are not part of a page", folder.display());
        return Err(
            CommandError::usage(message).hint("name a new or empty folder, or that of an earlier page")
        );
    }
    Ok(found)
}

fn list(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::io(format!("reading {}", folder.display()), &error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A Git repository's own folder does not belong to the page.
        if name == ".git" {
            continue;
        }
        let is_own_folder = prefix.is_empty() && Site::FOLDERS.contains(&name.as_str());
        if is_own_folder && entry.file_type().map_err(failed)?.is_dir() {
            list(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.insert(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// Returns the number of files of an earlier page that is whole and still true.
pub(super) fn up_to_date(folder: &Path, inputs: &str, now: Timestamp) -> Option<usize> {
    let text = std::fs::read_to_string(folder.join(Site::HEAD)).ok()?;
    let head = Site::read_head(&text).ok()?;
    let is_true = head.stamp.holds(inputs, now.as_second())
        && Site::is_whole(&head, &|path| std::fs::read(folder.join(path)).ok());
    is_true.then(|| Site::file_count(&head))
}

fn has(folder: &Path, file: &SiteFile) -> bool {
    std::fs::read(folder.join(&file.path)).is_ok_and(|bytes| bytes == file.bytes)
}

/// Brings a folder to a page, and returns the number of written files.
pub(super) fn write(folder: &Path, site: &Site, existing: &BTreeSet<String>) -> Result<usize, CommandError> {
    let changes = site.changes(existing, &|file| has(folder, file));
    for file in &changes.write {
        refuse_links(folder, &file.path)?;
        write_whole(&folder.join(&file.path), &file.bytes)?;
    }
    for path in &changes.remove {
        remove(folder, path)?;
    }
    Ok(changes.write.len())
}

/// Removes a file of an earlier page, unless its content is somebody else's. Another run may have removed it already.
fn remove(folder: &Path, path: &str) -> Result<(), CommandError> {
    let file = folder.join(path);
    let bytes = std::fs::read(&file).unwrap_or_default();
    if !Site::is_removable(path, &bytes) {
        return Ok(());
    }
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(CommandError::io(format!("deleting {path}"), &error))
        }
        _ => Ok(()),
    }
}
