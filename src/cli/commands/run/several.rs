//! Several daemons. `berth run --fleets`: those of several fleets in one process, each on its own thread. And the flags of
//! a daemon that is one of several for the same fleet: the place of their lease.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use tracing::{error, info, info_span};

use crate::commands::run::{self, RunArgs};
use crate::flags::remote::RemoteArgs;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::backoff::{Backoff, chance};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain};
use berth_git::Identity;
use berth_git::shared_refs::Refs;
use berth_hub::daemon::{LeaseRef, Standby, Stop, lease_within};
use berth_member::cluster_lease::ClusterLease;
use berth_member::live::Access;

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

/// The standby of daemons
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Standby")]
pub(crate) struct StandbyArgs {
    /// Publish only while this daemon has the lease, so that of several one works: `git` for `refs/berth/leader` of the remote, or a Kubernetes Lease, as `lease/NAMESPACE/NAME`. `--once` asks for none
    #[arg(long, value_name = "LEASE", env = "BERTH_STANDBY")]
    standby: Option<LeasePlace>,
    /// Seconds within which another daemon takes over from one that no longer renews the lease
    #[arg(long, value_name = "SECONDS", default_value_t = 60, env = "BERTH_LEASE_DURATION", value_parser = clap::value_parser!(u64).range(4..=3600))]
    lease_duration: u64,
}

/// The place of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LeasePlace {
    Remote,
    Cluster { namespace: String, name: String },
}

impl FromStr for LeasePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<LeasePlace, String> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            ["git"] => Ok(LeasePlace::Remote),
            ["lease", namespace, name] if is_dns_label(namespace) && is_dns_subdomain(name) => {
                Ok(LeasePlace::Cluster { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("write it as `git` or `lease/NAMESPACE/NAME`".to_owned()),
        }
    }
}

impl StandbyArgs {
    /// Opens the place of the lease, if this daemon is one of several. `copy` is the working copy of the remote, and
    /// `access` is for the cluster with the Lease.
    pub fn open(
        &self,
        remote: &RemoteArgs,
        copy: Option<&Path>,
        identity: &Identity,
        access: Access,
    ) -> Result<Option<Standby>, CommandError> {
        let Some(place) = &self.standby else { return Ok(None) };
        let Some(copy) = copy else {
            let error = CommandError::usage("`--standby` needs a remote, which the daemons share");
            return Err(error.hint("name it with `--remote`"));
        };
        let lease = lease_within(Duration::from_secs(self.lease_duration));
        let standby = match place {
            LeasePlace::Remote => {
                let (transport, copy) = remote.open_beside(copy, "lease", lease.patience())?;
                let name = Refs::default().leader;
                Standby::new(LeaseRef::new(Box::new(transport), copy, &name, identity.clone()), lease)
            }
            LeasePlace::Cluster { namespace, name } => {
                let store = ClusterLease::connect(&access, namespace, name, lease.patience());
                let store = store.map_err(|error| {
                    let failed = CommandError::new(Exit::Unreachable, error.to_string());
                    error.hint().into_iter().fold(failed, CommandError::hint)
                })?;
                Standby::new(store, lease)
            }
        };
        Ok(Some(standby))
    }
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

    #[test]
    fn a_lease_is_in_git_or_has_a_namespace_and_a_name() {
        assert_eq!("git".parse(), Ok(LeasePlace::Remote));
        let (namespace, name) = ("berth-hub".to_owned(), "berth-hub".to_owned());
        assert_eq!("lease/berth-hub/berth-hub".parse(), Ok(LeasePlace::Cluster { namespace, name }));
        for bad in ["", "Git", "lease", "lease/a", "lease/a/B", "lease//b", "lease/a/b/c", "git/a/b"] {
            assert!(bad.parse::<LeasePlace>().is_err(), "{bad}");
        }
    }
}
