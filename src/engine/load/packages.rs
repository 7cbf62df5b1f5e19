//! Folders that another program renders: Helm charts and Kustomize bases. Nothing in them is an object of the fleet.
//!
//! A folder with a `Chart.yaml` is a chart, with everything below it: templates are no YAML. A folder with a
//! `kustomization.yaml` is a base only if no file below it describes a cluster, a placement or a workload of the fleet,
//! and all of them can be read: people also keep placements in folders that Kustomize or Flux applies. The root of the
//! repository is neither.

use std::collections::BTreeSet;

use super::file_cache::FileCache;
use crate::dialects::{Claim, Dialects, Document};
use berth_base::diag::Diagnostic;
use berth_base::source::rendered::is_rendered;
use berth_base::source::{SourceFile, SourceTree};
use berth_base::text::counted;

const CHART: &str = "Chart.yaml";
const KUSTOMIZATIONS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// The folders that other programs render, each with a slash at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packages {
    charts: BTreeSet<String>,
    /// The folders with a kustomization. Those without anything of the fleet are bases.
    kustomized: BTreeSet<String>,
    bases: BTreeSet<String>,
}

impl Packages {
    /// Finds the packages of a tree. `is_read` reports whether the settings let a file be read.
    pub(super) fn of(
        tree: &SourceTree,
        dialects: Dialects,
        is_read: &dyn Fn(&str) -> bool,
        cache: &mut FileCache,
    ) -> Packages {
        let mut packages = Packages::default();
        for path in tree.files.keys().filter(|path| !is_rendered(path)) {
            let Some((folder, name)) = split(path).filter(|_| is_read(path)) else { continue };
            if name == CHART {
                packages.charts.insert(folder.to_owned());
            } else if KUSTOMIZATIONS.contains(&name) {
                packages.kustomized.insert(folder.to_owned());
            }
        }
        let in_chart = |path: &str| is_below(&packages.charts, path);
        let bases = packages.kustomized.iter().filter(|folder| {
            let files: Vec<&SourceFile> =
                below(tree, folder).filter(|file| is_read(&file.path) && !in_chart(&file.path)).collect();
            !has_fleet_objects(&files, dialects, cache)
        });
        packages.bases = bases.cloned().collect();
        packages
    }

    /// Reports whether a file is part of a package. The description of a chart never is an object.
    pub(super) fn has(&self, path: &str) -> bool {
        is_chart(path) || is_below(&self.charts, path) || is_below(&self.bases, path)
    }

    /// Reports whether a change of this file may change which folders are packages.
    pub(super) fn depend_on(&self, path: &str) -> bool {
        !is_rendered(path) && is_marker(path) || is_below(&self.kustomized, path)
    }

    /// Counts the packages that no source names, if there are any. `named` are the folders of sources.
    pub(super) fn note(&self, named: &BTreeSet<String>) -> Option<Diagnostic> {
        let outer = |folders: &BTreeSet<String>| {
            let unnamed = folders.iter().filter(|folder| !named.contains(*folder));
            unnamed.filter(|folder| !self.has(folder.trim_end_matches('/'))).count()
        };
        let counts = [(outer(&self.charts), "Helm chart"), (outer(&self.bases), "Kustomize base")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = counts.map(|(count, noun)| counted(count, noun)).collect();
        let message = format!("skipped {}, which no source names", words.join(" and "));
        (!words.is_empty()).then(|| Diagnostic::note(message))
    }
}

/// Reports whether a file makes its folder a package.
pub fn is_marker(path: &str) -> bool {
    is_chart(path) || split(path).is_some_and(|(_, name)| KUSTOMIZATIONS.contains(&name))
}

fn is_chart(path: &str) -> bool {
    path.rsplit('/').next() == Some(CHART)
}

/// Splits a path below the root into its folder, with the slash, and its name.
fn split(path: &str) -> Option<(&str, &str)> {
    path.rfind('/').map(|slash| path.split_at(slash + 1))
}

fn is_below(folders: &BTreeSet<String>, path: &str) -> bool {
    !folders.is_empty()
        && path
            .match_indices('/')
            .any(|(slash, _)| path.get(..=slash).is_some_and(|folder| folders.contains(folder)))
}

fn below<'t>(tree: &'t SourceTree, folder: &'t str) -> impl Iterator<Item = &'t SourceFile> {
    tree.files.values().filter(move |file| file.path.starts_with(folder) && !is_rendered(&file.path))
}

/// Reports whether files describe anything of the fleet, or may do so because they cannot be read.
fn has_fleet_objects(files: &[&SourceFile], dialects: Dialects, cache: &mut FileCache) -> bool {
    let read: Vec<_> = files.iter().map(|file| cache.read(file)).collect();
    let documents: Vec<Document> =
        read.iter().flat_map(|file| &file.objects).map(|(document, _)| document.clone()).collect();
    read.iter().any(|file| file.broken)
        || dialects
            .iter()
            .any(|dialect| (dialect.claim)(&documents).iter().any(|claim| *claim != Claim::Foreign))
}
