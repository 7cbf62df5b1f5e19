//! Files → a fleet: the files of a source tree become clusters, placements and workloads.
//!
//! settings → documents → claims → lowering → assembly. All problems are reported at once. A document that
//! cannot be read keeps its last good form, which requires a second lowering.

mod assemble;
mod berth_kinds;
pub mod config;
mod documents;
mod earlier_rules;
mod file_cache;
pub mod glob;
mod incremental;
mod last_good;
mod merge_clusters;
mod misspelt_groups;
pub mod packages;
mod render_sources;
mod rollout_policies;
#[cfg(test)]
mod tests;
mod tree_objects;
mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use berth_kinds::{APPROVALS, DIALECT};
pub use config::FleetConfig;
pub use earlier_rules::FleetTests;
pub use file_cache::FileCache;
use file_cache::LastLoad;
pub use last_good::{History, Survey, Text, append, survey, survey_with_cache};
pub use render_sources::{
    FoundSources, HELM_KIND, HelmOptions, Hooks, KUSTOMIZE_KIND, RenderSource, SourceDocument, SourceKind,
    SourceValues, SourceVariant, find_sources, is_source, read_source,
};

use assemble::{Assembled, assemble};
pub use config::CONFIG_PATH;
use config::Settings;
use documents::{FileSize, Slot};
use last_good::{LastGood, keep};
use tree_objects::{TreeObjects, find_broken, read_files, tree_objects};

use crate::access::{self, Facts, World};
use crate::dialects::{Bearing, Claim, DIALECTS, Dialects, Document};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::{Fleet, Key, Shared};
use berth_base::source::SourceTree;
use berth_base::yaml::Limits;

/// The fleet that a source tree describes.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    pub fleet: Shared<Fleet>,
    pub diagnostics: Diagnostics,
    pub config: FleetConfig,
    /// The last good forms of broken files, by path.
    pub kept: BTreeMap<String, Vec<u8>>,
    /// The number of documents that are not Kubernetes objects.
    pub passed_over: usize,
    pub tests: FleetTests,
}

/// A tree after reading, before the lookup of last good forms.
#[derive(Debug)]
pub struct ReadTree {
    objects: TreeObjects,
    assembled: Assembled,
    /// The access rules of the tree, and the facts that they read.
    world: World,
    facts: Facts,
    /// The documents with their own faults, without rivals.
    own_faults: BTreeSet<usize>,
    /// The results so far, without the source's own findings.
    loaded: Loaded,
    dialects: Dialects,
    settings_are_broken: bool,
    size: FileSize,
}

/// Reads a source tree with all dialects.
pub fn load(tree: &SourceTree, history: History<'_>) -> Loaded {
    load_with(tree, history, DIALECTS)
}

/// Reads a source tree like [`load`], with these dialects.
pub fn load_with(tree: &SourceTree, history: History<'_>, dialects: Dialects) -> Loaded {
    let mut cache = FileCache::default();
    let first = read(tree, Settings::of(tree, dialects, &mut cache), dialects, &mut cache);
    finish(tree, first, history, &mut cache)
}

/// Reads a source tree like [`load`], reusing cached files.
pub fn load_with_cache(tree: &SourceTree, history: History<'_>, cache: &mut FileCache) -> Loaded {
    finish(tree, first(tree, cache), history, cache)
}

/// Runs the first half of [`load`], which needs no history.
pub fn first(tree: &SourceTree, cache: &mut FileCache) -> ReadTree {
    read(tree, Settings::of(tree, DIALECTS, cache), DIALECTS, cache)
}

/// Returns the result for a tree that equals the last loaded one or differs slightly, if its history cannot
/// change the result.
pub fn again(tree: &SourceTree, cache: &mut FileCache) -> Option<Loaded> {
    let last = cache.last.as_ref().filter(|last| last.is_whole)?;
    if last.tree.is_same(tree) {
        return Some(last.loaded.clone());
    }
    incremental::load(tree, cache)
}

