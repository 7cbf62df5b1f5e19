//! Renders the charts and bases that source documents name, and adds the rendered files to the tree, before it is
//! loaded.
//!
//! A source that cannot be rendered keeps its last published files, which the rendered branch has in `kept/`. So a
//! failed render removes nothing.
//!
//! A fault of a source is the same on every machine. A fault of the renderer is not: the publication names these
//! sources, and its proof takes them as failed.

mod files;
mod hooks;
mod objects;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::error::InputError;
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::ContentId;
use berth_base::source::{Rendered, SourceFile, SourceFiles, SourceTree, rendered};
use berth_base::yaml;
use berth_engine::load::{
    FileCache, FoundSources, HELM_KIND, HelmOptions, Hooks, KUSTOMIZE_KIND, RenderSource, SourceKind,
    SourceValues, find_sources,
};
use berth_git::shared_refs::trailers::{RENDERER, UNRENDERED};
use berth_git::{GitError, Repo};
use berth_sources::{
    Answer, Failure, HelmAnswer, HelmRequest, KustomizeAnswer, Renderer, Request, SourceFault, Values,
};

pub(super) use files::Origin;
use files::{Entries, Files, FilesError};
use objects::{ClusterKinds, RenderedText, Rules, defined_kinds};
pub use values::{MergedValue, MergedValues, ValuesError};

/// How sources are rendered.
#[derive(Clone, Debug, Default)]
pub enum Rendering {
    /// As well as possible now.
    #[default]
    Now,
    /// As a publication recorded it.
    Recorded {
        /// The identity of its renderer.
        renderer: Option<String>,
        /// The folders of the sources that its renderer failed to render.
        failed: BTreeSet<String>,
    },
}

impl Rendering {
    /// Returns the rendering that the trailers of a publication record.
    pub(crate) fn of_trailers(trailers: &[(String, String)]) -> Rendering {
        let named = |wanted: &'static str| {
            trailers.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| value.clone())
        };
        Rendering::Recorded { renderer: named(RENDERER).next(), failed: named(UNRENDERED).collect() }
    }
}

/// The parts of a rendering that a publication records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderingRecord {
    /// The identity of the renderer, if it rendered anything.
    pub renderer: Option<String>,
    /// The folders of the sources that the renderer failed to render.
    pub failed: BTreeSet<String>,
}

impl RenderingRecord {
    pub fn trailers(&self) -> impl Iterator<Item = (String, String)> {
        let renderer = self.renderer.iter().map(|renderer| (RENDERER, renderer));
        let failed = self.failed.iter().map(|folder| (UNRENDERED, folder));
        renderer.chain(failed).map(|(name, value)| (name.to_owned(), value.clone()))
    }
}

/// The last published files of sources.
#[derive(Clone, Copy)]
pub(super) struct LastFiles<'a> {
    pub repo: Option<&'a Repo>,
    pub kept: &'a BTreeMap<String, ContentId>,
}

/// Files of a tree that matter for rendering. A search reads only the files that differ from the last tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    /// May have sources.
    sources: FileSearch<()>,
    /// Define custom kinds without a namespace.
    definitions: FileSearch<ClusterKinds>,
}

#[derive(Clone, Debug, Default)]
struct FileSearch<T> {
    files: SourceFiles,
    found: BTreeMap<Arc<str>, T>,
}

impl<T> FileSearch<T> {
    fn update(&mut self, files: &SourceFiles, find: impl Fn(&SourceFile) -> Option<T>) {
        for change in self.files.changes_by(files, |old, new| old.id == new.id) {
            match change.after.and_then(|file| Some((file.path.clone(), find(file)?))) {
                Some((path, found)) => _ = self.found.insert(path, found),
                None => _ = self.found.remove(change.key),
            }
        }
        self.files = files.clone();
    }
}

/// Reports whether a text names the kind of a source.
fn may_have_source(bytes: &[u8]) -> bool {
    let text = str::from_utf8(bytes).unwrap_or_default();
    text.contains("berth.dev") && [HELM_KIND, KUSTOMIZE_KIND].iter().any(|kind| text.contains(kind))
}

/// Everything that a tree is rendered with.
pub(super) struct Render<'a> {
    pub repo: Option<&'a Repo>,
    pub origin: &'a Origin,
    pub last: LastFiles<'a>,
    pub rendering: &'a Rendering,
    pub is_edited: bool,
}

