//! A tree that differs from the last one in a few documents: its fleet is the last fleet with a small change.
//!
//! The changed documents are assembled twice, before and after the change, each time with the documents that
//! they are read against. The difference of the two small fleets is applied to the large one. If that could
//! miss an effect, this module returns nothing, and the tree is loaded in full.

use std::collections::BTreeSet;

use super::assemble::{Assembled, assemble};
use super::config::{CONFIG_PATH, FleetConfig};
use super::documents::{FileDocuments, FileSize};
use super::file_cache::{FileCache, LastLoad};
use super::{Loaded, merge_clusters};
use crate::dialects::{Bearing, DIALECTS, Document};
use berth_base::model::map::Change;
use berth_base::model::{Fleet, Key, Map, Shared};
use berth_base::source::{RulesFrom, SourceFile, SourceTree};

/// A file that differs from the last tree, before and after the change.
struct ChangedFile<'t> {
    before: Option<&'t SourceFile>,
    after: &'t SourceFile,
}

/// Loads a tree as a change of the last loaded one, if possible.
pub(super) fn load(tree: &SourceTree, cache: &mut FileCache) -> Option<Loaded> {
    let last = cache.last.take()?;
    let loaded = patch(&last, tree, cache);
    // If this tree cannot be loaded as a change, the next one is compared with the same last tree.
    cache.last = Some(match &loaded {
        Some((loaded, size)) => LastLoad { tree: tree.clone(), loaded: loaded.clone(), size: *size, ..last },
        None => last,
    });
    loaded.map(|(loaded, _)| loaded)
}

fn patch(last: &LastLoad, tree: &SourceTree, cache: &mut FileCache) -> Option<(Loaded, FileSize)> {
    let config = &last.loaded.config;
    let changed = changed_files(&last.tree, tree, config)?;
    let (mut before, mut after) = (last.context.clone(), last.context.clone());
    let (mut added, mut size) = (Vec::new(), last.size);
    for file in &changed {
        let new = cache.read(file.after);
        if !is_flawless(&new) {
            return None;
        }
        match file.before {
            Some(old) => {
                let old = cache.known(old)?;
                if !is_flawless(old) || !have_same_keys(old, &new) {
                    return None;
                }
                before.extend(documents(old));
                size = size.minus(old.size);
            }
            None => added.extend(documents(&new)),
        }
        after.extend(documents(&new));
        size = size.plus(new.size);
    }
    if !size.is_within(cache.room.0) {
        return None;
    }
    if has_repeated(&after) {
        return None;
    }
    let assembled = |mut documents: Vec<Document>| {
        documents.sort_by(|a, b| a.at.file.cmp(&b.at.file));
        assemble(&documents, DIALECTS, config, &cache.contexts)
    };
    let (before, after) = (assembled(before), assembled(after));
    if !stand_alone(&before, last) || !stand_alone(&after, last) || before.diagnostics != after.diagnostics {
        return None;
    }
    let mut fleet = Fleet::clone(&last.loaded.fleet);
    apply(&mut fleet, &before.fleet, &after.fleet)?;
    if !added.iter().all(|document| makes_anything(document, &after.fleet)) {
        return None;
    }
    changed.iter().filter_map(|file| file.before).for_each(|before| cache.forget(before));
    Some((Loaded { fleet: fleet.into(), ..last.loaded.clone() }, size))
}

/// Returns the changed files. `None` if too much has changed.
fn changed_files<'t>(
    last: &'t SourceTree,
    tree: &'t SourceTree,
    config: &FleetConfig,
) -> Option<Vec<ChangedFile<'t>>> {
    let has_no_rules = |tree: &SourceTree| matches!(tree.rules_from, RulesFrom::Nowhere);
    if !has_no_rules(last)
        || !has_no_rules(tree)
        || last.found != tree.found
        || last.rendered.failed != tree.rendered.failed
        || last.rendered.diagnostics != tree.rendered.diagnostics
        // The forms of an object are in several files.
        || [last, tree].iter().any(|tree| !tree.rendered.varied.is_empty())
    {
        return None;
    }
    let mut changed = Vec::new();
    for Change { before, after, .. } in last.files.changes_by(&tree.files, |old, new| old.id == new.id) {
        let after = after?;
        if config.packages.depend_on(&after.path) {
            return None;
        }
        if !config.excludes(&after.path) {
            changed.push(ChangedFile { before, after });
        }
    }
    let is_small = changed.len() <= tree.files.len() / 2;
    let has_settings = changed.iter().any(|file| *file.after.path == *CONFIG_PATH);
    (is_small && !has_settings).then_some(changed)
}