/// Runs the second half of [`load`].
pub fn finish(tree: &SourceTree, mut first: ReadTree, history: History<'_>, cache: &mut FileCache) -> Loaded {
    if let (true, History::Known(last_good)) = (first.settings_are_broken, history)
        && let Some(bytes) = last_good(CONFIG_PATH)
        && let Some(settings) = Settings::in_file(
            &documents::read(&CONFIG_PATH.into(), &bytes, &Limits::default()),
            first.dialects,
        )
        && settings.config.clone().with_packages(tree, first.dialects, cache) != first.loaded.config
    {
        first = read(tree, settings, first.dialects, cache);
    }
    let is_whole = first.is_whole(tree);
    let context = first.context();
    let ReadTree { objects, assembled: first, world, facts, own_faults, mut loaded, dialects, size, .. } =
        first;
    let found = found_in(tree, &loaded.config);
    loaded.diagnostics.extend(found.iter().copied().cloned());
    let broken = find_broken(tree, &found, &objects, &first.faulty, history);
    let mut kept = if broken.is_empty() {
        LastGood::default()
    } else {
        let good = objects.countable(&first.faulty).map(|index| &objects.documents[index].key).collect();
        keep(&broken, &good, history)
    };
    drop((broken, found));
    variants::doubt(&mut kept.documents, &tree.rendered);
    let dropped = tree_objects::settle_rivals(&objects, &first, &own_faults, (tree, history), &mut kept);
    for (document, text) in &objects.staying {
        kept.add(document, text, || objects.countable_text(tree, &document.at.file, &first.faulty));
    }
    let doubtful = objects.doubtful_files(&first);
    let mut done = if kept.documents.is_empty() && dropped.is_empty() {
        first
    } else {
        let assemble = |documents: &[Document], config: &FleetConfig| {
            assemble(documents, dialects, config, &cache.contexts)
        };
        assemble_again(objects, first, (&kept, &dropped), &mut loaded, assemble)
    };
    let doubt = &mut done.fleet.doubt;
    doubt.files.extend(doubtful);
    doubt.everything |= !kept.unknown.is_empty();
    doubt.objects = !kept.unknown.is_empty();
    doubt.files.extend(kept.unknown);
    loaded.kept = kept.files;
    loaded.diagnostics.extend(done.diagnostics);
    loaded.diagnostics.extend(access::fleet_rights::hold(&world, &facts, &mut done.fleet));
    loaded.diagnostics.sort();
    if let Some(last) = &cache.last {
        adopt(&mut done.fleet, &last.loaded.fleet);
    }
    loaded.fleet = done.fleet.into();
    cache.last = Some(LastLoad { tree: tree.clone(), loaded: loaded.clone(), is_whole, context, size });
    loaded
}

/// Shares equal parts with an earlier fleet, so that later stages look only at the rest.
fn adopt(fleet: &mut Fleet, earlier: &Fleet) {
    fleet.clusters.adopt(&earlier.clusters, Shared::eq);
    fleet.statuses.adopt(&earlier.statuses, Shared::eq);
    fleet.workloads.adopt(&earlier.workloads, Shared::eq);
    fleet.rollout_policies.adopt(&earlier.rollout_policies, Shared::eq);
    fleet.placements.adopt(&earlier.placements, Shared::eq);
}

fn read(tree: &SourceTree, settings: Settings, dialects: Dialects, cache: &mut FileCache) -> ReadTree {
    let Settings { config, are_broken: settings_are_broken } = settings;
    let config = config.with_packages(tree, dialects, cache);
    let world = earlier_rules::world(tree, dialects, cache);
    let mut files = read_files(tree, &config, cache);
    variants::separate(&mut files, &tree.rendered);
    let size = files.iter().fold(FileSize::default(), |sum, (_, file)| sum.plus(file.size));
    let judged = earlier_rules::judge(&world, &files);
    let winners = earlier_rules::winners(&world, &judged, &files);
    let tests = earlier_rules::policy_tests(tree, cache);
    let mut loaded = Loaded { config, tests, ..Loaded::default() };
    let mut objects = tree_objects(&files, &judged, winners.as_ref(), &mut loaded);
    objects.staying = earlier_rules::staying(tree, &judged, cache);
    loaded
        .diagnostics
        .extend(loaded.config.packages.note(&render_sources::named_folders(&objects.documents)));
    loaded.diagnostics.extend(tree.rendered.diagnostics.iter().cloned());
    loaded.diagnostics.extend(judged.found);
    loaded.diagnostics.extend(earlier_rules::note(tree, &world));
    let outside = objects.documents.iter().filter(|document| !document.at.file.starts_with(access::FOLDER));
    loaded.diagnostics.extend(outside.filter_map(access::misplaced));
    let mut assembled = earlier_rules::assemble_allowed(&objects, dialects, &loaded.config, &cache.contexts);
    let own_faults = assembled.faulty.clone();
    assembled.rivals.extend(objects.repeated.iter().cloned());
    assembled.faulty.extend(assembled.rivals.iter().flat_map(|rivals| &rivals.documents));
    let facts = judged.facts;
    ReadTree { objects, assembled, world, facts, own_faults, loaded, dialects, settings_are_broken, size }
}