impl Render<'_> {
    /// Renders the sources of a tree, and adds the rendered files to it.
    pub fn expand(
        &self,
        tree: &mut SourceTree,
        candidates: &mut Candidates,
        parsed: &mut FileCache,
    ) -> Result<RenderingRecord, InputError> {
        candidates.sources.update(&tree.files, |file| may_have_source(&file.bytes).then_some(()));
        // A file that had a source may be damaged so that nothing in it looks like one.
        let had = self.last.kept.keys().filter_map(|path| rendered::document_file(path)).map(Arc::from);
        let paths: BTreeSet<Arc<str>> = candidates.sources.found.keys().cloned().chain(had).collect();
        let found = find_sources(tree, &paths, parsed);
        if found.sources.is_empty() && found.faulty.is_empty() && found.unreadable.is_empty() {
            return Ok(RenderingRecord::default());
        }
        candidates
            .definitions
            .update(&tree.files, |file| Some(defined_kinds(&file.bytes)).filter(|kinds| !kinds.is_empty()));
        let cluster_kinds = candidates.definitions.found.values().flatten().cloned().collect();
        let mut pass = self.pass(tree, cluster_kinds);
        pass.render_all(&found)?;
        let RenderPass { made, mut rendered, record, .. } = pass;
        rendered.files = made.keys().map(|path| path.as_str().into()).collect();
        tree.files.extend(made.into_iter().map(|(path, bytes)| SourceFile::new(path, bytes)));
        tree.rendered = rendered.into();
        Ok(record)
    }
}

impl<'a> Render<'a> {
    fn pass(&'a self, tree: &'a SourceTree, cluster_kinds: ClusterKinds) -> RenderPass<'a> {
        RenderPass {
            render: self,
            cluster_kinds,
            files: Files { repo: self.repo, origin: self.origin, tree, is_edited: self.is_edited },
            made: BTreeMap::new(),
            rendered: Rendered::default(),
            record: RenderingRecord::default(),
        }
    }
}

/// Removes the rendered files from a tree, and those that it had before an edit.
pub(super) fn collapse(tree: &mut SourceTree, before: &Rendered) {
    let now = std::mem::take(&mut tree.rendered);
    for path in now.files.iter().chain(&before.files) {
        tree.files.take(path);
    }
}

/// The rendering of one tree.
struct RenderPass<'a> {
    render: &'a Render<'a>,
    /// The custom kinds without a namespace that a file of the tree or a rendered file defines.
    cluster_kinds: ClusterKinds,
    files: Files<'a>,
    made: BTreeMap<String, Vec<u8>>,
    rendered: Rendered,
    record: RenderingRecord,
}

/// The reason why a source has no new files.
enum Refusal {
    Source(Vec<Diagnostic>),
    Renderer { message: String, hint: Option<String> },
    Input(InputError),
}

impl From<GitError> for Refusal {
    fn from(error: GitError) -> Refusal {
        Refusal::Input(error.into())
    }
}

