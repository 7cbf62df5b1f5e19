//! `HelmSource` and `KustomizeSource` documents: which chart or base to render, and how. And the search for them in a
//! tree.
//!
//! Nothing is rendered here. A caller renders the sources and adds the rendered files to the tree before it loads it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::config::Settings;
use super::file_cache::FileCache;
use crate::dialects::{DIALECTS, Document};
use crate::{access, policy_tests};
use berth_base::diag::{Diagnostic, Pos, Severity};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain};
use berth_base::meta::{label_selector, open};
use berth_base::model::object::{group_of, version_of};
use berth_base::model::{API_VERSION, Alternative, Key};
use berth_base::packed::View;
use berth_base::source::{SourceTree, rendered};
use berth_base::yaml::{Fields, Form, Node, Scope, Value};

pub const HELM_KIND: &str = "HelmSource";
pub const KUSTOMIZE_KIND: &str = "KustomizeSource";

/// The longest name of a release, by Helm.
const LONGEST_RELEASE: usize = 53;

/// A document that names a chart or a base, or one of its variants.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderSource {
    pub name: String,
    /// `None` for the source itself.
    pub variant: Option<SourceVariant>,
    pub at: Pos,
    /// The folder of the chart or base, from the root of the repository.
    pub path: String,
    pub path_at: Pos,
    pub kind: SourceKind,
}

/// A source as some clusters get it.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceVariant {
    pub name: String,
    pub clusters: Alternative,
}

/// A source document.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceDocument {
    pub source: RenderSource,
    /// A cluster gets the first one that includes it.
    pub variants: Vec<RenderSource>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    Helm(HelmOptions),
    Kustomize,
}

/// The inputs of a chart besides its files.
#[derive(Clone, Debug, PartialEq)]
pub struct HelmOptions {
    pub release: String,
    pub namespace: String,
    pub kube_version: String,
    /// The API versions that clusters have besides those that Helm knows.
    pub api_versions: Vec<String>,
    /// Later ones win.
    pub values: Vec<SourceValues>,
    pub has_crds: bool,
    /// Custom kinds without a namespace whose definition is not in the repository, as `kind.group`.
    pub cluster_scoped: BTreeSet<String>,
    pub hooks: Hooks,
    /// `lookup` finds nothing. Otherwise it fails.
    pub finds_nothing: bool,
    pub allows_secrets: bool,
}

/// The treatment of a chart's hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    /// A chart with hooks is refused.
    Refuse,
    Skip,
    /// Those before and after an installation or upgrade are objects in waves; others are left out.
    Waves,
}

/// Values of a chart, with their place in the document.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceValues {
    /// A path from the root of the repository.
    File(String, Pos),
    Inline(Node, Pos),
}

impl RenderSource {
    /// Returns the folder of the rendered files.
    pub fn folder(&self) -> String {
        let folder = rendered::folder(&self.at.file, self.kind.program(), &self.name);
        match &self.variant {
            Some(variant) => rendered::variant_folder(&folder, &variant.name),
            None => folder,
        }
    }

    /// Reports whether the source reads this file of the tree.
    pub fn reads(&self, file: &str) -> bool {
        let is_below = file.strip_prefix(&*self.path).is_some_and(|rest| rest.starts_with('/'));
        let is_named = |values: &SourceValues| matches!(values, SourceValues::File(path, _) if path == file);
        is_below || matches!(&self.kind, SourceKind::Helm(options) if options.values.iter().any(is_named))
    }

    /// Returns the key of the document.
    pub fn key(&self) -> Key {
        Key::new(group_of(API_VERSION), self.kind.name(), "", &self.name)
    }

    /// Returns the kind and the name, for messages.
    pub fn shown(&self) -> String {
        let kind = self.kind.name();
        match &self.variant {
            Some(variant) => format!("the variant `{}` of {kind} `{}`", variant.name, self.name),
            None => format!("{kind} `{}`", self.name),
        }
    }
}

impl SourceDocument {
    /// Returns the source and its variants.
    pub fn all(&self) -> impl Iterator<Item = &RenderSource> {
        std::iter::once(&self.source).chain(&self.variants)
    }
}

impl SourceKind {
    fn name(&self) -> &'static str {
        match self {
            SourceKind::Helm(_) => HELM_KIND,
            SourceKind::Kustomize => KUSTOMIZE_KIND,
        }
    }

    fn program(&self) -> &'static str {
        match self {
            SourceKind::Helm(_) => rendered::HELM,
            SourceKind::Kustomize => rendered::KUSTOMIZE,
        }
    }
}

