//! The member against real folders and real repositories.

mod crash;
mod folder;
mod local;

mod pruning;
mod rails;
mod repository;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::*;
use backends::FolderBackend;
use berth_base::model::ObjectId;
use berth_base::model::path::of_object;
use berth_base::yaml;

/// A ConfigMap of namespace `shop`.
pub fn map(name: &str, value: &str) -> Json {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "shop" },
        "data": { "key": value },
    })
}

pub fn namespace(name: &str) -> Json {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

pub fn annotated(mut object: Json, name: &str, value: &str) -> Json {
    object["metadata"]["annotations"][name] = json!(value);
    object
}

pub fn text(object: &Json) -> String {
    yaml::emit(object)
}

pub fn place(object: &Json) -> String {
    of_object(&ObjectId::of(object).unwrap())
}

pub fn folder(sequence: u64, objects: &[Json]) -> ClusterFolder {
    let file = |object: &Json| (place(object), Arc::from(text(object).as_bytes()));
    let mut hasher = DefaultHasher::new();
    text(&json!(objects)).hash(&mut hasher);
    let tree = format!("{:x}", hasher.finish());
    let objects = objects.iter().map(file).collect();
    ClusterFolder {
        cluster: "eu-1".to_owned(),
        sequence,
        tree,
        objects,
        strange: BTreeMap::new(),
        allow_prune: BTreeSet::new(),
        applier: None,
        replaces: BTreeSet::new(),
    }
}

pub fn options() -> Options {
    Options { fleet: "test".to_owned(), ..Options::default() }
}

/// Runs one sync with a fresh syncer.
pub(crate) fn sync_with(
    path: &Path,
    folder: &ClusterFolder,
    options: &Options,
) -> Result<SyncOutcome, ApplyError> {
    let mut backend = FolderBackend::open(path).unwrap();
    sync_once(folder, &LocalOverrides::default(), &mut backend, options)
}

pub fn sync(path: &Path, folder: &ClusterFolder) -> SyncOutcome {
    sync_with(path, folder, &options()).unwrap()
}

/// Every file below a folder but berth's own, by path.
pub fn files(path: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(path, path, &mut found);
    found
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if name == ".berth" {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            collect(root, &path, found);
        } else {
            found.insert(name, std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

pub fn expected(objects: &[Json]) -> BTreeMap<String, String> {
    objects.iter().map(|object| (place(object), text(object))).collect()
}

pub fn messages(outcome: &SyncOutcome) -> Vec<String> {
    let problems = outcome.applied.problems.iter();
    problems.map(|problem| format!("{}: {}", problem.object, problem.message)).collect()
}
