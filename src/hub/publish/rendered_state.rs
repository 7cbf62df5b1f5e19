//! Reads the current state from the rendered branch: names and ids of objects, contents of decisions and facts.
//!
//! Files that berth could not have written are reported and omitted, so the next commit removes them. If others
//! committed onto the branch, the state is that of berth's last commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::PublishError;
use super::trailers::{Trailers, last_own};
use super::tree;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{ContentId, Decision, Folder, FolderEntry, Map, Pick, Shared, path};
use berth_base::parallel;
use berth_base::source::budget::MOST_OF_A_STATE;
use berth_base::text::{SharedTexts, SharedValues};
use berth_engine::state::{State, decision, layout, ledger, placement_decision, releases_file};
use berth_git::{CommitId, Entry, EntryKind, PathChange, Repo, TreeId};

/// The greatest depth of folders, as for source paths.
const DEEPEST: usize = 130;

/// The number of decisions whose texts are in memory at a time.
const AT_ONCE: usize = 256;

/// A published state, and its place on the branch.
#[derive(Clone, Debug)]
pub struct CurrentState {
    /// The tip of the branch.
    pub commit: CommitId,
    pub tree: TreeId,
    pub state: State,
    /// The trees of the clusters' folders without foreign files.
    pub trees: Map<String, TreeId>,
    /// The trailers of berth's last commit.
    pub trailers: Trailers,
    /// The date of the branch's tip.
    pub seconds: i64,
    /// Changes by others on the branch. The next commit reverts them.
    pub foreign: Diagnostics,
}

/// The state of a single commit.
#[derive(Clone, Debug, Default)]
pub struct StateRead {
    pub state: State,
    pub trees: Map<String, TreeId>,
    pub foreign: Diagnostics,
}

/// Reads the state at the branch's tip. `None` if the branch is missing.
pub fn read_current(repo: &Repo, name: &str) -> Result<Option<CurrentState>, PublishError> {
    let Some(commit) = repo.read_ref(name)? else { return Ok(None) };
    read_current_at(repo, name, commit).map(Some)
}

/// Reads the state of a commit of the branch.
pub fn read_current_at(repo: &Repo, name: &str, commit: CommitId) -> Result<CurrentState, PublishError> {
    let head = repo.commit(commit)?;
    check_marker(repo, name, head.tree)?;
    let own = last_own(repo, commit)?;
    let (trailers, from) = own.map_or((Trailers::default(), commit), |(id, trailers)| (trailers, id));
    let mut read = read_state(repo, from)?;
    if from != commit {
        let own_tree = repo.commit(from)?.tree;
        let note =
            format!("commit {} on `{name}` was not made by berth; its changes are undone", commit.short());
        read.foreign
            .push(Diagnostic::warning(Pos::file(name), note).hint("change the source branch instead"));
        for (path, change) in repo.path_changes(own_tree, head.tree, &layout::OWNED)? {
            read.foreign.push(match change {
                PathChange::Added => foreign(&path),
                PathChange::Changed => undone(&path, "changed"),
                PathChange::Removed => undone(&path, "removed"),
            });
        }
    } else if trailers.digest.is_none() {
        let note = "berth made none of the last commits; the sequence starts again at 1";
        read.foreign.push(Diagnostic::warning(Pos::file(name), note));
    }
    read.foreign.sort();
    Ok(CurrentState {
        commit,
        tree: head.tree,
        state: read.state,
        trees: read.trees,
        trailers,
        seconds: head.seconds,
        foreign: read.foreign,
    })
}

fn check_marker(repo: &Repo, name: &str, root: TreeId) -> Result<(), PublishError> {
    let unowned = || PublishError::Unowned { name: name.to_owned() };
    let entries = repo.tree(root)?;
    let marker = entries.into_iter().find(|entry| entry.name == layout::MARKER.as_bytes());
    let Some(Entry { kind: EntryKind::File(id), .. }) = marker else { return Err(unowned()) };
    match layout::read_marker(&repo.blob(id)?) {
        Some(format) if format > layout::BRANCH_FORMAT => {
            Err(PublishError::NewerFormat { name: name.to_owned(), format })
        }
        Some(_) => Ok(()),
        None => Err(unowned()),
    }
}

