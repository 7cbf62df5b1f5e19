//! The history of a placement, a cluster or an object: the publications that changed it, newest first.
//!
//! An index says which publications may have changed a subject. These are compared with the ones before them, by the ids of
//! their folders, so that the cost follows what each of them changed.
//!
//! - [`decisions`]: a placement on both sides of a publication. [`touched`]: the changes of all placements at once.
//! - [`index`]: what each publication touches, kept in a file.

mod decisions;
mod index;
mod touched;

use std::collections::BTreeSet;

use crate::inputs::InputError;
use crate::inputs::gate::decision_place;
use crate::publish::Trailers;
use berth_base::model::{Key, ObjectId, path};
use berth_engine::plan::Counts;
use berth_engine::state::layout;
use berth_git::{CommitId, CommitInfo, EntryKind, PathChange, Repo, TreeId};
use decisions::DecisionReader;
pub(crate) use index::keep;
use index::{HistoryIndex, IndexEntry, NameHash};
pub use touched::{Touched, TouchedPlacements};

/// The subject of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A placement: its clusters, and its copies in all of them or in one.
    Placement {
        key: Key,
        cluster: Option<String>,
    },
    Cluster(String),
    /// The copies of an object, in all clusters or in one.
    Object {
        object: ObjectId,
        cluster: Option<String>,
    },
}

/// A publication as Git has it, and its trailers.
#[derive(Clone, Debug)]
pub struct Publication {
    pub commit: CommitInfo,
    pub trailers: Trailers,
}

/// A publication that changed the subject.
#[derive(Clone, Debug)]
pub struct Event {
    pub publication: Publication,
    /// The publication before. `None` for the first one.
    pub before: Option<Publication>,
    pub change: SubjectChange,
}

/// The change of a subject by one publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectChange {
    /// The clusters that the placement came to, or that got the object.
    pub joined: BTreeSet<String>,
    /// The clusters that the placement left, or that lost the object.
    pub left: BTreeSet<String>,
    pub copies: Counts,
    /// Something else of the decision: reasons, replicas or a source file.
    pub is_of_decision: bool,
}

impl SubjectChange {
    fn is_empty(&self) -> bool {
        *self == SubjectChange::default()
    }
}

/// The publications that changed a subject, newest first.
#[derive(Debug)]
pub struct Events<'r> {
    repo: &'r Repo,
    subject: Subject,
    /// The publications that were not looked at, the newest last.
    publications: Vec<IndexEntry>,
    /// The path of an object below the folder of a cluster.
    file: Option<String>,
    decisions: DecisionReader<'r>,
    /// The files of the placement at the publication to look at next.
    files: BTreeSet<String>,
}

