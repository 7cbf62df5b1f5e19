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
use berth_base::meta::open;
use berth_base::model::API_VERSION;
use berth_base::model::object::{group_of, version_of};
use berth_base::source::{SourceTree, rendered};
use berth_base::yaml::{Fields, Form, Node, Scope, Value, emit};

pub const HELM_KIND: &str = "HelmSource";
pub const KUSTOMIZE_KIND: &str = "KustomizeSource";

/// The longest name of a release, by Helm.
const LONGEST_RELEASE: usize = 53;

/// A document that names a chart or a base.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderSource {
    pub name: String,
    pub at: Pos,
    /// The folder of the chart or base, from the root of the repository.
    pub path: String,
    pub path_at: Pos,
    pub kind: SourceKind,
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
    /// Files of values from the root of the repository, each with its place in the document.
    pub values_files: Vec<(String, Pos)>,
    /// The inline values as YAML, with their place. They win over the files.
    pub values: Option<(String, Pos)>,
    pub has_crds: bool,
    /// Custom kinds without a namespace whose definition is not in the repository, as `kind.group`.
    pub cluster_scoped: BTreeSet<String>,
    /// Leaves hooks out. Otherwise a chart with hooks is refused.
    pub skips_hooks: bool,
    /// `lookup` finds nothing. Otherwise it fails.
    pub finds_nothing: bool,
    pub allows_secrets: bool,
}

impl RenderSource {
    /// Returns the folder of the rendered files.
    pub fn folder(&self) -> String {
        rendered::folder(&self.at.file, self.kind.program(), &self.name)
    }

    /// Returns the kind and the name, for messages.
    pub fn shown(&self) -> String {
        let kind = match self.kind {
            SourceKind::Helm(_) => HELM_KIND,
            SourceKind::Kustomize => KUSTOMIZE_KIND,
        };
        format!("{kind} `{}`", self.name)
    }
}

impl SourceKind {
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
pub(super) fn read(scope: &Scope, root: &Node, kind: &str) -> Option<RenderSource> {
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
    let path_at = scope.pos(spec.place_of("path"));
    let path = spec.required_str("path").and_then(|path| {
        let folder = folder_in_tree(path);
        if folder.is_none() {
            spec.error_at(
                "path",
                "spec.path must be a folder from the root of the repository, such as `charts/web`",
            );
        }
        folder
    });
    let kind = match kind == HELM_KIND {
        true => helm_options(&mut spec, &metadata.name).map(SourceKind::Helm),
        false => Some(SourceKind::Kustomize),
    };
    spec.finish();
    Some(RenderSource { name: metadata.name, at, path: path?.to_owned(), path_at, kind: kind? })
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
    let kube_version = spec.required_str("kubeVersion");
    if kube_version.is_some_and(|version| !is_version(version)) {
        spec.error_at("kubeVersion", "spec.kubeVersion must be a version such as `1.34` or `1.34.2`");
    }
    let api_versions = spec.strings("apiVersions").unwrap_or_default();
    let values_files = values_files(spec);
    let values = values(spec);
    let has_crds = spec.choice("crds", &["include", "skip"]) != Some("skip");
    let cluster_scoped = spec.strings("clusterScoped").unwrap_or_default();
    let skips_hooks = spec.choice("hooks", &["refuse", "skip"]) == Some("skip");
    let finds_nothing = spec.choice("lookup", &["refuse", "empty"]) == Some("empty");
    let allows_secrets = spec.choice("secrets", &["refuse", "allow"]) == Some("allow");
    Some(HelmOptions {
        release,
        namespace: namespace?.to_owned(),
        kube_version: kube_version?.to_owned(),
        api_versions: api_versions.into_iter().map(str::to_owned).collect(),
        values_files,
        values,
        has_crds,
        cluster_scoped: cluster_scoped.into_iter().map(str::to_owned).collect(),
        skips_hooks,
        finds_nothing,
        allows_secrets,
    })
}

fn values_files(spec: &mut Fields<'_>) -> Vec<(String, Pos)> {
    spec.strings("valuesFiles");
    let mut files: Vec<(String, Pos)> = Vec::new();
    for node in spec.list("valuesFiles").unwrap_or_default() {
        let Some(text) = node.as_str() else { continue };
        match folder_in_tree(text) {
            Some(path) if files.iter().any(|(known, _)| known == path) => {
                spec.scope().error(node.at, format!("spec.valuesFiles has `{path}` twice"));
            }
            Some(path) => files.push((path.to_owned(), spec.scope().pos(node.at))),
            None => {
                spec.scope().error(node.at, "spec.valuesFiles must be paths from the root of the repository");
            }
        }
    }
    files
}

fn values(spec: &mut Fields<'_>) -> Option<(String, Pos)> {
    spec.takes("values", Form::Mapping);
    let node = spec.node("values")?;
    if !matches!(node.value, Value::Map(_)) {
        spec.error_at("values", format!("spec.values must be a mapping, not {}", node.what()));
        return None;
    }
    Some((emit(&node.to_json()), spec.scope().pos(node.at)))
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
    found.sources.retain(|source| !faulty.contains(&source.folder()));
    found
}

impl FoundSources {
    fn add(&mut self, document: &Document, names: &mut BTreeMap<(Arc<str>, Arc<str>), String>) {
        let key = &document.key;
        if !is_source(&key.group, &key.kind) {
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
                Some(source) => self.sources.push(source),
                None => _ = self.faulty.insert(folder),
            },
        }
    }
}

/// Reads one document of a supported version.
pub(super) fn read_document(scope: &Scope, document: &Document) -> Option<RenderSource> {
    (document.version == version_of(API_VERSION))
        .then(|| read(scope, &document.open(), &document.key.kind))?
}

/// Returns the folders that sources name, each with a slash at its end.
pub(super) fn named_folders(documents: &[Document]) -> BTreeSet<String> {
    let sources = documents.iter().filter(|document| is_source(&document.key.group, &document.key.kind));
    let path = |document: &Document| {
        let path = document.root.get("spec")?.get("path")?.as_str()?.to_owned();
        folder_in_tree(&path).map(|folder| format!("{folder}/"))
    };
    sources.filter_map(path).collect()
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
