//! A lease in a ref of the fleet's remote: one commit without a parent or files, whose message contains the lease.

use serde_json::Value as Json;

use berth_base::model::Timestamp;
use berth_git::transport::{RefPush, Transport, TransportError, Want, WorkingCopy, upkeep};
use berth_git::{CommitId, GitError, Identity, Repo, Writer};
use berth_lease::{LeaseSpec, LeaseStore};

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
