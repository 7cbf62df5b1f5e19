//! The publications of the window, as far as the removals to judge depend on them.
//!
//! Removals in many steps are judged like removals in one step: the gate compares the next state with the
//! state before each publication of the window that removed something. Copies that returned do not count, nor
//! do removals that an approval or a rollback permitted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::losses::ByWorkload;
use super::verdict::{Lookup, Question};
use crate::state::State;
use crate::state::ledger::{Loss, Place, Stage};
use berth_base::model::{Decision, Folder, Key, ObjectId, Timestamp, path};

/// The paths in one cluster's folder.
pub type Paths = Arc<BTreeSet<Arc<str>>>;

/// The parts of an earlier state that a verdict depends on.
#[derive(Debug)]
pub struct Wanted<'w> {
    pub workloads: BTreeSet<&'w Key>,
    pub clusters: &'w BTreeSet<&'w str>,
}

/// An earlier state, reduced to the wanted parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastState {
    /// The number of its publication.
    pub seq: u64,
    pub decisions: Vec<Decision>,
    pub folders: BTreeMap<String, Paths>,
}

/// The publications of the window that carried out losses.
#[derive(Debug)]
pub(super) struct Window<'l> {
    /// Newest first.
    publications: Vec<PastPublication<'l>>,
    /// The paths that an approval or a rollback removed, by cluster, each with the number of the last publication before
    /// its removal.
    exempt: BTreeMap<&'l str, BTreeMap<String, u64>>,
}

/// The losses that a publication carried out, with the state right before it.
#[derive(Debug)]
struct PastPublication<'l> {
    before: PastState,
    took: Vec<(&'l Place, &'l Loss)>,
}

/// A number of lost items, and the total number.
pub(super) type Share = (usize, usize);

/// Returns the start of the window. If something is held, the window reaches back from the moment at which
/// the loss was found: waiting releases nothing.
pub(super) fn begin<'l>(question: &Question<'_>, losses: impl Iterator<Item = &'l Loss>) -> Timestamp {
    let found = losses.filter(|loss| loss.stage == Stage::Held).map(|loss| loss.since);
    question.limits.window.before(found.fold(question.now, |one, other| one.min(other)))
}

/// Looks up the publications that carried out losses of the window.
pub(super) fn look_up<'q, L: Lookup>(
    question: &Question<'q>,
    lost: &ByWorkload,
    lookup: &mut L,
) -> Result<Window<'q>, L::Error> {
    let since = begin(question, lost.values().flat_map(|losses| losses.0.values()));
    let mut taken: BTreeMap<&str, Vec<(&Place, &Loss)>> = BTreeMap::new();
    for (place, loss) in question.ledger().losses.iter().filter(|(_, loss)| loss.since > since) {
        if let Stage::Gone { before } = &loss.stage {
            taken.entry(before).or_default().push((place, loss));
        }
    }
    let losing = lost.values().flat_map(|losses| losses.0.keys());
    let lost_then = taken.values().flatten().map(|(place, _)| *place);
    let clusters: BTreeSet<&str> = losing.chain(lost_then).map(|(cluster, _)| cluster.as_str()).collect();
    let losing =
        || lost.iter().flat_map(|(key, losses)| losses.0.keys().map(move |(_, object)| (key, object)));
    let mut publications = Vec::new();
    for (commit, took) in taken {
        let objects: BTreeSet<&ObjectId> = took.iter().map(|((_, object), _)| object).collect();
        let others = losing().filter(|(_, object)| objects.contains(object)).map(|(key, _)| key);
        let workloads = took.iter().map(|(_, loss)| &loss.owner).chain(others).collect();
        // A shallow clone may lack the commit: then its losses no longer count.
        let before = lookup.state_before(commit, &Wanted { workloads, clusters: &clusters })?;
        publications.extend(before.map(|before| PastPublication { before, took }));
    }
    publications.sort_by_key(|past| Reverse(past.before.seq));
    let mut exempt: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for past in &publications {
        for ((cluster, object), _) in past.took.iter().filter(|(_, loss)| loss.exempt) {
            let seq = exempt.entry(cluster).or_default().entry(path::of_object(object)).or_default();
            *seq = past.before.seq.max(*seq);
        }
    }
    Ok(Window { publications, exempt })
}

