//! The commit by which the hub hands a cluster's folder to its member: without a parent, described by
//! trailers.
//!
//! Programs that read only branches get a branch of the cluster, a commit whose tree is the folder. It
//! depends only on the cluster's name and the folder: it has no date, parent or signature. So equal folders
//! have the same revision, and it can be computed from the folder.

use std::collections::BTreeSet;

use super::trailers::{ALLOW_PRUNE, FLEET, SEQ, paragraph};
use crate::signature::{PublicKey, commit};
use crate::{CommitId, GitError, Identity, Repo, TreeId, Writer};
use berth_base::model::Timestamp;

/// The newest format of cluster refs that this berth reads, and the one it writes.
pub const CLUSTER_REF_FORMAT: u64 = 1;

const CLUSTER: &str = "Berth-Cluster";
/// The trailer of the format, written from format 2 on. An older syncer skips a folder whose format it does not know.
const FORMAT: &str = "Berth-Format";
/// The trailer of the program that applies the folder, if it is not berth.
const APPLIER: &str = "Berth-Applier";
/// The trailer of a forged ref that this commit replaces: the forged sequence and tree.
const REPLACES: &str = "Berth-Replaces";
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
    /// Paths of removed objects that the member may prune although pruning them deletes more, as with a namespace.
    pub allow_prune: BTreeSet<String>,
    /// The format that a syncer must be able to read; 1 where the commit names none.
    pub format: u64,
    /// The program that applies the folder, if it is not berth.
    pub applier: Option<String>,
    /// The time of the daemon's last heartbeat, which confirms that this is the newest folder.
    pub alive: Option<Timestamp>,
    /// Forged refs that a member may have followed although this commit has a lower sequence.
    pub replaces: BTreeSet<Replaced>,
    /// The key that the commit claims to be signed by.
    pub claimed_key: Option<PublicKey>,
}

/// The sequence and tree of a forged ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replaced {
    pub seq: u64,
    pub tree: TreeId,
}

impl ClusterRef {
    /// Returns the commit's message.
    pub fn message(&self) -> String {
        let ClusterRef { cluster, fleet, seq, allow_prune, applier, alive, replaces, .. } = self;
        let mut message = format!("berth: objects of {cluster}\n\n{CLUSTER}: {cluster}\n");
        let mut line = |name, value: &str| message.push_str(&format!("{name}: {value}\n"));
        if let Some(fleet) = fleet {
            line(FLEET, fleet);
        }
        line(SEQ, &seq.to_string());
        for path in allow_prune {
            line(ALLOW_PRUNE, path);
        }
        if let Some(applier) = applier {
            line(APPLIER, applier);
        }
        if let Some(alive) = alive {
            line(ALIVE, &alive.to_string());
        }
        for Replaced { seq, tree } in replaces {
            line(REPLACES, &format!("{seq} {tree}"));
        }
        message
    }
}

/// Reads a commit that a cluster ref points to. `None` if berth did not write it: a ref may point to anything, even a
/// blob.
pub fn read_cluster_ref(repo: &Repo, commit: CommitId) -> Option<ClusterRef> {
    read_cluster_ref_bytes(&repo.raw_commit(commit).ok()?)
}

/// Like [`read_cluster_ref`], for a commit's bytes outside of a repository.
pub fn read_cluster_ref_bytes(commit: &[u8]) -> Option<ClusterRef> {
    let text = String::from_utf8_lossy(commit);
    let (head, message) = text.split_once("\n\n")?;
    let mut lines = head.lines();
    let tree = lines.next()?.strip_prefix("tree ")?.parse().ok()?;
    let has_parent = lines.any(|line| line.starts_with("parent "));
    read_message(message, tree, commit::claimed_key(commit)).filter(|_| !has_parent)
}

fn read_message(message: &str, tree: TreeId, claimed_key: Option<PublicKey>) -> Option<ClusterRef> {
    let (mut cluster, mut fleet, mut applier, mut alive) = (None, None, None, None);
    let (mut seq, mut allow_prune, mut format) = (None, BTreeSet::new(), 1);
    let mut replaces = BTreeSet::new();
    for (name, value) in paragraph(message) {
        match name {
            CLUSTER => cluster = Some(value.to_owned()),
            FLEET => fleet = Some(value.to_owned()),
            APPLIER => applier = Some(value.to_owned()),
            ALIVE => alive = value.parse().ok(),
            REPLACES => replaces.extend(replaced(value)),
            SEQ => seq = value.parse().ok(),
            // A format that is not a number is newer than ours.
            FORMAT => format = value.parse().unwrap_or(u64::MAX),
            ALLOW_PRUNE => {
                allow_prune.insert(value.to_owned());
            }
            _ => {}
        }
    }
    let (cluster, seq) = cluster.zip(seq)?;
    Some(ClusterRef { cluster, fleet, seq, tree, allow_prune, format, applier, alive, replaces, claimed_key })
}

fn replaced(value: &str) -> Option<Replaced> {
    let (seq, tree) = value.split_once(' ')?;
    Some(Replaced { seq: seq.parse().ok()?, tree: tree.parse().ok()? })
}

/// Writes the commit for a cluster's folder, and returns its id.
pub fn write_cluster_branch(
    writer: &mut Writer<'_>,
    cluster: &str,
    tree: TreeId,
) -> Result<CommitId, GitError> {
    let message = format!("berth: objects of {}\n", super::trailers::one_line(cluster));
    writer.commit_later(tree, &[], &message, &Identity::default(), 0)
}
