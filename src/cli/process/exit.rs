//! Exit codes, the error type of commands, and the report of a panic, which is a bug with its own code.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo};

use berth_base::diag::{Diagnostics, harmless_lines};

/// The result of every command.
pub type Outcome = Result<Exit, CommandError>;

/// The exit codes of the process. They are part of the product: scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    /// The fleet has errors.
    Faulty,
    Usage,
    /// Differences or a failed proof, if requested to fail on them.
    Different,
    /// Lost the race for the rendered branch even after retries, or another syncer is at work.
    Raced,
    /// Held for approval.
    Held,
    /// A repository, remote or cluster is unreachable.
    Unreachable,
    /// Applied, but unhealthy, or not in sync in time.
    Unhealthy,
    /// A bug in berth.
    Bug,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Faulty => 1,
            Exit::Usage => 2,
            Exit::Different => 3,
            Exit::Raced => 4,
            Exit::Held => 5,
            Exit::Unreachable => 6,
            Exit::Unhealthy => 7,
            Exit::Bug => 70,
        }
    }

    /// Returns the more important of two codes.
    #[must_use]
    pub fn worst(self, other: Exit) -> Exit {
        const ORDER: [Exit; 9] = [
            Exit::Bug,
            Exit::Unreachable,
            Exit::Raced,
            Exit::Faulty,
            Exit::Held,
            Exit::Unhealthy,
            Exit::Different,
            Exit::Usage,
            Exit::Done,
        ];
        ORDER.into_iter().find(|exit| *exit == self || *exit == other).unwrap_or(self)
    }

    /// The last part of `--help`.
    pub const HELP: &'static str = "Exit codes:
   0  done
   1  the fleet has errors
   2  usage
   3  \
                                    differences or a failed proof, where asked to fail on them
   4  lost \
                                    the race for the rendered branch, after retries; another syncer holds \
                                    the lease
   5  held for approval, or suspended
   6  a repository, \
                                    remote or cluster cannot be reached
   7  applied but unhealthy, or not in sync in time
  70  \
                                    a bug in berth";
}

/// The failure of a command.
#[derive(Debug)]
pub struct CommandError {
    pub exit: Exit,
    pub message: String,
    pub hint: Option<String>,
}

impl CommandError {
    pub fn new(exit: Exit, message: impl Into<String>) -> CommandError {
        CommandError { exit, message: message.into(), hint: None }
    }

    pub fn usage(message: impl Into<String>) -> CommandError {
        CommandError::new(Exit::Usage, message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> CommandError {
        self.hint = Some(hint.into());
        self
    }

    /// Makes a file system error, with the failed action.
    pub fn io(doing: impl fmt::Display, error: &std::io::Error) -> CommandError {
        CommandError::new(Exit::Unreachable, format!("{doing}: {error}"))
    }
}

/// Refuses the first of these flags that is given. `place` names the context in which it has no effect.
pub fn refuse_flags(flags: &[(&str, bool)], place: &str, hint: &str) -> Result<(), CommandError> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(CommandError::usage(format!("{flag} has no effect {place}")).hint(hint)),
        None => Ok(()),
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", harmless_lines(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", harmless_lines(hint)),
            None => Ok(()),
        }
    }
}

/// Makes every panic of the process, on any thread, print its place.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(report));
}

/// Runs the program; a panic ends it with the code of a bug.
pub(crate) fn guarded(run: impl FnOnce() -> Exit) -> Exit {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or(Exit::Bug)
}

fn report(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
    let what = words(panic.payload());
    let mut text = format!(
        "error: {what}{place}\n  hint: this is a bug in berth, please report it with these lines and what you ran"
    );
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("\n{trace}"));
    }
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn words(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}

/// Returns the exit code for a fleet, which depends on whether it has errors.
pub(crate) fn exit_for(diagnostics: &Diagnostics) -> Exit {
    if diagnostics.has_errors() { Exit::Faulty } else { Exit::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_remote_outranks_a_faulty_fleet() {
        assert_eq!(Exit::Faulty.worst(Exit::Unreachable), Exit::Unreachable);
        assert_eq!(Exit::Done.worst(Exit::Held), Exit::Held);
        assert_eq!(Exit::Faulty.worst(Exit::Held), Exit::Faulty);
    }

    #[test]
    fn the_help_names_every_code() {
        for exit in [Exit::Done, Exit::Raced, Exit::Held, Exit::Unhealthy, Exit::Bug] {
            assert!(Exit::HELP.contains(&format!("{:>4}  ", exit.code())));
        }
    }

    #[test]
    fn a_panic_ends_with_the_code_of_a_bug() {
        assert_eq!(guarded(|| Exit::Faulty), Exit::Faulty);
        assert_eq!(guarded(|| std::panic::resume_unwind(Box::new("on purpose"))), Exit::Bug);
        assert_eq!(words(&"on purpose"), "on purpose");
    }
}
