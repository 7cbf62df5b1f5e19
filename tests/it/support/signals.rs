//! Signals to processes that a test started. The tests need no program `kill`, which a small machine does not have.

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

/// Sends a signal to a process. Returns whether the process got it.
pub fn send(signal: Signal, process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| kill_process(process, signal).is_ok())
}
