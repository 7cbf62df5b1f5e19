//! Variants of sources: what a chart or base renders for some clusters, with other values or from another folder.
//!
//! Placements select each object once, in the form that the source itself renders, or else in that of the first variant
//! that has it. The other forms stay with its document, and become overrides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::documents::FileDocuments;
use super::render_sources::{RenderSource, SourceDocument, is_source, read_document};
use crate::dialects::{Document, ParsedDocument, Variant, Variants};
use berth_base::diag::{Diagnostic, Severity, did_you_mean};
use berth_base::model::{Alternative, Applies, Fleet, Key, Shared};
use berth_base::source::{Rendered, rendered};
use berth_base::yaml::Scope;

type Files = Vec<(Arc<str>, Shared<FileDocuments>)>;

/// Leaves each object of a source once in the files, with the forms that its variants give it.
pub(super) fn separate(files: &mut Files, rendered: &Rendered) {
    if rendered.varied.is_empty() {
        return;
    }
    let forms = Forms::of(files, rendered);
    for (path, file) in files.iter_mut() {
        let Some(folder) = rendered::folder_of(path) else { continue };
        let source = rendered::source_folder(folder);
        if !rendered.varied.contains(source) {
            continue;
        }
        let folders = forms.folders(source);
        let is_first = |key: &Key| {
            folders.iter().find(|folder| forms.has(folder, key)).is_some_and(|first| first == folder)
        };
        let mut own = FileDocuments::clone(file);
        own.objects.retain(|(document, _)| is_first(&document.key));
        for (document, _) in &mut own.objects {
            let variants = forms.variants(document, source);
            *document = ParsedDocument { variants, ..ParsedDocument::clone(document) }.into();
        }
        *file = own.into();
    }
}

/// The forms of the objects of all sources.
struct Forms {
    /// The sources that can be read, by their folders.
    sources: BTreeMap<String, SourceDocument>,
    /// The objects, by the folders that have them.
    objects: BTreeMap<String, BTreeMap<Key, Document>>,
    /// The folders of the sources and variants that cannot be rendered and were never published, or have a file that
    /// cannot be read.
    lost: BTreeSet<String>,
    /// The alternatives of each source.
    alternatives: BTreeMap<String, Arc<[Alternative]>>,
}

impl Forms {
    fn of(files: &Files, rendered: &Rendered) -> Forms {
        let mut objects: BTreeMap<String, BTreeMap<Key, Document>> = BTreeMap::new();
        let mut lost = BTreeSet::new();
        for (path, file) in files {
            if let Some(folder) = rendered::folder_of(path) {
                let of_file =
                    file.objects.iter().map(|(document, _)| (document.key.clone(), document.clone()));
                objects.entry(folder.to_owned()).or_default().extend(of_file);
                lost.extend(file.broken.then(|| folder.to_owned()));
            }
        }
        let failed = rendered.failed.iter().filter_map(|path| rendered::folder_of(path));
        lost.extend(failed.filter(|folder| !objects.contains_key(*folder)).map(str::to_owned));
        let mut sources = sources(files);
        sources.retain(|folder, _| !rendered.faulty.contains(folder));
        let included = |source: &RenderSource| Some(source.variant.as_ref()?.clusters.clone());
        let alternatives = sources.iter().map(|(folder, source)| {
            (folder.clone(), source.variants.iter().filter_map(included).collect::<Arc<[Alternative]>>())
        });
        Forms { alternatives: alternatives.collect(), sources, objects, lost }
    }

    /// Returns the folders of a source and its variants, in their order if it can be read.
    fn folders(&self, source: &str) -> Vec<String> {
        match self.sources.get(source) {
            Some(known) => known.all().map(RenderSource::folder).collect(),
            None => self
                .objects
                .keys()
                .filter(|folder| rendered::source_folder(folder) == source)
                .cloned()
                .collect(),
        }
    }

    fn has(&self, folder: &str, key: &Key) -> bool {
        self.form(folder, key).is_some()
    }

    fn form(&self, folder: &str, key: &Key) -> Option<&Document> {
        self.objects.get(folder)?.get(key)
    }