impl ReadTree {
    /// Returns the documents that other documents are read against.
    fn context(&self) -> Vec<Document> {
        let all = self.objects.documents.iter().zip(&self.assembled.bearings);
        all.filter(|(_, bearing)| **bearing == Bearing::Context)
            .map(|(document, _)| document.clone())
            .collect()
    }
}

/// Returns the source's findings about files that the settings do not exclude.
fn found_in<'t>(tree: &'t SourceTree, config: &FleetConfig) -> Vec<&'t Diagnostic> {
    tree.found.iter().filter(|one| !is_excluded(one, config)).collect()
}

fn is_excluded(diagnostic: &Diagnostic, config: &FleetConfig) -> bool {
    diagnostic.at.as_ref().is_some_and(|at| config.excludes(&at.file))
}

/// Replaces faulty documents by their last good forms and lowers everything again, without the `dropped`
/// rivals of these forms. Faults of the tree stay reported, faults of last good forms do not.
fn assemble_again(
    objects: TreeObjects,
    first: Assembled,
    (kept, dropped): (&LastGood, &BTreeSet<usize>),
    loaded: &mut Loaded,
    assemble: impl FnOnce(&[Document], &FleetConfig) -> Assembled,
) -> Assembled {
    let kept_keys: BTreeSet<&Key> = kept.documents.iter().map(|document| &document.key).collect();
    let (refused, refused_keys) = (objects.refused.clone(), objects.refused_keys());
    let mut documents = Vec::new();
    let mut replaced: BTreeMap<Arc<str>, Vec<Slot>> = BTreeMap::new();
    for (index, (document, slot)) in objects.documents.into_iter().zip(objects.slots).enumerate() {
        if refused.contains(&index) {
            continue;
        }
        if kept_keys.contains(&document.key) || dropped.contains(&index) {
            replaced.entry(document.at.file.clone()).or_default().push(slot);
        } else {
            documents.push(document);
        }
    }
    documents.extend(kept.documents.iter().cloned());
    documents.sort_by(|a, b| a.at.file.cmp(&b.at.file));
    let mut second = assemble(&documents, &loaded.config);
    let in_replaced = |diagnostic: &Diagnostic| {
        let Some(at) = &diagnostic.at else { return false };
        replaced.get(&at.file).is_some_and(|slots| slots.iter().any(|slot| slot.lines.contains(&at.line)))
    };
    let of_kept = |diagnostic: &Diagnostic| diagnostic.at.as_ref().is_some_and(|at| kept.holds(at));
    loaded.diagnostics.extend(first.diagnostics.into_iter().filter(in_replaced));
    let rest = std::mem::take(&mut second.diagnostics);
    second.diagnostics.extend(rest.into_iter().filter(|diagnostic| !of_kept(diagnostic)));
    let doubt = &mut second.fleet.doubt;
    for (claim, document) in second.claims.iter().zip(&documents) {
        if refused_keys.contains(&document.key) {
            continue;
        }
        match claim {
            Claim::Inventory if document.readings.is_none() => doubt.everything = true,
            Claim::Policy | Claim::Workload if document.readings.is_none() => {
                doubt.files.insert(document.at.file.to_string());
            }
            _ => {}
        }
    }
    second
}
