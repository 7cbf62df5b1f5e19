//! Decisions and templates → every cluster's objects, by content id.
//!
//! A copy that no override changes is made, written and stored once, however many clusters have it. A fault
//! concerns one cluster's copy of one object: there the last good form stays, if any, and everything else is
//! rendered as usual.

mod cache;
mod cache_key;
mod claims;
mod conflicts;
mod copies;
mod current_copies;
mod final_fields;
mod frozen;
mod memory_contents;
mod override_trace;
mod problems;
mod replicas;
mod stored_cache;
mod uncertain;
mod warnings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::diag::Diagnostics;
use berth_base::model::{
    ContentError, ContentId, Contents, Decision, Fleet, Folders, Key, Map, ObjectId, Pick, Shared, Workload,
};
use cache::Reused;
use claims::{Claim, Picks};
use copies::{Copies, Made, Store};
use current_copies::CurrentCopies;
use problems::Problems;

pub use cache::ProcessCache;
pub use memory_contents::MemoryContents;
pub use override_trace::{AppliedOverride, OverriddenCopy, touched};
pub use stored_cache::StoredCache;

/// The current state, as far as rendering needs it.
#[derive(Clone, Copy, Debug)]
pub struct Previous<'a> {
    pub decisions: &'a Map<Key, Decision>,
    pub folders: &'a Folders,
}

/// Every cluster's folder; one that gets nothing has an empty one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    pub folders: Folders,
    pub diagnostics: Diagnostics,
}

/// Renders all workloads to the clusters picked for them, and notes in each decision which objects it
/// stands for and which copies could not be made.
pub fn render(
    fleet: &Fleet,
    decisions: &mut Map<Key, Decision>,
    previous: Previous<'_>,
    contents: &mut dyn Contents,
) -> Result<Rendered, ContentError> {
    let frozen = frozen::workloads(fleet, previous);
    let groups = claims::group(fleet, &frozen, &picks_of(decisions));
    let rendering = Rendering::new(fleet, previous, contents);
    Ok(rendering.finish(cache::nothing(fleet), &groups, decisions)?.rendered)
}

/// The cache that an earlier rendering left.
#[derive(Clone, Debug)]
pub(crate) enum RenderCache {
    /// Left by this process: `contents` must still hold the contents of that rendering.
    Process(ProcessCache),
    /// Left by another process: its rendering became the current state.
    Stored(StoredCache),
}

/// [`render`], reusing unchanged copies of an earlier rendering.
pub(crate) fn render_after(
    earlier: Option<&RenderCache>,
    fleet: &Shared<Fleet>,
    decisions: &mut Map<Key, Decision>,
    previous: Previous<'_>,
    contents: &mut dyn Contents,
) -> Result<(Rendered, ProcessCache), ContentError> {
    let picks = picks_of(decisions);
    let frozen = frozen::workloads(fleet, previous);
    let groups = claims::group(fleet, &frozen, &picks);
    let reused = match earlier {
        None => cache::nothing(fleet),
        Some(RenderCache::Process(cache)) => cache::reuse(cache, fleet, &groups),
        Some(RenderCache::Stored(stored)) => stored.reuse(previous.folders, fleet, &groups),
    };
    let keys = reused.keys.clone();
    let done = Rendering::new(fleet, previous, contents).finish(reused, &groups, decisions)?;
    let (folders, clean) = (done.made, done.clean);
    let cache = ProcessCache { fleet: fleet.clone(), frozen, picks, folders, clean, keys };
    Ok((done.rendered, cache))
}

/// Returns the picks that are served now: clusters that wait for their turn are left out.
fn picks_of(decisions: &Map<Key, Decision>) -> Picks {
    let served = |decision: &Decision| match decision.picks.iter().any(|pick| pick.pending) {
        true => decision.picks.iter().filter(|pick| !pick.pending).cloned().collect::<Vec<_>>().into(),
        false => decision.picks.clone(),
    };
    decisions.iter().map(|(key, decision)| (key.clone(), served(decision))).collect()
}

/// A rendering, and the parts of it that the next one may reuse.
struct Done {
    rendered: Rendered,
    /// The folders with the claims' copies alone.
    made: Folders,
    clean: BTreeSet<String>,
}

/// A rendering under way: what it reads, and what it has made so far.
struct Rendering<'a> {
    fleet: &'a Fleet,
    previous: Previous<'a>,
    history: CurrentCopies<'a>,
    store: Store<'a>,
    rendered: Rendered,
    problems: Problems,
}

