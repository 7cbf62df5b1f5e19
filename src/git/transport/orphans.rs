//! A `git` that goes on after its berth was killed: found by the working copy's lock, which is its standard
//! input, and ended with its helpers.
//!
//! Whatever it was doing is done again. Left at work it would write beside the next start.

use std::path::Path;

/// The means to end an orphan, from the mildest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    Patience,
    /// A `git` that is asked to end removes its locks first, also those at a remote of this machine.
    Request,
    Force,
}

/// Ends every orphan that holds the lock. False where a berth holds it, or where no holder is to be seen.
#[cfg(target_os = "linux")]
pub(super) fn end(lock: &Path, by: Means) -> bool {
    use rustix::process::Signal;
    let Some(holders) = holders(lock) else { return false };
    let signal = match by {
        Means::Patience => return !holders.is_empty(),
        Means::Request => Signal::TERM,
        Means::Force => Signal::KILL,
    };
    for pid in &holders {
        let Some(pid) = rustix::process::Pid::from_raw(*pid) else { continue };
        // Only `git` itself leads a group; a helper that has outlived it is ended alone.
        let _ = rustix::process::kill_process_group(pid, signal);
        let _ = rustix::process::kill_process(pid, signal);
    }
    !holders.is_empty()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end(_lock: &Path, _by: Means) -> bool {
    // Most exchanges end soon: without the system's help, waiting is all that can be done.
    true
}

/// The processes whose standard input is the lock. `None` where one has it open in another place only: a berth.
/// A `git` has it in both until it is loaded, which takes long on a busy machine.
#[cfg(target_os = "linux")]
fn holders(lock: &Path) -> Option<Vec<i32>> {
    let lock = std::fs::canonicalize(lock).ok()?;
    let own = std::process::id().to_string();
    let mut holders = Vec::new();
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().filter(|name| *name != own).and_then(|name| name.parse().ok()) else {
            continue;
        };
        let files = process.path().join("fd");
        let is_lock = |file: &Path| std::fs::read_link(file).is_ok_and(|target| target == lock);
        if is_lock(&files.join("0")) {
            holders.push(pid);
        } else if std::fs::read_dir(files).into_iter().flatten().flatten().any(|file| is_lock(&file.path())) {
            return None;
        }
    }
    Some(holders)
}
