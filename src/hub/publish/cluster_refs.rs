//! One ref per cluster, whose tree is the cluster's folder: a member fetches only its own objects.
//!
//! These refs are a cache, which can be derived again from the rendered branch. A cluster without objects has a ref
//! with an empty tree, so that a member can distinguish an empty folder from an unknown cluster.
//!
//! Each cluster whose folder another program applies has a branch too, since such programs do not read berth's own
//! refs. It is a cache like the cluster refs: each commit can be derived from the folder on the rendered branch.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_ref_cache::{ClusterRefCache, Settled, Sound};
use super::error::PublishError;
use super::folder_history::{self, KnownTrees};
use super::own_files::{remember, remembered};
use super::prune_permits;
use super::rendered_state::CurrentState;
use super::tree::write_folder;
use berth_base::model::applier::BERTH;
use berth_base::model::{Cluster, Map, Shared, Timestamp};
use berth_git::shared_refs::cluster_ref::{self, Replaced};
use berth_git::shared_refs::trailers::one_line;
use berth_git::shared_refs::{ClusterRef, Refs, write_cluster_branch};
use berth_git::signature::{AllowedSigners, PublicKey};
use berth_git::{CommitId, Identity, RefMove, Repo, TreeId, Writer};

/// The number of forged refs that a repair names: those with the highest sequences.
const MOST_REPLACED: usize = 16;

/// The cluster refs that a repair wrote and deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    pub written: Vec<String>,
    pub deleted: Vec<String>,
}

/// The inputs of all cluster refs.
#[derive(Clone, Copy, Debug)]
pub struct WantedRefs<'a> {
    pub rendered: &'a CurrentState,
    /// The inventory. Other clusters with objects also get refs.
    pub clusters: &'a Map<String, Shared<Cluster>>,
    pub identity: &'a Identity,
    /// The heartbeat at which the refs confirm that they are the newest.
    pub alive: Option<Timestamp>,
}

/// Updates all cluster refs to the rendered commit. Leaves correct refs unchanged.
pub fn repair(
    repo: &Repo,
    refs: &Refs,
    wanted: WantedRefs<'_>,
    cache: &mut ClusterRefCache,
) -> Result<Repaired, PublishError> {
    let (mut repair, changed) = Repair::begin(repo, refs, wanted, cache)?;
    let compared = repair.compare(changed)?;
    let stale = repair.judge(compared.stale, compared.standing)?;
    let (written, moves) = repair.write(stale)?;
    let deleted = repair.move_refs(compared.unwanted, &moves)?;
    repair.end()?;
    Ok(Repaired { written, deleted })
}

/// A repair in progress. Its stages: compare the refs, check those that look right, write the stale ones, move.
struct Repair<'a> {
    repo: &'a Repo,
    refs: &'a Refs,
    wanted: WantedRefs<'a>,
    cache: &'a mut ClusterRefCache,
    writer: Writer<'a>,
    /// The state of the last repair, and of this one.
    last: Option<Settled>,
    now: Settled,
    /// Only changed clusters are compared; all others are as the last repair left them.
    is_partial: bool,
    /// Commits whose text and signature are exactly as berth writes them.
    sound: BTreeSet<CommitId>,
}

/// A ref to write: its folder, and the commit that it points to now.
struct StaleRef {
    tree: TreeId,
    old: Option<CommitId>,
}

/// A ref whose content looks right.
struct StandingRef {
    tree: TreeId,
    commit: CommitId,
    /// The folder must be unchanged since this sequence. It may have changed and changed back.
    since: u64,
    /// Objects that the ref allows to prune, if no signature proves that berth wrote this.
    unproven_prunes: Option<BTreeSet<String>>,
}

#[derive(Default)]
struct Compared {
    stale: BTreeMap<String, StaleRef>,
    standing: BTreeMap<String, StandingRef>,
    /// The refs of clusters that no longer exist.
    unwanted: Map<String, CommitId>,
}

