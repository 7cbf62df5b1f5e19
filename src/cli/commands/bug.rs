//! Reports a bug in berth: its place, a request to report it, and an exit code of its own.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo};

use super::exit::Exit;

/// From now on every panic of the process, on any thread, says where it was.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(say));
}

/// Runs the program; a panic ends it with the code of a bug.
pub(crate) fn guarded(run: impl FnOnce() -> Exit) -> Exit {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or(Exit::Bug)
}

fn say(panic: &PanicHookInfo<'_>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_with_the_code_of_a_bug() {
        assert_eq!(guarded(|| Exit::Faulty), Exit::Faulty);
        assert_eq!(guarded(|| std::panic::resume_unwind(Box::new("on purpose"))), Exit::Bug);
        assert_eq!(words(&"on purpose"), "on purpose");
    }
}