/// Reads the state of one rendered commit.
pub fn read_state(repo: &Repo, commit: CommitId) -> Result<StateRead, PublishError> {
    let root = repo.tree(repo.commit(commit)?.tree)?;
    let mut reader = Reader {
        repo,
        commit,
        left: MOST_OF_A_STATE,
        read: StateRead::default(),
        known: BTreeMap::new(),
        texts: SharedTexts::default(),
        entries: SharedValues::default(),
        picks: SharedValues::default(),
    };
    let mut folders = BTreeMap::new();
    for entry in root.iter().filter(|entry| tree::is_owned(entry)) {
        match (entry.kind, String::from_utf8_lossy(&entry.name)) {
            (EntryKind::Folder(id), name) => {
                folders.insert(name.into_owned(), id);
            }
            (_, name) if name != layout::MARKER => reader.foreign(&name),
            _ => {}
        }
    }
    let mut folder = |name: &str| folders.remove(name).unwrap_or(TreeId::EMPTY);
    reader.decisions(folder(layout::DECISIONS))?;
    reader.files(folder(layout::FACTS), layout::FACTS, 0, &mut Reader::facts)?;
    reader.files(folder(layout::KEPT), layout::KEPT, 0, &mut Reader::kept)?;
    reader.files(folder(layout::LEDGER), layout::LEDGER, 0, &mut Reader::ledger)?;
    reader.releases(folder(layout::RELEASES))?;
    reader.clusters(folder(layout::CLUSTERS))?;
    reader.read.foreign.sort();
    Ok(reader.read)
}

/// The manifests below one namespace's folder, with their paths in the cluster's folder.
type Manifests = Arc<Vec<FolderEntry>>;

struct Reader<'r> {
    repo: &'r Repo,
    commit: CommitId,
    /// The number of files and folders that may still be read.
    left: u64,
    read: StateRead,
    /// Subtrees read before. Many clusters share them.
    known: BTreeMap<(Arc<str>, TreeId), Manifests>,
    /// The shared texts: many clusters have the same paths, many decisions the same clusters.
    texts: SharedTexts,
    /// The shared entries of clusters' folders.
    entries: SharedValues<FolderEntry>,
    /// The shared lists of picks.
    picks: SharedValues<Shared<Vec<Pick>>>,
}

/// Handles a file by its path below the folder. Returns true if it is berth's.
type Take<'t, 'r> = &'t mut dyn FnMut(&mut Reader<'r>, &str, ContentId) -> Result<bool, PublishError>;

impl<'r> Reader<'r> {
    fn foreign(&mut self, path: &str) {
        if self.read.foreign.len() < MOST_FOREIGN {
            self.read.foreign.push(foreign(path));
        }
    }

    /// Lists a folder. A folder with several names counts for each.
    fn list(&mut self, id: TreeId) -> Result<Vec<Entry>, PublishError> {
        let entries = self.repo.tree(id)?;
        self.count(entries.len())?;
        Ok(entries)
    }

    fn count(&mut self, entries: usize) -> Result<(), PublishError> {
        let left = self.left.checked_sub(entries as u64);
        self.left = left.ok_or(PublishError::TooLarge { commit: self.commit })?;
        Ok(())
    }

    /// Passes every plain file below a folder to `take`.
    fn files(
        &mut self,
        id: TreeId,
        prefix: &str,
        depth: usize,
        take: Take<'_, 'r>,
    ) -> Result<(), PublishError> {
        for entry in self.list(id)? {
            let path = format!("{prefix}/{}", String::from_utf8_lossy(&entry.name));
            match entry.kind {
                EntryKind::Folder(id) if depth < DEEPEST => self.files(id, &path, depth + 1, take)?,
                EntryKind::File(id) => {
                    let below = path.split_once('/').map_or("", |(_, below)| below);
                    if !take(self, below, id)? {
                        self.foreign(&path);
                    }
                }
                _ => self.foreign(&path),
            }
        }
        Ok(())
    }

