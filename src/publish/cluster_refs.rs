//! One ref per cluster, whose tree is the cluster's folder: a member fetches nothing but its own objects.
//!
//! A cache: it can be derived again from the rendered branch at any time. A cluster without objects has
//! a ref with an empty tree, so that a member tells "nothing for you" from "no such cluster".

use std::collections::{BTreeMap, BTreeSet};

use super::error::PublishError;
use super::ledger;
use super::read::{Previous, claimed};
use super::refs::Refs;
use super::trailers::{ALLOW_PRUNE, SEQ, one_line, paragraph};
use super::tree::write_folder;
use crate::git::{CommitId, EntryKind, Identity, RefMove, Repo, TreeId, Writer};
use crate::model::path;
use crate::report;
use crate::signature::PublicKey;
use crate::state::layout;

const CLUSTER: &str = "Berth-Cluster";
/// Written from format 2 on, so that an older syncer leaves what it can not read.
const FORMAT: &str = "Berth-Format";

/// How far back the last change of a tree is looked for; beyond, the oldest commit seen stands for it.
const LONGEST_WALK: usize = 1_000;

/// What was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    pub written: Vec<String>,
    pub deleted: Vec<String>,
}

/// What a member's ref says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRef {
    pub cluster: String,
    /// The `Berth-Seq` at which the folder last changed.
    pub seq: u64,
    pub tree: TreeId,
    /// Paths of objects that are gone for good and, though their kind takes more along, may be removed.
    pub allow_prune: BTreeSet<String>,
    /// What a syncer must be able to read; 1 where it does not say.
    pub format: u64,
    /// The key that its commit says it is signed by.
    pub claimed_key: Option<PublicKey>,
}

/// What was read of cluster refs' commits: a commit never changes, so that each is read once.
pub type Known = BTreeMap<CommitId, Option<ClusterRef>>;

/// Every cluster's folder as its ref has it, in the report's form.
pub fn read_all(repo: &Repo, refs: &Refs) -> Result<BTreeMap<String, report::Published>, PublishError> {
    read_all_knowing(repo, refs, &mut Known::new())
}

/// [`read_all`] with what is known already; afterwards that is what the refs point to now.
pub fn read_all_knowing(
    repo: &Repo,
    refs: &Refs,
    known: &mut Known,
) -> Result<BTreeMap<String, report::Published>, PublishError> {
    let mut all = BTreeMap::new();
    let mut now = Known::new();
    for commit in repo.list_refs(&refs.clusters)?.into_values() {
        let found = read_knowing(repo, commit, known)?;
        now.insert(commit, found.clone());
        if let Some(found) = found {
            let published = report::Published { sequence: found.seq, tree: found.tree.to_string() };
            all.insert(found.cluster, published);
        }
    }
    *known = now;
    Ok(all)
}

fn read_knowing(
    repo: &Repo,
    commit: CommitId,
    known: &mut Known,
) -> Result<Option<ClusterRef>, PublishError> {
    if let Some(found) = known.get(&commit) {
        return Ok(found.clone());
    }
    let found = read_cluster_ref(repo, commit)?;
    known.insert(commit, found.clone());
    Ok(found)
}

/// Reads a commit that a cluster ref points to. `None` where it is none of berth's.
pub fn read_cluster_ref(repo: &Repo, commit: CommitId) -> Result<Option<ClusterRef>, PublishError> {
    // A ref may point to anything, a blob included: then it is garbled, not an error.
    let Ok(info) = repo.commit(commit) else { return Ok(None) };
    let claimed_key = repo.claimed_key(commit)?;
    let commit = info;
    let (mut cluster, mut seq, mut allow_prune, mut format) = (None, None, BTreeSet::new(), 1);
    for (name, value) in paragraph(&commit.message) {
        match name {
            CLUSTER => cluster = Some(value.to_owned()),
            SEQ => seq = value.parse().ok(),
            // One that can not be read is no format of today's.
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
        seq,
        tree: commit.tree,
        allow_prune,
        format,
        claimed_key,
    }))
}

/// Brings all cluster refs to what the rendered commit says; correct ones are not touched.
/// `clusters` is the inventory; clusters that still have objects count as well.
pub fn repair(
    repo: &Repo,
    refs: &Refs,
    rendered: &Previous,
    clusters: &BTreeSet<String>,
    identity: &Identity,
) -> Result<Repaired, PublishError> {
    repair_knowing(repo, refs, rendered, clusters, identity, &mut Known::new())
}

