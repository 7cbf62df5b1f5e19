//! A `git` that goes on after its berth was killed: found by the working copy's lock, which is its standard
//! input, and ended with its helpers.
//!
//! Whatever it was doing is done again. Left at work it would write beside the next start.

use std::path::Path;

/// Ends every orphan that holds the lock, or waits for it without force. False where a berth holds it, or where no holder is to be seen.
#[cfg(target_os = "linux")]
pub(super) fn end(lock: &Path, by_force: bool) -> bool {
    let Some(holders) = holders(lock) else { return false };
    for pid in holders.iter().filter(|_| by_force) {
        let Some(pid) = rustix::process::Pid::from_raw(*pid) else { continue };
        // Only `git` itself leads a group; a helper that has outlived it is ended alone.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    !holders.is_empty()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end(_lock: &Path, _by_force: bool) -> bool {
    // Most exchanges end soon: without the system's help, waiting is all that can be done.
    true
}

/// The processes whose standard input is the lock. `None` where one has it open otherwise: a berth.
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
        for file in std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            if std::fs::read_link(file.path()).is_ok_and(|target| target == lock) {
                if file.file_name() != "0" {
                    return None;
                }
                holders.push(pid);
            }
        }
    }
    Some(holders)
}
