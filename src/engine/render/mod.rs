//! Decisions and templates → every cluster's objects, by content id.
//!
//! A copy that no override changes is made, written and stored once, however many clusters have it. A
//! fault concerns one cluster's copy of one object: that cluster keeps the last good form, if any, and
//! everything else is rendered as usual. [`MemoryContents`] keeps contents in memory, for rendering
//! without Git.

mod cache;
mod claims;
mod copies;
mod current_copies;
mod final_fields;
mod inputs;
mod override_trace;
mod warnings;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::diag::Diagnostics;
use berth_base::model::{
    ContentError, ContentId, Contents, Decision, Fleet, FolderEntry, Folders, Key, Map, ObjectId, Pick,
    Shared, Workload,
};
use berth_base::parallel;
use berth_base::text::SharedValues;
use claims::TemplateClaim;
use copies::{Copies, CopyResult, Store};
use current_copies::CurrentCopies;
use inputs::RenderInputs;
use warnings::Problems;

pub use cache::ProcessCache;
pub use override_trace::{AppliedOverride, OverriddenCopy, touched};

/// The parts of the current state that rendering needs.
#[derive(Clone, Copy, Debug)]
pub struct Previous<'a> {
    pub decisions: &'a Map<Key, Decision>,
    pub folders: &'a Folders,
}

/// Every cluster's folder; empty for a cluster without objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    pub folders: Folders,
    pub diagnostics: Diagnostics,
}

/// Renders all workloads to their picked clusters, and records in each decision its objects and its failed
/// copies.
pub fn render(
    fleet: &Fleet,
    decisions: &mut Map<Key, Decision>,
    previous: Previous<'_>,
    contents: &mut dyn Contents,
) -> Result<Rendered, ContentError> {
    Ok(render_after(None, &fleet.clone().into(), decisions, previous, contents)?.0)
}

/// Renders like [`render`], starting from an earlier rendering. `contents` must still hold its contents.
pub(crate) fn render_after(
    earlier: Option<&ProcessCache>,
    fleet: &Shared<Fleet>,
    decisions: &mut Map<Key, Decision>,
    previous: Previous<'_>,
    contents: &mut dyn Contents,
) -> Result<(Rendered, ProcessCache), ContentError> {
    let inputs = RenderInputs::of(fleet, decisions, previous, earlier.map(|earlier| &earlier.inputs));
    let ProcessCache { inputs: old, mut results, .. } = match earlier {
        Some(cache) if cache.inputs.is_comparable(&inputs) => cache.clone(),
        _ => ProcessCache::default(),
    };
    let mut changes = results.changes(&old, &inputs);
    results.keep_folders(&old.fleet, fleet);
    let mut rendering = Rendering::new(fleet, previous, contents);
    for (path, claims) in &changes.now {
        rendering.make(claims)?;
        if !rendering.is_settled(claims) {
            results.unsettled.insert(path.clone());
        }
        let before = changes.before.remove(path).unwrap_or_default();
        results.put(fleet, &before, &rendering.placed);
    }
    for gone in changes.before.values() {
        results.put(fleet, gone, &[]);
    }
    let keys: Vec<&Key> = changes.keys.iter().collect();
    // One part at a time, so that memory does not hold all decisions twice.
    for part in keys.chunks(AT_ONCE) {
        let decisions = parallel::map(part, |key| note_objects(&inputs, key, previous));
        for (key, decision) in part.iter().zip(decisions) {
            match decision {
                Some(decision) => drop(results.decisions.insert((*key).clone(), decision)),
                None => drop(results.decisions.remove(*key)),
            }
        }
    }
    results.warnings.update(&old, &inputs, &changes.keys);
    let Rendering { problems, mut diagnostics, .. } = rendering;
    diagnostics.extend(results.warnings.all());
    let mut folders = results.folders.clone();
    *decisions = results.decisions.clone();
    if fleet.doubt.objects {
        current_copies::carry_uncertain(decisions, previous, &mut folders);
    }
    problems.report(decisions, &mut diagnostics);
    let made = changes.now.len();
    drop(changes);
    Ok((Rendered { folders, diagnostics }, ProcessCache { inputs, results, made }))
}

/// The number of decisions that get their objects at a time.
const AT_ONCE: usize = 8192;

/// A copy in a cluster's folder.
struct PlacedCopy<'c> {
    cluster: &'c str,
    entry: FolderEntry,
}

/// A rendering in progress: its inputs, and its results so far.
struct Rendering<'a, 'c> {
    fleet: &'a Fleet,
    history: CurrentCopies<'a>,
    store: Store<'a>,
    /// The copies of the current object, by cluster.
    placed: Vec<PlacedCopy<'c>>,
    /// The entries of that object; clusters with equal copies share one.
    entries: SharedValues<FolderEntry>,
    diagnostics: Diagnostics,
    problems: Problems,
    /// The counts of diagnostics and problems before that object.
    counts_before: (usize, usize),
}

impl<'a, 'c> Rendering<'a, 'c> {
    fn new(fleet: &'a Fleet, previous: Previous<'a>, contents: &'a mut dyn Contents) -> Rendering<'a, 'c> {
        Rendering {
            fleet,
            history: CurrentCopies::new(previous),
            store: Store::new(contents),
            placed: Vec::new(),
            entries: SharedValues::default(),
            diagnostics: Diagnostics::new(),
            problems: Problems::default(),
            counts_before: (0, 0),
        }
    }