impl<'a> Repair<'a> {
    /// Begins a repair. Also returns the clusters to compare; `None` for all.
    fn begin(
        repo: &'a Repo,
        refs: &'a Refs,
        wanted: WantedRefs<'a>,
        cache: &'a mut ClusterRefCache,
    ) -> Result<(Repair<'a>, Option<BTreeSet<String>>), PublishError> {
        let WantedRefs { rendered, clusters, identity, alive } = wanted;
        let mut now = Settled {
            rendered: rendered.commit,
            trees: rendered.trees.clone(),
            clusters: clusters.clone(),
            applied_by_others: BTreeSet::new(),
            is_own: rendered.foreign.is_empty(),
            refs: repo.list_refs(&refs.clusters)?,
            key: identity.signer.as_ref().map(|signer| signer.public().clone()),
            fleet: identity.fleet.as_deref().or(rendered.trailers.fleet()).map(one_line),
            alive,
        };
        let last = cache.settled.take();
        now.take_clusters(last.as_ref());
        if last.as_ref().is_some_and(|last| last.key != now.key) {
            // The signing key changed, so earlier commits need another signature.
            cache.sound = Sound::default();
        }
        let changed = last.as_ref().and_then(|last| last.changed(repo, &now, rendered));
        let (writer, sound) = (Writer::new(repo)?, BTreeSet::new());
        let is_partial = changed.is_some();
        Ok((Repair { repo, refs, wanted, cache, writer, last, now, is_partial, sound }, changed))
    }

    /// Compares the refs with the content that they should have.
    fn compare(&mut self, changed: Option<BTreeSet<String>>) -> Result<Compared, PublishError> {
        let mut compared = Compared { unwanted: self.existing(changed.as_ref()), ..Compared::default() };
        for cluster in self.clusters(changed) {
            let tree = folder_tree(&mut self.writer, self.wanted.rendered, &cluster)?;
            let old = compared.unwanted.remove(&self.refs.cluster(&cluster));
            match self.standing(&cluster, tree, old)? {
                Some(standing) => drop(compared.standing.insert(cluster, standing)),
                None => drop(compared.stale.insert(cluster, StaleRef { tree, old })),
            }
        }
        Ok(compared)
    }

    /// Returns the refs to compare, as they are now.
    fn existing(&self, changed: Option<&BTreeSet<String>>) -> Map<String, CommitId> {
        let Some(changed) = changed else { return self.now.refs.clone() };
        let names = changed.iter().map(|cluster| self.refs.cluster(cluster));
        names.filter_map(|name| self.now.refs.get(&name).map(|id| (name.clone(), *id))).collect()
    }

    /// Returns the clusters to compare that should have a ref.
    fn clusters(&self, changed: Option<BTreeSet<String>>) -> BTreeSet<String> {
        let WantedRefs { rendered, clusters, .. } = self.wanted;
        let folders = &rendered.state.folders;
        let has_objects = |cluster: &String| folders.get(cluster).is_some_and(|folder| !folder.is_empty());
        let is_wanted = |cluster: &&String| clusters.contains_key(*cluster) || has_objects(cluster);
        match changed {
            Some(mut changed) => {
                changed.retain(|cluster| is_wanted(&cluster));
                changed
            }
            None => clusters.keys().chain(folders.keys()).filter(is_wanted).cloned().collect(),
        }
    }

    /// Returns a cluster's ref if its content looks right.
    fn standing(
        &mut self,
        cluster: &str,
        tree: TreeId,
        old: Option<CommitId>,
    ) -> Result<Option<StandingRef>, PublishError> {
        let Some(commit) = old else { return Ok(None) };
        let Some(found) = self.cache.read(self.repo, commit) else { return Ok(None) };
        if !self.says_what_it_should(&found, cluster, tree) {
            return Ok(None);
        }
        let key = self.now.key.as_ref();
        let until = self.cache.sound.until(commit);
        if until.is_none() && !is_sound(self.repo, commit, &found, key)? {
            return Ok(None);
        }
        let is_unproven = until.is_none() && key.is_none() && !found.allow_prune.is_empty();
        Ok(Some(StandingRef {
            tree,
            commit,
            since: until.unwrap_or(found.seq),
            unproven_prunes: is_unproven.then_some(found.allow_prune),
        }))
    }

    fn says_what_it_should(&self, found: &ClusterRef, cluster: &str, tree: TreeId) -> bool {
        let WantedRefs { rendered, clusters, alive, .. } = self.wanted;
        found.tree == tree
            && found.cluster == one_line(cluster)
            && found.fleet == self.now.fleet
            && found.applier.as_deref() == applier_of(clusters, cluster)
            && found.seq <= rendered.trailers.seq
            && alive.is_none_or(|alive| found.alive.is_some_and(|said| said >= alive))
            // A commit without a signature, or with another key's, is written again.
            && (self.now.key.is_none() || found.claimed_key == self.now.key)
    }

