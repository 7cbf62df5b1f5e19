//! The publications of the window that carried out losses: the ledger names them, and their trees say what there was.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::InputError;
use crate::publish::prune_permits::{Own, own_at};
use berth_base::model::{Decision, Key, Timestamp, path};
use berth_engine::gate::PastPublication;
use berth_engine::gate::window::{Paths, Taken, WorkloadPlaces};
use berth_engine::state::ledger::{Loss, Place, Stage};
use berth_engine::state::{Ledger, decision_file, layout};
use berth_git::{CommitId, EntryKind, Repo, TreeId};

/// The publications that carried out a loss found after `since`, newest first. `losing` are the clusters that lose
/// something now.
pub(super) fn pasts(
    repo: &Repo,
    ledger: &Ledger,
    since: Timestamp,
    losing: &BTreeSet<&str>,
) -> Result<Vec<PastPublication>, InputError> {
    let mut by_commit: BTreeMap<&str, Vec<(&Place, &Loss)>> = BTreeMap::new();
    for (place, loss) in &ledger.losses {
        if let Stage::Gone { before } = &loss.stage
            && loss.since > since
        {
            by_commit.entry(before).or_default().push((place, loss));
        }
    }
    let mut trees = Trees { repo, paths: BTreeMap::new() };
    let mut pasts: Vec<(Own, PastPublication)> = Vec::new();
    for (before, losses) in &by_commit {
        // A shallow clone may lack it: then its losses count no more.
        let Some(commit) = before.parse().ok().filter(|commit: &CommitId| repo.has_commit(*commit)) else {
            continue;
        };
        let Some((_, own)) = own_at(repo, commit)? else { continue };
        let mut past = PastPublication::default();
        for owner in losses.iter().map(|(_, loss)| &loss.owner).collect::<BTreeSet<&Key>>() {
            let Some(had) = trees.decision(own.root, owner)? else { continue };
            past.had.insert(owner.clone(), whole(&had));
        }
        let taken = |(place, loss): &(&Place, &Loss)| Taken {
            place: (*place).clone(),
            cause: loss.cause.clone(),
            exempt: loss.exempt,
        };
        past.took = losses.iter().map(taken).collect();
        pasts.push((own, past));
    }
    pasts.sort_by_key(|(own, _)| Reverse(own.trailers.seq));
    // A state of before tells of all clusters that lost something since.
    let mut clusters: BTreeSet<String> = losing.iter().map(|cluster| (*cluster).to_owned()).collect();
    for (own, past) in &mut pasts {
        clusters.extend(past.took.iter().map(|taken| taken.place.0.clone()));
        past.folders = trees.folders(own.root, &clusters)?;
    }
    Ok(pasts.into_iter().map(|(_, past)| past).collect())
}

/// Returns the places of a decision, without those whose removal was held then.
fn whole(decision: &Decision) -> WorkloadPlaces {
    let serving = decision.picks.iter().filter(|pick| !pick.pending && !pick.held);
    WorkloadPlaces {
        clusters: serving.map(|pick| pick.cluster.to_string()).collect(),
        paths: decision.objects.iter().map(|object| path::of_object(object).into()).collect(),
    }
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
