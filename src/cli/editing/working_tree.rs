//! Shared by the editing commands: reads the files of a working tree, finds the documents in them, and checks edits
//! by loading the whole fleet again before writing anything. Also reads the objects in the files, in folders and on
//! standard input that a command line names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;

use crate::output::ui::Ui;
use crate::planning::faults::Faults;
use crate::process::exit::CommandError;
use crate::process::files;
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity, did_you_mean};
use berth_base::edit::{EditError, Found, Objects, Step, objects};
use berth_base::model::Timestamp;
use berth_base::source::{self, RulesFrom, SourceFile, SourceTree};
use berth_base::yaml::Limits;
use berth_engine::dialects::kubefed::make::{
    FederateSubject, KnownTypes, Resources, TYPE_CONFIG_GROUP, TYPE_CONFIG_KIND,
};
use berth_engine::load::config::CONFIG_PATH;
use berth_engine::load::{self, APPROVALS, History, Loaded};
use berth_engine::plan::{Plan, plan};
use berth_engine::render::MemoryContents;
use berth_engine::state::State;
use berth_git::Repo;
use berth_hub::inputs::{InputError, PassInputs, Search};

/// A working tree as it is on disk.
#[derive(Debug)]
pub(crate) struct WorkingTree {
    root: PathBuf,
    pub tree: SourceTree,
    pub loaded: Loaded,
    files: Vec<(Arc<str>, Objects)>,
}

/// The new content of a file; `None` deletes the file.
#[derive(Clone, Debug)]
pub struct Edit {
    pub path: String,
    pub text: Option<String>,
}

/// An edited file, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct EditForm<'a> {
    file: &'a str,
    deleted: bool,
}

impl<'a> EditForm<'a> {
    pub(crate) fn of(edit: &'a Edit) -> EditForm<'a> {
        EditForm { file: &edit.path, deleted: edit.text.is_none() }
    }
}

impl WorkingTree {
    pub fn read(root: &Path) -> Result<WorkingTree, CommandError> {
        if Repo::is_git_folder(root) {
            let message = format!(
                "`{}` is a bare repository or a .git folder, which has no files to edit",
                root.display()
            );
            return Err(CommandError::usage(message).hint("name a working tree"));
        }
        let mut tree = source::read_dir(root, &Limits::default()).map_err(InputError::from)?;
        // Existing files may be edited despite access rules; the edit itself is checked.
        tree.rules_from = RulesFrom::Nowhere;
        Ok(WorkingTree::of_files(root, tree))
    }

    /// These files as if they were those of the folder.
    pub fn of_files(root: &Path, tree: SourceTree) -> WorkingTree {
        let loaded = load::load(&tree, History::None);
        let read = |file: &SourceFile| (file.path.clone(), objects(&file.bytes));
        let files =
            tree.files.values().filter(|file| !loaded.config.excludes(&file.path)).map(read).collect();
        WorkingTree { root: root.to_owned(), tree, loaded, files }
    }

    /// Returns the tree with edited files.
    pub fn edited(&self, edits: &[Edit]) -> WorkingTree {
        let mut tree = self.tree.clone();
        apply(&mut tree, edits);
        WorkingTree::of_files(&self.root, tree)
    }

    /// Every object, with its file.
    pub fn objects(&self) -> impl Iterator<Item = (&Arc<str>, &Found)> {
        self.files.iter().flat_map(|(path, objects)| objects.found.iter().map(move |found| (path, found)))
    }

    /// The documents that describe a cluster of the fleet, each with its file.
    pub fn documents_of(&self, name: &str) -> Result<Vec<(&Arc<str>, &Found)>, CommandError> {
        let clusters = &self.loaded.fleet.clusters;
        let Some(cluster) = clusters.get(name) else {
            let error = CommandError::usage(format!("no cluster `{name}` in this fleet"));
            let near = did_you_mean(name, clusters.keys().map(String::as_str));
            return Err(error.hint(near.unwrap_or_else(|| "`berth status` lists the clusters".to_owned())));
        };
        let describes = |(file, found): &(&Arc<str>, &Found)| {
            let is_here =
                |at: &Pos| at.file == **file && (at.line, at.column) == (found.at.line, found.at.column);
            cluster.origins.iter().any(is_here)
        };
        Ok(self.objects().filter(describes).collect())
    }

