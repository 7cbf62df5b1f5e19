//! The remote: the member fetches one cluster's ref from it, and pushes its status to it.
//!
//! Fetches only this cluster's ref. A folder is accepted only if it is complete, of this cluster, and not older than
//! the one before; otherwise the member keeps the last one.

use berth_git::shared_refs::Refs;
use std::path::Path;

use tracing::warn;

use crate::sync::commit_trust::CommitTrust;
use berth_git::shared_refs::cluster_ref::Replaced;
use berth_git::shared_refs::{STATUS_FILE, file_ref, read_cluster_ref};
use berth_git::transport::{RefPush, Transport, TransportError, Want, WorkingCopy, upkeep};
use berth_git::{CommitId, GitError, RefMove, Repo};

/// The local refs into which the remote's refs are fetched.
const FETCHED_REF: &str = "refs/berth-local/cluster";
const FETCHED_STATUS_REF: &str = "refs/berth-local/status";

/// A way to send statuses other than through Git.
pub trait StatusSender: std::fmt::Debug + Send {
    /// Sends the bytes of a status. On success, the receiver has stored it.
    fn send(&self, status: &[u8]) -> Result<(), SendError>;
}

/// The reasons why a status was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The receiver would refuse it again.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

/// The destination of statuses.
#[derive(Debug, Default)]
pub enum StatusPlace {
    /// The remote of the folder.
    #[default]
    Remote,
    Other(Box<dyn Transport>),
    Sender(Box<dyn StatusSender>),
}

/// A member's remote.
#[derive(Debug)]
pub struct MemberRemote {
    transport: Box<dyn Transport>,
    copy: WorkingCopy,
    refs: Refs,
    cluster: String,
    /// Also accept a folder with a lower sequence.
    allow_rewind: bool,
    trust: CommitTrust,
    statuses: StatusPlace,
    /// The status at the destination. `None` if unknown.
    reported: Option<Option<CommitId>>,
}

/// The reason why the folder is not the remote's newest.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The remote's commit is not accepted.
    #[error("`{name}` of the remote was not published by berth: {message}")]
    NotOurs { name: String, message: String },
    #[error("`{name}` of the remote is not followed: {why}")]
    Refused { name: String, why: String },
    #[error("`{name}` of the remote has sequence {offered}, but its last known sequence was {known}")]
    Rewound { name: String, offered: u64, known: u64 },
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl RemoteError {
    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        match self {
            RemoteError::Transport(TransportError::NoSuchRef { .. }) => {
                Some("check the cluster's name, and whether `berth run` has published it".to_owned())
            }
            RemoteError::Transport(error) => error.hint(),
            RemoteError::NotOurs { .. } => Some("`berth run` repairs the clusters' refs".to_owned()),
            RemoteError::Rewound { .. } => Some("use `--allow-rewind` to go back on purpose".to_owned()),
            RemoteError::Refused { .. } | RemoteError::Send(_) => None,
            RemoteError::Git(error) => error.hint(),
        }
    }

    /// Reports whether a damaged local repository could be the cause.
    pub fn may_be_damage(&self) -> bool {
        use TransportError::{Failed, Truncated};
        matches!(self, RemoteError::Git(_) | RemoteError::Transport(Failed { .. } | Truncated { .. }))
    }

    /// Reports whether the remote answered, and its answer must not be followed.
    pub fn is_refusal(&self) -> bool {
        use RemoteError::{NotOurs, Refused, Rewound, Transport};
        matches!(
            self,
            NotOurs { .. }
                | Refused { .. }
                | Rewound { .. }
                | Transport(TransportError::NoSuchRef { .. } | TransportError::Wrong { .. })
        )
    }

    /// Reports whether a status was refused, so that sending it again at once is pointless.
    pub fn refuses_status(&self) -> bool {
        match self {
            RemoteError::Transport(error) => error.is_refusal(),
            RemoteError::Send(error) => matches!(error, SendError::Refused(_)),
            _ => false,
        }
    }
}

impl MemberRemote {
    pub fn new(
        transport: Box<dyn Transport>,
        copy: WorkingCopy,
        refs: Refs,
        cluster: &str,
        allow_rewind: bool,
    ) -> MemberRemote {
        MemberRemote {
            transport,
            copy,
            refs,
            cluster: cluster.to_owned(),
            allow_rewind,
            trust: CommitTrust::default(),
            statuses: StatusPlace::default(),
            reported: None,
        }
    }

    /// Accepts only trusted commits.
    #[must_use]
    pub fn trusting(self, trust: CommitTrust) -> MemberRemote {
        MemberRemote { trust, ..self }
    }

    /// Sends statuses to this destination.
    #[must_use]
    pub fn reporting_to(self, statuses: StatusPlace) -> MemberRemote {
        MemberRemote { statuses, ..self }
    }

    fn for_statuses(&self) -> &dyn Transport {
        match &self.statuses {
            StatusPlace::Other(transport) => &**transport,
            StatusPlace::Remote | StatusPlace::Sender(_) => &*self.transport,
        }
    }

    /// Returns the path of the local repository.
    pub fn path(&self) -> &Path {
        self.copy.path()
    }

