//! The history of a placement, a cluster or an object: the publications that changed it, newest first.
//!
//! Neighbouring publications are compared by the ids of their folders, so that the cost follows what each of them
//! changed.
//!
//! - [`decisions`]: a placement on both sides of a publication. [`touched`]: the changes of all placements at once.

mod decisions;
mod touched;

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::inputs::InputError;
use crate::publish::{PublishError, Trailers, claimed};
use berth_base::model::{Key, ObjectId, path};
use berth_engine::plan::Counts;
use berth_engine::state::layout;
use berth_git::{CommitId, CommitInfo, EntryKind, FirstParents, PathChange, Repo, TreeId};
use decisions::DecisionReader;
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
    commits: FirstParents<'r>,
    /// The publication to compare next.
    after: Option<Publication>,
    /// The path of the subject in a folder.
    path: Option<String>,
    decisions: DecisionReader<'r>,
    /// The last state whose folder of the cluster was found: the state before is the one after of the next comparison.
    folder: Cell<Option<(TreeId, TreeId)>>,
}

impl<'r> Events<'r> {
    /// Begins with a publication and goes back.
    pub fn of(repo: &'r Repo, newest: CommitId, subject: Subject) -> Result<Events<'r>, PublishError> {
        let path = match &subject {
            Subject::Placement { key, .. } => Some(path::of_key(key)),
            Subject::Object { object, .. } => Some(path::of_object(object)),
            Subject::Cluster(_) => None,
        };
        let commits = repo.first_parents(newest);
        let (decisions, folder) = (DecisionReader::new(repo), Cell::default());
        let mut events = Events { repo, subject, commits, after: None, path, decisions, folder };
        events.after = events.earlier()?;
        Ok(events)
    }

    fn earlier(&mut self) -> Result<Option<Publication>, PublishError> {
        for commit in self.commits.by_ref() {
            if let Some(trailers) = claimed(self.repo, &commit)? {
                return Ok(Some(Publication { commit, trailers }));
            }
        }
        Ok(None)
    }

    fn next_event(&mut self) -> Result<Option<Event>, InputError> {
        while let Some(publication) = self.after.take() {
            let before = self.earlier()?;
            self.after.clone_from(&before);
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

    fn change(&self, trees: [TreeId; 2]) -> Result<SubjectChange, InputError> {
        match &self.subject {
            Subject::Placement { key, cluster } => self.of_placement(key, cluster.as_deref(), trees),
            Subject::Cluster(cluster) => self.of_folder(cluster, None, trees),
            Subject::Object { cluster: Some(cluster), .. } => {
                let mut change = self.of_folder(cluster, self.path.as_deref(), trees)?;
                if change.copies.added > 0 {
                    change.joined.insert(cluster.clone());
                }
                if change.copies.removed > 0 {
                    change.left.insert(cluster.clone());
                }
                Ok(change)
            }
            Subject::Object { cluster: None, .. } => {
                self.of_copies(trees, &|_, path| Some(path) == self.path.as_deref())
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
        let after = match self.folder.get().filter(|(root, _)| *root == trees[1]) {
            Some((_, folder)) => folder,
            None => self.folder_in(trees[1], cluster)?,
        };
        let before = self.folder_in(trees[0], cluster)?;
        self.folder.set(Some((trees[0], before)));
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
        &self,
        key: &Key,
        cluster: Option<&str>,
        trees: [TreeId; 2],
    ) -> Result<SubjectChange, InputError> {
        let sides = self.decisions.sides(key, trees)?;
        let files = sides.files();
        let is_wanted = |name: &str, file: &str| {
            cluster.is_none_or(|wanted| wanted == name) && files.contains(file) && sides.has(name)
        };
        Ok(sides.change(cluster, self.of_copies(trees, &is_wanted)?.copies))
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
    publication.commit.parents.is_empty() && publication.trailers.seq <= 1
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