impl<'a> Rendering<'a> {
    fn new(fleet: &'a Fleet, previous: Previous<'a>, contents: &'a mut dyn Contents) -> Rendering<'a> {
        Rendering {
            fleet,
            previous,
            history: CurrentCopies::new(previous),
            store: Store::new(contents),
            rendered: Rendered::default(),
            problems: Problems::default(),
        }
    }

    /// Makes all copies that cannot be reused.
    fn finish(
        mut self,
        reused: Reused,
        groups: &BTreeMap<String, Vec<Claim<'_>>>,
        decisions: &mut Map<Key, Decision>,
    ) -> Result<Done, ContentError> {
        self.rendered.folders = reused.folders;
        let mut clean = reused.unchanged;
        warnings::collect(self.fleet, decisions, &mut self.rendered.diagnostics);
        note_objects(self.fleet, groups, decisions, self.previous);
        for (path, group) in groups {
            if clean.contains(path) {
                continue;
            }
            self.store.forget();
            let said = self.said();
            match group.as_slice() {
                [claim] => self.place_one(claim)?,
                contested => conflicts::place(&mut self, contested)?,
            }
            // Copies that read the current state, or caused a diagnostic, are made anew each time.
            if let [claim] = group.as_slice()
                && said == self.said()
                && !claim.workload.frozen
            {
                clean.insert(path.clone());
            }
        }
        let mut rendered = self.rendered;
        let made = rendered.folders.clone();
        if self.fleet.doubt.objects {
            uncertain::carry(decisions, self.previous, &mut rendered.folders);
        }
        self.problems.report(decisions, &mut rendered.diagnostics);
        Ok(Done { rendered, made, clean })
    }

    /// The counts of diagnostics and problems so far.
    fn said(&self) -> (usize, usize) {
        (self.rendered.diagnostics.len(), self.problems.count())
    }

    /// Places an object that no other workload places.
    fn place_one(&mut self, claim: &Claim<'_>) -> Result<(), ContentError> {
        let mut copies = Copies::new(self.fleet, claim);
        for cluster in claim.clusters() {
            let content = match copies.make(cluster, &mut self.rendered.diagnostics) {
                Made::Copy(draft) => Some(draft.id(&claim.workload.key, &mut self.store)?),
                Made::Deleted => None,
                Made::Frozen => self.history.last_good(claim, cluster),
                Made::Failed(fault) => {
                    self.problems.add(claim, cluster, fault);
                    self.history.last_good(claim, cluster)
                }
            };
            if let Some(content) = content {
                put(&mut self.rendered.folders, cluster, &claim.path, content);
            }
        }
        Ok(())
    }
}

/// Renders one workload alone. Copies that cannot be made are left out.
pub(crate) fn copies_of(
    fleet: &Fleet,
    workload: &Workload,
    picks: &Shared<Vec<Pick>>,
    contents: &mut dyn Contents,
) -> Result<Folders, ContentError> {
    let (mut folders, mut store) = (Folders::new(), Store::new(contents));
    for claim in claims::of_workload(fleet, workload, picks) {
        let mut copies = Copies::new(fleet, &claim);
        for cluster in claim.clusters() {
            if let Made::Copy(draft) = copies.make(cluster, &mut Diagnostics::new()) {
                put(&mut folders, cluster, &claim.path, draft.id(&workload.key, &mut store)?);
            }
        }
        store.forget();
    }
    Ok(folders)
}

/// Puts a copy into a folder. A cluster missing from the inventory keeps its folder too.
fn put(folders: &mut Folders, cluster: &str, path: &Arc<str>, content: ContentId) {
    match folders.get_mut(cluster) {
        Some(folder) => folder.insert(path.clone(), content),
        None => folders.or_default(cluster).insert(path.clone(), content),
    };
}

/// Gives each decision the objects that go to its clusters, without rendering them.
pub fn objects(fleet: &Fleet, decisions: &mut Map<Key, Decision>, previous: Previous<'_>) {
    let frozen = frozen::workloads(fleet, previous);
    let groups = claims::group(fleet, &frozen, &picks_of(decisions));
    note_objects(fleet, &groups, decisions, previous);
}

fn note_objects(
    fleet: &Fleet,
    groups: &BTreeMap<String, Vec<Claim<'_>>>,
    decisions: &mut Map<Key, Decision>,
    previous: Previous<'_>,
) {
    // Objects that an override moved to another API group are the copies' alone.
    let mut moved: BTreeMap<&Key, Vec<&ObjectId>> = BTreeMap::new();
    for claim in groups.values().flatten().filter(|claim| *claim.id != claim.template.object.id) {
        moved.entry(&claim.workload.key).or_default().push(&claim.id);
    }
    for (key, decision) in decisions.iter_mut() {
        let workload = fleet.workloads.get(key);
        let templates = workload.map(|workload| workload.templates.as_slice()).unwrap_or_default();
        let own = templates.iter().map(|template| &template.object.id);
        let mut objects: Vec<&ObjectId> = own.chain(moved.get(key).into_iter().flatten().copied()).collect();
        objects.sort();
        objects.dedup();
        decision.objects = objects.into_iter().cloned().collect();
        decision.failures.clear();
        if workload.is_some_and(|workload| workload.frozen) {
            frozen::note(previous, key, decision);
        }
    }
}

#[cfg(test)]
mod tests;