/// Reports whether a kind of this group is a source.
pub fn is_source(group: &str, kind: &str) -> bool {
    group == group_of(API_VERSION) && [HELM_KIND, KUSTOMIZE_KIND].contains(&kind)
}

/// Reads one document and reports its faults.
pub fn read_source(scope: &Scope, root: &Node, kind: &str) -> Option<SourceDocument> {
    let at = scope.pos(root.at);
    let has_rules = |folder: &&str| at.file.starts_with(folder);
    if let Some(folder) =
        [access::FOLDER, policy_tests::FOLDER, super::APPROVALS].into_iter().find(|folder| has_rules(folder))
    {
        scope.error(root.at, format!("a {kind} cannot be under `{folder}`"));
    }
    let (mut fields, metadata) = open(scope, root)?;
    if !metadata.namespace.is_empty() {
        scope.error(metadata.namespace_at, format!("a {kind} has no namespace"));
    }
    if !metadata.name.is_empty() && !is_dns_subdomain(&metadata.name) {
        scope.error(metadata.name_at, "metadata.name must be lower-case letters, digits, dashes and dots");
    }
    let spec = fields.required_fields("spec");
    fields.finish();
    let mut spec = spec?;
    let (path, path_at) = path(&mut spec);
    let kind = match kind == HELM_KIND {
        true => helm_options(&mut spec, &metadata.name).map(SourceKind::Helm),
        false => Some(SourceKind::Kustomize),
    };
    let source = path.zip(kind).map(|(path, kind)| RenderSource {
        name: metadata.name,
        variant: None,
        at,
        path,
        path_at,
        kind,
    });
    let variants: Vec<_> =
        spec.each("variants").into_iter().map(|fields| variant(fields, source.as_ref())).collect();
    check_names(scope, &variants);
    spec.finish();
    Some(SourceDocument { source: source?, variants: variants.into_iter().collect::<Option<_>>()? })
}

/// Reads the folder of a chart or base, with its place.
fn path(fields: &mut Fields<'_>) -> (Option<String>, Pos) {
    let at = fields.scope().pos(fields.place_of("path"));
    let path = fields.required_str("path").and_then(|path| {
        let folder = folder_in_tree(path);
        if folder.is_none() {
            let name = fields.path_of("path");
            fields.error_at(
                "path",
                format!("{name} must be a folder from the root of the repository, such as `charts/web`"),
            );
        }
        folder
    });
    (path.map(str::to_owned), at)
}

/// Reads a variant: its clusters, and what differs from the source.
fn variant(mut fields: Fields<'_>, source: Option<&RenderSource>) -> Option<RenderSource> {
    let name = fields.required_str("name");
    if name.is_some_and(|name| !is_dns_label(name)) {
        let path = fields.path_of("name");
        fields.error_at("name", format!("{path} must be lower-case letters, digits and dashes, at most 63"));
    }
    let clusters = fields.strings("clusters").unwrap_or_default().into_iter().map(str::to_owned).collect();
    let node = fields.node("labelSelector");
    let path_of_selector = fields.path_of("labelSelector");
    let labels = node.and_then(|node| label_selector(fields.scope(), node, &path_of_selector));
    let included = Alternative { clusters, labels };
    if included.clusters.is_empty() && node.is_none() {
        let message = format!("{} needs clusters or a labelSelector", fields.path());
        fields.scope().error(fields.at(), message);
    }
    let mut own = source.cloned()?;
    own.variant = Some(SourceVariant { name: name?.to_owned(), clusters: included });
    own.at = fields.scope().pos(fields.at());
    match &mut own.kind {
        SourceKind::Helm(options) => {
            options.values.extend(values(&mut fields));
            if let Some(version) = kube_version(&mut fields) {
                options.kube_version = version;
            }
        }
        SourceKind::Kustomize => {
            let (path, at) = path(&mut fields);
            (own.path, own.path_at) = (path?, at);
        }
    }
    fields.finish();
    Some(own)
}

/// Refuses two variants of one name.
fn check_names(scope: &Scope, variants: &[Option<RenderSource>]) {
    let mut names = BTreeSet::new();
    for source in variants.iter().flatten() {
        let name = source.variant.as_ref().map(|variant| &variant.name);
        if let Some(name) = name.filter(|name| !names.insert(*name)) {
            let message = format!("spec.variants has the name `{name}` twice");
            scope.report(Diagnostic::error(source.at.clone(), message));
        }
    }
}

