//! The environment of one command: its arguments, variables, streams and clock.
//!
//! A command depends only on these, so that a test can run it without a separate process. Only [`Shell::of_process`]
//! reads them from the process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{IsTerminal as _, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use berth_base::model::Timestamp;

/// A stream with several writers.
pub type Stream = Arc<Mutex<dyn Write + Send>>;

/// Everything that a command depends on.
pub struct Shell {
    /// The arguments, without the program's name.
    pub arguments: Vec<OsString>,
    pub environment: Environment,
    pub streams: Streams,
    pub clock: Clock,
}

/// The clock of a command.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    OfMachine,
    /// A fixed moment.
    At(Timestamp),
}

impl Clock {
    pub fn now(self) -> Timestamp {
        match self {
            Clock::OfMachine => Timestamp::now(),
            Clock::At(moment) => moment,
        }
    }
}

/// The variables that a command sees.
#[derive(Clone, Debug)]
pub enum Environment {
    /// The variables of the process.
    Process,
    /// Only these variables. Code that connects to servers or starts programs (remotes, registries, kubeconfigs)
    /// still reads the variables of the process.
    Given(BTreeMap<String, OsString>),
}

/// The streams of a command, and whether each is a terminal.
#[derive(Clone)]
pub struct Streams {
    pub input: Arc<Mutex<dyn Read + Send>>,
    pub out: Stream,
    pub err: Stream,
    pub out_is_terminal: bool,
    pub err_is_terminal: bool,
}

impl Shell {
    /// Returns the environment of this process.
    pub(crate) fn of_process() -> Shell {
        let streams = Streams {
            input: Arc::new(Mutex::new(std::io::stdin())),
            out: Arc::new(Mutex::new(std::io::stdout())),
            err: Arc::new(Mutex::new(std::io::stderr())),
            out_is_terminal: std::io::stdout().is_terminal(),
            err_is_terminal: std::io::stderr().is_terminal(),
        };
        let arguments = std::env::args_os().skip(1).collect();
        Shell { arguments, environment: Environment::Process, streams, clock: Clock::OfMachine }
    }
}

impl Environment {
    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<OsString> {
        match self {
            Environment::Process => std::env::var_os(name),
            Environment::Given(variables) => variables.get(name).cloned(),
        }
    }

    /// Returns all variables that are text.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |value: &OsStr| value.to_str().map(str::to_owned);
        match self {
            Environment::Process => {
                std::env::vars_os().filter_map(|(name, value)| Some((text(&name)?, text(&value)?))).collect()
            }
            Environment::Given(variables) => {
                variables.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
            }
        }
    }

    /// Adds the flags for given variables. clap itself reads only the process's variables.
    pub(crate) fn with_flags(
        &self,
        mut arguments: Vec<OsString>,
        program: impl FnOnce() -> clap::Command,
    ) -> Vec<OsString> {
        let Environment::Given(variables) = self else { return arguments };
        let mut program = program();
        // Before this, subcommands do not know global flags.
        program.build();
        let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
        let mut command = &program;
        for argument in &arguments[..end] {
            command = argument.to_str().and_then(|name| command.find_subcommand(name)).unwrap_or(command);
        }
        let flags: Vec<OsString> = command
            .get_arguments()
            .filter(|flag| !arguments[..end].iter().any(|argument| names(argument, flag)))
            .filter_map(|flag| as_flag(flag, variables.get(flag.get_env()?.to_str()?)?))
            .collect();
        arguments.splice(end..end, flags);
        arguments
    }
}

/// Reports whether an argument sets this flag.
fn names(argument: &OsStr, flag: &clap::Arg) -> bool {
    let Some(text) = argument.to_str() else { return false };
    let long = text.strip_prefix("--").map(|long| long.split('=').next().unwrap_or_default());
    let short = text.strip_prefix('-').and_then(|short| short.chars().next());
    (long.is_some() && long == flag.get_long()) || (short.is_some() && short == flag.get_short())
}

/// Returns the argument with the effect of a variable's value.
fn as_flag(flag: &clap::Arg, value: &OsStr) -> Option<OsString> {
    let mut argument = OsString::from(format!("--{}", flag.get_long()?));
    if flag.get_action().takes_values() {
        argument.push("=");
        argument.push(value);
        return Some(argument);
    }
    let is_false =
        ["", "n", "no", "f", "false", "off", "0"].iter().any(|word| value.eq_ignore_ascii_case(word));
    (!is_false).then_some(argument)
}

impl Streams {
    /// Returns streams that are empty, and drop what is written.
    pub(crate) fn nowhere() -> Streams {
        Streams {
            input: Arc::new(Mutex::new(std::io::empty())),
            out: Arc::new(Mutex::new(std::io::sink())),
            err: Arc::new(Mutex::new(std::io::sink())),
            out_is_terminal: false,
            err_is_terminal: false,
        }
    }

    /// Writes to the standard output, and adds a missing newline.
    pub(crate) fn print(&self, text: &str) -> std::io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Writes to the standard output.
    pub(crate) fn print_exactly(&self, text: &str) -> std::io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes a line to the standard error.
    pub(crate) fn complain(&self, text: &str) -> std::io::Result<()> {
        let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(err, "{text}")
    }
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terminals = (self.out_is_terminal, self.err_is_terminal);
        f.debug_struct("Streams").field("terminals", &terminals).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_flags(variables: &[(&str, &str)], arguments: &[&str]) -> Vec<String> {
        let given = variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
        let environment = Environment::Given(given.collect());
        let arguments = arguments.iter().map(OsString::from).collect();
        let all = environment.with_flags(arguments, crate::commands::command_line);
        all.into_iter().map(|argument| argument.into_string().expect("text")).collect()
    }

    #[test]
    fn a_given_variable_is_the_flag_that_it_stands_for() {
        let limit = [("BERTH_MAX_REMOVED_CLUSTERS", "100%"), ("UNKNOWN", "x")];
        assert_eq!(with_flags(&limit, &["run", "--once"]), ["run", "--once", "--max-removed-clusters=100%"]);
        assert_eq!(with_flags(&limit, &["validate"]), ["validate"]);
        assert_eq!(
            with_flags(&limit, &["run", "--max-removed-clusters", "3"]),
            ["run", "--max-removed-clusters", "3"]
        );
    }

    #[test]
    fn a_switch_is_set_by_whatever_is_not_false() {
        let switch = |value| with_flags(&[("BERTH_ALLOW_RISKY_REMOVALS", value)], &["run"]).len() == 2;
        assert!(switch("true") && switch("1"));
        assert!(!switch("") && !switch("false") && !switch("No") && !switch("0"));
    }
}
