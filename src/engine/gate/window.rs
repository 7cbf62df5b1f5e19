//! The publications of the window, as far as the removals to judge depend on them.
//!
//! Removals in many steps are judged like removals in one step: the next state is compared with the state
//! before each publication of the window that removed something. Copies that returned do not count, nor do
//! removals that an approval or a rollback permitted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::losses::ByWorkload;
use super::question::{Lookup, Question};
use crate::state::State;
use crate::state::ledger::{Loss, Place, Stage};
use berth_base::model::{Decision, Folder, Key, Timestamp, path};

/// The paths in one cluster's folder.
pub type Paths = Arc<BTreeSet<Arc<str>>>;

/// The parts of an earlier state that a verdict depends on.
#[derive(Debug)]
pub struct Wanted<'w> {
    pub workloads: BTreeSet<&'w Key>,
    pub clusters: &'w BTreeSet<&'w str>,
}

/// An earlier state, as far as it was wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastState {
    /// The number of its publication.
    pub seq: u64,
    pub decisions: Vec<Decision>,
    pub folders: BTreeMap<String, Paths>,
}

/// A publication of the window that carried out losses, with the state right before it.
#[derive(Debug)]
pub(super) struct PastPublication<'l> {
    before: PastState,
    took: Vec<(&'l Place, &'l Loss)>,
}

/// Returns the moment since which losses count. Where something is held, the window reaches back from the moment at which
/// that was found: nothing goes by waiting.
pub(super) fn begin<'l>(question: &Question<'_>, losses: impl Iterator<Item = &'l Loss>) -> Timestamp {
    let found = losses.filter(|loss| loss.stage == Stage::Held).map(|loss| loss.since);
    question.limits.window.before(found.fold(question.now, |one, other| one.min(other)))
}

/// Looks up the publications that carried out losses of the window, newest first.
pub(super) fn look_up<'q, L: Lookup>(
    question: &Question<'q>,
    lost: &ByWorkload,
    lookup: &mut L,
) -> Result<Vec<PastPublication<'q>>, L::Error> {
    let since = begin(question, lost.values().flat_map(|losses| losses.0.values()));
    let mut publications: BTreeMap<&str, Vec<(&Place, &Loss)>> = BTreeMap::new();
    for (place, loss) in question.ledger().losses.iter().filter(|(_, loss)| loss.since > since) {
        if let Stage::Gone { before } = &loss.stage {
            publications.entry(before).or_default().push((place, loss));
        }
    }
    let losing = lost.values().flat_map(|losses| losses.0.keys());
    let lost_then = publications.values().flatten().map(|(place, _)| *place);
    let clusters: BTreeSet<&str> = losing.chain(lost_then).map(|(cluster, _)| cluster.as_str()).collect();
    let mut pasts = Vec::new();
    for (commit, took) in publications {
        let workloads = took.iter().map(|(_, loss)| &loss.owner).collect();
        // A shallow clone may lack it: then its losses count no more.
        let before = lookup.state_before(commit, &Wanted { workloads, clusters: &clusters })?;
        pasts.extend(before.map(|before| PastPublication { before, took }));
    }
    pasts.sort_by_key(|past| Reverse(past.before.seq));
    Ok(pasts)
}

/// The state before one publication, compared with the desired one.
#[derive(Debug)]
pub(super) struct Since<'a> {
    past: &'a PastState,
    /// Places, as clusters and paths, removed since then with an approval or by a rollback.
    exempt: BTreeSet<(&'a str, String)>,
}

/// The states before each publication of the window, newest first.
pub(super) fn since<'a>(pasts: &'a [PastPublication<'_>]) -> Vec<Since<'a>> {
    let mut exempt = BTreeSet::new();
    let mut all = Vec::new();
    for past in pasts {
        let taken = past.took.iter().filter(|(_, loss)| loss.exempt);
        exempt.extend(taken.map(|((cluster, object), _)| (cluster.as_str(), path::of_object(object))));
        all.push(Since { past: &past.before, exempt: exempt.clone() });
    }
    all
}

/// Returns the places that statuses or time took since a moment, and that count.
pub(super) fn taken_without_edit<'a>(
    pasts: &'a [PastPublication<'_>],
    since: Timestamp,
) -> impl Iterator<Item = &'a Place> {
    let taken = pasts.iter().flat_map(|past| &past.took);
    let counts = move |loss: &Loss| !loss.exempt && !loss.cause.is_edit() && loss.since > since;
    taken.filter(move |(_, loss)| counts(loss)).map(|(place, _)| *place)
}

impl<'a> Since<'a> {
    /// Returns how many clusters of that time lose all copies of what a workload has, and how many there were; `None`
    /// if it lost nothing in that publication. Its objects count, whatever the workload was called then.
    pub(super) fn clusters(&self, paths: &BTreeSet<String>, desired: &State) -> Option<(usize, usize)> {
        let (mut lost, mut of) = (BTreeSet::new(), BTreeSet::new());
        let mut took_some = false;
        for had in &self.past.decisions {
            let objects = had.objects.iter().map(path::of_object);
            let common: Vec<String> = objects.filter(|path| paths.contains(path)).collect();
            took_some |= !common.is_empty();
            // A removal that was held then is no loss of something that the workload had.
            for pick in had.picks.iter().filter(|pick| !pick.pending && !pick.held) {
                let cluster = &*pick.cluster;
                let mut counting = common.iter().filter(|path| !self.is_exempt(cluster, path)).peekable();
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

    /// The objects that each cluster had then and would not have any more, and how many it had.
    pub(super) fn objects(&self, desired: &State) -> BTreeMap<&'a str, (usize, usize)> {
        let of_cluster = |(cluster, paths): (&'a String, &'a Paths)| {
            let folder = desired.folders.get(cluster);
            let counting = paths.iter().filter(|path| !self.is_exempt(cluster, path));
            let (mut lost, mut of) = (0, 0);
            for path in counting {
                of += 1;
                lost += usize::from(!holds(folder, path));
            }
            (cluster.as_str(), (lost, of))
        };
        self.past.folders.iter().map(of_cluster).collect()
    }

    fn is_exempt(&self, cluster: &str, path: &str) -> bool {
        !self.exempt.is_empty() && self.exempt.contains(&(cluster, path.to_owned()))
    }
}

fn holds(folder: Option<&Folder>, path: &str) -> bool {
    folder.is_some_and(|folder| folder.contains_key(path))
}