fn helm_options(spec: &mut Fields<'_>, name: &str) -> Option<HelmOptions> {
    let release = spec.str("release").unwrap_or(name).to_owned();
    let is_valid = is_dns_subdomain(&release) && release.len() <= LONGEST_RELEASE;
    if !is_valid && !release.is_empty() {
        let message = format!(
            "the release `{release}` must be lower-case letters, digits and dashes, at most {LONGEST_RELEASE}"
        );
        let hint = "write spec.release";
        let at = spec.scope().pos(spec.place_of("release"));
        spec.scope().report(Diagnostic::error(at, message).hint(hint));
    }
    let namespace = spec.required_str("namespace");
    if namespace.is_some_and(|namespace| !is_dns_label(namespace)) {
        spec.error_at(
            "namespace",
            "spec.namespace must be lower-case letters, digits and dashes, at most 63",
        );
    }
    spec.require("kubeVersion");
    let kube_version = kube_version(spec);
    let api_versions = spec.strings("apiVersions").unwrap_or_default();
    let values = values(spec);
    let has_crds = spec.choice("crds", &["include", "skip"]) != Some("skip");
    let cluster_scoped = spec.strings("clusterScoped").unwrap_or_default();
    let hooks = match spec.choice("hooks", &["refuse", "skip", "waves"]) {
        Some("skip") => Hooks::Skip,
        Some("waves") => Hooks::Waves,
        _ => Hooks::Refuse,
    };
    let finds_nothing = spec.choice("lookup", &["refuse", "empty"]) == Some("empty");
    let allows_secrets = spec.choice("secrets", &["refuse", "allow"]) == Some("allow");
    Some(HelmOptions {
        release,
        namespace: namespace?.to_owned(),
        kube_version: kube_version?,
        api_versions: api_versions.into_iter().map(str::to_owned).collect(),
        values,
        has_crds,
        cluster_scoped: cluster_scoped.into_iter().map(str::to_owned).collect(),
        hooks,
        finds_nothing,
        allows_secrets,
    })
}

fn kube_version(fields: &mut Fields<'_>) -> Option<String> {
    let version = fields.str("kubeVersion")?;
    if !is_version(version) {
        let path = fields.path_of("kubeVersion");
        fields.error_at("kubeVersion", format!("{path} must be a version such as `1.34` or `1.34.2`"));
    }
    Some(version.to_owned())
}

/// Reads the files of values, and then the inline values, which win.
fn values(fields: &mut Fields<'_>) -> Vec<SourceValues> {
    fields.strings("valuesFiles");
    let (list, at) =
        (fields.path_of("valuesFiles"), |fields: &Fields<'_>, node: &Node| fields.scope().pos(node.at));
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for node in fields.list("valuesFiles").unwrap_or_default() {
        let Some(text) = node.as_str() else { continue };
        match folder_in_tree(text) {
            Some(path) if !known.insert(path) => {
                fields.scope().error(node.at, format!("{list} has `{path}` twice"));
            }
            Some(path) => all.push(SourceValues::File(path.to_owned(), at(fields, node))),
            None => {
                fields
                    .scope()
                    .error(node.at, format!("{list} must be paths from the root of the repository"));
            }
        }
    }
    fields.takes("values", Form::Mapping);
    let Some(node) = fields.node("values") else { return all };
    if matches!(node.value, Value::Map(_)) {
        all.push(SourceValues::Inline(node.clone(), at(fields, node)));
    } else {
        let path = fields.path_of("values");
        fields.error_at("values", format!("{path} must be a mapping, not {}", node.what()));
    }
    all
}

/// Returns a path without the slash at its end. `None` if it is not a plain path below the root.
fn folder_in_tree(path: &str) -> Option<&str> {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && part != ".git";
    (!path.contains(['\\', '\0', '\n']) && path.split('/').all(is_part)).then_some(path)
}

/// Reports whether a text is a version of Kubernetes, as clusters and providers write it.
fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let is_of_version = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    let mut numbers = text.split(['-', '+']).next().unwrap_or_default().split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.chars().all(is_of_version) && (2..=3).contains(&numbers.clone().count()) && numbers.all(is_number)
}

/// The sources of a tree.
#[derive(Debug, Default)]
pub struct FoundSources {
    /// With their variants.
    pub sources: Vec<RenderSource>,
    /// The folders of rendered files whose source document has a fault, or is described twice.
    pub faulty: BTreeSet<String>,
    /// The files that have a part which cannot be read, and so may have any source.
    pub unreadable: BTreeSet<Arc<str>>,
}