impl RenderPass<'_> {
    fn render_all(&mut self, found: &FoundSources) -> Result<(), InputError> {
        let varied = found.sources.iter().filter(|source| source.variant.is_some());
        let varied = varied.map(|source| rendered::source_folder(&source.folder()).to_owned());
        self.rendered.varied.extend(varied);
        self.rendered.faulty.extend(found.faulty.iter().cloned());
        let mut answers = Vec::new();
        for source in &found.sources {
            match self.attempt(source, &source.folder()) {
                Ok(answer) => answers.push((source, answer)),
                Err(refusal) => self.fail(source, refusal)?,
            }
        }
        // Their faults are reported when the documents are loaded.
        for faulty in &found.faulty {
            let file = rendered::document_file(faulty).unwrap_or_default();
            let of_source =
                self.last_folders(file).into_iter().filter(|one| rendered::source_folder(one) == faulty);
            for folder in of_source.chain([faulty.clone()]).collect::<BTreeSet<String>>() {
                self.keep_last(&folder)?;
                self.rendered.failed.insert(rendered::failed_path(&folder));
            }
        }
        // The readable sources of such a file count.
        let mut read: BTreeSet<String> = found.sources.iter().map(RenderSource::folder).collect();
        read.extend(found.faulty.iter().cloned());
        for file in &found.unreadable {
            let lost = |folder: &&String| !read.contains(rendered::source_folder(folder));
            for folder in self.last_folders(file).iter().filter(lost) {
                self.keep_last(folder)?;
            }
        }
        let published = self.made.keys().filter_map(|path| rendered::folder_of(path));
        let varied = published.filter_map(rendered::variant_of).map(|(source, _)| source.to_owned());
        self.rendered.varied.extend(varied);
        // All definitions are known before the first namespace is added.
        let rendered = answers.iter().flat_map(|(_, answer)| texts_of(answer)).map(str::as_bytes);
        let texts = rendered.chain(self.made.values().map(Vec::as_slice));
        let defined: ClusterKinds = texts.flat_map(defined_kinds).collect();
        self.cluster_kinds.extend(defined);
        for (source, answer) in answers {
            match self.files_of(source, &answer) {
                Ok(files) => {
                    let folder = source.folder();
                    let below = |(path, bytes)| (format!("{folder}/{path}"), bytes);
                    self.made.extend(files.into_iter().map(below));
                }
                Err(refusal) => self.fail(source, refusal)?,
            }
        }
        Ok(())
    }

    /// Keeps the last published files of a source that cannot be rendered, and reports why.
    fn fail(&mut self, source: &RenderSource, refusal: Refusal) -> Result<(), InputError> {
        let folder = source.folder();
        let faults = match refusal {
            Refusal::Input(error) => return Err(error),
            Refusal::Source(faults) => faults,
            Refusal::Renderer { message, hint } => {
                self.record.failed.insert(folder.clone());
                let hint = [Some(message), hint].into_iter().flatten().collect::<Vec<_>>().join("\n  ");
                // A proof repeats the message, but has no hint.
                let fault = Diagnostic::error(
                    source.at.clone(),
                    format!("{} is not rendered, for a fault of the renderer", source.shown()),
                );
                vec![if hint.is_empty() { fault } else { fault.hint(hint) }]
            }
        };
        let n_kept = self.keep_last(&folder)?;
        self.rendered.failed.insert(rendered::failed_path(&folder));
        let stays = if n_kept > 0 { "; its last published objects stay" } else { "" };
        for mut fault in faults {
            fault.message.push_str(stays);
            self.rendered.diagnostics.push(fault);
        }
        Ok(())
    }

    /// Renders a source, unless the publication that is proven failed to.
    fn attempt(&mut self, source: &RenderSource, folder: &str) -> Result<Arc<Answer>, Refusal> {
        let recorded = match self.render.rendering {
            Rendering::Recorded { failed, .. } if failed.contains(folder) => {
                return Err(Refusal::Renderer { message: String::new(), hint: None });
            }
            Rendering::Recorded { renderer, .. } => Some(renderer.clone()),
            Rendering::Now => None,
        };
        let done = match &source.kind {
            SourceKind::Helm(options) => self.helm(source, options, false),
            SourceKind::Kustomize => self.kustomize(source),
        };
        match (&done, recorded) {
            (Err(Refusal::Renderer { message, hint }), Some(_)) => {
                return Err(Refusal::Input(InputError::NotRendered {
                    what: source.shown(),
                    message: message.clone(),
                    hint: hint.clone(),
                }));
            }
            (Err(Refusal::Renderer { .. }), None) => {}
            (_, Some(recorded)) => self.record.renderer = recorded,
            (_, None) => self.record.renderer = Renderer::shared().identity().ok(),
        }
        done
    }

    fn helm(
        &self,
        source: &RenderSource,
        options: &HelmOptions,
        origins: bool,
    ) -> Result<Arc<Answer>, Refusal> {
        let entries = self.folder_of(source, self.files.below(&source.path))?;
        let request = Request::Helm(HelmRequest {
            path: ".".to_owned(),
            release: options.release.clone(),
            namespace: options.namespace.clone(),
            values: self.values(options)?,
            kube_version: options.kube_version.clone(),
            api_versions: options.api_versions.clone(),
            // Definitions that are left out still say which kinds have no namespace.
            crds: true,
            hooks: true,
            tests: false,
            lookup: if options.finds_nothing { "empty" } else { "refuse" },
            origins,
        });
        self.ask(source, &entries, &source.path, &request)
    }

    fn kustomize(&mut self, source: &RenderSource) -> Result<Arc<Answer>, Refusal> {
        let entries = self.folder_of(source, self.files.closure(&source.path))?;
        let request = Request::Kustomize { path: source.path.clone() };
        self.ask(source, &entries, "", &request)
    }

    /// Makes the files of a source from the answer of the renderer.
    fn files_of(
        &mut self,
        source: &RenderSource,
        answer: &Answer,
    ) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
        match (answer, &source.kind) {
            (Answer::Helm(answer), SourceKind::Helm(options)) => self.helm_files(source, options, answer),
            (Answer::Kustomize(answer), SourceKind::Kustomize) => self.kustomize_files(source, answer),
            _ => Err(odd_answer()),
        }
    }

    fn helm_files(
        &mut self,
        source: &RenderSource,
        options: &HelmOptions,
        answer: &HelmAnswer,
    ) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
        self.warn(source, &answer.warnings);
        self.check_hooks(source, options, answer)?;
        let crds = answer.crds.iter().filter(|_| options.has_crds);
        let in_waves: Vec<(&str, String)> = match options.hooks {
            Hooks::Waves => hooks::in_waves(&answer.hooks),
            Hooks::Refuse | Hooks::Skip => Vec::new(),
        };
        let mut documents: Vec<RenderedText<'_>> = crds
            .chain(&answer.documents)
            .map(|document| RenderedText {
                template: hooks::template_of(&document.file),
                text: &document.text,
            })
            .collect();
        documents.extend(in_waves.iter().map(|(template, text)| RenderedText { template, text }));
        let rules = Rules {
            source,
            namespace: Some(&options.namespace),
            cluster_kinds: &self.cluster_kinds.union(&options.cluster_scoped).cloned().collect(),
            allows_secrets: options.allows_secrets,
            values: &answer.values,
        };
        objects::files_of(&documents, &rules).map_err(Refusal::Source)
    }

    fn kustomize_files(
        &mut self,
        source: &RenderSource,
        answer: &KustomizeAnswer,
    ) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
        self.warn(source, &answer.warnings);
        let text = |text| RenderedText { template: KUSTOMIZED, text };
        let documents: Vec<RenderedText<'_>> =
            answer.documents.iter().map(|one| text(one.as_str())).collect();
        // The data of a base's Secrets is in the repository already.
        let rules = Rules {
            source,
            namespace: None,
            cluster_kinds: &self.cluster_kinds,
            allows_secrets: true,
            values: &Json::Null,
        };
        objects::files_of(&documents, &rules).map_err(Refusal::Source)
    }

    fn ask(
        &self,
        source: &RenderSource,
        entries: &Entries,
        root: &str,
        request: &Request,
    ) -> Result<Arc<Answer>, Refusal> {
        let tree = files::tree_of(entries, root);
        let read = || {
            files::read_all(&self.files, entries, root).map_err(|error| match error {
                FilesError::Git(error) => Failure::Renderer { message: error.to_string(), hint: None },
                FilesError::Fault(message) => {
                    let message = format!("`{}` {message}", source.path);
                    Failure::Source(SourceFault { message, ..SourceFault::default() }.into())
                }
            })
        };
        Renderer::shared().render(&tree, request, &read).map_err(|failure| match failure {
            Failure::Source(fault) => Refusal::Source(vec![diagnostic(source, &fault, root)]),
            Failure::Renderer { message, hint } => Refusal::Renderer { message, hint },
        })
    }

    /// Returns the files of a source's folder, or the fault that it is missing.
    fn folder_of(
        &self,
        source: &RenderSource,
        found: Result<Option<Entries>, FilesError>,
    ) -> Result<Entries, Refusal> {
        let fault =
            |message: String| Refusal::Source(vec![Diagnostic::error(source.path_at.clone(), message)]);
        match found {
            Ok(Some(entries)) => Ok(entries),
            Ok(None) => {
                let message = format!("there is no folder `{}` in the repository", source.path);
                Err(fault(message))
            }
            Err(FilesError::Git(error)) => Err(error.into()),
            Err(FilesError::Fault(message)) => Err(fault(message)),
        }
    }

    /// Reads the values of a source.
    fn values(&self, options: &HelmOptions) -> Result<Vec<Values>, Refusal> {
        let mut all = Vec::new();
        let mut faults = Vec::new();
        for values in &options.values {
            let (path, at) = match values {
                SourceValues::File(path, at) => (path, at),
                SourceValues::Inline(node, at) => {
                    all.push(Values { name: at.to_string(), text: yaml::emit(&node.to_json()) });
                    continue;
                }
            };
            let read =
                self.files.file(path).and_then(|file| file.map(|file| self.files.read(&file)).transpose());
            match read.map(|bytes| bytes.map(String::from_utf8)) {
                Ok(Some(Ok(text))) => all.push(Values { name: path.clone(), text }),
                Ok(Some(Err(_))) => {
                    faults.push(Diagnostic::error(Pos::file(path.as_str()), "the file is not UTF-8 text"));
                }
                Ok(None) => {
                    let message = format!("there is no file `{path}` in the repository");
                    faults.push(Diagnostic::error(at.clone(), message));
                }
                Err(FilesError::Git(error)) => return Err(error.into()),
                Err(FilesError::Fault(message)) => faults.push(Diagnostic::error(at.clone(), message)),
            }
        }
        if faults.is_empty() { Ok(all) } else { Err(Refusal::Source(faults)) }
    }

    /// Refuses hooks, unless the source says what becomes of them.
    fn check_hooks(
        &mut self,
        source: &RenderSource,
        options: &HelmOptions,
        answer: &HelmAnswer,
    ) -> Result<(), Refusal> {
        if let Some(dropped) = answer.dropped.first() {
            let message =
                format!("{}: Helm does not know the event of the hook in `{}`", source.shown(), dropped.file);
            let warning = Diagnostic::warning(source.at.clone(), message);
            self.rendered.diagnostics.push(warning.hint("Helm leaves the hook out, and so does berth"));
        }
        match options.hooks {
            Hooks::Refuse if !answer.hooks.is_empty() => {
                Err(Refusal::Source(answer.hooks.iter().map(|hook| hooks::refusal(source, hook)).collect()))
            }
            Hooks::Waves => {
                let others = answer.hooks.iter().filter(|hook| hooks::wave_of(hook).is_none());
                self.rendered.diagnostics.extend(others.map(|hook| hooks::left_out(source, hook)));
                Ok(())
            }
            Hooks::Refuse | Hooks::Skip => Ok(()),
        }
    }

    fn warn(&mut self, source: &RenderSource, warnings: &[String]) {
        for warning in warnings {
            let message = format!("{}: {warning}", source.shown());
            self.rendered.diagnostics.push(Diagnostic::warning(source.at.clone(), message));
        }
    }

    /// Returns the folders of the last published files that the sources in a file rendered.
    fn last_folders(&self, file: &str) -> BTreeSet<String> {
        let start = format!("{file}/.");
        let kept = self.render.last.kept.range(start.clone()..).map(|(path, _)| path);
        let kept = kept.take_while(|path| path.starts_with(&start));
        kept.filter_map(|path| rendered::folder_of(path)).map(str::to_owned).collect()
    }

    /// Adds the last published files of a source to the tree. Returns their number.
    fn keep_last(&mut self, folder: &str) -> Result<usize, InputError> {
        let Some(repo) = self.render.last.repo else { return Ok(0) };
        let (start, unknown) = (format!("{folder}/"), rendered::failed_path(folder));
        let kept =
            self.render.last.kept.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
        let mut count = 0;
        for (path, id) in kept.filter(|(path, _)| **path != *unknown) {
            self.made.insert(path.clone(), repo.blob(*id)?);
            count += 1;
        }
        Ok(count)
    }
}