    /// Returns the types that the tree's type configs and CustomResourceDefinitions add to the known ones.
    pub fn types(&self) -> (KnownTypes, Resources) {
        let (mut types, mut resources) = (KnownTypes::default(), Resources::default());
        for (_, found) in self.objects() {
            if ["FederatedTypeConfig", "CustomResourceDefinition"].contains(&found.kind.as_str()) {
                let object = found.node.to_json();
                types.learn(&object);
                resources.learn(&object);
            }
        }
        (types, resources)
    }

    /// Returns the type configs with this name, one for each control plane that has the type.
    pub(crate) fn type_configs(&self, name: &str) -> Vec<(&Arc<str>, &Found)> {
        let is_meant = |found: &Found| {
            (found.group(), found.kind.as_str()) == (TYPE_CONFIG_GROUP, TYPE_CONFIG_KIND)
                && found.name == name
        };
        self.objects().filter(|(_, found)| is_meant(found)).collect()
    }

    /// Sets one field of objects to a value, in all their files.
    pub fn set(
        &self,
        objects: &[(&Arc<str>, &Found)],
        path: &[Step],
        value: &Json,
    ) -> Result<Vec<Edit>, CommandError> {
        let mut texts: BTreeMap<&Arc<str>, String> = BTreeMap::new();
        for (file, found) in objects {
            let text = match texts.get(file) {
                Some(text) => text,
                None => self.text(file)?,
            };
            let text = berth_base::edit::set(text, found.document, &found.path_to(path), value);
            texts.insert(file, text.map_err(|error| refused(file, found, &error))?);
        }
        let edit = |(file, text): (&Arc<str>, String)| Edit { path: file.to_string(), text: Some(text) };
        Ok(texts.into_iter().map(edit).collect())
    }

    /// Returns a warning about files with unreadable parts, which may contain the searched object.
    pub fn unreadable(&self) -> Diagnostics {
        let fault = |(path, objects): &(Arc<str>, Objects)| {
            let fault = objects.faults.iter().find(|fault| fault.unreadable.is_some())?;
            Some(format!("{path}:{}:{}", fault.at.line, fault.at.column))
        };
        let places: Vec<String> = self.files.iter().filter_map(fault).collect();
        let mut found = Diagnostics::new();
        if !places.is_empty() {
            let message = format!("these files cannot be read: {}", places.join(", "));
            let warning = Diagnostic { at: None, ..Diagnostic::warning(Pos::file(""), message) };
            found.push(warning.hint("their content was skipped; see the errors with `berth validate`"));
        }
        found
    }

    /// A file's text.
    pub fn text(&self, path: &str) -> Result<&str, CommandError> {
        let text = std::str::from_utf8(self.bytes(path));
        text.map_err(|_| CommandError::usage(format!("{path} is not UTF-8 text")))
    }

    fn bytes(&self, path: &str) -> &[u8] {
        self.tree.files.get(path).map_or(&[], |file| &file.bytes)
    }

    /// Removes objects: items from lists, documents from files, and files that become empty.
    pub fn without(&self, gone: &[(&Arc<str>, &Found)]) -> Result<Vec<Edit>, CommandError> {
        let mut edits = Vec::new();
        for (path, objects) in &self.files {
            let mut here: Vec<&Found> =
                gone.iter().filter(|(file, _)| *file == path).map(|(_, found)| *found).collect();
            if here.is_empty() {
                continue;
            }
            let unreadable = objects.faults.iter().any(|fault| fault.unreadable.is_some());
            let alone = here.len() == objects.found.len() && objects.passed_over == 0 && !unreadable;
            if alone {
                edits.push(Edit { path: path.to_string(), text: None });
                continue;
            }
            // From last to first, so that indexes stay valid.
            here.sort_by_key(|found| std::cmp::Reverse(found.at));
            let mut text = self.text(path)?.to_owned();
            for found in here {
                let edited = match found.path.is_empty() {
                    true => berth_base::edit::remove_document(&text, found.document),
                    false => berth_base::edit::remove(&text, found.document, &found.path),
                };
                text = edited.map_err(|error| refused(path, found, &error))?;
            }
            edits.push(Edit { path: path.to_string(), text: Some(text) });
        }
        Ok(edits)
    }

