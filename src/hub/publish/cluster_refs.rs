//! One ref per cluster, whose tree is the cluster's folder: a member fetches nothing but its own objects.
//!
//! A cache: it can be derived again from the rendered branch at any time. A cluster without objects has
//! a ref with an empty tree, so that a member tells "nothing for you" from "no such cluster".

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_ref_cache::{ClusterRefCache, Settled, Sound};
use super::error::PublishError;
use super::own_commits::claimed;
use super::prune_permits;
use super::rendered_state::CurrentState;
use super::tree::write_folder;
use berth_base::model::applier::BERTH;
use berth_base::model::{Cluster, Map, Shared, Timestamp, path};
use berth_engine::state::layout;
use berth_git::protocol::cluster_ref::Replaced;
use berth_git::protocol::trailers::one_line;
use berth_git::protocol::{ClusterRef, Refs, cluster_ref};
use berth_git::signature::{AllowedSigners, PublicKey};
use berth_git::{CommitId, CommitInfo, Identity, RefMove, Repo, TreeId, Writer};

/// How far back the last change of a tree is looked for; beyond, the oldest commit seen stands for it.
const LONGEST_WALK: usize = 1_000;

/// The forged refs that a repair names, those with the highest sequences.
const MOST_REPLACED: usize = 16;

/// The cluster refs that a repair wrote and deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    pub written: Vec<String>,
    pub deleted: Vec<String>,
}

/// The contents that all cluster refs should have.
#[derive(Clone, Copy, Debug)]
pub struct WantedRefs<'a> {
    pub rendered: &'a CurrentState,
    /// The inventory. Clusters that still have objects count as well.
    pub clusters: &'a Map<String, Shared<Cluster>>,
    pub identity: &'a Identity,
    /// The moment at which the refs are said to be the newest.
    pub alive: Option<Timestamp>,
}

