//! Exit codes and hints of the libraries' errors.
//!
//! The only place that assigns them, so that a fault ends every command with the same code.

use super::exit::{CommandError, Exit};
use berth_base::model::ContentError;
use berth_forge::{EnvironmentError, ForgeError};
use berth_git::GitError;
use berth_git::transport::TransportError;
use berth_hub::daemon::{DaemonError, PassError};
use berth_hub::inputs::InputError;
use berth_hub::next_commit::NextCommitError;
use berth_hub::publish::PublishError;
use berth_member::sync::ApplyError;
use berth_member::sync::SyncError;
use berth_member::sync::backends::BackendError;
use berth_member::sync::backends::NotAdmitted;
use berth_member::sync::cluster_folder::FolderError;
use berth_member::sync::teardown::TeardownError;

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
        // The others are refusals: a person must look.
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
        PassError::SourceIsRendered(_) | PassError::NoSuchSource { .. } => Exit::Usage,
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
