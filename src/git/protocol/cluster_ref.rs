//! A cluster's folder as the hub hands it to the member: a commit without a parent, described by its trailers.

use std::collections::BTreeSet;

use super::trailers::{ALLOW_PRUNE, FLEET, SEQ, paragraph};
use crate::signature::PublicKey;
use crate::{CommitId, GitError, Repo, TreeId};
use berth_base::model::Timestamp;

/// The newest format of cluster refs that this berth reads, and the one it writes.
pub const CLUSTER_REF_FORMAT: u64 = 1;

const CLUSTER: &str = "Berth-Cluster";
/// The trailer of the format, written from format 2 on, so that an older syncer skips a folder that it cannot read.
const FORMAT: &str = "Berth-Format";
/// The trailer of the last heartbeat, written where the daemon has a heartbeat.
const ALIVE: &str = "Berth-Alive";

/// The contents of one cluster's ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRef {
    pub cluster: String,
    /// The fleet's name, where the daemon has one.
    pub fleet: Option<String>,
    /// The `Berth-Seq` at which the folder last changed.
    pub seq: u64,
    pub tree: TreeId,
    /// Paths of objects that are gone for good and, though their kind takes more along, may be removed.
    pub allow_prune: BTreeSet<String>,
    /// The format that a syncer must be able to read; 1 where the commit names none.
    pub format: u64,
    /// The time of the daemon's last heartbeat, which says that this is the newest folder.
    pub alive: Option<Timestamp>,
    /// The key that its commit says it is signed by.
    pub claimed_key: Option<PublicKey>,
}

impl ClusterRef {
    /// The whole message of its commit.
    pub fn message(&self) -> String {
        let ClusterRef { cluster, fleet, seq, allow_prune, alive, .. } = self;
        let mut message = format!("berth: objects of {cluster}\n\n{CLUSTER}: {cluster}\n");
        let mut line = |name, value: &str| message.push_str(&format!("{name}: {value}\n"));
        if let Some(fleet) = fleet {
            line(FLEET, fleet);
        }
        line(SEQ, &seq.to_string());
        for path in allow_prune {
            line(ALLOW_PRUNE, path);
        }
        if let Some(alive) = alive {
            line(ALIVE, &alive.to_string());
        }
        message
    }
}

/// Reads a commit that a cluster ref points to. `None` where it is none of berth's.
pub fn read_cluster_ref(repo: &Repo, commit: CommitId) -> Result<Option<ClusterRef>, GitError> {
    // A ref may point to anything, a blob included: then it is garbled, not an error.
    let Ok(info) = repo.commit(commit) else { return Ok(None) };
    let claimed_key = repo.claimed_key(commit)?;
    let commit = info;
    let (mut cluster, mut fleet, mut alive) = (None, None, None);
    let (mut seq, mut allow_prune, mut format) = (None, BTreeSet::new(), 1);
    for (name, value) in paragraph(&commit.message) {
        match name {
            CLUSTER => cluster = Some(value.to_owned()),
            FLEET => fleet = Some(value.to_owned()),
            ALIVE => alive = value.parse().ok(),
            SEQ => seq = value.parse().ok(),
            // An unreadable format is newer than ours.
            FORMAT => format = value.parse().unwrap_or(u64::MAX),
            ALLOW_PRUNE => {
                allow_prune.insert(value.to_owned());
            }
            _ => {}
        }
    }
    let plain = commit.parents.is_empty();
    Ok(cluster.zip(seq).filter(|_| plain).map(|(cluster, seq)| ClusterRef {
        cluster,
        fleet,
        seq,
        tree: commit.tree,
        allow_prune,
        format,
        alive,
        claimed_key,
    }))
}
