//! What a library's error means to the caller of a command: its exit code and its hint.
//!
//! The one place that says so, so that a fault ends every command with the same code.

use super::exit::{CommandError, Exit};
use berth_base::model::ContentError;
use berth_git::GitError;
use berth_git::transport::TransportError;
use berth_hub::daemon::{DaemonError, PassError};
use berth_hub::inputs::ReadingError;
use berth_hub::next_commit::NextCommitError;
use berth_hub::publish::PublishError;
use berth_member::sync::SyncError;
use berth_member::sync::backends::NotAdmitted;
use berth_member::sync::backends::TargetError;
use berth_member::sync::fetch::FetchError;
use berth_member::sync::teardown::TeardownError;
use berth_member::sync::watch::RoundError;

fn of_git(error: &GitError) -> Exit {
    match error {
        error if error.is_race() => Exit::Raced,
        GitError::NoSuchRevision { .. } | GitError::InvalidRef { .. } => Exit::Usage,
        _ => Exit::Unreachable,
    }
}

fn of_publish(error: &PublishError) -> Exit {
    match error {
        PublishError::Raced { .. } => Exit::Raced,
        PublishError::Git(error) => of_git(error),
        // The others are refusals: a person must look.
        _ => Exit::Held,
    }
}

fn of_reading(error: &ReadingError) -> Exit {
    match error {
        ReadingError::Git(error) => of_git(error),
        ReadingError::Publish(error) => of_publish(error),
        ReadingError::Folder(_)
        | ReadingError::MissingContent(_)
        | ReadingError::NoRules { .. }
        | ReadingError::NoState { .. }
        | ReadingError::NoRemote { .. }
        | ReadingError::Gone(_)
        | ReadingError::CutOff { .. }
        | ReadingError::Outdated { .. } => Exit::Unreachable,
        ReadingError::NoSuchState { .. } => Exit::Usage,
        ReadingError::FutureCommit { .. } => Exit::Held,
    }
}

fn of_next_commit(error: &NextCommitError) -> Exit {
    match error {
        NextCommitError::Git(error) => of_git(error),
        NextCommitError::Publish(error) => of_publish(error),
        NextCommitError::Reading(error) => of_reading(error),
        NextCommitError::Content(_) => Exit::Unreachable,
        NextCommitError::Rewound { .. } => Exit::Held,
    }
}

fn of_pass(error: &PassError) -> Exit {
    match error {
        PassError::NextCommit(error) => of_next_commit(error),
        PassError::SourceIsRendered(_) | PassError::NoSuchSource { .. } => Exit::Usage,
        PassError::RenderedRewound { .. } | PassError::Untrusted(_) => Exit::Held,
        PassError::Proof(_) => Exit::Unreachable,
        PassError::Remote(error) => of_transport(error),
        PassError::NoSource(_) => Exit::Unreachable,
    }
}

fn of_transport(error: &TransportError) -> Exit {
    match error {
        TransportError::Raced { .. } | TransportError::Locked { .. } => Exit::Raced,
        TransportError::Setting { .. } => Exit::Usage,
        _ => Exit::Unreachable,
    }
}

fn of_fetch(error: &FetchError) -> Exit {
    match error {
        FetchError::Git(error) => of_git(error),
        FetchError::NotOurs { .. } => Exit::Held,
        FetchError::NoFolder { .. } => Exit::Unreachable,
    }
}

fn of_sync(error: &SyncError) -> Exit {
    match error {
        SyncError::Target(_) => Exit::Unreachable,
        _ => Exit::Held,
    }
}

fn of_round(error: &RoundError) -> (Exit, Option<String>) {
    match error {
        RoundError::Fetch(error) => (of_fetch(error), error.hint()),
        RoundError::Sync(error) => (of_sync(error), error.hint().map(str::to_owned)),
        RoundError::Overrides(_) => (Exit::Faulty, None),
        RoundError::Refresh(_) => (Exit::Unreachable, None),
        RoundError::Refused(_) => (Exit::Held, None),
        RoundError::NotAdmitted(error) => of_admission(error),
    }
}

fn of_admission(error: &NotAdmitted) -> (Exit, Option<String>) {
    match error {
        NotAdmitted::Standby(_) => {
            (Exit::Raced, Some("one syncer writes at a time; `--no-lease` leaves that to you".to_owned()))
        }
        NotAdmitted::Trouble(_) => (Exit::Unreachable, None),
    }
}

impl From<TeardownError> for CommandError {
    fn from(error: TeardownError) -> CommandError {
        let (exit, hint) = match &error {
            TeardownError::NotAdmitted(error) => of_admission(error),
            TeardownError::Sync(error) => (of_sync(error), error.hint().map(str::to_owned)),
            TeardownError::Target(_) => (Exit::Unreachable, None),
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

impl From<ReadingError> for CommandError {
    fn from(error: ReadingError) -> CommandError {
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
            DaemonError::Start(error) => CommandError::new(Exit::Bug, error.to_string()),
        }
    }
}

impl From<TransportError> for CommandError {
    fn from(error: TransportError) -> CommandError {
        CommandError { exit: of_transport(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<FetchError> for CommandError {
    fn from(error: FetchError) -> CommandError {
        CommandError { exit: of_fetch(&error), message: error.to_string(), hint: error.hint() }
    }
}

impl From<SyncError> for CommandError {
    fn from(error: SyncError) -> CommandError {
        let hint = error.hint().map(str::to_owned);
        CommandError { exit: of_sync(&error), message: error.to_string(), hint }
    }
}

impl From<RoundError> for CommandError {
    fn from(error: RoundError) -> CommandError {
        let (exit, hint) = of_round(&error);
        CommandError { exit, message: error.to_string(), hint }
    }
}

impl From<TargetError> for CommandError {
    fn from(error: TargetError) -> CommandError {
        CommandError::new(Exit::Unreachable, error.to_string())
    }
}

impl From<ContentError> for CommandError {
    fn from(error: ContentError) -> CommandError {
        CommandError::new(Exit::Unreachable, error.to_string())
    }
}