    /// Returns the stale refs, including those that only look right: their folder changed and changed back, or they
    /// allow to prune an object without a permit.
    fn judge(
        &mut self,
        mut stale: BTreeMap<String, StaleRef>,
        standing: BTreeMap<String, StandingRef>,
    ) -> Result<BTreeMap<String, StaleRef>, PublishError> {
        if self.is_partial {
            // Only these clusters changed, so all others stay sound.
            self.sound = std::mem::take(&mut self.cache.sound.commits);
        }
        let rendered = self.wanted.rendered;
        let known = KnownTrees::of(rendered, self.last.as_ref());
        let since = standing.iter().map(|(cluster, one)| (cluster.as_str(), (one.tree, one.since)));
        let changed = folder_history::changed_since(self.repo, rendered, since.collect(), &known)?;
        let unproven = standing.iter().filter(|(_, one)| one.unproven_prunes.is_some());
        let unproven = unproven.map(|(cluster, _)| cluster.as_str()).collect();
        let permits =
            prune_permits::prunable(self.repo, rendered.commit, &unproven, &mut self.cache.permits)?;
        for (cluster, one) in &standing {
            let prunes = one.unproven_prunes.as_ref();
            let may_prune = prunes.is_none_or(|prunes| permits.get(cluster.as_str()) == Some(prunes));
            if may_prune && !changed.contains(cluster.as_str()) {
                self.sound.insert(one.commit);
            } else {
                self.sound.remove(&one.commit);
                stale.insert(cluster.clone(), StaleRef { tree: one.tree, old: Some(one.commit) });
            }
        }
        Ok(stale)
    }

    /// Writes the commits of stale refs. Returns their clusters, and the moves to these commits.
    fn write(
        &mut self,
        stale: BTreeMap<String, StaleRef>,
    ) -> Result<(Vec<String>, Vec<RefMove>), PublishError> {
        let WantedRefs { rendered, clusters, identity, alive } = self.wanted;
        let trees = stale.iter().map(|(cluster, one)| (cluster.as_str(), one.tree)).collect();
        let known = KnownTrees::of(rendered, self.last.as_ref());
        let since = folder_history::last_changes(self.repo, rendered, trees, &known)?;
        let names = stale.keys().map(String::as_str).collect();
        let prunable = prune_permits::prunable(self.repo, rendered.commit, &names, &mut self.cache.permits)?;
        let mut moves = Vec::new();
        self.repo.progress().begin_of("writing the clusters' refs", stale.len());
        for (cluster, StaleRef { tree, old }) in &stale {
            self.repo.progress().add(1);
            let now = (rendered.trailers.seq, rendered.seconds);
            let (seq, seconds) = since.get(cluster.as_str()).copied().unwrap_or(now);
            let name = self.refs.cluster(cluster);
            let named = one_line(cluster);
            let replaces = self.replaced(&name, *old, &named, Replaced { seq, tree: *tree })?;
            let contents = ClusterRef {
                cluster: named,
                fleet: self.now.fleet.clone(),
                seq,
                tree: *tree,
                allow_prune: prunable.get(cluster.as_str()).cloned().unwrap_or_default(),
                format: cluster_ref::CLUSTER_REF_FORMAT,
                applier: applier_of(clusters, cluster).map(str::to_owned),
                alive,
                replaces,
                claimed_key: self.now.key.clone(),
            };
            let seconds = alive.map_or(seconds, |alive| seconds.max(alive.as_second()));
            let commit = self.writer.commit_later(*tree, &[], &contents.message(), identity, seconds)?;
            if old.is_none() {
                self.repo.discard_broken_ref(&name)?;
            }
            moves.push(RefMove { name: name.clone(), old: *old, new: commit });
            if !contents.replaces.is_empty() {
                remember(self.repo, &name, commit);
            }
            self.now.refs.insert(name, commit);
            self.cache.insert(commit, contents);
            self.sound.insert(commit);
        }
        Ok((stale.into_keys().collect(), moves))
    }

