//! Finds the last good forms of broken files.
//!
//! The search goes through the source's own history, newest first, back to the commit published last; then through
//! the forms that this publication used. An unreadable file may hold any object that its folder has the right to
//! hold, so every such object that was published and is missing now stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::InputError;
use crate::publish::CurrentState;
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::Key;
use berth_base::source::{RulesFrom, SourceFile, SourceTree, rendered, wanted};
use berth_engine::load::{self, FileCache, History, ReadTree, Survey, Text};
use berth_engine::state::State;
use berth_git::{self as git, CommitId, GitError, PathChange, Repo};

/// Limits of the search: commits walked, and forms tried for each file. Both are far beyond what people break.
const MOST_COMMITS: usize = 2_000;
const MOST_FORMS: usize = 8;

/// The last good forms of files that are broken now.
#[derive(Debug)]
pub(super) enum GoodForms {
    /// Nothing was decided before.
    None,
    /// Decisions exist, but the source they were made from is gone.
    Unavailable,
    Found(BTreeMap<String, Arc<[u8]>>),
}

impl GoodForms {
    /// Hands the forms to loading.
    pub(super) fn with<T>(&self, run: impl FnOnce(History<'_>) -> T) -> T {
        match self {
            GoodForms::None => run(History::None),
            GoodForms::Unavailable => run(History::Unavailable),
            GoodForms::Found(forms) => run(History::Known(&|path| forms.get(path).cloned())),
        }
    }
}

/// The source of a publication: its commit, and the last good forms it used for broken files.
#[derive(Clone, Debug, Default)]
pub struct PublishedSource {
    /// `None` where the commit is not to be had: a shallow clone, a rewritten history.
    pub commit: Option<CommitId>,
    pub kept: BTreeMap<String, Vec<u8>>,
}

impl PublishedSource {
    /// Reads the source of a rendered state.
    pub(super) fn of(repo: &Repo, current: &CurrentState) -> Result<PublishedSource, InputError> {
        let commit = current.trailers.source.filter(|source| repo.has_commit(*source));
        Ok(PublishedSource { commit, kept: kept_of(repo, &current.state)? })
    }
}

/// Reads the last good forms that a state used.
pub(super) fn kept_of(repo: &Repo, state: &State) -> Result<BTreeMap<String, Vec<u8>>, InputError> {
    let kept = state.kept.iter().map(|(path, id)| Ok((path.clone(), repo.blob(*id)?)));
    Ok(kept.collect::<Result<_, GitError>>()?)
}

/// The histories in which last good forms are looked for.
pub(super) struct FormSearch<'a> {
    pub(super) repo: &'a Repo,
    pub(super) current: &'a CurrentState,
    /// The tree's own commit, if it is a commit's.
    pub(super) commit: Option<CommitId>,
    /// The commit before the tree.
    pub(super) older: Option<CommitId>,
}