/// Brings all cluster refs to what the rendered commit says; correct ones are not touched.
pub fn repair(
    repo: &Repo,
    refs: &Refs,
    wanted: WantedRefs<'_>,
    cache: &mut ClusterRefCache,
) -> Result<Repaired, PublishError> {
    let WantedRefs { rendered, clusters, identity, alive } = wanted;
    let mut writer = Writer::new(repo)?;
    let key = identity.signer.as_ref().map(|signer| signer.public().clone());
    let fleet = identity.fleet.as_deref().or(rendered.trailers.fleet()).map(one_line);
    let mut now = Settled {
        rendered: rendered.commit,
        trees: rendered.trees.clone(),
        clusters: clusters.clone(),
        applied_by_others: BTreeSet::new(),
        is_own: rendered.foreign.is_empty(),
        refs: repo.list_refs(&refs.clusters)?,
        key: key.clone(),
        fleet: fleet.clone(),
        alive,
    };
    let settled = cache.settled.take();
    now.take_clusters(settled.as_ref());
    if settled.as_ref().is_some_and(|settled| settled.key != key) {
        // Another process asked for no signature, or for another one.
        cache.sound = Sound::default();
    }
    let changed = settled.as_ref().and_then(|settled| settled.changed(repo, &now, rendered));
    let known = KnownTrees::of(rendered, settled.as_ref());
    let mut existing = match &changed {
        Some(changed) => {
            let names = changed.iter().map(|cluster| refs.cluster(cluster));
            names
                .filter_map(|name| now.refs.get_key_value(&name).map(|(name, id)| (name.clone(), *id)))
                .collect()
        }
        None => now.refs.clone(),
    };
    let has_objects = |cluster: &String| {
        let folder = rendered.state.folders.get(cluster);
        folder.is_some_and(|folder| !folder.is_empty())
    };
    let is_wanted = |cluster: &&String| clusters.contains_key(*cluster) || has_objects(cluster);
    let wanted: BTreeSet<&String> = match &changed {
        Some(changed) => changed.iter().filter(is_wanted).collect(),
        None => clusters.keys().chain(rendered.state.folders.keys()).filter(is_wanted).collect(),
    };
    let mut stale: BTreeMap<&str, (TreeId, Option<CommitId>)> = BTreeMap::new();
    // Refs that let something go, and that no signature vouches for.
    let mut doubtful: BTreeMap<&str, (TreeId, CommitId, BTreeSet<String>)> = BTreeMap::new();
    // Refs whose folder must have stayed since a number: it may have changed and come back.
    let mut standing: BTreeMap<&str, (TreeId, CommitId, u64)> = BTreeMap::new();
    for cluster in wanted {
        let tree = folder_tree(&mut writer, rendered, cluster)?;
        let old = existing.remove(&refs.cluster(cluster));
        let now = old.and_then(|commit| cache.read(repo, commit));
        let current = now.zip(old).filter(|(now, _)| {
            now.tree == tree
                && now.cluster == one_line(cluster)
                && now.fleet == fleet
                && now.applier.as_deref() == applier_of(clusters, cluster)
                && now.seq <= rendered.trailers.seq
                && alive.is_none_or(|alive| now.alive.is_some_and(|said| said >= alive))
                // What was made before there was a key, or under another one, is signed anew.
                && (key.is_none() || now.claimed_key == key)
        });
        match current {
            Some((now, commit)) => {
                let until = cache.sound.until(commit);
                if until.is_none() && !is_sound(repo, commit, &now, key.as_ref())? {
                    stale.insert(cluster, (tree, old));
                    continue;
                }
                standing.insert(cluster, (tree, commit, until.unwrap_or(now.seq)));
                if until.is_none() && key.is_none() && !now.allow_prune.is_empty() {
                    doubtful.insert(cluster, (tree, commit, now.allow_prune));
                }
            }
            None => {
                stale.insert(cluster, (tree, old));
            }
        }
    }
    let replayed = changed_since(repo, rendered, &standing, &known)?;
    // Where only these clusters changed, all others stayed as they were.
    let mut sound =
        if changed.is_some() { std::mem::take(&mut cache.sound.commits) } else { BTreeSet::new() };
    for (cluster, (tree, commit, _)) in standing {
        if replayed.contains(cluster) {
            sound.remove(&commit);
            stale.insert(cluster, (tree, Some(commit)));
        } else {
            sound.insert(commit);
        }
    }
    let allowed = prune_permits::prunable(
        repo,
        rendered.commit,
        &doubtful.keys().copied().collect(),
        &mut cache.permits,
    )?;
    for (cluster, (tree, commit, said)) in doubtful {
        if allowed.get(cluster) != Some(&said) {
            sound.remove(&commit);
            stale.insert(cluster, (tree, Some(commit)));
        }
    }
    let since = last_changes(repo, rendered, &stale, &known)?;
    let prunable =
        prune_permits::prunable(repo, rendered.commit, &stale.keys().copied().collect(), &mut cache.permits)?;
    let mut repaired = Repaired::default();
    let mut moves = Vec::new();
    repo.progress().begin_of("writing the clusters' refs", stale.len());
    for (cluster, (tree, old)) in stale {
        repo.progress().add(1);
        let (seq, seconds) = since.get(cluster).copied().unwrap_or((rendered.trailers.seq, rendered.seconds));
        let target = refs.cluster(cluster);
        let last = settled.as_ref().and_then(|settled| settled.refs.get(&target).copied());
        let (named, places) = (one_line(cluster), [old, last]);
        let replaces = replaced(repo, cache, (&named, places), Replaced { seq, tree }, key.as_ref())?;
        let said = ClusterRef {
            cluster: named,
            fleet: fleet.clone(),
            seq,
            tree,
            allow_prune: prunable.get(cluster).cloned().unwrap_or_default(),
            format: cluster_ref::CLUSTER_REF_FORMAT,
            applier: applier_of(clusters, cluster).map(str::to_owned),
            alive,
            replaces,
            claimed_key: key.clone(),
        };
        let seconds = alive.map_or(seconds, |alive| seconds.max(alive.as_second()));
        let commit = writer.commit_later(tree, &[], &said.message(), identity, seconds)?;
        if old.is_none() {
            repo.discard_broken_ref(&target)?;
        }
        moves.push(RefMove { name: target.clone(), old, new: commit });
        now.refs.insert(target.clone(), commit);
        cache.insert(commit, said);
        sound.insert(commit);
        repaired.written.push(cluster.to_owned());
    }
    // First those that nobody wants: a new ref's name can be above theirs, or below.
    for (name, commit) in existing {
        repo.delete_ref(&name, commit)?;
        now.refs.remove(&name);
        repaired.deleted.push(name);
    }
    if let Some(new) = moves.iter().find(|one| one.old.is_none()) {
        repo.clear_above(&new.name)?;
    }
    repo.move_refs(&moves)?;
    let listed = repo.list_refs(&refs.clusters)?;
    if listed == now.refs {
        // The same memory.
        now.refs = listed;
    }
    cache.sound = Sound { commits: sound, until: rendered.trailers.seq };
    cache.settled = Some(now);
    Ok(repaired)
}