    /// Returns the edited fleet, with the problems that the edits add.
    pub fn check(&self, edits: &[Edit]) -> (Loaded, Diagnostics) {
        let mut tree = self.tree.clone();
        apply(&mut tree, edits);
        let loaded = load::load(&tree, History::None);
        let edited: Vec<(Arc<str>, Objects)> = edits
            .iter()
            .filter_map(|edit| Some((edit.path.as_str().into(), objects(edit.text.as_ref()?.as_bytes()))))
            .collect();
        let is_edited = |path: &str| edits.iter().any(|edit| edit.path == path);
        let same = self.files.iter().filter(|(path, _)| !is_edited(path));
        let before = Faults::of(&self.loaded.diagnostics, self.files.iter());
        let new = before.not_among(&loaded.diagnostics, same.chain(&edited));
        (loaded, new)
    }

    /// Returns the effect of edits on every cluster, compared with the working tree. Ignores access rules.
    pub fn plan(&self, edits: &[Edit]) -> Result<Plan, CommandError> {
        let now = Timestamp::now();
        let mut contents = MemoryContents::default();
        let mut inputs = PassInputs::folder(&self.root, now, None, &Search::leniently())?;
        inputs.edit_tree(|tree| tree.rules_from = RulesFrom::Nowhere);
        let before = inputs.build(&mut contents)?.state;
        let mut inputs = PassInputs::folder(&self.root, now, None, &Search::leniently())?;
        inputs.edit_tree(|tree| {
            apply(tree, edits);
            tree.rules_from = RulesFrom::Nowhere;
        });
        inputs.current = before.clone();
        let after = inputs.build(&mut contents)?.state;
        Ok(plan(&before, &after))
    }

    /// Returns a warning for each right that the edits need and access rules do not grant.
    pub fn lacking(&self, edits: &[Edit]) -> Result<Diagnostics, CommandError> {
        let told = |edits: &[Edit], is_free: bool| {
            let mut inputs = PassInputs::folder(&self.root, Timestamp::now(), None, &Search::leniently())?;
            inputs.edit_tree(|tree| {
                apply(tree, edits);
                if is_free {
                    tree.rules_from = RulesFrom::Nowhere;
                }
            });
            let (_, _, told) = inputs.decide();
            Ok::<Vec<Diagnostic>, CommandError>(told.errors().cloned().collect())
        };
        let messages = |told: Vec<Diagnostic>| told.into_iter().map(|one| one.message).collect();
        let (before, free): (BTreeSet<String>, BTreeSet<String>) =
            (messages(told(&[], false)?), messages(told(edits, true)?));
        // An already refused document is still refused, edited or not.
        let is_edited = |one: &Diagnostic| {
            let file = one.at.as_ref().map(|at| &*at.file);
            edits.iter().any(|edit| Some(&*edit.path) == file)
        };
        let is_new = |one: &Diagnostic| is_edited(one) || !before.contains(&one.message);
        let new = told(edits, false)?.into_iter().filter(|one| !free.contains(&one.message) && is_new(one));
        let mut found = Diagnostics::new();
        found.extend(new.map(|one| Diagnostic { severity: Severity::Warning, ..one }));
        Ok(found)
    }

    /// Returns the kinds of a cluster's objects in the tree, with their groups.
    pub(crate) fn kinds_of(&self, cluster: &str) -> Result<BTreeSet<(String, String)>, CommandError> {
        let inputs = PassInputs::folder(&self.root, Timestamp::now(), None, &Search::leniently())?;
        let state = inputs.build(&mut MemoryContents::default())?.state;
        let all = plan(&State::default(), &state);
        let ours = all.changes().filter(|change| *change.cluster == *cluster);
        let ids = ours.filter_map(|change| change.object.as_deref());
        Ok(ids.map(|id| (id.group.to_string(), id.kind.to_string())).collect())
    }

    /// Writes edits, if the files are unchanged since they were read.
    pub fn write(&self, edits: &[Edit]) -> Result<(), CommandError> {
        for Edit { path, text } in edits {
            let file = self.root.join(path);
            let known = self.tree.files.get(&**path);
            match (text, known) {
                (Some(text), Some(known)) => files::replace(&file, &known.bytes, text)?,
                (Some(text), None) => files::write_new(&file, text)?,
                (None, known) => files::delete(&file, known.map_or(&[], |known| &known.bytes))?,
            }
        }
        Ok(())
    }

