//! The publications of the window, as far as the removals to judge depend on them.
//!
//! Removals in many steps are judged like removals in one step: the next state is compared with the state
//! before each publication of the window that removed something. Copies that returned do not count, nor do
//! removals that an approval or a rollback allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::held_record::{key_of_words, words_of_key};
use super::removal::Cause;
use crate::state::State;
use berth_base::model::{Folder, Key};

/// A place: a cluster and a path in its folder.
pub type Place = (String, Arc<str>);

/// The paths in one cluster's folder.
pub type Paths = Arc<BTreeSet<Arc<str>>>;

/// A publication of the window that removed something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastPublication {
    /// The workloads that lost something, as they were right before.
    pub had: BTreeMap<Key, WorkloadPlaces>,
    /// Their losses.
    pub took: Vec<Losses>,
    /// The paths in clusters' folders right before, of the clusters that lost something then or since.
    pub folders: BTreeMap<String, Paths>,
}

/// A workload's places: each of the paths in each of the clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadPlaces {
    pub clusters: BTreeSet<String>,
    pub paths: Vec<Arc<str>>,
}

/// The losses of one workload in one publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    pub removed: Removed,
    pub places: Vec<Place>,
}

/// A workload that lost something in a publication, as a line of its trailers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    pub key: Key,
    /// `None` for removals that an approval or a rollback allowed, which do not count later.
    pub counts: Option<Cause>,
}

/// The word for removals that do not count later.
const LET_GO: &str = "let-go";

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.counts.map_or(LET_GO, Cause::word);
        write!(f, "{word} {}", words_of_key(&self.key))
    }
}

impl FromStr for Removed {
    type Err = ();

    fn from_str(text: &str) -> Result<Removed, ()> {
        let (word, key) = text.split_once(' ').ok_or(())?;
        let counts = if word == LET_GO { None } else { Some(Cause::of_word(word).ok_or(())?) };
        Ok(Removed { key: key_of_words(key).ok_or(())?, counts })
    }
}

/// The state before one publication, compared with the next one.
#[derive(Debug)]
pub(super) struct Since<'a> {
    past: &'a PastPublication,
    /// Places removed since then with an approval or by a rollback.
    let_go: BTreeSet<&'a Place>,
    /// Losses since then that no edit caused.
    pub(super) by_itself: BTreeSet<&'a Place>,
}

/// The states before each publication of the window, newest first.
pub(super) fn since(pasts: &[PastPublication]) -> Vec<Since<'_>> {
    let (mut let_go, mut by_itself) = (BTreeSet::new(), BTreeSet::new());
    let mut all = Vec::new();
    for past in pasts {
        for took in &past.took {
            match took.removed.counts {
                None => let_go.extend(&took.places),
                Some(Cause::Itself | Cause::Both) => by_itself.extend(&took.places),
                Some(Cause::Source) => {}
            }
        }
        all.push(Since { past, let_go: let_go.clone(), by_itself: by_itself.clone() });
    }
    all
}

impl<'a> Since<'a> {
    /// Returns how many of the workload's clusters of that time lose all its copies, and how many there were.
    /// `None` if it lost nothing in that publication.
    pub(super) fn clusters(&self, key: &Key, next: &State) -> Option<(usize, usize)> {
        let had = self.past.had.get(key)?;
        let (mut lost, mut of) = (0, 0);
        for cluster in &had.clusters {
            let mut counting = had.paths.iter().filter(|path| !self.is_let_go(cluster, path)).peekable();
            if counting.peek().is_none() {
                continue;
            }
            of += 1;
            let folder = next.folders.get(cluster);
            lost += usize::from(!counting.any(|path| holds(folder, path)));
        }
        Some((lost, of))
    }

    /// The objects that each cluster had then and would not have any more, and how many it had.
    pub(super) fn objects(&self, next: &State) -> BTreeMap<&'a str, (usize, usize)> {
        let of_cluster = |(cluster, paths): (&'a String, &'a Paths)| {
            let folder = next.folders.get(cluster);
            let counting = paths.iter().filter(|path| !self.is_let_go(cluster, path));
            let (mut lost, mut of) = (0, 0);
            for path in counting {
                of += 1;
                lost += usize::from(!holds(folder, path));
            }
            (cluster.as_str(), (lost, of))
        };
        self.past.folders.iter().map(of_cluster).collect()
    }

    /// Reports whether the cluster had something in that place back then.
    pub(super) fn had(&self, (cluster, path): &Place) -> bool {
        self.past.folders.get(cluster).is_some_and(|paths| paths.contains(path))
    }

    fn is_let_go(&self, cluster: &str, path: &Arc<str>) -> bool {
        // Looked up by value: the set is small, and empty nearly always.
        !self.let_go.is_empty() && self.let_go.contains(&(cluster.to_owned(), path.clone()))
    }
}

fn holds(folder: Option<&Folder>, path: &str) -> bool {
    folder.is_some_and(|folder| folder.contains_key(path))
}