/// The file of everything that a base builds.
const KUSTOMIZED: &str = "objects.yaml";

/// Returns the texts of an answer, with those of the definitions.
fn texts_of(answer: &Answer) -> Vec<&str> {
    match answer {
        Answer::Helm(answer) => {
            let documents = answer.crds.iter().chain(&answer.documents).map(|document| &*document.text);
            documents.chain(answer.hooks.iter().map(|hook| &*hook.text)).collect()
        }
        Answer::Kustomize(answer) => answer.documents.iter().map(String::as_str).collect(),
    }
}

fn odd_answer() -> Refusal {
    let message = "the renderer answers another question".to_owned();
    Refusal::Renderer { message, hint: None }
}

/// Makes a diagnostic of the renderer's fault. `root` is the folder of its tree.
fn diagnostic(source: &RenderSource, fault: &SourceFault, root: &str) -> Diagnostic {
    let values = match &source.kind {
        SourceKind::Helm(options) => options.values.as_slice(),
        SourceKind::Kustomize => &[],
    };
    let of_values = values.iter().find_map(|values| match values {
        SourceValues::File(path, _) if *path == fault.file => {
            Some(Pos::new(fault.file.as_str(), fault.line, fault.column))
        }
        SourceValues::Inline(_, at) if at.to_string() == fault.file => Some(at.clone()),
        _ => None,
    });
    let in_tree = |file: &str| match root {
        "" => file.to_owned(),
        root => format!("{root}/{file}"),
    };
    let at = match of_values {
        _ if fault.file.is_empty() => source.path_at.clone(),
        Some(at) => at,
        None => Pos::new(in_tree(&fault.file), fault.line, fault.column),
    };
    let mut hints: Vec<String> = Vec::new();
    hints.extend((!fault.advice.is_empty()).then(|| fault.advice.clone()));
    let callers = fault.trace.iter().filter(|call| (&call.file, call.line) != (&fault.file, fault.line));
    hints.extend(callers.map(|call| format!("called at {}:{}", in_tree(&call.file), call.line)));
    let error = Diagnostic::error(at, format!("{} cannot be rendered: {}", source.shown(), fault.message));
    error.maybe_hint((!hints.is_empty()).then(|| hints.join("\n  ")))
}