impl Window<'_> {
    /// Returns the places that were lost without an edit since a moment, and that count.
    pub(super) fn taken_without_edit(&self, since: Timestamp) -> impl Iterator<Item = &Place> {
        let taken = self.publications.iter().flat_map(|past| &past.took);
        let counts = move |loss: &Loss| !loss.exempt && !loss.cause.is_edit() && loss.since > since;
        taken.filter(move |(_, loss)| counts(loss)).map(|(place, _)| *place)
    }

    /// Returns for each publication how many clusters of that time lose all copies of these paths: of the
    /// workloads that lost such copies in that publication, and of these and those that lose some now. The
    /// paths count, whatever name the workload had then.
    pub(super) fn clusters(&self, paths: &BTreeSet<String>, desired: &State) -> impl Iterator<Item = Share> {
        self.publications.iter().flat_map(|past| {
            let took = |key: &Key| past.took.iter().any(|(_, loss)| loss.owner == *key);
            let (takers, others): (Vec<&Decision>, Vec<&Decision>) =
                past.before.decisions.iter().partition(|had| took(&had.key));
            let by_takers = self.clusters_since(&past.before, &takers, paths, desired);
            let by_all = by_takers
                .filter(|_| !others.is_empty())
                .and_then(|_| self.clusters_since(&past.before, &[takers, others].concat(), paths, desired));
            [by_takers, by_all].into_iter().flatten()
        })
    }

    fn clusters_since(
        &self,
        past: &PastState,
        decisions: &[&Decision],
        paths: &BTreeSet<String>,
        desired: &State,
    ) -> Option<Share> {
        let (mut lost, mut of) = (BTreeSet::new(), BTreeSet::new());
        let mut took_some = false;
        for had in decisions {
            let objects = had.objects.iter().map(path::of_object);
            let common: Vec<String> = objects.filter(|path| paths.contains(path)).collect();
            took_some |= !common.is_empty();
            // The copy of another workload may have run in a cluster in which this one waited for its turn.
            let ran = |cluster: &str| {
                let folder = past.folders.get(cluster);
                folder.is_some_and(|folder| common.iter().any(|path| folder.contains(path.as_str())))
            };
            // A pick that was held then is no cluster that the workload really had.
            for pick in had.picks.iter().filter(|pick| !pick.held && (!pick.pending || ran(&pick.cluster))) {
                let cluster = &*pick.cluster;
                let mut counting =
                    common.iter().filter(|path| !self.is_exempt(past, cluster, path)).peekable();
                if counting.peek().is_none() {
                    continue;
                }
                of.insert(cluster);
                let folder = desired.folders.get(cluster);
                if !counting.any(|path| holds(folder, path)) {
                    lost.insert(cluster);
                }
            }
        }
        took_some.then_some((lost.len(), of.len()))
    }

    /// Returns for each publication the objects that each cluster had then and will not have.
    pub(super) fn objects(&self, desired: &State) -> impl Iterator<Item = BTreeMap<&str, Share>> {
        // A publication changes few folders: the others are shared with the publication before.
        let mut known: BTreeMap<(&str, *const BTreeSet<Arc<str>>), Share> = BTreeMap::new();
        let mut of_folder = move |past: &PastState, cluster, paths: &Paths| {
            let folder = desired.folders.get(cluster);
            let share = known.entry((cluster, Arc::as_ptr(paths)));
            let (mut lost, mut of) = *share
                .or_insert_with(|| (paths.iter().filter(|path| !holds(folder, path)).count(), paths.len()));
            let exempt = self.exempt.get(cluster).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
            for path in exempt.filter(|path| paths.contains(*path) && self.is_exempt(past, cluster, path)) {
                of -= 1;
                lost -= usize::from(!holds(folder, path));
            }
            (cluster, (lost, of))
        };
        self.publications.iter().map(move |PastPublication { before, .. }| {
            before.folders.iter().map(|(cluster, paths)| of_folder(before, cluster.as_str(), paths)).collect()
        })
    }

    /// Reports whether an approval or a rollback has removed a place after that publication.
    fn is_exempt(&self, past: &PastState, cluster: &str, path: &str) -> bool {
        let last = self.exempt.get(cluster).and_then(|paths| paths.get(path));
        last.is_some_and(|last| *last >= past.seq)
    }
}

fn holds(folder: Option<&Folder>, path: &str) -> bool {
    folder.is_some_and(|folder| folder.contains_key(path))
}