    /// Reads all decisions. Objects beside them repeat their content, and are foreign without a decision.
    fn decisions(&mut self, id: TreeId) -> Result<(), PublishError> {
        let (mut files, mut beside) = (Vec::new(), Vec::new());
        self.files(id, layout::DECISIONS, 0, &mut |_, below, id| {
            match placement_decision::is_one(below) {
                true => beside.push(below.to_owned()),
                false => files.push((below.to_owned(), id)),
            }
            Ok(true)
        })?;
        let repo = self.repo;
        let read = |part: &[(String, ContentId)]| {
            part.iter().map(|(_, id)| repo.blob(*id)).collect::<Result<Vec<Vec<u8>>, _>>()
        };
        let parse = |texts: Vec<Vec<u8>>| parallel::map(&texts, |text| decision::read_decision(text).ok());
        let mut paths = files.iter().map(|(below, _)| below);
        parallel::map_read(files.chunks(AT_ONCE), read, parse, |decisions| {
            for (decision, below) in decisions.into_iter().zip(&mut paths) {
                match decision.filter(|decision| path::of_key(&decision.key) == *below) {
                    Some(decision) => self.decision(decision),
                    None => self.foreign(&format!("{}/{below}", layout::DECISIONS)),
                }
            }
        })?;
        let expected: BTreeSet<String> =
            self.read.state.decisions.values().flat_map(placement_decision::paths).collect();
        for below in beside.iter().filter(|below| !expected.contains(*below)) {
            self.foreign(&format!("{}/{below}", layout::DECISIONS));
        }
        Ok(())
    }

    fn decision(&mut self, mut decision: Decision) {
        for pick in &mut *decision.picks {
            self.texts.share(&mut pick.cluster);
        }
        self.picks.share(&mut decision.picks);
        self.read.state.decisions.insert(decision.key.clone(), decision);
    }

    fn facts(&mut self, below: &str, id: ContentId) -> Result<bool, PublishError> {
        let Ok(status) = berth_base::status::read_status(&self.repo.blob(id)?) else { return Ok(false) };
        if layout::facts_file(&status.cluster) != below {
            return Ok(false);
        }
        self.read.state.facts.insert(status.cluster.clone(), status.into());
        Ok(true)
    }

    /// Reads the releases with the ids of their inputs. Inputs without a release are foreign.
    fn releases(&mut self, id: TreeId) -> Result<(), PublishError> {
        let mut files = BTreeMap::new();
        self.files(id, layout::RELEASES, 0, &mut |_, below, id| {
            files.insert(below.to_owned(), id);
            Ok(true)
        })?;
        let mut inputs: BTreeMap<String, BTreeMap<u64, ContentId>> = BTreeMap::new();
        for (path, id) in &files {
            if let Some((file, number)) = releases_file::of_inputs_file(path) {
                inputs.entry(file).or_default().insert(number, *id);
            }
        }
        let mut known = BTreeSet::new();
        for (path, id) in &files {
            let Some(inputs) = inputs.get(path) else { continue };
            let Ok(releases) = releases_file::read(&self.repo.blob(*id)?, inputs) else { continue };
            let key = releases.key.clone();
            if releases_file::file(&key) != *path {
                continue;
            }
            known.insert(path.clone());
            known.extend(releases.all().map(|release| releases_file::inputs_file(&key, release.number)));
            self.read.state.releases.insert(key, releases.into());
        }
        for path in files.keys().filter(|path| !known.contains(*path)) {
            self.foreign(&format!("{}/{path}", layout::RELEASES));
        }
        Ok(())
    }

    fn kept(&mut self, below: &str, id: ContentId) -> Result<bool, PublishError> {
        let source = layout::kept_source(below);
        let known = source.is_some();
        self.read.state.kept.extend(source.map(|source| (source, id)));
        Ok(known)
    }

