//! Names that a shell can complete: the clusters and placements of the fleet around the current folder, or of
//! the one that `BERTH_REPO` names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;

use super::repo_path;
use berth_base::model::{Fleet, Key, Shared, Timestamp};
use berth_git::Repo;
use berth_hub::inputs::{PassInputs, Search};

/// The variable by which a shell's script asks for candidates.
pub(crate) const COMPLETE: &str = "BERTH_COMPLETE";

/// The names of clusters.
pub fn clusters() -> Vec<CompletionCandidate> {
    fleet().map(|fleet| candidates(fleet.clusters.keys().cloned().collect())).unwrap_or_default()
}

/// The names of placements, and those that several have with their namespace and kind.
pub fn placements() -> Vec<CompletionCandidate> {
    let Some(fleet) = fleet() else { return Vec::new() };
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    fleet.placements.keys().for_each(|key| *named.entry(&key.name).or_default() += 1);
    let shown = |key: &Key| match (named.get(&*key.name), key.namespace.is_empty()) {
        (Some(1), _) => key.name.to_string(),
        (_, true) => format!("{}/{}", key.kind, key.name),
        (_, false) => format!("{}/{}/{}", key.kind, key.namespace, key.name),
    };
    candidates(fleet.placements.keys().map(shown).collect())
}

fn candidates(names: BTreeSet<String>) -> Vec<CompletionCandidate> {
    // A shell would take control characters, and what looks like a flag, for something else.
    let is_plain = |name: &String| !name.starts_with('-') && !name.contains(char::is_control);
    names.into_iter().filter(is_plain).map(CompletionCandidate::new).collect()
}

/// The fleet as far as it can be read. Nobody sees an error while a word is completed.
fn fleet() -> Option<Shared<Fleet>> {
    let path = std::env::var_os("BERTH_REPO").map_or_else(repo_path::here_or_above, PathBuf::from);
    let inputs = if Repo::is_git_folder(&path) {
        PassInputs::revision(&path, "HEAD", None, None, &Search::leniently())
    } else {
        PassInputs::folder(&path, Timestamp::now(), None, &Search::leniently())
    };
    Some(inputs.ok()?.fleet())
}