impl FormSearch<'_> {
    /// Finds the last good forms of the tree's broken files; `first` is the parsed tree.
    pub(super) fn find(
        &self,
        tree: &mut SourceTree,
        first: &ReadTree,
        parsed: &mut FileCache,
    ) -> Result<GoodForms, InputError> {
        let in_force = PublishedSource::of(self.repo, self.current)?;
        let behind_links = self.behind_links(tree, &in_force)?;
        if first.is_whole(tree) && behind_links.is_empty() {
            return Ok(GoodForms::Found(BTreeMap::new()));
        }
        let today = first.survey(tree);
        let Some(published) = in_force.commit else { return Ok(GoodForms::Unavailable) };
        let before = self.survey_in_force(published, &in_force, parsed)?;
        let replaced = replaced_by_links(tree, &before, &behind_links);
        let commits = self.commits_since(published)?;
        let paths = today.broken.keys().chain(&replaced).cloned().collect();
        let mut forms = self.newest_good(tree, paths, &commits, parsed)?;
        let search = MissingObjects { first, tree, today: &today, before: &before, replaced: &replaced };
        let gone = search.add_to(&mut forms);
        tree.found.extend(gone.into_iter().map(|(path, home)| {
            let home = rendered::shown(&home);
            let message = format!(
                "was removed, and its objects may be in {home}, which cannot be read: its last good form stays in \
                 effect until that is mended"
            );
            Diagnostic::warning(Pos::file(path), message)
        }));
        tree.found.extend(replaced.into_iter().filter(|path| forms.contains_key(path)).map(|path| {
            let message = "is below a link or a folder that is not read; its last good form stays in effect";
            Diagnostic::warning(Pos::file(path), message)
        }));
        Ok(GoodForms::Found(forms.into_iter().map(|(path, form)| (path, form.into())).collect()))
    }

    /// Returns the files of the last publication, or in their place what it kept, that Git has a link or a submodule in
    /// the way of. Berth warns of few links: most have the name of a file that nobody reads.
    fn behind_links(
        &self,
        tree: &SourceTree,
        in_force: &PublishedSource,
    ) -> Result<BTreeSet<String>, InputError> {
        let (Some(commit), Some(published)) = (self.commit, in_force.commit) else {
            return Ok(BTreeSet::new());
        };
        let [before, now] = [published, commit].map(|commit| self.repo.commit(commit).map(|info| info.tree));
        let changes = self.repo.path_changes(before?, now?, &[])?;
        let removed = changes.into_iter().filter(|(_, change)| *change != PathChange::Added);
        let gone = removed.map(|(path, _)| path).chain(in_force.kept.keys().cloned());
        let mut behind = BTreeSet::new();
        for path in gone.filter(|path| wanted(path) && !tree.files.contains_key(&**path)) {
            if git::is_behind_link(self.repo, commit, &path)? {
                behind.insert(path);
            }
        }
        Ok(behind)
    }

    /// Surveys the source of the last publication, by object.
    fn survey_in_force(
        &self,
        published: CommitId,
        in_force: &PublishedSource,
        parsed: &mut FileCache,
    ) -> Result<Survey, InputError> {
        let mut tree = git::read_source(self.repo, published)?;
        // The last good forms replace the files that were refused then.
        tree.rules_from = RulesFrom::Nowhere;
        tree.files.extend(in_force.kept.iter().map(source_file));
        Ok(load::survey_with_cache(&tree, parsed))
    }

    /// First parents from the commit before the tree down to the published commit, which is not among them.
    fn commits_since(&self, published: CommitId) -> Result<Vec<CommitId>, InputError> {
        let mut commits = Vec::new();
        let mut next = self.older;
        while let Some(commit) = next.filter(|commit| *commit != published && commits.len() < MOST_COMMITS) {
            // A shallow clone ends early.
            if !self.repo.has_commit(commit) {
                break;
            }
            commits.push(commit);
            next = self.repo.commit(commit)?.parents.first().copied();
        }
        // Without the published commit among the ancestors this is another history: nothing in it was published.
        Ok(if next == Some(published) { commits } else { Vec::new() })
    }

    /// The newest form of each file that is without fault in today's tree. The files' forms are tried side by
    /// side, so that the work does not grow with the number of broken files.
    fn newest_good(
        &self,
        tree: &SourceTree,
        paths: BTreeSet<String>,
        commits: &[CommitId],
        parsed: &mut FileCache,
    ) -> Result<BTreeMap<String, Vec<u8>>, InputError> {
        let mut candidates: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for path in paths {
            let mut forms: Vec<Vec<u8>> = Vec::new();
            for commit in commits {
                match git::read_file_at(self.repo, *commit, &path)? {
                    Some(form) if !forms.contains(&form) => forms.push(form),
                    _ => {}
                }
                if forms.len() >= MOST_FORMS {
                    break;
                }
            }
            // Popped from the end: the newest first.
            forms.reverse();
            candidates.insert(path, forms);
        }
        let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for _ in 0..MOST_FORMS {
            let trial: BTreeMap<String, Vec<u8>> = candidates
                .iter_mut()
                .filter_map(|(path, forms)| Some((path.clone(), forms.pop()?)))
                .collect();
            if trial.is_empty() {
                break;
            }
            let broken =
                load::survey_with_cache(&with_files(tree, found.iter().chain(&trial)), parsed).broken;
            for (path, form) in trial {
                if !broken.contains_key(&path) {
                    candidates.remove(&path);
                    found.insert(path, form);
                }
            }
        }
        Ok(found)
    }
}