/// Returns the refs that a member may have followed, and that the new one takes back: those in its place now, which berth
/// did not write if they are ahead of it, and those that earlier ones took back.
fn replaced(
    repo: &Repo,
    cache: &mut ClusterRefCache,
    (cluster, places): (&str, [Option<CommitId>; 2]),
    new: Replaced,
    key: Option<&PublicKey>,
) -> Result<BTreeSet<Replaced>, PublishError> {
    let mut found = BTreeSet::new();
    for commit in places.into_iter().flatten() {
        let Some(said) = cache.read(repo, commit).filter(|said| said.cluster == cluster) else { continue };
        if is_sound(repo, commit, &said, key)? {
            found.extend(said.replaces.iter().copied());
        }
        found.insert(Replaced { seq: said.seq, tree: said.tree });
    }
    found.retain(|one| one.seq > new.seq || one.seq == new.seq && one.tree != new.tree);
    while found.len() > MOST_REPLACED {
        found.pop_first();
    }
    Ok(found)
}

/// Returns the name of the program that applies a cluster's folder, where it is another than berth.
fn applier_of(clusters: &Map<String, Shared<Cluster>>, cluster: &str) -> Option<&'static str> {
    let applier = clusters.get(cluster)?.applier?;
    (*applier != BERTH).then_some(applier.name)
}

/// Reports whether a ref's commit says nothing but what it was read as, and a signature fits it.
fn is_sound(
    repo: &Repo,
    commit: CommitId,
    said: &ClusterRef,
    key: Option<&PublicKey>,
) -> Result<bool, PublishError> {
    if said.message() != repo.commit(commit)?.message {
        return Ok(false);
    }
    Ok(match key {
        Some(key) => repo.vouch(commit, &AllowedSigners::of(key))?.is_ok(),
        None => true,
    })
}

/// The cluster's folder without anything foreign.
pub(super) fn folder_tree(
    writer: &mut Writer<'_>,
    rendered: &CurrentState,
    cluster: &str,
) -> Result<TreeId, PublishError> {
    match (rendered.trees.get(cluster), rendered.state.folders.get(cluster)) {
        (Some(tree), _) => Ok(*tree),
        (None, Some(folder)) => write_folder(writer, folder),
        (None, None) => Ok(TreeId::EMPTY),
    }
}