/// Reads the sources in these files of a tree.
pub fn find_sources(tree: &SourceTree, files: &BTreeSet<Arc<str>>, cache: &mut FileCache) -> FoundSources {
    let mut found = FoundSources::default();
    if files.is_empty() {
        return found;
    }
    let config = Settings::of(tree, DIALECTS, cache).config;
    let is_in_chart = |path: &str| {
        let folders = path.match_indices('/').map(|(slash, _)| &path[..slash]);
        folders.into_iter().any(|folder| tree.files.contains_key(&*format!("{folder}/Chart.yaml")))
    };
    let mut names = BTreeMap::new();
    for path in files {
        let Some(file) = tree.files.get(path) else { continue };
        if config.excludes(path) || is_in_chart(path) {
            continue;
        }
        let read = cache.read(file);
        if read.broken {
            found.unreadable.insert(path.clone());
        }
        for (document, _) in &read.objects {
            found.add(document, &mut names);
        }
    }
    let faulty = &found.faulty;
    found.sources.retain(|source| !faulty.contains(rendered::source_folder(&source.folder())));
    found
}

impl FoundSources {
    fn add(&mut self, document: &Document, names: &mut BTreeMap<(Arc<str>, Arc<str>), String>) {
        let key = &document.key;
        // The folder of such a name would be that of a variant.
        if !is_source(&key.group, &key.kind) || key.name.contains('@') {
            return;
        }
        let scope = Scope::new(document.at.file.clone(), Severity::Error);
        let source = read_document(&scope, document);
        let program = if *key.kind == *HELM_KIND { rendered::HELM } else { rendered::KUSTOMIZE };
        let folder = rendered::folder(&document.at.file, program, &key.name);
        match names.insert((key.kind.clone(), key.name.clone()), folder.clone()) {
            // Of two descriptions, neither wins until people remove one.
            Some(first) => self.faulty.extend([first, folder]),
            None => match source.filter(|_| !scope.has_errors()) {
                Some(source) => self.sources.extend(source.all().cloned()),
                None => _ = self.faulty.insert(folder),
            },
        }
    }
}

/// Reads one document of a supported version.
pub(super) fn read_document(scope: &Scope, document: &Document) -> Option<SourceDocument> {
    (document.version == version_of(API_VERSION))
        .then(|| read_source(scope, &document.open(), &document.key.kind))?
}

/// Returns the folders that sources name, each with a slash at its end.
pub(super) fn named_folders(documents: &[Document]) -> BTreeSet<String> {
    let path = |part: View<'_>| {
        let folder = folder_in_tree(part.get("path")?.as_str()?)?;
        Some(format!("{folder}/"))
    };
    parts(documents.iter()).filter_map(path).collect()
}

/// Returns the files of values that sources name.
pub(super) fn named_values<'d>(documents: impl Iterator<Item = &'d Document>) -> BTreeSet<&'d str> {
    let files = parts(documents).filter_map(|part| part.get("valuesFiles")).flat_map(View::items);
    files.filter_map(|file| folder_in_tree(file.as_str()?)).collect()
}

/// Returns the specs of sources, and their variants.
fn parts<'d>(documents: impl Iterator<Item = &'d Document>) -> impl Iterator<Item = View<'d>> {
    let sources = documents.filter(|document| is_source(&document.key.group, &document.key.kind));
    sources.filter_map(|document| document.root.get("spec")).flat_map(|spec| {
        let variants = spec.get("variants").into_iter().flat_map(View::items);
        std::iter::once(spec).chain(variants)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_plain_and_below_the_root() {
        for path in ["charts/web", "./charts/web/", "a", ".charts/a"] {
            assert!(folder_in_tree(path).is_some(), "{path}");
        }
        for path in ["", ".", "/charts", "../x", "a/../b", "a//b", "a/./b", ".git/x", "a\\b", "./"] {
            assert!(folder_in_tree(path).is_none(), "{path}");
        }
    }

    #[test]
    fn versions_are_those_of_clusters() {
        for version in ["1.34", "v1.34.2", "1.30.4-gke.1348000", "1.31.2+k3s1"] {
            assert!(is_version(version), "{version}");
        }
        for version in ["", "1", "one", "1.34.", "1.2.3.4", "1.34 "] {
            assert!(!is_version(version), "{version}");
        }
    }
}
