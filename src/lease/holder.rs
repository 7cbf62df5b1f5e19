//! The name of a process in a lease, and the check whether a holder is an ended process of this machine.
//!
//! `<host>_<place>_<pid>-<start>`: the place is a digest of the process table (this boot, this PID namespace), so
//! that a PID is looked up only in its own table. On other machines, without `/proc`, and for hidden processes, a
//! holder never counts as ended: that requires evidence.

use std::fs;

use berth_base::backoff::chance;
use berth_base::text::hex;
use sha2::{Digest, Sha256};

/// Returns the holder name of this process.
pub fn of_this_process() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let fine = |it: &char| it.is_ascii_alphanumeric() || ['-', '.'].contains(it);
    let host: String = host.trim().chars().filter(fine).take(100).collect();
    let pid = std::process::id();
    match (place(), start_of(pid)) {
        (Some(place), Some(start)) => format!("{host}_{place}_{pid}-{start}"),
        _ => format!("{host}__{pid}-{:016x}", chance()),
    }
}

/// Reports whether the holder is a process of this machine that has ended.
pub fn has_ended(holder: &str) -> bool {
    let Some((rest, process)) = holder.rsplit_once('_') else { return false };
    let Some(there) = rest.rsplit_once('_').map(|(_, place)| place).filter(|it| !it.is_empty()) else {
        return false;
    };
    let Some((pid, start)) = process.split_once('-') else { return false };
    let (Ok(pid), Some(here)) = (pid.parse::<u32>(), place()) else { return false };
    there == here
        && match stat_of(pid) {
            Some(stat) => start_in(&stat) != Some(start),
            // `/proc` may hide other users' processes.
            None => !exists(pid),
        }
}

fn place() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let digest = Sha256::digest(format!("{}\0{}", boot.trim(), namespace.display()));
    Some(hex(&digest[..6]))
}

/// Returns a process's start, in ticks since the boot. `None` if it has ended, is a zombie, or is hidden.
fn start_of(pid: u32) -> Option<String> {
    start_in(&stat_of(pid)?).map(str::to_owned)
}

fn stat_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// Returns a process's start, unless it has ended.
fn start_in(stat: &str) -> Option<&str> {
    // The process name, in brackets, may contain anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next().filter(|state| !["Z", "X"].contains(state));
    state.and(fields.nth(18))
}

/// Reports whether the process exists, even if this one may not inspect it.
#[cfg(unix)]
fn exists(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn exists(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_this_machine_that_is_gone_has_ended() {
        let me = of_this_process();
        assert!(!has_ended(&me), "{me}");
        for other in ["", "pod-1_123", "a_b_c", "host__12-34", "host_0123456789ab_999999999-1"] {
            assert!(!has_ended(other), "{other}");
        }
        if let (Some(place), Some(start)) = (place(), start_of(std::process::id())) {
            assert!(has_ended(&format!("any_{place}_999999999-1")));
            assert!(
                has_ended(&format!("any_{place}_{}-{start}0", std::process::id())),
                "a number used again"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_process_exists_whether_it_may_be_looked_at_or_not() {
        assert!(exists(1) && exists(std::process::id()));
        assert!(!exists(999_999_999) && !exists(u32::MAX));
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_nobody_reaped_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let Some(start) = start_of(child.id()) else {
            let _ = child.wait();
            return;
        };
        let holder = format!("x_{}_{}-{start}", place().unwrap(), child.id());
        while !has_ended(&holder) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(&holder));
    }
}