    /// Returns the path of a new file in a folder of the repository. Refuses an existing file, and one that berth
    /// would not read.
    pub fn new_file(&self, folder: &str, name: &str) -> Result<String, CommandError> {
        let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if folder.starts_with('/') || parts.contains(&"..") {
            let error =
                CommandError::usage(format!("`{folder}` is not a folder below the repository's root"));
            return Err(error.hint("give a path relative to the root, such as `clusters`"));
        }
        let path = parts.into_iter().chain([format!("{name}.yaml").as_str()]).collect::<Vec<_>>().join("/");
        if path == CONFIG_PATH || path.starts_with(APPROVALS) {
            let error =
                CommandError::usage(format!("`{path}` is reserved for berth's own settings and approvals"));
            return Err(error.hint("name another folder with --dir"));
        }
        if !source::wanted(&path) || self.loaded.config.excludes(&path) {
            let error = CommandError::usage(format!("berth does not read `{path}`"));
            return Err(error.hint("name another folder with --dir; see `exclude` in berth.yaml"));
        }
        files::refuse_links(&self.root, &path)?;
        let file = self.root.join(&path);
        if file.symlink_metadata().is_ok() { Err(files::already_there(&file)) } else { Ok(path) }
    }
}

fn apply(tree: &mut SourceTree, edits: &[Edit]) {
    for Edit { path, text } in edits {
        tree.files.take(&**path);
        tree.files.extend(text.as_ref().map(|text| SourceFile::new(path.as_str(), text.as_bytes())));
    }
}

/// Makes the error for a failed edit, with its place.
pub fn refused(path: &str, found: &Found, error: &EditError) -> CommandError {
    let message = match error.line() {
        Some(line) => format!("{path}:{line}: {error}"),
        None => format!("{path}:{}:{}: {error}", found.at.line, found.at.column),
    };
    let refused = CommandError::usage(message);
    match error.hint() {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

/// Makes the error for problems that an edit would add.
pub(crate) fn would_be_faulty(new: &Diagnostics) -> Option<CommandError> {
    let faults: Vec<String> = new.errors().map(Diagnostic::to_string).collect();
    let message =
        format!("nothing was written, because the fleet would have new errors\n{}", faults.join("\n"));
    (!faults.is_empty()).then(|| CommandError::new(crate::process::exit::Exit::Faulty, message))
}

/// The documents of the named files.
#[derive(Debug, Default)]
pub(crate) struct DocumentsIn {
    pub subjects: Vec<FederateSubject>,
    /// The number of documents that are not objects.
    pub passed_over: usize,
    pub found: Diagnostics,
}

/// Reads files, all YAML files in folders, and `-` for standard input.
pub fn read_documents(paths: &[PathBuf], ui: &Ui) -> Result<DocumentsIn, CommandError> {
    let limits = Limits::default();
    let mut read = DocumentsIn::default();
    for path in paths {
        if path.as_os_str() == "-" {
            let bytes = ui.input(most(&limits)).map_err(|error| cannot_read(path, &error))?;
            take(&mut read, "standard input".into(), &bytes);
        } else if path.is_dir() {
            let tree = source::read_dir(path, &limits).map_err(InputError::from)?;
            read.found.extend(tree.found);
            for file in tree.files.values() {
                take(&mut read, path.join(&*file.path).display().to_string().into(), &file.bytes);
            }
        } else {
            let file = std::fs::File::open(path).map_err(|error| cannot_read(path, &error))?;
            take(&mut read, path.display().to_string().into(), &limited(file, path, &limits)?);
        }
    }
    Ok(read)
}

/// Returns the reader's limit plus one byte, so that the reader refuses longer input.
fn most(limits: &Limits) -> u64 {
    u64::try_from(limits.bytes).unwrap_or(u64::MAX).saturating_add(1)
}

fn limited(from: impl std::io::Read, path: &Path, limits: &Limits) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    from.take(most(limits)).read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
    Ok(bytes)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::io(format!("reading {}", path.display()), error)
}

fn take(read: &mut DocumentsIn, file: Arc<str>, bytes: &[u8]) {
    let here = objects(bytes);
    for fault in here.faults {
        let at = Pos::new(file.clone(), fault.at.line, fault.at.column);
        read.found.push(Diagnostic::new(fault.severity, at, fault.message).maybe_hint(fault.hint));
    }
    read.passed_over += here.passed_over;
    read.subjects.extend(here.found.into_iter().map(|found| FederateSubject {
        at: Pos::new(file.clone(), found.at.line, found.at.column),
        object: found.node.to_json(),
    }));
}
