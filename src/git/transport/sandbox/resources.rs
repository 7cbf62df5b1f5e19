//! Memory, processor time and the length of files, by limits of each process.

use std::process::Child;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::Bounds;

/// Limits a process that was just started. Memory is counted as it is taken, so that packs of any size are read.
pub(super) fn limit(child: &Child, bounds: &Bounds) {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let limits = [
        (Resource::Data, bounds.limits.memory),
        (Resource::Fsize, bounds.limits.file),
        (Resource::Cpu, bounds.time.as_secs().max(1).saturating_mul(cores)),
        // An image of its memory would hold credentials.
        (Resource::Core, 0),
    ];
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        limit_family(pid, &limits);
    }
}

/// Limits a process, then those that it started before: later ones inherit its limits.
fn limit_family(pid: Pid, limits: &[(Resource, u64)]) {
    for (resource, most) in limits {
        let own = getrlimit(*resource);
        let least = [Some(*most), own.current, own.maximum].into_iter().flatten().min();
        // It may have ended already.
        let _ = prlimit(Some(pid), *resource, Rlimit { current: least, maximum: least });
    }
    let number = pid.as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
    for child in children.unwrap_or_default().split_whitespace() {
        if let Some(child) = child.parse().ok().and_then(Pid::from_raw) {
            limit_family(child, limits);
        }
    }
}