/// Files of the last publication that now stand below a link or a submodule, or are one.
fn replaced_by_links(
    tree: &SourceTree,
    before: &Survey,
    behind_links: &BTreeSet<String>,
) -> BTreeSet<String> {
    let met: Vec<&str> = tree.found.iter().filter_map(|found| Some(&*found.at.as_ref()?.file)).collect();
    let is_below = |path: &str| {
        met.iter()
            .any(|met| path.strip_prefix(met).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    let paths = before.good.values().map(|text| text.path.as_str());
    let is_replaced = |path: &&str| behind_links.contains(*path) || is_below(path);
    paths.filter(|path| !tree.files.contains_key(*path)).filter(is_replaced).map(str::to_owned).collect()
}

fn with_files<'a>(tree: &SourceTree, files: impl Iterator<Item = (&'a String, &'a Vec<u8>)>) -> SourceTree {
    let (there, rules_from) = (tree.files.clone(), tree.rules_from.clone());
    let mut tree = SourceTree { files: there, rules_from, ..SourceTree::default() };
    tree.files.extend(files.map(source_file));
    tree
}

fn source_file((path, bytes): (&String, &Vec<u8>)) -> SourceFile {
    SourceFile::new(path.as_str(), bytes.as_slice())
}

/// The objects that were published and are missing now.
struct MissingObjects<'a> {
    first: &'a ReadTree,
    tree: &'a SourceTree,
    today: &'a Survey,
    before: &'a Survey,
    /// The files that links stand in the place of.
    replaced: &'a BTreeSet<String>,
}

impl MissingObjects<'_> {
    /// Adds these objects: to the file that held them, where that is at fault or was removed, else
    /// to the first unreadable file with the right to hold them, since they may have moved there. Returns the files that
    /// were removed, each with that unreadable file.
    fn add_to(&self, forms: &mut BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
        let MissingObjects { first, tree, today, before, replaced } = *self;
        let mut gone = BTreeMap::new();
        let nothing = SourceTree { rules_from: RulesFrom::Nowhere, ..SourceTree::default() };
        let found: BTreeSet<Key> =
            load::survey(&with_files(&nothing, forms.iter())).good.into_keys().collect();
        let unreadable = today.broken.iter().filter(|(_, faults)| faults.unreadable).map(|(path, _)| path);
        let unreadable = first.apart_by_rights(unreadable);
        let at_fault: BTreeMap<&Key, &String> = today
            .broken
            .iter()
            .flat_map(|(path, faults)| faults.objects.iter().map(move |key| (key, path)))
            .collect();
        let missing =
            before.good.iter().filter(|(key, _)| !today.good.contains_key(key) && !found.contains(key));
        let mut missing: Vec<(&Key, &Text)> = missing.collect();
        // In the order in which they stand, so that a form that is kept again stays as it is.
        missing.sort_by_key(|(_, text)| text.place);
        for (key, Text { path, bytes, .. }) in missing {
            let is_at_home = today.broken.get(path).is_some_and(|faults| faults.objects.contains(key));
            let home = if is_at_home {
                // Of several files that describe it now, the one that held it.
                Some(path)
            } else if let Some(file) = at_fault.get(key) {
                Some(*file)
            } else if replaced.contains(path) || today.broken.contains_key(path) {
                // A slip in a kind or a name makes another object of it.
                Some(path)
            } else {
                let home = first.home_for(&unreadable, bytes);
                match home.filter(|_| !tree.files.contains_key(&**path)) {
                    // The object stays where people look for it.
                    Some(home) => {
                        gone.insert(path.clone(), home.clone());
                        Some(path)
                    }
                    None => home,
                }
            };
            if let Some(home) = home {
                load::append(forms.entry(home.clone()).or_default(), bytes);
            }
        }
        gone
    }
}
