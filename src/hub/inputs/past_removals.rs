//! The removals of earlier publications in the window, read from the rendered branch.
//!
//! Each publication that removes something names the workloads in its trailers. What they lost is read from
//! the trees before and after it, so that trailers stay short, and only where something is removed now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::InputError;
use crate::publish::ledger::{self, Own};
use berth_base::model::{Decision, Key, Timestamp, path};
use berth_engine::gate::window::{Losses, Paths, Place, WorkloadPlaces};
use berth_engine::gate::{PastPublication, Removed};
use berth_engine::state::{decision_file, layout};
use berth_git::protocol::trailers::{REMEMBERS, REMOVED};
use berth_git::{CommitId, EntryKind, Repo, TreeId};

/// The most publications of the window that are looked at.
const MOST_PASTS: usize = 5_000;

/// The publications up to `rendered` that removed something after `since`, newest first. `losing` are the
/// clusters that lose something now.
pub(super) fn pasts<'c>(
    repo: &Repo,
    rendered: CommitId,
    since: Timestamp,
    losing: impl Iterator<Item = &'c String>,
) -> Result<Vec<PastPublication>, InputError> {
    let mut trees = Trees { repo, paths: BTreeMap::new() };
    let mut clusters: BTreeSet<String> = losing.cloned().collect();
    let mut pasts = Vec::new();
    let mut next = last_removing(repo, rendered)?;
    while let Some((commit, _)) = next.filter(|(_, moment)| *moment > since && pasts.len() < MOST_PASTS) {
        let Some((id, after)) = ledger::own_at(repo, commit)?.filter(|(id, _)| *id == commit) else { break };
        next = pointer(&after);
        let parent = repo.commit(id)?.parents.first().copied();
        let before = parent.map_or(Ok(None), |parent| ledger::own_at(repo, parent))?;
        let Some((_, before)) = before else { break };
        let mut past = PastPublication::default();
        for removed in removed_by(&after) {
            let Some(had) = trees.decision(before.root, &removed.key)? else { continue };
            let has = trees.decision(after.root, &removed.key)?;
            let places = lost(&had, has.as_ref());
            clusters.extend(places.iter().map(|(cluster, _)| cluster.clone()));
            let mut whole = whole(&had);
            whole.clusters.retain(|cluster| had.pick(cluster).is_some_and(|pick| !pick.held));
            past.had.insert(removed.key.clone(), whole);
            past.took.push(Losses { removed, places });
        }
        past.folders = trees.folders(before.root, &clusters)?;
        pasts.push(past);
    }
    Ok(pasts)
}

/// The pointer that the next commit carries, so that nobody walks through all commits of the window.
pub(super) fn carried(
    repo: &Repo,
    rendered: CommitId,
    since: Timestamp,
) -> Result<Option<(&'static str, String)>, InputError> {
    let last = last_removing(repo, rendered)?.filter(|(_, moment)| *moment > since);
    Ok(last.map(|(commit, moment)| (REMEMBERS, format!("{commit} {moment}"))))
}

/// The last publication up to a commit that removed something, and its moment.
fn last_removing(repo: &Repo, rendered: CommitId) -> Result<Option<(CommitId, Timestamp)>, InputError> {
    let Some((id, own)) = ledger::own_at(repo, rendered)? else { return Ok(None) };
    let is_one = !removed_by(&own).is_empty();
    Ok(if is_one { own.trailers.now.map(|now| (id, now)) } else { pointer(&own) })
}

fn pointer(own: &Own) -> Option<(CommitId, Timestamp)> {
    let (_, value) = own.trailers.others.iter().find(|(name, _)| name == REMEMBERS)?;
    let (commit, moment) = value.split_once(' ')?;
    Some((commit.parse().ok()?, moment.parse().ok()?))
}

fn removed_by(own: &Own) -> Vec<Removed> {
    let lines = own.trailers.others.iter().filter(|(name, _)| name == REMOVED);
    lines.filter_map(|(_, value)| value.parse().ok()).collect()
}

fn whole(decision: &Decision) -> WorkloadPlaces {
    let serving = decision.picks.iter().filter(|pick| !pick.pending);
    WorkloadPlaces {
        clusters: serving.map(|pick| pick.cluster.to_string()).collect(),
        paths: paths_of(decision).collect(),
    }
}

fn paths_of(decision: &Decision) -> impl Iterator<Item = Arc<str>> {
    decision.objects.iter().map(|object| path::of_object(object).into())
}

/// The places that a decision had and its successor has not.
fn lost(had: &Decision, has: Option<&Decision>) -> Vec<Place> {
    let had = whole(had);
    let has = has.map(whole).unwrap_or_default();
    let stays: BTreeSet<&Arc<str>> = has.paths.iter().collect();
    let mut lost = Vec::new();
    for cluster in &had.clusters {
        let served = has.clusters.contains(cluster);
        let gone = had.paths.iter().filter(|path| !(served && stays.contains(path)));
        lost.extend(gone.map(|path| (cluster.clone(), path.clone())));
    }
    lost
}

/// Reads parts of rendered trees. Clusters share most of their folders.
struct Trees<'r> {
    repo: &'r Repo,
    /// The paths below a cluster's folder.
    paths: BTreeMap<TreeId, Paths>,
}

impl Trees<'_> {
    fn decision(&self, root: TreeId, key: &Key) -> Result<Option<Decision>, InputError> {
        let mut folder = root;
        for part in format!("{}/{}", layout::DECISIONS, path::of_key(key)).split('/') {
            let found = self.repo.tree(folder)?.into_iter().find(|entry| entry.name == part.as_bytes());
            match found.map(|entry| entry.kind) {
                Some(EntryKind::Folder(id)) => folder = id,
                Some(EntryKind::File(id)) => {
                    return Ok(decision_file::read_decision(&self.repo.blob(id)?).ok());
                }
                _ => break,
            }
        }
        Ok(None)
    }

    fn folders(
        &mut self,
        root: TreeId,
        clusters: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Paths>, InputError> {
        let top = self.repo.tree(root)?.into_iter().find(|entry| entry.name == layout::CLUSTERS.as_bytes());
        let Some(EntryKind::Folder(top)) = top.map(|entry| entry.kind) else { return Ok(BTreeMap::new()) };
        let parts: BTreeMap<String, &String> =
            clusters.iter().map(|cluster| (path::encode(cluster), cluster)).collect();
        let mut folders = BTreeMap::new();
        for entry in self.repo.tree(top)? {
            let cluster = parts.get(&*String::from_utf8_lossy(&entry.name));
            if let (EntryKind::Folder(id), Some(cluster)) = (entry.kind, cluster) {
                folders.insert((*cluster).clone(), self.below(id)?);
            }
        }
        Ok(folders)
    }

    fn below(&mut self, cluster: TreeId) -> Result<Paths, InputError> {
        if let Some(known) = self.paths.get(&cluster) {
            return Ok(known.clone());
        }
        let mut paths = BTreeSet::new();
        for namespace in self.repo.tree(cluster)? {
            let EntryKind::Folder(id) = namespace.kind else { continue };
            let name = String::from_utf8_lossy(&namespace.name);
            for file in self.repo.tree(id)? {
                paths.insert(format!("{name}/{}", String::from_utf8_lossy(&file.name)).into());
            }
        }
        let paths = Arc::new(paths);
        self.paths.insert(cluster, paths.clone());
        Ok(paths)
    }
}
