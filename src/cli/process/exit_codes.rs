//! Exit codes and hints of the libraries' errors, and of faults in the arguments.
//!
//! Nothing else assigns them, so that an error gives every command the same code.

use super::exit::{CommandError, Exit};
use berth_base::model::ContentError;
use berth_forge::{EnvironmentError, ForgeError};
use berth_git::GitError;
use berth_git::transport::TransportError;
use berth_hub::daemon::{DaemonError, PassError};
use berth_hub::inputs::InputError;
use berth_hub::next_commit::NextCommitError;
use berth_hub::publish::PublishError;
use berth_member::live::LiveError;
use berth_member::sync::backends::{BackendError, NotAdmitted};
use berth_member::sync::cluster_folder::FolderError;
use berth_member::sync::teardown::TeardownError;
use berth_member::sync::{ApplyError, SyncError};

fn of_git(error: &GitError) -> Exit {
    match error {
        error if error.is_race() => Exit::Raced,
        GitError::NoSuchRevision { .. } | GitError::InvalidRef { .. } => Exit::Usage,
        GitError::TooLarge { .. } => Exit::Faulty,
        _ => Exit::Unreachable,
    }
}

fn of_publish(error: &PublishError) -> Exit {
    match error {
        PublishError::Raced { .. } => Exit::Raced,
        PublishError::Git(error) => of_git(error),
        // The others are refusals, which a person must resolve.
        _ => Exit::Held,
    }
}

fn of_reading(error: &InputError) -> Exit {
    match error {
        InputError::Git(error) => of_git(error),
        InputError::Publish(error) => of_publish(error),
        InputError::Folder(_)
        | InputError::Content(_)
        | InputError::NoRules { .. }
        | InputError::NoState { .. }
        | InputError::NoRemote { .. }
        | InputError::Gone(_)
        | InputError::CutOff { .. }
        | InputError::NotRendered { .. }
        | InputError::Outdated { .. } => Exit::Unreachable,
        InputError::NoSuchState { .. } => Exit::Usage,
        InputError::FutureCommit { .. } => Exit::Held,
    }
}

fn of_next_commit(error: &NextCommitError) -> Exit {
    match error {
        NextCommitError::Git(error) => of_git(error),
        NextCommitError::Publish(error) => of_publish(error),
        NextCommitError::Inputs(error) => of_reading(error),
        NextCommitError::Content(_) => Exit::Unreachable,
        NextCommitError::Rewound { .. } => Exit::Held,
    }
}

fn of_pass(error: &PassError) -> Exit {
    match error {
        PassError::NextCommit(error) => of_next_commit(error),
        PassError::SourceIsRendered(_) | PassError::NoSuchSource { .. } | PassError::OtherBranch { .. } => {
            Exit::Usage
        }
        PassError::RenderedRewound { .. } | PassError::Untrusted(_) => Exit::Held,
        PassError::Proof(_) => Exit::Unreachable,
        PassError::Remote(error) => of_transport(error),
        PassError::NoSource(_) => Exit::Unreachable,
        PassError::LeaseEnded => Exit::Raced,
    }
}

fn of_transport(error: &TransportError) -> Exit {
    match error {
        TransportError::Raced { .. } | TransportError::Locked { .. } => Exit::Raced,
        TransportError::Setting { .. } => Exit::Usage,
        TransportError::Wrong { .. } => Exit::Held,
        _ => Exit::Unreachable,
    }
}

fn of_fetch(error: &FolderError) -> Exit {
    match error {
        FolderError::Git(error) => of_git(error),
        FolderError::NotOurs { .. } | FolderError::TooLarge { .. } => Exit::Held,
        FolderError::NoFolder { .. } => Exit::Unreachable,
    }
}

fn of_sync(error: &ApplyError) -> Exit {
    match error {
        ApplyError::Backend(_) => Exit::Unreachable,
        _ => Exit::Held,
    }
}

fn of_round(error: &SyncError) -> (Exit, Option<String>) {
    match error {
        SyncError::Folder(error) => (of_fetch(error), error.hint()),
        SyncError::Apply(error) => (of_sync(error), error.hint().map(str::to_owned)),
        SyncError::Overrides(_) => (Exit::Faulty, None),
        SyncError::Refresh(_) => (Exit::Unreachable, None),
        SyncError::Refused(_) => (Exit::Held, None),
        SyncError::NotAdmitted(error) => of_admission(error),
    }
}

fn of_admission(error: &NotAdmitted) -> (Exit, Option<String>) {
    match error {
        NotAdmitted::Standby(_) => (
            Exit::Raced,
            Some(
                "wait for the other syncer, or use `--no-lease` if nothing else writes to \
                                the cluster"
                    .to_owned(),
            ),
        ),
        NotAdmitted::Trouble(_) => (Exit::Unreachable, None),
    }
}