    /// Returns the refs that a member may have followed and that the new one replaces: forged refs in its place with
    /// a higher sequence, and the refs that those replaced.
    fn replaced(
        &mut self,
        name: &str,
        old: Option<CommitId>,
        cluster: &str,
        new: Replaced,
    ) -> Result<BTreeSet<Replaced>, PublishError> {
        let is_ahead = |one: &Replaced| one.seq > new.seq || one.seq == new.seq && one.tree != new.tree;
        let last = self.last.as_ref().and_then(|last| last.refs.get(name).copied());
        let mut found = self.replaced_by(old.into_iter().chain(last), cluster)?;
        found.retain(is_ahead);
        if !found.is_empty() {
            // An earlier process may have replaced others.
            found.extend(self.replaced_by(remembered(self.repo, name), cluster)?);
            found.retain(is_ahead);
        }
        while found.len() > MOST_REPLACED {
            found.pop_first();
        }
        Ok(found)
    }

    /// Returns these commits of a cluster, and the refs that they replaced.
    fn replaced_by(
        &mut self,
        commits: impl IntoIterator<Item = CommitId>,
        cluster: &str,
    ) -> Result<BTreeSet<Replaced>, PublishError> {
        let mut found = BTreeSet::new();
        for commit in commits {
            let of_cluster = self.cache.read(self.repo, commit).filter(|one| one.cluster == cluster);
            let Some(one) = of_cluster else { continue };
            if is_sound(self.repo, commit, &one, self.now.key.as_ref())? {
                found.extend(one.replaces.iter().copied());
            }
            found.insert(Replaced { seq: one.seq, tree: one.tree });
        }
        Ok(found)
    }

    /// Moves the refs. Returns the names of deleted ones.
    fn move_refs(
        &mut self,
        unwanted: Map<String, CommitId>,
        moves: &[RefMove],
    ) -> Result<Vec<String>, PublishError> {
        let mut deleted = Vec::new();
        // Unwanted refs are deleted first, because their names can conflict with new ones.
        for (name, commit) in &unwanted {
            self.repo.delete_ref(name, *commit)?;
            self.now.refs.remove(name);
            deleted.push(name.clone());
        }
        if let Some(new) = moves.iter().find(|one| one.old.is_none()) {
            self.repo.clear_above(&new.name)?;
        }
        self.repo.move_refs(moves)?;
        Ok(deleted)
    }

    /// Stores this repair in the cache.
    fn end(mut self) -> Result<(), PublishError> {
        let listed = self.repo.list_refs(&self.refs.clusters)?;
        if listed == self.now.refs {
            // Keeps the equal map that shares memory with the repository's cache.
            self.now.refs = listed;
        }
        self.cache.sound = Sound { commits: self.sound, until: self.wanted.rendered.trailers.seq };
        self.cache.settled = Some(self.now);
        Ok(())
    }
}

/// Returns the name of the program that applies a cluster's folder, if it is not berth.
fn applier_of(clusters: &Map<String, Shared<Cluster>>, cluster: &str) -> Option<&'static str> {
    let applier = clusters.get(cluster)?.applier?;
    (*applier != BERTH).then_some(applier.name)
}

/// Reports whether a ref's commit has exactly the message that berth writes, and a valid signature.
fn is_sound(
    repo: &Repo,
    commit: CommitId,
    found: &ClusterRef,
    key: Option<&PublicKey>,
) -> Result<bool, PublishError> {
    if found.message() != repo.commit(commit)?.message {
        return Ok(false);
    }
    Ok(match key {
        Some(key) => repo.vouch(commit, &AllowedSigners::of(key))?.is_ok(),
        None => true,
    })
}

/// Returns the cluster's folder without foreign files.
fn folder_tree(
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

/// Updates the branches of these clusters to the rendered commit. Removes the branches of other clusters.
pub fn repair_branches<'c>(
    repo: &Repo,
    refs: &Refs,
    clusters: impl Iterator<Item = &'c String>,
    rendered: &CurrentState,
) -> Result<(), PublishError> {
    let mut writer = Writer::new(repo)?;
    let mut existing: BTreeMap<String, CommitId> =
        repo.list_refs(&refs.cluster_branches)?.iter().map(|(name, id)| (name.clone(), *id)).collect();
    let mut moves = Vec::new();
    for name in clusters {
        let tree = folder_tree(&mut writer, rendered, name)?;
        let target = refs.cluster_branch(name);
        let old = existing.remove(&target);
        // A commit with this tree may have another message or a parent, and so another revision.
        let new = write_cluster_branch(&mut writer, name, tree)?;
        if old != Some(new) {
            if old.is_none() {
                repo.discard_broken_ref(&target)?;
            }
            moves.push(RefMove { name: target, old, new });
        }
    }
    for (name, commit) in existing {
        repo.delete_ref(&name, commit)?;
    }
    Ok(repo.move_refs(&moves)?)
}
