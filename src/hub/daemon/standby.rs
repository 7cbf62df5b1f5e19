//! Several daemons of one fleet: the holder of a lease publishes, and the others fetch to be ready.
//!
//! Nothing is lost without the lease, or if two daemons believe to hold it: each push moves refs only from their
//! known values. The lease only saves the work of lost races.
//!
//! The lease is in a ref of the fleet's remote: one commit without a parent or files, whose message contains the lease.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::mpsc::Sender;

use berth_base::model::Timestamp;
use berth_git::transport::{RefPush, Transport, TransportError, Want, WorkingCopy, upkeep};
use berth_git::{CommitId, GitError, Identity, Repo, Writer};
use berth_lease::{Fence, Lease, LeaseKeeper, LeaseSpec, LeaseStore};

/// The longest interval at which another daemon's lease is read, so that a released lease is taken soon.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// A lease that the daemon must hold to publish.
#[derive(Debug)]
pub struct Standby {
    store: Box<dyn LeaseStore>,
    lease: Lease,
}

/// Returns a lease that its next holder takes within `time` after the last renewal. Of that time, a quarter is for
/// reads of the lease, which may be late by an eighth each: one to see the renewal, one to see its expiry.
pub fn lease_within(time: Duration) -> Lease {
    // Leases count whole seconds.
    let duration = Duration::from_secs((time * 3 / 4).as_secs().max(1));
    let look = (time / 8).min(LONGEST_LOOK);
    Lease { renewal: duration / 3, look, ..Lease::of(duration, "daemon") }
}

impl Standby {
    pub fn new(store: impl LeaseStore + 'static, lease: Lease) -> Standby {
        Standby { store: Box::new(store), lease }
    }

    /// Starts to acquire the lease. Sends to `wake` when it is acquired or lost.
    pub(super) fn start(self, wake: Sender<()>) -> std::io::Result<HeldLease> {
        // A full channel already contains a wake.
        let on_change = move || {
            let _ = wake.try_send(());
        };
        let right =
            |keeper: &LeaseKeeper| PublishRight(Some((keeper.fence.clone(), self.lease.duration / 4)));
        let keeper = LeaseKeeper::start(self.store, self.lease, on_change)?;
        Ok(HeldLease { right: right(&keeper), keeper })
    }
}

/// The lease of a running daemon. Dropping it releases the lease.
#[derive(Debug)]
pub(super) struct HeldLease {
    keeper: LeaseKeeper,
    pub right: PublishRight,
}

impl HeldLease {
    /// Reports whether the keeper ended by a bug, so that the lease will never be acquired.
    pub fn is_broken(&self) -> bool {
        self.keeper.has_ended()
    }
}

/// The right to publish. Without a lease, it always holds.
#[derive(Clone, Debug, Default)]
pub(super) struct PublishRight(Option<(Fence, Duration)>);

impl PublishRight {
    /// Reports whether enough of the lease is left to begin a push.
    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|(fence, margin)| fence.leaves(*margin))
    }
}

/// The line of the message with the lease, in the form of a Lease's `spec`.
const TRAILER: &str = "Berth-Lease: ";

/// The lease at a remote. It has its own working copy, so that no pass waits for it.
#[derive(Debug)]
pub struct LeaseRef {
    transport: Box<dyn Transport>,
    copy: WorkingCopy,
    name: String,
    identity: Identity,
}

impl LeaseRef {
    /// Makes the lease of the ref `name`. The transport's exchanges must end within the lease's patience.
    pub fn new(transport: Box<dyn Transport>, copy: WorkingCopy, name: &str, identity: Identity) -> LeaseRef {
        LeaseRef { transport, copy, name: name.to_owned(), identity }
    }

    fn commit(&self, repo: &Repo, spec: &Json) -> Result<CommitId, GitError> {
        let mut writer = Writer::new(repo)?;
        let tree = writer.tree(Vec::new())?;
        let message = format!("berth: the daemon that publishes\n\n{TRAILER}{spec}\n");
        let now = Timestamp::now().as_second();
        let commit = writer.commit(tree, &[], &message, &self.identity, now)?;
        repo.flush()?;
        Ok(commit)
    }
}

/// Reads a commit's lease. If berth did not write the commit, the lease is free.
fn lease_of(repo: &Repo, commit: CommitId) -> LeaseSpec {
    let message = repo.commit(commit).map(|commit| commit.message).unwrap_or_default();
    let text = message.lines().find_map(|line| line.strip_prefix(TRAILER)).unwrap_or_default();
    LeaseSpec::read(&commit.to_string(), &serde_json::from_str(text).unwrap_or_default())
}

impl LeaseStore for LeaseRef {
    fn shown(&self) -> String {
        self.transport.shown().to_owned()
    }

    fn read(&mut self) -> Result<Option<LeaseSpec>, String> {
        let words = |error: GitError| error.to_string();
        let fetched = self.transport.fetch(self.copy.path(), &[Want::all(&self.name)], None);
        fetched.map_err(|error| error.to_string())?;
        let repo = Repo::open(self.copy.path()).map_err(words)?;
        let commit = repo.read_ref(&self.name).map_err(words)?;
        Ok(commit.map(|commit| lease_of(&repo, commit)))
    }

    fn write(&mut self, read: Option<&LeaseSpec>, spec: &Json) -> Result<Option<LeaseSpec>, String> {
        let words = |error: GitError| error.to_string();
        let repo = Repo::open(self.copy.path()).map_err(words)?;
        let new = self.commit(&repo, spec).map_err(words)?;
        let old = read.and_then(|read| read.version.parse().ok());
        let moves = [RefPush { name: self.name.clone(), old, new: Some(new) }];
        match self.transport.push(self.copy.path(), &moves, false) {
            Ok(()) => {}
            Err(error) if error.is_race() => return Ok(None),
            Err(error) => return Err(words_of(&error)),
        }
        // Repacking drops unreachable objects.
        if let Some(step) = upkeep::due(self.copy.path()) {
            let _ = self.transport.tidy(self.copy.path(), step);
        }
        Ok(Some(lease_of(&repo, new)))
    }
}

fn words_of(error: &TransportError) -> String {
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_holder_has_the_lease_in_time_and_the_last_one_may_miss_a_renewal() {
        for seconds in [4, 5, 8, 60, 3600] {
            let time = Duration::from_secs(seconds);
            let lease = lease_within(time);
            assert!(lease.look + lease.duration + lease.look <= time, "{lease:?}");
            assert!(lease.renewal * 2 <= lease.duration * 3 / 4, "{lease:?}");
        }
    }
}