impl From<TeardownError> for CommandError {
    fn from(error: TeardownError) -> CommandError {
        let (exit, hint) = match &error {
            TeardownError::NotAdmitted(error) => of_admission(error),
            TeardownError::Apply(error) => (of_sync(error), error.hint().map(str::to_owned)),
            TeardownError::Backend(_) => (Exit::Unreachable, None),
        };
        CommandError { exit, message: error.to_string(), hint }
    }
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> CommandError {
        CommandError { exit: of_git(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<PublishError> for CommandError {
    fn from(error: PublishError) -> CommandError {
        CommandError { exit: of_publish(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<InputError> for CommandError {
    fn from(error: InputError) -> CommandError {
        CommandError { exit: of_reading(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<PassError> for CommandError {
    fn from(error: PassError) -> CommandError {
        CommandError { exit: of_pass(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<NextCommitError> for CommandError {
    fn from(error: NextCommitError) -> CommandError {
        CommandError { exit: of_next_commit(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<DaemonError> for CommandError {
    fn from(error: DaemonError) -> CommandError {
        match error {
            DaemonError::Pass(error) => error.into(),
            DaemonError::Lease => CommandError::new(Exit::Bug, error.to_string()),
            DaemonError::Start(error) => CommandError::new(Exit::Bug, error.to_string()),
        }
    }
}

impl From<TransportError> for CommandError {
    fn from(error: TransportError) -> CommandError {
        CommandError { exit: of_transport(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<FolderError> for CommandError {
    fn from(error: FolderError) -> CommandError {
        CommandError { exit: of_fetch(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<ApplyError> for CommandError {
    fn from(error: ApplyError) -> CommandError {
        let hint = error.hint().map(str::to_owned);
        CommandError { exit: of_sync(&error), message: error.to_string(), hint }
    }
}

impl From<SyncError> for CommandError {
    fn from(error: SyncError) -> CommandError {
        let (exit, hint) = of_round(&error);
        CommandError { exit, message: error.to_string(), hint }
    }
}

impl From<BackendError> for CommandError {
    fn from(error: BackendError) -> CommandError {
        CommandError::new(Exit::Unreachable, error.to_string())
    }
}

impl From<ContentError> for CommandError {
    fn from(error: ContentError) -> CommandError {
        CommandError::new(Exit::Unreachable, error.to_string())
    }
}

impl From<EnvironmentError> for CommandError {
    fn from(error: EnvironmentError) -> CommandError {
        CommandError::usage(error.to_string()).hint(error.hint())
    }
}

impl From<ForgeError> for CommandError {
    fn from(error: ForgeError) -> CommandError {
        CommandError::new(Exit::Unreachable, error.to_string()).hint(error.hint())
    }
}

impl From<LiveError> for CommandError {
    fn from(error: LiveError) -> CommandError {
        let exit = match &error {
            LiveError::NoContext { .. } | LiveError::NoPlane { .. } | LiveError::Malformed { .. } => {
                Exit::Usage
            }
            LiveError::Start(_) | LiveError::Panicked => Exit::Bug,
            _ => Exit::Unreachable,
        };
        CommandError { exit, message: error.to_string(), hint: error.hint() }
    }
}

/// Returns the error with the first tip as its hint, or else the usage of the command.
pub(crate) fn of_usage(error: &clap::Error) -> CommandError {
    let text = error.render().to_string();
    let (mut message, mut tips, mut usage) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_usage = false;
    for line in text.lines().map(str::trim_end) {
        is_usage |= line.starts_with("Usage: ");
        match line.trim_start() {
            "" => {}
            rest if rest.starts_with("For more information") => {}
            rest if is_usage => usage.push(rest),
            rest if rest.starts_with("tip: ") => tips.push(rest.trim_start_matches("tip: ")),
            rest => message.push(rest.trim_start_matches("error: ")),
        }
    }
    let hint = match (tips.is_empty(), usage.is_empty()) {
        (false, _) => tips.join("; "),
        (true, false) => usage.join("\n  ").replacen("Usage: ", "usage: ", 1),
        (true, true) => "see `berth --help`".to_owned(),
    };
    CommandError::usage(in_backquotes(&message.join(" "))).hint(in_backquotes(&hint))
}

/// clap quotes words with apostrophes; berth uses backquotes.
fn in_backquotes(text: &str) -> String {
    let mut shown = String::new();
    let mut is_open = false;
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_end = rest.peek().is_none_or(|next| !next.is_alphanumeric());
        match c {
            '\'' if is_open && is_end => (is_open, shown) = (false, shown + "`"),
            '\'' if !is_open && !before.is_alphanumeric() => (is_open, shown) = (true, shown + "`"),
            c => shown.push(c),
        }
        before = c;
    }
    shown
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn fault(words: &[&str]) -> String {
        let error = crate::commands::Cli::try_parse_from(words).expect_err("a fault");
        of_usage(&error).to_string()
    }

    #[test]
    fn faults_of_the_command_line_read_like_all_others() {
        let slip = fault(&["berth", "vaildate"]);
        assert!(slip.starts_with("error: unrecognized subcommand `vaildate`\n  hint: "), "{slip}");
        assert!(slip.contains("`validate`"), "{slip}");
        let unknown = fault(&["berth", "decide", "--reop", "x"]);
        assert!(unknown.starts_with("error: unexpected argument `--reop` found\n  hint: "), "{unknown}");
        assert!(unknown.contains("`--repo`"), "{unknown}");
        let missing = fault(&["berth", "explain"]);
        assert!(
            missing.contains("<PLACEMENT>") && missing.contains("hint: usage: berth explain"),
            "{missing}"
        );
        assert_eq!(in_backquotes("it's 'a' and 'b'"), "it's `a` and `b`");
    }
}
