//! The page's folder. A file is written whole, and only if its content changed; the head, which names all others, is
//! written last, and stale files are removed after it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::process::exit::CommandError;
use crate::process::files::{refuse_links, write_whole};
use berth_base::model::Timestamp;
use berth_site::{Site, SiteFile};

/// Lists the files of a folder that is missing, empty, or an earlier page. Refuses any other folder.
pub(super) fn existing(folder: &Path) -> Result<BTreeSet<String>, CommandError> {
    let mut found = BTreeSet::new();
    if folder.exists() {
        list(folder, "", &mut found)?;
    }
    if !found.is_empty() && !found.iter().any(|path| Site::is_mark(path)) {
        let message = format!("{} has other files than those of a page", folder.display());
        return Err(
            CommandError::usage(message).hint("name a new or empty folder, or that of an earlier page")
        );
    }
    Ok(found)
}

/// The folders in which the page has files.
const FOLDERS: [&str; 2] = ["data", "page"];

fn list(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::io(format!("reading {}", folder.display()), &error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A Git repository around the page is none of its files.
        if name == ".git" {
            continue;
        }
        let is_own_folder = prefix.is_empty() && FOLDERS.contains(&name.as_str());
        if is_own_folder && entry.file_type().map_err(failed)?.is_dir() {
            list(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.insert(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// Returns the number of files of an earlier page that is whole and still true.
pub(super) fn up_to_date(
    folder: &Path,
    existing: &BTreeSet<String>,
    inputs: &str,
    now: Timestamp,
) -> Option<usize> {
    let text = std::fs::read_to_string(folder.join(Site::HEAD)).ok()?;
    let head = Site::read_head(&text).ok()?;
    let is_true = head.stamp.holds(inputs, now.as_second())
        && Site::is_whole(&head, existing, &|file| has(folder, file));
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
        let doing = || format!("deleting {path}");
        refuse_links(folder, path)?;
        std::fs::remove_file(folder.join(path)).map_err(|error| CommandError::io(doing(), &error))?;
    }
    Ok(changes.write.len())
}
