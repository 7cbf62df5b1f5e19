//! The bounds of a `git` and its helpers: what they may read, write, run and reach, and how much memory and time they
//! get.
//!
//! Programs that berth did not write parse a server's answers. Even if an answer takes them over, they can write only
//! the repositories of the exchange, and connect only to the remote.
//!
//! The renderer of charts gets the tightest bounds: it reads programs and libraries, and reaches nothing else.
//!
//! Landlock and seccomp restrict a thread and its children. So a separate thread enters the sandbox, starts `git` and
//! ends; berth itself stays unrestricted. Memory limits apply to a process: a shell sets them and becomes `git`.

#[cfg(target_os = "linux")]
mod linux;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(super) use linux::limited;

/// The limits of every `git`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sandbox: Sandbox,
    /// The bytes of memory that one process may take.
    pub memory: u64,
    /// The bytes of the longest file that one process may write.
    pub file: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sandbox: Sandbox::Auto, memory: 2 << 30, file: 16 << 30 }
    }
}

/// The condition for running `git` in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// As far as the system supports it.
    Auto,
    /// Always: `git` does not run without one.
    Always,
    Never,
}

/// The bounds of one exchange.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub limits: Limits,
    /// The readable files and folders, besides those of the system.
    pub reads: Vec<PathBuf>,
    /// The writable folders, whose programs cannot run.
    pub writes: Vec<PathBuf>,
    /// The writable folders whose programs can run: hooks of a remote on this machine.
    pub runs: Vec<PathBuf>,
    /// The TCP ports that may be connected to. Empty: no network, and everything is readable.
    pub ports: BTreeSet<u16>,
    /// The time limit of the exchange.
    pub time: Duration,
}

impl Bounds {
    /// The bounds of work that needs no repository and no network.
    pub fn nothing(limits: Limits, time: Duration) -> Bounds {
        let (reads, writes, runs, ports) = Default::default();
        Bounds { limits, reads, writes, runs, ports, time }
    }
}

/// The parts of a sandbox that this system offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    pub files: bool,
    pub ports: bool,
    pub calls: bool,
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(self.files, "files"), (self.ports, "ports"), (self.calls, "system calls")];
        let offered: Vec<&str> = parts.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
        f.write_str(&if offered.is_empty() { "none".to_owned() } else { offered.join(", ") })
    }
}

impl Limits {
    /// Finds out which parts of a sandbox `git` gets, by trying.
    pub fn offered(self) -> Offered {
        if self.sandbox == Sandbox::Never {
            return Offered::default();
        }
        let bounds = Bounds::nothing(self, Duration::ZERO);
        in_a_thread(|| enter(&bounds)).unwrap_or_default()
    }
}

/// Starts a command within bounds.
pub(super) fn start(command: &mut Command, bounds: &Bounds) -> io::Result<Child> {
    if bounds.limits.sandbox == Sandbox::Never {
        return command.spawn();
    }
    in_a_thread(|| {
        let entered = enter(bounds)?;
        if bounds.limits.sandbox == Sandbox::Always && !(entered.files && entered.calls) {
            let message = "this system offers no complete sandbox, which `--git-sandbox always` requires";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        command.spawn()
    })
}

/// Starts a program that needs nothing but its standard streams: no file, no network, no other process. `memory` limits
/// the bytes that it may allocate. On systems without these bounds, the program starts without them.
pub fn start_closed(command: &mut Command, program: &Path, memory: u64) -> io::Result<Child> {
    let child = in_a_thread(|| {
        close(program)?;
        command.spawn()
    })?;
    #[cfg(target_os = "linux")]
    linux::limit(&child, memory);
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
    Ok(child)
}

/// Returns the program without limits, which this system does not support.
#[cfg(not(target_os = "linux"))]
pub(super) fn limited(program: &str, _limits: Limits, _time: Duration) -> Command {
    Command::new(program)
}

/// Runs `work` in a separate thread, so that its restrictions end with the thread.
fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("git".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it ended early")))
    })
}

/// Restricts this thread and its children.
#[cfg(target_os = "linux")]
fn enter(bounds: &Bounds) -> io::Result<Offered> {
    let (files, ports) = linux::restrict_files(bounds)?;
    let calls = linux::block_calls(!bounds.ports.is_empty());
    Ok(Offered { files, ports, calls })
}

/// Takes everything but programs and libraries from this thread and its children.
#[cfg(target_os = "linux")]
fn close(program: &Path) -> io::Result<()> {
    linux::close_files(program)?;
    linux::block_calls(false);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn close(_program: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn enter(_bounds: &Bounds) -> io::Result<Offered> {
    Ok(Offered::default())
}
