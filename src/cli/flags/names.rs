//! Names of clusters and placements on the command line: their completion by a shell, and the search for placements.
//! Completion reads the fleet around the current folder, or the one in `BERTH_REPO`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap_complete::engine::CompletionCandidate;

use super::fleet;
use crate::process::exit::CommandError;
use berth_base::diag::did_you_mean;
use berth_base::model::{Fleet, Key, Shared, Timestamp};
use berth_base::text::counted;
use berth_engine::dialects::DIALECTS;
use berth_git::Repo;
use berth_hub::inputs::{PassInputs, Search};

/// The variable by which a shell's script requests candidates.
pub(crate) const COMPLETE: &str = "BERTH_COMPLETE";

/// Returns the names of clusters.
pub fn clusters() -> Vec<CompletionCandidate> {
    fleet().map(|fleet| candidates(fleet.clusters.keys().cloned().collect())).unwrap_or_default()
}

/// Returns the names of placements. Ambiguous names also get their namespace and kind.
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
    // A shell would misinterpret control characters, and names that look like flags.
    let is_plain = |name: &String| !name.starts_with('-') && !name.contains(char::is_control);
    names.into_iter().filter(is_plain).map(CompletionCandidate::new).collect()
}

/// Returns the fleet as far as it is readable. Errors cannot be shown during completion.
fn fleet() -> Option<Shared<Fleet>> {
    let path = std::env::var_os("BERTH_REPO").map_or_else(fleet::here_or_above, PathBuf::from);
    let inputs = if Repo::is_git_folder(&path) {
        PassInputs::revision(&path, "HEAD", None, None, &Search::leniently())
    } else {
        PassInputs::folder(&path, Timestamp::now(), None, &Search::leniently())
    };
    Some(inputs.ok()?.fleet())
}

/// Returns the placements with this name, as [`matching`] does. Fails if there are none.
pub(crate) fn find<'f>(all: Vec<&'f Key>, wanted: &str) -> Result<Vec<&'f Key>, CommandError> {
    let found = matching(all.iter().copied(), wanted);
    if !found.is_empty() {
        return Ok(found);
    }
    let error = CommandError::usage(format!("no placement `{wanted}` in this fleet"));
    Err(error.hint(near(wanted, all.iter().copied()).unwrap_or_else(|| {
        format!("choose one of {}; `berth decide` lists all", counted(all.len(), "placement"))
    })))
}

/// Returns the keys with this name: `name`, `namespace/name`, `kind/name` or `kind/namespace/name`. The kind may have
/// its group: `Kind.group`.
pub(crate) fn matching<'f>(all: impl Iterator<Item = &'f Key>, wanted: &str) -> Vec<&'f Key> {
    let parts: Vec<&str> = wanted.split('/').collect();
    let short_names = DIALECTS.iter().flat_map(|dialect| dialect.shown.short_names);
    let is_kind = |key: &Key, word: &str| {
        key.kind.eq_ignore_ascii_case(word)
            || is_with_group(key, word)
            || short_names
                .clone()
                .any(|(short, kind)| word.eq_ignore_ascii_case(short) && *key.kind == **kind)
    };
    let fits = |key: &&Key| match parts.as_slice() {
        [name] => *key.name == **name,
        [first, name] => *key.name == **name && (*key.namespace == **first || is_kind(key, first)),
        [kind, namespace, name] => is_kind(key, kind) && *key.namespace == **namespace && *key.name == **name,
        _ => false,
    };
    all.filter(fits).collect()
}

/// Returns a hint with the key whose name is most like the wanted one.
pub(crate) fn near<'f>(wanted: &str, all: impl Iterator<Item = &'f Key>) -> Option<String> {
    let name = wanted.rsplit('/').next().unwrap_or_default();
    did_you_mean(name, all.map(|key| &*key.name))
}

/// Reports whether a word is a key's `Kind.group`.
fn is_with_group(key: &Key, word: &str) -> bool {
    let is_own = |(kind, group): (&str, &str)| {
        key.kind.eq_ignore_ascii_case(kind) && key.group.eq_ignore_ascii_case(group)
    };
    word.split_once('.').is_some_and(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_with_its_group_names_one_of_two_placements() {
        let keys = ["a.example.com", "b.example.com"].map(|group| Key::new(group, "Thing", "shop", "web"));
        let found = |wanted: &str| find(keys.iter().collect(), wanted).map(|found| found.len()).unwrap_or(0);
        assert_eq!(found("Thing/shop/web"), 2);
        assert_eq!(find(keys.iter().collect(), "thing.b.example.com/shop/web").unwrap(), [&keys[1]]);
        assert_eq!([found("Thing.a.example.com/web"), found("Thing.c.example.com/web")], [1, 0]);
        assert_eq!([found("Thing./shop/web"), found(".a.example.com/shop/web")], [0, 0]);
    }
}