    /// Returns the remote's address as messages may show it.
    pub fn shown(&self) -> &str {
        self.transport.shown()
    }

    /// Fetches the remote's newest folder. Returns true if it is new.
    pub fn fetch(&mut self) -> Result<bool, RemoteError> {
        let repo = Repo::open(self.copy.path())?;
        let name = self.refs.cluster(&self.cluster);
        // Without a depth, fetching an unmoved ref transfers nothing; its commits have no parents anyway.
        let depth = if repo.read_ref(FETCHED_REF)?.is_some() { None } else { Some(1) };
        let want = Want::One { there: name.clone(), here: FETCHED_REF.to_owned() };
        self.transport.fetch(self.copy.path(), &[want], depth)?;
        let before = repo.read_ref(&name)?;
        let arrived = repo.read_ref(FETCHED_REF)?;
        let Some(arrived) = arrived.filter(|arrived| Some(*arrived) != before) else { return Ok(false) };
        let not_ours = |message: String| RemoteError::NotOurs { name: name.clone(), message };
        let Some(offered) = read_cluster_ref(&repo, arrived) else {
            return Err(not_ours("its commit does not name its cluster and sequence".to_owned()));
        };
        if offered.cluster != self.cluster {
            return Err(not_ours(format!("its commit names cluster `{}`", offered.cluster)));
        }
        let known = before.and_then(|before| read_cluster_ref(&repo, before));
        let is_repair = |seq, tree| {
            !self.trust.asks_for_signatures() && offered.replaces.contains(&Replaced { seq, tree })
        };
        if let Some(known) = known.filter(|known| {
            offered.seq < known.seq && !self.allow_rewind && !is_repair(known.seq, known.tree)
        }) {
            // An old commit with exactly the known folder: there is nothing to apply, and the sequence stays.
            if offered.tree == known.tree {
                return Ok(false);
            }
            return Err(RemoteError::Rewound { name, offered: offered.seq, known: known.seq });
        }
        self.trust.check(&repo, arrived).map_err(|why| RemoteError::Refused { name: name.clone(), why })?;
        repo.move_refs(&[RefMove { name, old: before, new: arrived }])?;
        Ok(true)
    }

    /// Sends the member's status to its destination. Returns true if the destination was not known to have it.
    pub fn push_status(&mut self) -> Result<bool, RemoteError> {
        let repo = Repo::open(self.copy.path())?;
        let name = self.refs.status_of(&self.cluster);
        let Some(new) = repo.read_ref(&name)? else { return Ok(false) };
        if let StatusPlace::Sender(sender) = &self.statuses {
            if self.reported == Some(Some(new)) {
                return Ok(false);
            }
            let Some(status) = file_ref::file(&repo, new, STATUS_FILE)? else { return Ok(false) };
            sender.send(&status)?;
            self.reported = Some(Some(new));
            return Ok(true);
        }
        for attempt in [1, 2] {
            let old = match self.reported {
                Some(old) => old,
                None => *self.reported.insert(self.look_up(&repo, &name)?),
            };
            if old == Some(new) {
                return Ok(false);
            }
            let change = RefPush { name: name.clone(), old, new: Some(new) };
            // After any failure, the push may have succeeded with only its answer lost.
            self.reported = None;
            match self.for_statuses().push(self.copy.path(), &[change], false) {
                Err(error) if error.is_race() && attempt == 1 => {}
                done => {
                    done?;
                    break;
                }
            }
        }
        self.reported = Some(Some(new));
        Ok(true)
    }

    fn look_up(&self, repo: &Repo, name: &str) -> Result<Option<CommitId>, RemoteError> {
        let want = Want::One { there: name.to_owned(), here: FETCHED_STATUS_REF.to_owned() };
        let depth = if repo.read_ref(FETCHED_STATUS_REF)?.is_some() { None } else { Some(1) };
        match self.for_statuses().fetch(self.copy.path(), &[want], depth) {
            Err(TransportError::NoSuchRef { .. }) => Ok(None),
            done => {
                done?;
                Ok(repo.read_ref(FETCHED_STATUS_REF)?)
            }
        }
    }

    /// Returns the stale lock files removed at the statuses' remote since the last call.
    pub fn cleared_locks(&self) -> Vec<String> {
        self.for_statuses().cleared_locks()
    }

    /// Recreates the local repository if it is damaged, so that the next fetch brings the folder. Returns true if it
    /// did. The record in the cluster still refuses an older folder.
    pub fn mend(&mut self) -> bool {
        // Keeps the repository if the check itself fails.
        if self.transport.is_sound(self.copy.path()).unwrap_or(true) {
            return false;
        }
        warn!("the working copy is damaged; recreating it");
        self.reported = None;
        self.copy.renew().inspect_err(|error| warn!(%error, "the working copy cannot be recreated")).is_ok()
    }

    /// Repacks the local repository if it has become slow. Failures are harmless.
    pub fn tidy(&self) {
        if let Some(step) = upkeep::due(self.copy.path()) {
            let _ = self.transport.tidy(self.copy.path(), step);
        }
    }
}