    fn ledger(&mut self, below: &str, id: ContentId) -> Result<bool, PublishError> {
        let ledger = match below {
            layout::LEDGER_FILE => ledger::read_ledger(&self.repo.blob(id)?).ok(),
            _ => None,
        };
        let known = ledger.is_some();
        self.read.state.ledger = ledger.map_or_else(|| self.read.state.ledger.clone(), Shared::from);
        Ok(known)
    }

    fn clusters(&mut self, id: TreeId) -> Result<(), PublishError> {
        let cut = self.cut_names();
        for entry in self.list(id)? {
            let part = String::from_utf8_lossy(&entry.name);
            let path = format!("{}/{part}", layout::CLUSTERS);
            let cluster = path::decode(&part).or_else(|| cut.get(&*part).cloned());
            match (entry.kind, cluster) {
                (EntryKind::Folder(id), Some(cluster)) => self.cluster(&cluster, id, &path)?,
                _ => self.foreign(&path),
            }
        }
        Ok(())
    }

    /// Returns the shortened names with their full forms, from the decisions that picked them.
    fn cut_names(&self) -> BTreeMap<String, String> {
        let picks = self.read.state.decisions.values().flat_map(|decision| &decision.picks);
        let facts = self.read.state.facts.keys().map(String::as_str);
        let names = picks.map(|pick| &*pick.cluster).chain(facts);
        let cut = names.map(|name| (path::encode(name), name)).filter(|(part, _)| path::is_cut(part));
        cut.map(|(part, name)| (part, name.to_owned())).collect()
    }

    fn cluster(&mut self, cluster: &str, id: TreeId, at: &str) -> Result<(), PublishError> {
        let mut folder = Folder::new();
        let mut clean = true;
        for entry in self.list(id)? {
            let namespace = String::from_utf8_lossy(&entry.name);
            let path = format!("{at}/{namespace}");
            match entry.kind {
                EntryKind::Folder(id) => {
                    let (manifests, all) = self.namespace(&namespace, id, &path)?;
                    clean &= all;
                    folder.extend(manifests.iter().cloned());
                }
                _ => {
                    clean = false;
                    self.foreign(&path);
                }
            }
        }
        if clean && !folder.is_empty() {
            self.read.trees.insert(cluster.to_owned(), id);
        }
        self.read.state.folders.insert(cluster.to_owned(), folder);
        Ok(())
    }

    fn namespace(&mut self, name: &str, id: TreeId, at: &str) -> Result<(Manifests, bool), PublishError> {
        let key = (Arc::from(name), id);
        if let Some(known) = self.known.get(&key).cloned() {
            self.count(known.len())?;
            return Ok((known, true));
        }
        let mut manifests = Vec::new();
        let mut clean = true;
        for entry in self.list(id)? {
            let file = String::from_utf8_lossy(&entry.name);
            match entry.kind {
                EntryKind::File(id) if path::is_file(name, &file) => {
                    let path = self.texts.of(format!("{name}/{file}").as_str());
                    manifests.push(self.entries.of((path, id)));
                }
                _ => {
                    clean = false;
                    self.foreign(&format!("{at}/{file}"));
                }
            }
        }
        let manifests = Arc::new(manifests);
        if clean {
            self.known.insert(key, manifests.clone());
        }
        Ok((manifests, clean))
    }
}

/// The number of foreign files that are reported. All of them are omitted.
const MOST_FOREIGN: usize = 1_000;

/// Warns about a file that berth did not write.
pub(super) fn foreign(path: &str) -> Diagnostic {
    Diagnostic::warning(Pos::file(path), "berth did not write this file; it is left out and will be removed")
        .hint(format!(
            "use another folder of the branch: only berth writes to {}/",
            layout::OWNED.join("/, ")
        ))
}

/// Warns about a manual change to one of berth's files.
fn undone(path: &str, done: &str) -> Diagnostic {
    let message = format!("this was {done} by hand; the next publication restores it");
    Diagnostic::warning(Pos::file(path), message).hint("change the source branch instead")
}