/// [`repair`] with what is known of the refs' commits already.
pub fn repair_knowing(
    repo: &Repo,
    refs: &Refs,
    rendered: &Previous,
    clusters: &BTreeSet<String>,
    identity: &Identity,
    known: &mut Known,
) -> Result<Repaired, PublishError> {
    let mut writer = Writer::new(repo)?;
    let mut existing = repo.list_refs(&refs.clusters)?;
    let filled = rendered.state.folders.iter().filter(|(_, folder)| !folder.is_empty());
    let wanted: BTreeSet<&String> = clusters.iter().chain(filled.map(|(cluster, _)| cluster)).collect();
    let key = identity.signer.as_ref().map(|signer| signer.public().clone());
    let mut stale: BTreeMap<&str, (TreeId, Option<CommitId>)> = BTreeMap::new();
    for cluster in wanted {
        let tree = folder_tree(&mut writer, rendered, cluster)?;
        let old = existing.remove(&refs.cluster(cluster));
        let now = old.map(|commit| read_knowing(repo, commit, known)).transpose()?.flatten();
        let correct = now.is_some_and(|now| {
            now.tree == tree
                && now.cluster == one_line(cluster)
                && now.seq <= rendered.trailers.seq
                // What was made before there was a key, or under another one, is signed anew.
                && (key.is_none() || now.claimed_key == key)
        });
        if !correct {
            stale.insert(cluster, (tree, old));
        }
    }
    let since = last_changes(repo, rendered, &stale)?;
    let prunable = ledger::prunable(repo, rendered.commit, &stale.keys().copied().collect())?;
    let mut repaired = Repaired::default();
    let mut moves = Vec::new();
    for (cluster, (tree, old)) in stale {
        let (seq, seconds) = since.get(cluster).copied().unwrap_or((rendered.trailers.seq, rendered.seconds));
        let name = one_line(cluster);
        let mut message = format!("berth: objects of {name}\n\n{CLUSTER}: {name}\n{SEQ}: {seq}\n");
        let allow_prune = prunable.get(cluster).cloned().unwrap_or_default();
        for path in &allow_prune {
            message.push_str(&format!("{ALLOW_PRUNE}: {path}\n"));
        }
        let commit = writer.commit_later(tree, &[], &message, identity, seconds)?;
        let target = refs.cluster(cluster);
        if old.is_none() {
            repo.discard_broken_ref(&target)?;
        }
        moves.push(RefMove { name: target, old, new: commit });
        let claimed_key = key.clone();
        let said = ClusterRef { cluster: name, seq, tree, allow_prune, format: 1, claimed_key };
        known.insert(commit, Some(said));
        repaired.written.push(cluster.to_owned());
    }
    repo.move_refs(&moves)?;
    for (name, commit) in existing {
        repo.delete_ref(&name, commit)?;
        repaired.deleted.push(name);
    }
    Ok(repaired)
}

/// The cluster's folder without anything foreign.
fn folder_tree(writer: &mut Writer<'_>, rendered: &Previous, cluster: &str) -> Result<TreeId, PublishError> {
    match (rendered.ids.clusters.get(cluster), rendered.state.folders.get(cluster)) {
        (Some(tree), _) => Ok(*tree),
        (None, Some(folder)) => write_folder(writer, folder),
        (None, None) => Ok(TreeId::EMPTY),
    }
}

/// At which sequence number and date each of these trees came to be: one walk back for all of them.
fn last_changes<'c>(
    repo: &Repo,
    rendered: &Previous,
    stale: &BTreeMap<&'c str, (TreeId, Option<CommitId>)>,
) -> Result<BTreeMap<&'c str, (u64, i64)>, PublishError> {
    let mut since = BTreeMap::new();
    let mut open: BTreeMap<&str, TreeId> =
        stale.iter().map(|(cluster, (tree, _))| (*cluster, *tree)).collect();
    for commit in repo.first_parents(rendered.commit).take(LONGEST_WALK) {
        if open.is_empty() {
            break;
        }
        let Some(trailers) = claimed(repo, &commit)? else { continue };
        let trees = cluster_trees(repo, commit.tree)?;
        open.retain(|cluster, tree| {
            trees.get(&path::encode(cluster)).copied().unwrap_or(TreeId::EMPTY) == *tree
        });
        since.extend(open.keys().map(|cluster| (*cluster, (trailers.seq, commit.seconds))));
    }
    Ok(since)
}

fn cluster_trees(repo: &Repo, root: TreeId) -> Result<BTreeMap<String, TreeId>, PublishError> {
    let folders = |id: TreeId| -> Result<BTreeMap<String, TreeId>, PublishError> {
        let folder = |entry: crate::git::Entry| match entry.kind {
            EntryKind::Folder(id) => String::from_utf8(entry.name).ok().map(|name| (name, id)),
            _ => None,
        };
        Ok(repo.tree(id)?.into_iter().filter_map(folder).collect())
    };
    match folders(root)?.get(layout::CLUSTERS) {
        Some(id) => folders(*id),
        None => Ok(BTreeMap::new()),
    }
}
