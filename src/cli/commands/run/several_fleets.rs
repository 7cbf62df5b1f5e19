//! `berth run --fleets`: the daemons of several fleets in one process, each on its own thread.
//!
//! A fleet whose flags, files or remote are invalid is retried with growing pauses, as after a panic. The other
//! fleets continue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use tracing::{error, info, info_span};

use crate::commands::run::{self, RunArgs};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::backoff::{Backoff, chance};
use berth_base::meta::names::is_dns_subdomain;
use berth_hub::daemon::Stop;

const PAUSES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Runs all daemons until the process is asked to stop.
pub(crate) fn run(folder: &Path) -> Outcome {
    refuse_others(std::env::args().skip(1))?;
    let fleets = fleets(folder)?;
    let failed = |error| CommandError::io("listening for signals", &error);
    let stop = Stop::on_signals().map_err(failed)?;
    std::thread::scope(|scope| {
        for (name, file) in &fleets {
            let stop = stop.clone();
            let thread = std::thread::Builder::new().name(name.clone());
            let started = thread.spawn_scoped(scope, move || keep_running(name, file, stop));
            started.map_err(|error| CommandError::io("starting a thread", &error))?;
        }
        Ok(Exit::Done)
    })
}

/// Refuses flags that would be ignored.
fn refuse_others(arguments: impl Iterator<Item = String>) -> Result<(), CommandError> {
    const OF_THE_PROCESS: [&str; 5] = ["--fleets", "--log-format", "--color", "--quiet", "--verbose"];
    for argument in arguments.filter(|argument| argument.starts_with("--")) {
        let flag = argument.split('=').next().unwrap_or_default();
        if !OF_THE_PROCESS.contains(&flag) {
            let error = CommandError::usage(format!("`{flag}` has no effect beside `--fleets`"));
            return Err(error.hint("write it into the file of each fleet that it is for"));
        }
    }
    Ok(())
}

/// Returns the fleets of a folder with their files. Names that begin with a dot are ignored.
fn fleets(folder: &Path) -> Result<Vec<(String, PathBuf)>, CommandError> {
    let failed = |error| CommandError::io(format!("reading `{}`", folder.display()), &error);
    let mut fleets = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || path.is_dir() {
            continue;
        }
        if !is_dns_subdomain(&name) {
            let error = CommandError::usage(format!("`{}` is no name of a fleet", path.display()));
            return Err(error.hint("use lower-case letters, digits, dashes and dots"));
        }
        fleets.push((name, path));
    }
    fleets.sort();
    if fleets.is_empty() {
        let error = CommandError::usage(format!("no file in `{}` describes a fleet", folder.display()));
        return Err(
            error.hint("write a file for each fleet, such as `shop`, with `--remote URL` and more flags")
        );
    }
    Ok(fleets)
}

/// Runs the daemon of one fleet, and restarts it if it ends by itself.
fn keep_running(name: &str, file: &Path, mut stop: Stop) {
    let _in = info_span!("fleet", fleet = name).entered();
    let mut failures: u32 = 0;
    loop {
        let attempt = || run::watch(&flags(file)?, stop.clone(), true, || info!("starting"));
        match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(())) => return,
            Ok(Err(CommandError { message, hint, .. })) => {
                error!(error = message, hint, "this fleet cannot be served; the others continue");
            }
            Err(_) => error!("this fleet's daemon crashed, a bug in berth; the others continue"),
        }
        failures = failures.saturating_add(1);
        match stop.within(PAUSES.jittered(failures, chance())) {
            Ok(false) => {}
            Ok(true) => return,
            Err(problem) => return error!(error = %problem, "the daemon of this fleet has ended for good"),
        }
    }
}

/// Reads the flags of a fleet: one per line, with its value after a space. Ignores empty lines and comments.
fn flags(file: &Path) -> Result<RunArgs, CommandError> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| CommandError::io(format!("reading `{shown}`"), &error))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let words = lines.flat_map(|line| match line.split_once(char::is_whitespace) {
        Some((flag, value)) => vec![flag, value.trim_start()],
        None => vec![line],
    });
    let command =
        RunArgs::augment_args(clap::Command::new("run").no_binary_name(true).disable_help_flag(true));
    let read = command.try_get_matches_from(words).and_then(|found| RunArgs::from_arg_matches(&found));
    let args = read.map_err(|error| {
        // The rest of the message is about the command line.
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        CommandError::usage(format!("the flags in `{shown}` cannot be used: {why}"))
    })?;
    if args.is_for_one_remote() {
        return Ok(args);
    }
    let error =
        CommandError::usage(format!("the flags in `{shown}` cannot be used: a fleet needs its remote"));
    Err(error.hint("name it with `--remote`; `--once` and `--fleets` have no place there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<RunArgs, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("a file");
        flags(file.path()).map_err(|error| error.message)
    }

    #[test]
    fn a_file_has_a_flag_on_each_line() {
        assert!(
            of("# ours\n--remote /srv/fleet.git\n\n  --poll   5\n--first\n--identity A B <a@b.c>\n").is_ok()
        );
        for (text, why) in [
            ("--pol 5\n", "unexpected argument"),
            ("--poll 5\n", "a fleet needs its remote"),
            ("--remote /a\n--once\n", "a fleet needs its remote"),
            ("--remote /a\n--fleets /b\n", "a fleet needs its remote"),
        ] {
            let said = of(text).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
