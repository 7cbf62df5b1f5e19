//! The bounds of a `git` and its helpers: what they may read, write, run and reach, and how much they may take.
//!
//! A server's answers are read by programs that berth did not write. Whatever such an answer makes them do, they can
//! write only the repositories that the exchange is about, and speak to nobody but the remote.
//!
//! Landlock and seccomp bind a thread and what it starts. So a thread of its own takes the bounds, starts `git`
//! and ends; berth itself stays free. Limits of memory bind a process: a shell takes them and becomes `git`.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod resources;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(super) use resources::limited;

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

/// When `git` runs in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// As far as the system offers one.
    Auto,
    /// Only in one: without it, `git` does not run.
    Always,
    Never,
}

/// The bounds of one exchange.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub limits: Limits,
    /// The files and folders that are read, beside those of the system.
    pub reads: Vec<PathBuf>,
    /// The folders that are written. No program in them can be run.
    pub writes: Vec<PathBuf>,
    /// The folders that are written and whose programs are run: hooks of a remote of this machine.
    pub runs: Vec<PathBuf>,
    /// The TCP ports that are spoken to. Where there are none, there is no network, and everything may be read.
    pub ports: BTreeSet<u16>,
    /// The time for all of it.
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
    /// Tries which parts of a sandbox `git` gets.
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
            let message = "this system offers no whole sandbox, and one is asked for";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        command.spawn()
    })
}

/// A program that takes what it likes: no limits are set on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn limited(program: &str, _limits: Limits, _time: Duration) -> Command {
    Command::new(program)
}

/// Does something in a thread of its own, whose bounds end with it.
fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("git".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it ended early")))
    })
}

/// Binds this thread, and whatever it starts.
#[cfg(target_os = "linux")]
fn enter(bounds: &Bounds) -> io::Result<Offered> {
    let (files, ports) = files::enter(bounds)?;
    let calls = calls::enter(!bounds.ports.is_empty());
    Ok(Offered { files, ports, calls })
}

#[cfg(not(target_os = "linux"))]
fn enter(_bounds: &Bounds) -> io::Result<Offered> {
    Ok(Offered::default())
}
