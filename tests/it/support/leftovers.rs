//! Traces of processes that were killed: their locks, and those of their helpers that live on.

use std::path::{Path, PathBuf};

/// The lock files below a folder.
pub fn locks(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(locks(&path));
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            found.push(path);
        }
    }
    found
}

/// The processes that work in a folder or have one of its files open, with their names; as far as the system tells.
pub fn at_work(folder: &Path) -> Vec<String> {
    let inside = |link: PathBuf| std::fs::read_link(link).is_ok_and(|target| target.starts_with(folder));
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = process.path();
        let mut files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        if inside(process.join("cwd")) || files.any(|file| inside(file.path())) {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            found.push(format!("{} {}", process.display(), name.trim()));
        }
    }
    found
}

/// A process and all that it started, started by them, and so on.
pub fn family(process: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, parent))
        })
        .collect();
    let mut family = vec![process];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    family
}