    /// Returns the forms of an object in all clusters that do not get this one.
    fn variants(&self, document: &Document, source: &str) -> Variants {
        let known = self.sources.get(source);
        let is_lost = |known: &&SourceDocument| known.all().any(|one| self.lost.contains(&one.folder()));
        let Some(known) = known.filter(|known| !is_lost(known)) else { return Variants::Unknown };
        let alternatives = &self.alternatives[source];
        // The source itself is for the clusters that no variant includes.
        let all = known.variants.iter().enumerate().chain([(alternatives.len(), &known.source)]);
        let form_in = |(index, one): (usize, &RenderSource)| {
            let form = self.form(&one.folder(), &document.key);
            let is_same = form.is_some_and(|form| form.at == document.at);
            let clusters = Applies::First(index, alternatives.clone());
            (!is_same).then(|| Variant { clusters, document: form.cloned() })
        };
        Variants::Of { source: known.source.key().into(), forms: all.filter_map(form_in).collect() }
    }
}

/// Marks the last good forms of what sources with variants rendered: they are those of some clusters.
pub(super) fn doubt(kept: &mut [Document], rendered: &Rendered) {
    let is_varied = |folder: &str| rendered::variant_of(folder).is_some() || rendered.varied.contains(folder);
    for document in kept {
        if rendered::folder_of(&document.at.file).is_some_and(is_varied) {
            let variants = Variants::Unknown;
            *document = ParsedDocument { variants, ..ParsedDocument::clone(document) }.into();
        }
    }
}

/// Refuses documents that differ between the variants of a source and are no plain objects: each has one meaning for the
/// whole fleet.
pub(super) fn fault(document: &Document) -> Option<Diagnostic> {
    let Variants::Of { source, forms } = &document.variants else { return None };
    let own = document.root.to_json();
    let differs = |form: &Variant| form.document.as_ref().is_none_or(|form| form.root.to_json() != own);
    let message = format!("{} differs between the variants of {source}", document.key);
    let hint = "only plain objects, which a placement selects, may differ";
    forms.iter().any(differs).then(|| Diagnostic::error(document.at.clone(), message).hint(hint))
}

/// Warns of variants that name clusters which are not in the fleet, or that include none of its clusters.
pub(super) fn check(documents: &[Document], fleet: &Fleet) -> Vec<Diagnostic> {
    let sources = read_sources(documents.iter());
    let variants = sources.iter().flat_map(|source| &source.variants);
    variants.flat_map(|variant| doubts(variant, fleet)).collect()
}

fn doubts(source: &RenderSource, fleet: &Fleet) -> Vec<Diagnostic> {
    let Some(variant) = &source.variant else { return Vec::new() };
    let warning = |message: String| Diagnostic::warning(source.at.clone(), message);
    let unknown = variant.clusters.clusters.iter().filter(|name| !fleet.clusters.contains_key(*name));
    let mut found: Vec<Diagnostic> = unknown
        .map(|name| {
            let near = did_you_mean(name, fleet.clusters.keys().map(String::as_str));
            warning(format!("{} names `{name}`, which is no cluster of the fleet", source.shown()))
                .maybe_hint(near)
        })
        .collect();
    let includes_any =
        fleet.clusters.iter().any(|(name, known)| variant.clusters.includes(name, Some(known)));
    if found.is_empty() && !includes_any {
        found.push(warning(format!("{} includes no cluster of the fleet", source.shown())));
    }
    found
}

/// Reads the sources of files, by their folders.
fn sources(files: &Files) -> BTreeMap<String, SourceDocument> {
    let documents = files.iter().flat_map(|(_, file)| &file.objects).map(|(document, _)| document);
    read_sources(documents).into_iter().map(|read| (read.source.folder(), read)).collect()
}

/// Reads the sources among documents, without the faulty ones.
fn read_sources<'d>(documents: impl Iterator<Item = &'d Document>) -> Vec<SourceDocument> {
    let sources = documents.filter(|document| is_source(&document.key.group, &document.key.kind));
    let read = |document: &Document| {
        let scope = Scope::new(document.at.file.clone(), Severity::Error);
        read_document(&scope, document).filter(|_| !scope.has_errors())
    };
    sources.filter_map(read).collect()
}