    /// Makes all copies of the object at one path.
    fn make(&mut self, claims: &'c [TemplateClaim<'_>]) -> Result<(), ContentError> {
        self.store.forget();
        self.placed.clear();
        self.entries = SharedValues::default();
        self.counts_before = self.count();
        match claims {
            [claim] => self.make_one(claim),
            contested => claims::make_contested(self, contested),
        }
    }

    /// Reports whether the object's copies depend on these claims alone, and caused no diagnostic.
    fn is_settled(&self, claims: &[TemplateClaim<'_>]) -> bool {
        matches!(claims, [claim] if !claim.workload.frozen) && self.counts_before == self.count()
    }

    /// Returns the counts of diagnostics and problems so far.
    fn count(&self) -> (usize, usize) {
        (self.diagnostics.len(), self.problems.count())
    }

    /// Makes an object that only one workload places.
    fn make_one(&mut self, claim: &'c TemplateClaim<'_>) -> Result<(), ContentError> {
        let mut copies = Copies::new(self.fleet, claim);
        for pick in claim.picks() {
            let cluster = &*pick.cluster;
            let content = match copies.make(pick, &mut self.diagnostics) {
                CopyResult::Copy(draft) => Some(draft.id(&mut self.store)?),
                CopyResult::Deleted => None,
                CopyResult::Frozen => self.history.last_good(claim, cluster),
                CopyResult::Failed(fault) => {
                    self.problems.add(claim, cluster, fault);
                    self.history.last_good(claim, cluster)
                }
            };
            self.place(claim, cluster, content);
        }
        Ok(())
    }

    fn place(&mut self, claim: &TemplateClaim<'_>, cluster: &'c str, content: Option<ContentId>) {
        let Some(content) = content else { return };
        let entry = self.entries.of((claim.path.clone(), content));
        self.placed.push(PlacedCopy { cluster, entry });
    }
}

/// Renders one workload alone, and returns its objects too. Failed copies are left out.
pub(crate) fn copies_of(
    fleet: &Fleet,
    workload: &Workload,
    picks: &Shared<Vec<Pick>>,
    contents: &mut dyn Contents,
) -> Result<(Folders, BTreeSet<ObjectId>), ContentError> {
    let (mut folders, mut objects, mut store) = (Folders::new(), BTreeSet::new(), Store::new(contents));
    for claim in claims::of_workload(fleet, workload, picks) {
        let mut copies = Copies::new(fleet, &claim);
        for pick in claim.picks() {
            if let CopyResult::Copy(draft) = copies.make(pick, &mut Diagnostics::new()) {
                put(&mut folders, &pick.cluster, &claim.path, draft.id(&mut store)?);
            }
        }
        store.forget();
        objects.insert(claim.id.into_owned());
    }
    Ok((folders, objects))
}

/// Puts a copy into a folder. A cluster missing from the inventory also keeps its folder.
fn put(folders: &mut Folders, cluster: &str, path: &Arc<str>, content: ContentId) {
    folders.or_default(cluster).put((path.clone(), content).into());
}

/// Records in each decision the objects that its clusters get, without rendering them.
pub fn objects(fleet: &Shared<Fleet>, decisions: &mut Map<Key, Decision>, previous: Previous<'_>) {
    let inputs = RenderInputs::of(fleet, decisions, previous, None);
    decisions.update(|key, _| note_objects(&inputs, key, previous));
}

/// Returns the decision of a workload or placement with its objects.
fn note_objects(inputs: &RenderInputs, key: &Key, previous: Previous<'_>) -> Option<Decision> {
    let mut decision = inputs.decisions.get(key)?.clone();
    let workload = inputs.fleet.workloads.get(key);
    let templates = workload.map(|workload| workload.templates.as_slice()).unwrap_or_default();
    decision.objects = templates.iter().map(|template| template.object.id.clone()).collect();
    // Only the copies show objects that an override moved to another API group.
    decision.objects.extend(inputs.claims(key).into_iter().map(|claim| claim.id.into_owned()));
    decision.objects.sort();
    decision.objects.dedup();
    decision.failures.clear();
    if workload.is_some_and(|workload| workload.frozen) {
        current_copies::note_frozen(previous, key, &mut decision);
    }
    Some(decision)
}

/// A store that keeps all bytes by id.
#[derive(Clone, Debug, Default)]
pub struct MemoryContents {
    by_id: BTreeMap<ContentId, Arc<[u8]>>,
}

impl MemoryContents {
    pub fn bytes(&self, id: &ContentId) -> Option<&Arc<[u8]>> {
        self.by_id.get(id)
    }
}

impl Contents for MemoryContents {
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError> {
        let id = ContentId::of(bytes);
        self.by_id.entry(id).or_insert_with(|| bytes.into());
        Ok(id)
    }

    fn get(&self, id: ContentId) -> Result<Vec<u8>, ContentError> {
        let bytes = self.by_id.get(&id).map(|bytes| bytes.to_vec());
        bytes.ok_or_else(|| ContentError(format!("{id} was never put here")))
    }
}