/// The clusters whose tree was another one after the number given. A member that applied that one refuses the number.
fn changed_since<'c>(
    repo: &Repo,
    rendered: &CurrentState,
    standing: &BTreeMap<&'c str, (TreeId, CommitId, u64)>,
    known: &KnownTrees<'_>,
) -> Result<BTreeSet<&'c str>, PublishError> {
    let newest = rendered.trailers.seq;
    let mut changed = BTreeSet::new();
    let mut open: BTreeMap<&str, (TreeId, u64)> =
        standing.iter().map(|(cluster, (tree, _, seq))| (*cluster, (*tree, *seq))).collect();
    open.retain(|_, (_, seq)| seq.saturating_add(1) < newest);
    for commit in repo.first_parents(rendered.commit).take(LONGEST_WALK) {
        if open.is_empty() {
            break;
        }
        let Some(trailers) = claimed(repo, &commit)?.filter(|trailers| trailers.seq < newest) else {
            continue;
        };
        open.retain(|_, (_, seq)| *seq < trailers.seq);
        let trees = known.of_clusters(repo, &commit, open.keys())?;
        open.retain(|cluster, (tree, _)| {
            let stayed = tree_in(&trees, cluster) == *tree;
            if !stayed {
                changed.insert(*cluster);
            }
            stayed
        });
    }
    Ok(changed)
}

/// At which sequence number and date each of these trees came to be: one walk back for all of them.
fn last_changes<'c>(
    repo: &Repo,
    rendered: &CurrentState,
    stale: &BTreeMap<&'c str, (TreeId, Option<CommitId>)>,
    known: &KnownTrees<'_>,
) -> Result<BTreeMap<&'c str, (u64, i64)>, PublishError> {
    let mut since = BTreeMap::new();
    let mut open: BTreeMap<&str, TreeId> =
        stale.iter().map(|(cluster, (tree, _))| (*cluster, *tree)).collect();
    for commit in repo.first_parents(rendered.commit).take(LONGEST_WALK) {
        if open.is_empty() {
            break;
        }
        let Some(trailers) = claimed(repo, &commit)? else { continue };
        let trees = known.of_clusters(repo, &commit, open.keys())?;
        open.retain(|cluster, tree| tree_in(&trees, cluster) == *tree);
        // A proof compares the moment, and passes over the date, which somebody may have set back.
        let moment = trailers.now.map_or(commit.seconds, |now| now.as_second());
        let seconds = commit.seconds.max(moment);
        since.extend(open.keys().map(|cluster| (*cluster, (trailers.seq, seconds))));
    }
    Ok(since)
}

fn tree_in(trees: &BTreeMap<String, TreeId>, cluster: &str) -> TreeId {
    trees.get(&path::encode(cluster)).copied().unwrap_or(TreeId::EMPTY)
}

/// The trees of all clusters in commits of which they are known already.
struct KnownTrees<'a>(Vec<(CommitId, &'a Map<String, TreeId>)>);

impl<'a> KnownTrees<'a> {
    /// Those of the current state and of the last repair, if nobody else changed anything there.
    fn of(rendered: &'a CurrentState, settled: Option<&'a Settled>) -> KnownTrees<'a> {
        let now = rendered.foreign.is_empty().then_some((rendered.commit, &rendered.trees));
        let before =
            settled.filter(|settled| settled.is_own).map(|settled| (settled.rendered, &settled.trees));
        KnownTrees(now.into_iter().chain(before).collect())
    }

    /// Returns the folders of these clusters in a commit, by their names on the branch.
    fn of_clusters<'c>(
        &self,
        repo: &Repo,
        commit: &CommitInfo,
        clusters: impl Iterator<Item = &'c &'c str>,
    ) -> Result<BTreeMap<String, TreeId>, PublishError> {
        if let Some((_, trees)) = self.0.iter().find(|(known, _)| *known == commit.id) {
            let tree = |cluster: &&str| Some((path::encode(cluster), *trees.get(*cluster)?));
            return Ok(clusters.filter_map(tree).collect());
        }
        let all = repo.folders_named(commit.tree, [layout::CLUSTERS])?;
        let names: Vec<String> = clusters.map(|cluster| path::encode(cluster)).collect();
        let clusters = all.get(layout::CLUSTERS).copied().unwrap_or(TreeId::EMPTY);
        Ok(repo.folders_named(clusters, names.iter().map(String::as_str))?)
    }
}
