//! Runs berth's commands in the test's own process: the same function as the binary's, with streams and variables of
//! the test.
//!
//! What reads the process's own variables or signals runs as the real binary all the same: remotes, registries,
//! clusters, and whatever runs until it is stopped. `BERTH_TEST_BINARY` has everything run as that binary.

use std::ffi::OsString;
use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

use berth_cli::process::shell::{Clock, Environment, Shell, Streams};

use super::{Ran, berth, record, results};

/// The commands that are functions of files, repositories and arguments alone.
const COMMANDS: [&str; 28] = [
    "completions",
    "cordon",
    "decide",
    "describe",
    "diff",
    "disable",
    "enable",
    "explain",
    "federate",
    "init",
    "label",
    "man",
    "orphan",
    "plan",
    "render",
    "rollout",
    "run",
    "schema",
    "status",
    "sync",
    "taint",
    "test",
    "uncordon",
    "validate",
    "verify",
    "wait",
    "--help",
    "--version",
];

/// The beginnings of flags that lead to servers.
const SERVERS: [&str; 7] =
    ["--remote", "--source-remote", "--status-remote", "--artifact", "--kube", "--hub", "--target=kube"];

/// The main thread of a process has as much.
const STACK: usize = 8 << 20;

/// Runs berth with these arguments and variables.
pub fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    if !is_for_this_process(arguments) {
        return Ran::of(berth().args(arguments).envs(variables.iter().copied()));
    }
    run_here(arguments, variables, Clock::OfMachine)
}

/// Runs berth by another clock.
pub fn run_by(clock: Clock, arguments: &[&str]) -> Ran {
    run_here(arguments, &[], clock)
}

fn run_here(arguments: &[&str], variables: &[(&str, &str)], clock: Clock) -> Ran {
    let (out, err) = (Kept::default(), Kept::default());
    let streams = Streams {
        input: Arc::new(Mutex::new(Cursor::new(Vec::new()))),
        out: Arc::new(Mutex::new(out.clone())),
        err: Arc::new(Mutex::new(err.clone())),
        out_is_terminal: false,
        err_is_terminal: false,
    };
    let given = variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
    let shell = Shell {
        arguments: arguments.iter().map(OsString::from).collect(),
        environment: Environment::Given(given.collect()),
        streams,
        clock,
    };
    let thread = std::thread::Builder::new().stack_size(STACK);
    let running = thread.spawn(move || berth_cli::commands::run(&shell)).expect("a thread");
    let code = running.join().expect("panics are caught");
    record::ran_here(arguments, i32::from(code));
    results::checked(Ran { code: i32::from(code), out: out.text(), err: err.text() })
}

fn is_for_this_process(arguments: &[&str]) -> bool {
    let has = |flag: &str| arguments.contains(&flag);
    let leads_to_server =
        arguments.iter().any(|argument| SERVERS.iter().any(|flag| argument.starts_with(flag)));
    let command = arguments.first().copied().unwrap_or_default();
    std::env::var_os("BERTH_TEST_BINARY").is_none()
        && COMMANDS.contains(&command)
        && !leads_to_server
        && !has("--watch")
        && (has("--once") || has("--help") || !["run", "sync"].contains(&command))
}

/// A stream that keeps what is written.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(bytes.clone()).expect("berth writes text")
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