/// Reports whether a file was parsed without any diagnostic.
fn is_flawless(file: &FileDocuments) -> bool {
    !file.broken && file.passed_over == 0 && file.diagnostics.is_empty() && !file.has_heavy_aliases()
}

fn have_same_keys(before: &FileDocuments, after: &FileDocuments) -> bool {
    let [before, after] = [before, after].map(|file| file.objects.iter().map(|(one, _)| &one.key));
    before.eq(after)
}

/// Reports whether two documents have the same key: the first one is used, and the other is a fault.
fn has_repeated(documents: &[Document]) -> bool {
    let keys: BTreeSet<&Key> = documents.iter().map(|document| &document.key).collect();
    keys.len() < documents.len()
}

fn documents(file: &FileDocuments) -> impl Iterator<Item = Document> {
    file.objects.iter().map(|(document, _)| document.clone())
}

/// Reports whether all documents outside the context are sound, and no other document is read against them.
fn stand_alone(assembled: &Assembled, last: &LastLoad) -> bool {
    let others = assembled.bearings.iter().filter(|bearing| **bearing != Bearing::Alone).count();
    let context = assembled.bearings.iter().filter(|bearing| **bearing == Bearing::Context).count();
    assembled.faulty.is_empty() && others == context && context == last.context.len()
}

/// Reports whether a fleet contains anything made from a document.
fn makes_anything(document: &Document, fleet: &Fleet) -> bool {
    fleet.placements.contains_key(&document.key)
        || fleet.workloads.contains_key(&document.key)
        || fleet.clusters.values().any(|cluster| cluster.origins.contains(&document.at))
}

/// Applies the difference of two small fleets to a large one. `None` if the large one lacks something of the
/// first small one.
fn apply(fleet: &mut Fleet, before: &Fleet, after: &Fleet) -> Option<()> {
    let n_clusters = fleet.clusters.len();
    replace(&mut fleet.placements, &before.placements, &after.placements, Shared::eq)?;
    replace(&mut fleet.workloads, &before.workloads, &after.workloads, Shared::eq)?;
    replace(&mut fleet.clusters, &before.clusters, &after.clusters, Shared::eq)?;
    for change in before.labels.changes(&after.labels) {
        match change.after {
            Some(labels) => fleet.labels.insert(change.key.clone(), labels.clone()),
            None => fleet.labels.remove(change.key),
        };
    }
    let has_new_cluster = fleet.clusters.len() != n_clusters;
    let has_changed_clusters = before.clusters != after.clusters;
    let is_rest_same = before.named_policies == after.named_policies && before.list_kinds == after.list_kinds;
    // A status may belong to the new cluster, a pattern may match the new workload, a placement may require a
    // label, and an uncertain follower may refer to the new placement.
    let is_sound = is_rest_same
        && (before.placements.len() == after.placements.len() || fleet.doubt.files.is_empty())
        && (!has_new_cluster || fleet.statuses.is_empty())
        && (before.workloads.len() == after.workloads.len() || fleet.rollout_policies.is_empty())
        && (!has_changed_clusters || !merge_clusters::name_labels_are_given(fleet, DIALECTS));
    is_sound.then_some(())
}

fn replace<K: Ord + Clone, V: Clone>(
    all: &mut Map<K, V>,
    before: &Map<K, V>,
    after: &Map<K, V>,
    is_same: impl Fn(&V, &V) -> bool + Copy,
) -> Option<()> {
    for change in before.changes_by(after, is_same) {
        let known = all.get(change.key);
        let is_as_before = match (change.before, known) {
            (Some(before), Some(known)) => is_same(before, known),
            (None, None) => true,
            _ => false,
        };
        let value = change.after.filter(|_| is_as_before)?;
        all.insert(change.key.clone(), value.clone());
    }
    Some(())
}
