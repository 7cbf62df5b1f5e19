//! The subject of a history by its name: a placement, a cluster or an object, of now or of the past.

use std::collections::BTreeSet;

use crate::flags::names;
use crate::process::exit::CommandError;
use berth_base::model::{Key, ObjectId, path};
use berth_base::text::some_of;
use berth_engine::state::layout;
use berth_git::Repo;
use berth_hub::history::Subject;
use berth_hub::publish::{CurrentState, claimed};

/// The word before the name of a cluster.
const CLUSTER: &str = "cluster/";

/// The number of names in an error.
const MOST_NAMES: usize = 5;

/// Finds the subject of this name: in the given state, or else in earlier publications.
pub(super) fn find(
    repo: &Repo,
    current: &CurrentState,
    name: &str,
    cluster: Option<&str>,
) -> Result<Subject, CommandError> {
    if let Some(named) = name.strip_prefix(CLUSTER) {
        return Ok(Subject::Cluster(named.to_owned()));
    }
    let known = Names::of(current);
    if let Some(subject) = known.subject(name, cluster)? {
        return Ok(subject);
    }
    let mut after = None;
    for commit in repo.first_parents(current.commit) {
        if claimed(repo, &commit)?.is_none() {
            continue;
        }
        if let Some(after) = after.replace(commit.tree) {
            let gone = repo.path_changes(commit.tree, after, &[layout::CLUSTERS, layout::DECISIONS])?;
            let mut names = Names::default();
            gone.iter().for_each(|(path, _)| names.add(path));
            if let Some(subject) = names.subject(name, cluster)? {
                return Ok(subject);
            }
        }
    }
    let error = CommandError::usage(format!("nothing published has the name `{name}`"));
    Err(error.hint(match names::near(name, known.placements.iter().chain(&known.objects)) {
        Some(near) => near,
        None => "name a placement as KIND/NAME or NAMESPACE/NAME, an object as KIND/NAMESPACE/NAME, or a cluster as \
                 cluster/NAME"
            .to_owned(),
    }))
}

/// The names of a state or of a change.
#[derive(Default)]
struct Names {
    placements: BTreeSet<Key>,
    /// The objects, as keys.
    objects: BTreeSet<Key>,
    clusters: BTreeSet<String>,
}

impl Names {
    fn of(current: &CurrentState) -> Names {
        let decisions = &current.state.decisions;
        let key = |object: &ObjectId| Key::new(&object.group, &object.kind, &object.namespace, &object.name);
        Names {
            placements: decisions.keys().cloned().collect(),
            objects: decisions.values().flat_map(|decision| decision.objects.iter().map(key)).collect(),
            clusters: current.state.folders.keys().cloned().collect(),
        }
    }

    /// Adds what a path of a state names.
    fn add(&mut self, path: &str) {
        let Some((folder, rest)) = path.split_once('/') else { return };
        if folder == layout::DECISIONS {
            self.placements.extend(path::key_of(rest));
        } else if let Some((cluster, file)) = rest.split_once('/') {
            self.clusters.extend(path::decode(cluster));
            self.objects.extend(path::key_of(file));
        }
    }

    fn subject(&self, name: &str, cluster: Option<&str>) -> Result<Option<Subject>, CommandError> {
        let cluster = cluster.map(str::to_owned);
        if let Some(key) = one(&self.placements, name)? {
            return Ok(Some(Subject::Placement { key: key.clone(), cluster }));
        }
        if self.clusters.contains(name) && cluster.is_none() {
            return Ok(Some(Subject::Cluster(name.to_owned())));
        }
        let object = one(&self.objects, name)?;
        Ok(object.map(|key| {
            let object = ObjectId::new(&key.group, &key.kind, &key.namespace, &key.name);
            Subject::Object { object, cluster }
        }))
    }
}

/// Returns the only key of this name.
fn one<'k>(all: &'k BTreeSet<Key>, name: &str) -> Result<Option<&'k Key>, CommandError> {
    let found = names::matching(all.iter(), name);
    match found.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        many => {
            let names =
                some_of(many.iter().map(|key| key.kind_and_group() + "/" + &key.full_name()), MOST_NAMES);
            Err(CommandError::usage(format!("`{name}` names {names}"))
                .hint("name the kind and the namespace too"))
        }
    }
}
