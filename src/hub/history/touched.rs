//! The placements that each publication changed, for all placements at once: what [`Events`](super::Events) says of each
//! of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decisions::DecisionReader;
use super::{count, in_folder};
use crate::inputs::InputError;
use berth_base::model::{Decision, Key, Map, path};
use berth_engine::plan::Counts;
use berth_engine::state::{layout, placement_decision};
use berth_git::{EntryKind, PathChange, Repo, TreeId};

/// The changes of one publication.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// The changed files of clusters.
    pub counts: Counts,
    /// The changed placements, each with the clusters whose copies changed. The first publication of all names no clusters:
    /// it changed all copies that there are.
    pub placements: BTreeMap<Key, BTreeSet<Arc<str>>>,
    /// The files of changed placements before the publication.
    former: Vec<(String, Key)>,
}

/// Goes back from a state, publication by publication.
#[derive(Debug)]
pub struct TouchedPlacements<'r> {
    repo: &'r Repo,
    decisions: DecisionReader<'r>,
    /// The placements that have, or had, an object at a path below a cluster's folder.
    owners: BTreeMap<String, BTreeSet<Key>>,
}

impl<'r> TouchedPlacements<'r> {
    pub fn of(repo: &'r Repo, newest: &Map<Key, Decision>) -> TouchedPlacements<'r> {
        let mut found =
            TouchedPlacements { repo, decisions: DecisionReader::new(repo), owners: BTreeMap::new() };
        for (key, decision) in newest {
            found.own(decision.objects.iter().map(|object| (path::of_object(object), key.clone())));
        }
        found
    }

    fn own(&mut self, files: impl IntoIterator<Item = (String, Key)>) {
        for (file, key) in files {
            self.owners.entry(file).or_default().insert(key);
        }
    }

    /// Returns the key of the decision at a path of a state. A path that was cut does not name it.
    fn key_at(&self, root: TreeId, place: &str) -> Result<Option<Key>, InputError> {
        let below = place.strip_prefix(layout::DECISIONS).and_then(|below| below.strip_prefix('/'));
        let below = below.filter(|below| !placement_decision::is_one(below));
        let Some(below) = below else { return Ok(None) };
        if let Some(key) = path::key_of(below) {
            return Ok(Some(key));
        }
        let Some(EntryKind::File(id)) = self.repo.entry_at(root, place)? else { return Ok(None) };
        Ok(self.decisions.read(id)?.map(|decision| decision.key.clone()))
    }

    /// Goes back over a publication whose changes are known.
    pub fn pass(&mut self, known: &Touched) {
        self.own(known.former.iter().cloned());
    }

    /// Goes back over a publication, and returns its changes.
    pub fn between(&mut self, trees: [TreeId; 2]) -> Result<Touched, InputError> {
        let changed = ChangedFiles::between(self.repo, trees)?;
        let mut touched = Touched { counts: changed.counts, ..Touched::default() };
        let mut candidates = BTreeSet::new();
        // The first publication of all made all decisions, and every copy.
        if trees[0] == TreeId::EMPTY {
            let keys = changed.decisions.iter().map(|place| self.key_at(trees[1], place));
            let keys = keys.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
            touched.placements = keys.map(|key| (key, BTreeSet::new())).collect();
            return Ok(touched);
        }
        for place in &changed.decisions {
            for root in trees {
                let Some(EntryKind::File(id)) = self.repo.entry_at(root, place)? else { continue };
                let Some(decision) = self.decisions.read(id)? else { continue };
                candidates.insert(decision.key.clone());
                let files =
                    decision.objects.iter().map(|object| (path::of_object(object), decision.key.clone()));
                touched.former.extend(files);
            }
        }
        self.pass(&touched);
        candidates.extend(changed.copies.keys().filter_map(|file| self.owners.get(file)).flatten().cloned());
        for key in candidates {
            let sides = self.decisions.sides(&key, trees)?;
            let (mut copies, mut clusters) = (Counts::default(), BTreeSet::new());
            let files = sides.files();
            for (cluster, kind) in files.iter().filter_map(|file| changed.copies.get(file)).flatten() {
                let name = &changed.clusters[*cluster];
                if sides.has(name) {
                    count(&mut copies, *kind);
                    clusters.insert(name.clone());
                }
            }
            copies.clusters = clusters.len();
            if !sides.change(None, copies).is_empty() {
                touched.placements.insert(key, clusters);
            }
        }
        Ok(touched)
    }
}

/// The files that a publication changed.
struct ChangedFiles {
    counts: Counts,
    /// The paths of decisions.
    decisions: BTreeSet<String>,
    /// The files below clusters' folders, with the clusters by their index.
    copies: BTreeMap<String, Vec<(usize, PathChange)>>,
    clusters: Vec<Arc<str>>,
}

impl ChangedFiles {
    fn between(repo: &Repo, [before, after]: [TreeId; 2]) -> Result<ChangedFiles, InputError> {
        let (mut counts, mut decisions) = (Counts::default(), BTreeSet::new());
        let mut copies: BTreeMap<String, Vec<(usize, PathChange)>> = BTreeMap::new();
        let mut indexes: BTreeMap<String, usize> = BTreeMap::new();
        for (place, kind) in repo.path_changes(before, after, &[layout::CLUSTERS, layout::DECISIONS])? {
            let Some((folder, file)) = in_folder(&place) else {
                decisions.insert(place);
                continue;
            };
            count(&mut counts, kind);
            let next = indexes.len();
            let index = match indexes.get(folder) {
                Some(known) => *known,
                None => *indexes.entry(folder.to_owned()).or_insert(next),
            };
            match copies.get_mut(file) {
                Some(places) => places.push((index, kind)),
                None => drop(copies.insert(file.to_owned(), vec![(index, kind)])),
            }
        }
        counts.clusters = indexes.len();
        let mut clusters: Vec<Arc<str>> = vec!["".into(); indexes.len()];
        for (folder, index) in indexes {
            clusters[index] = path::decode(&folder).unwrap_or(folder).into();
        }
        Ok(ChangedFiles { counts, decisions, copies, clusters })
    }
}