impl<'r> Events<'r> {
    /// Begins with a publication and goes back.
    pub fn of(repo: &'r Repo, newest: CommitId, subject: Subject) -> Result<Events<'r>, InputError> {
        let file = match &subject {
            Subject::Object { object, .. } => Some(path::of_object(object)),
            Subject::Placement { .. } | Subject::Cluster(_) => None,
        };
        let decisions = DecisionReader::new(repo);
        let files = match &subject {
            Subject::Placement { key, .. } => {
                let tree = repo.commit(newest)?.tree;
                decisions.sides(key, [tree, tree])?.files()
            }
            _ => BTreeSet::new(),
        };
        let publications = HistoryIndex::up_to(repo, newest)?.into_entries();
        Ok(Events { repo, subject, publications, file, decisions, files })
    }

    fn next_event(&mut self) -> Result<Option<Event>, InputError> {
        while let Some(entry) = self.publications.pop() {
            if !self.may_change(&entry) {
                continue;
            }
            let publication = self.publication(entry.commit)?;
            let before = self.publications.last().map(|before| before.commit);
            let before = before.map(|before| self.publication(before)).transpose()?;
            // A shallow clone lacks the publication before.
            if before.is_none() && !is_first(&publication) {
                return Ok(None);
            }
            let trees =
                [before.as_ref().map_or(TreeId::EMPTY, |one| one.commit.tree), publication.commit.tree];
            let change = self.change(trees)?;
            if !change.is_empty() {
                return Ok(Some(Event { publication, before, change }));
            }
        }
        Ok(None)
    }

    fn publication(&self, commit: CommitId) -> Result<Publication, InputError> {
        let commit = self.repo.commit(commit)?;
        let trailers = Trailers::read(&commit.message).unwrap_or_default();
        Ok(Publication { commit, trailers })
    }

    /// Reports whether a publication may have changed the subject.
    fn may_change(&self, entry: &IndexEntry) -> bool {
        let touches_file = |file: &String| entry.may_touch(NameHash::of_file(file));
        let touches_cluster =
            |cluster: &String| entry.may_touch(NameHash::of_cluster(&path::encode(cluster)));
        match &self.subject {
            Subject::Placement { key, cluster } => {
                entry.may_touch(NameHash::of_decision(&decision_place(key)))
                    || cluster.as_ref().is_none_or(touches_cluster) && self.files.iter().any(touches_file)
            }
            Subject::Cluster(cluster) => touches_cluster(cluster),
            Subject::Object { cluster, .. } => {
                cluster.as_ref().is_none_or(touches_cluster) && self.file.iter().any(touches_file)
            }
        }
    }

    fn change(&mut self, trees: [TreeId; 2]) -> Result<SubjectChange, InputError> {
        match self.subject.clone() {
            Subject::Placement { key, cluster } => self.of_placement(&key, cluster.as_deref(), trees),
            Subject::Cluster(cluster) => self.of_folder(&cluster, None, trees),
            Subject::Object { cluster: Some(cluster), .. } => {
                let mut change = self.of_folder(&cluster, self.file.as_deref(), trees)?;
                if change.copies.added > 0 {
                    change.joined.insert(cluster.clone());
                }
                if change.copies.removed > 0 {
                    change.left.insert(cluster);
                }
                Ok(change)
            }
            Subject::Object { cluster: None, .. } => {
                self.of_copies(trees, &|_, path| Some(path) == self.file.as_deref())
            }
        }
    }

    /// Returns the changes in one cluster's folder, of one file or of all.
    fn of_folder(
        &self,
        cluster: &str,
        wanted: Option<&str>,
        trees: [TreeId; 2],
    ) -> Result<SubjectChange, InputError> {
        let [before, after] = trees.map(|root| self.folder_in(root, cluster));
        let (before, after) = (before?, after?);
        let mut change = SubjectChange::default();
        if before == after {
            return Ok(change);
        }
        for (path, kind) in self.repo.path_changes(before, after, &[])? {
            if wanted.is_none_or(|wanted| wanted == path) {
                count(&mut change.copies, kind);
            }
        }
        change.copies.clusters = usize::from(!change.is_empty());
        Ok(change)
    }

    fn folder_in(&self, root: TreeId, cluster: &str) -> Result<TreeId, InputError> {
        let place = format!("{}/{}", layout::CLUSTERS, path::encode(cluster));
        match self.repo.entry_at(root, &place)? {
            Some(EntryKind::Folder(id)) => Ok(id),
            _ => Ok(TreeId::EMPTY),
        }
    }

    /// Returns the changes of some files of all clusters.
    fn of_copies(
        &self,
        [before, after]: [TreeId; 2],
        is_wanted: &dyn Fn(&str, &str) -> bool,
    ) -> Result<SubjectChange, InputError> {
        let (mut change, mut clusters) = (SubjectChange::default(), BTreeSet::new());
        for (path, kind) in self.repo.path_changes(before, after, &[layout::CLUSTERS])? {
            let Some((cluster, file)) = in_folder(&path) else { continue };
            let Some(cluster) = path::decode(cluster).filter(|cluster| is_wanted(cluster, file)) else {
                continue;
            };
            count(&mut change.copies, kind);
            match kind {
                PathChange::Added => change.joined.insert(cluster.clone()),
                PathChange::Removed => change.left.insert(cluster.clone()),
                PathChange::Changed => false,
            };
            clusters.insert(cluster);
        }
        change.copies.clusters = clusters.len();
        Ok(change)
    }

    fn of_placement(
        &mut self,
        key: &Key,
        cluster: Option<&str>,
        trees: [TreeId; 2],
    ) -> Result<SubjectChange, InputError> {
        let sides = self.decisions.sides(key, trees)?;
        let files = sides.files();
        let is_wanted = |name: &str, file: &str| {
            cluster.is_none_or(|wanted| wanted == name) && files.contains(file) && sides.has(name)
        };
        let copies = self.of_copies(trees, &is_wanted)?.copies;
        // Earlier publications are asked about the files that it had before.
        self.files = sides.before_files();
        Ok(sides.change(cluster, copies))
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

/// Reports whether nothing was published before. In a shallow clone, the oldest commit seems to have no parents.
pub fn is_first(publication: &Publication) -> bool {
    is_first_of_all(&publication.commit)
}

fn is_first_of_all(commit: &CommitInfo) -> bool {
    commit.parents.is_empty() && Trailers::read(&commit.message).is_some_and(|trailers| trailers.seq <= 1)
}

fn count(copies: &mut Counts, kind: PathChange) {
    match kind {
        PathChange::Removed => copies.removed += 1,
        PathChange::Changed => copies.changed += 1,
        PathChange::Added => copies.added += 1,
    }
}

/// Splits a path of a state into the folder of a cluster and a path in it.
fn in_folder(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(layout::CLUSTERS)?.strip_prefix('/')?.split_once('/')
}

#[cfg(test)]
mod tests;
