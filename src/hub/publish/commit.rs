//! Commits the next state to the rendered branch, unless it equals the current one.
//!
//! A rendered branch may begin with an imported state instead of decisions. Its first commit has no parent and
//! names no source; its trailer `Berth-Import` names its origin. It cannot be computed again, so a proof must trust
//! it. A proof does so if [`Refs::root`], which is written once, or the caller names exactly this commit.

use super::error::PublishError;
use super::own_files::remember;
use super::processed::read_processed;
use super::rendered_state::CurrentState;
use super::summary::Summary;
use super::trailers::Trailers;
use super::tree;
use berth_base::diag::Diagnostics;
use berth_base::model::{Map, Timestamp};
use berth_engine::plan::plan;
use berth_engine::state::State;
use berth_git::shared_refs::Refs;
use berth_git::shared_refs::trailers::{FLEET, IMPORT, one_line};
use berth_git::{CommitId, CommitInfo, Entry, GitError, Identity, Repo, TreeId, Writer};

/// The source and author of a rendered commit. Equal stamps give equal commit ids.
#[derive(Clone, Debug)]
pub struct Stamp {
    pub source: CommitId,
    /// The first line of the source commit's message.
    pub subject: String,
    /// The source commit's date.
    pub source_seconds: i64,
    pub now: Timestamp,
    pub identity: Identity,
    /// Further trailers, such as the approvals that a gate used.
    pub trailers: Vec<(String, String)>,
    /// Makes a commit even if nothing changes, so that the branch's tip has a signature.
    pub signs_anew: bool,
}

impl Stamp {
    pub fn new(source: CommitId, subject: &str, source_seconds: i64, now: Timestamp) -> Stamp {
        Stamp {
            source,
            subject: subject.to_owned(),
            source_seconds,
            now,
            identity: Identity::default(),
            trailers: Vec::new(),
            signs_anew: false,
        }
    }
}

/// The result of publishing.
#[derive(Debug)]
pub enum Published {
    /// The branch already holds this state.
    Unchanged,
    Committed(Box<Committed>),
}

/// A new rendered commit.
#[derive(Clone, Debug)]
pub struct Committed {
    pub commit: CommitId,
    pub seq: u64,
    pub seconds: i64,
    tree: TreeId,
    trees: Map<String, TreeId>,
    trailers: Trailers,
}

impl Committed {
    pub(super) fn new(
        commit: CommitId,
        trailers: &Trailers,
        seconds: i64,
        tree: TreeId,
        trees: Map<String, TreeId>,
    ) -> Committed {
        Committed { commit, seq: trailers.seq, seconds, tree, trees, trailers: trailers.clone() }
    }

    /// Returns the published state as the current one of the next pass, without reading it again.
    pub fn into_current(self, state: State) -> CurrentState {
        CurrentState {
            commit: self.commit,
            tree: self.tree,
            state: as_published(state),
            trees: self.trees,
            trailers: self.trailers,
            seconds: self.seconds,
            foreign: Diagnostics::new(),
        }
    }
}

impl CurrentState {
    /// Replaces the state by an equal one that shares memory with the caches of a pass.
    pub fn sharing(self, state: State) -> CurrentState {
        CurrentState { state: as_published(state), ..self }
    }
}

/// Returns a state as the branch stores it, without the empty folders of clusters without objects.
fn as_published(mut state: State) -> State {
    state.folders.retain(|_, folder| !folder.is_empty());
    state
}

/// Moves the branch to a drafted commit, from exactly the commit of `current`.
pub fn point(
    repo: &Repo,
    refs: &Refs,
    current: Option<&CurrentState>,
    drafted: &Published,
) -> Result<(), PublishError> {
    if let Published::Committed(committed) = drafted {
        // Remembered before the branch moves: if the process is killed in between, its commit must be trusted.
        repo.flush()?;
        remember(repo, &refs.rendered, committed.commit);
        repo.move_ref(&refs.rendered, current.map(|current| current.commit), committed.commit)?;
    }
    Ok(())
}

/// Writes the tree of the commit that would follow `current` with this state.
pub fn tree_of(repo: &Repo, current: Option<&CurrentState>, state: &State) -> Result<TreeId, PublishError> {
    let mut writer = Writer::new(repo)?;
    let entries = tree::write(&mut writer, current, state)?.entries;
    root(&mut writer, repo, current, entries)
}

fn root(
    writer: &mut Writer<'_>,
    repo: &Repo,
    current: Option<&CurrentState>,
    mut entries: Vec<Entry>,
) -> Result<TreeId, PublishError> {
    if let Some(current) = current {
        // Keeps people's own files on the branch unchanged.
        entries.extend(repo.tree(current.tree)?.into_iter().filter(|entry| !tree::is_owned(entry)));
    }
    Ok(writer.tree(entries)?)
}

/// Writes the commit that would follow `current`, with all its objects. No ref points to it yet.
pub fn draft(
    repo: &Repo,
    current: Option<&CurrentState>,
    next: &State,
    stamp: &Stamp,
    summary: &Summary,
) -> Result<Published, PublishError> {
    let mut writer = Writer::new(repo)?;
    let written = tree::write(&mut writer, current, next)?;
    let state_tree = tree::state_tree(&written.entries)?;
    let root = root(&mut writer, repo, current, written.entries)?;
    if current.is_some_and(|current| current.tree == root) && !stamp.signs_anew {
        return Ok(Published::Unchanged);
    }
    let seq = current.map_or(0, |current| current.trailers.seq).checked_add(1);
    let seq = seq.ok_or(PublishError::LastNumber)?;
    let inherited = || current.and_then(|current| current.trailers.fleet()).map(str::to_owned);
    let fleet = stamp.identity.fleet.clone().or_else(inherited);
    let fleet = fleet.map(|fleet| (FLEET.to_owned(), one_line(&fleet)));
    let mut trailers = Trailers {
        source: Some(stamp.source),
        now: Some(stamp.now),
        seq,
        digest: None,
        others: fleet.into_iter().chain(stamp.trailers.iter().cloned()).collect(),
    };
    let (paragraph, digest) = trailers.write(state_tree);
    trailers.digest = Some(digest);
    let message = format!(
        "{}\nMade from {}: {}\n\n{paragraph}",
        summary.text(),
        stamp.source.short(),
        one_line(&stamp.subject)
    );
    let parent_seconds = current.map_or(i64::MIN, |current| current.seconds);
    let seconds = stamp.source_seconds.max(parent_seconds).max(stamp.now.as_second());
    let parents: Vec<CommitId> = current.map(|current| current.commit).into_iter().collect();
    let commit = writer.commit(root, &parents, &message, &stamp.identity, seconds)?;
    let committed = Committed { commit, seq, seconds, tree: root, trees: written.trees, trailers };
    Ok(Published::Committed(Box::new(committed)))
}

/// Refuses a state without objects after one that had some.
pub fn refuse_empty(current: &State, next: &State) -> Result<(), PublishError> {
    let filled = |state: &State| state.folders.values().any(|folder| !folder.is_empty());
    if filled(next) || !filled(current) {
        return Ok(());
    }
    let folders = || current.folders.values().filter(|folder| !folder.is_empty());
    let objects = folders().map(|folder| folder.len()).sum();
    Err(PublishError::Empty { objects, clusters: folders().count() })
}

/// Refuses a new beginning if something shows that a rendered branch existed.
pub fn refuse_gone(repo: &Repo, refs: &Refs) -> Result<(), PublishError> {
    if repo.read_ref(&refs.rendered)?.is_some() {
        return Ok(());
    }
    let processed = repo.read_ref(&refs.processed)?.map(|_| refs.processed.clone());
    let root = repo.read_ref(&refs.root)?;
    let witness = match (processed, root) {
        (Some(name), _) => Some(name),
        (None, Some(_)) => Some(refs.root.clone()),
        (None, None) => repo.list_refs(&refs.clusters)?.keys().next().cloned(),
    };
    let Some(witness) = witness else { return Ok(()) };
    let last = read_processed(repo, refs).ok().flatten().and_then(|processed| processed.rendered);
    // An interrupted import wrote nothing after its root.
    let last = last.or(root.filter(|_| witness == refs.root));
    Err(PublishError::Gone {
        name: refs.rendered.clone(),
        witness,
        last: last.map(|commit| commit.to_string()),
    })
}

/// Refuses to build on a rendered branch that does not contain its tip at the end of an earlier pass: somebody
/// rewrote it, or restored an old copy.
pub fn refuse_rewritten(
    repo: &Repo,
    refs: &Refs,
    current: &CurrentState,
    last: Option<CommitId>,
) -> Result<(), PublishError> {
    let Some(last) = last else { return Ok(()) };
    let tip = current.commit;
    let here = repo.has_commit(last);
    if tip == last || here && repo.is_same_or_after(tip, last)? {
        return Ok(());
    }
    // Another process may have published since the branch was read.
    if repo.read_ref(&refs.rendered)? != Some(tip) {
        return Err(GitError::Raced { name: refs.rendered.clone() }.into());
    }
    // Shallow history does not contain the earlier commits.
    if repo.is_shallow() && (!here || reaches_the_cut(repo, tip)?) {
        return Ok(());
    }
    Err(PublishError::Rewritten { name: refs.rendered.clone(), tip, last })
}

/// Reports whether a branch's first parents end at the boundary of a shallow clone.
fn reaches_the_cut(repo: &Repo, tip: CommitId) -> Result<bool, PublishError> {
    let mut at = tip;
    while let Some(parent) = repo.commit(at)?.parents.first().copied() {
        if !repo.has_commit(parent) {
            return Ok(true);
        }
        at = parent;
    }
    Ok(Trailers::read(&repo.commit(at)?.message).is_none_or(|trailers| trailers.seq > 1))
}

/// The origin, moment and author of an import.
#[derive(Clone, Debug)]
pub struct Import {
    pub from: String,
    pub now: Timestamp,
    pub identity: Identity,
}

/// Begins the branch with a state that clusters already have. Refuses an existing branch.
pub fn begin(repo: &Repo, refs: &Refs, state: &State, import: &Import) -> Result<CommitId, PublishError> {
    refuse_begun(repo, refs)?;
    let mut writer = Writer::new(repo)?;
    let written = tree::write(&mut writer, None, state)?;
    let state_tree = tree::state_tree(&written.entries)?;
    let root = writer.tree(written.entries)?;
    let others = vec![(IMPORT.to_owned(), one_line(&import.from))];
    let mut trailers = Trailers { source: None, now: Some(import.now), seq: 1, digest: None, others };
    let (paragraph, digest) = trailers.write(state_tree);
    trailers.digest = Some(digest);
    let summary = Summary::of(&plan(&State::default(), state), true);
    let message = format!("{}\nImported from {}\n\n{paragraph}", summary.text(), one_line(&import.from));
    let seconds = import.now.as_second();
    let commit = writer.commit(root, &[], &message, &import.identity, seconds)?;
    let committed = Committed::new(commit, &trailers, seconds, root, written.trees);
    // The root is written first: an import without a pinned root could be anybody's.
    repo.move_ref(&refs.root, None, commit)?;
    point(repo, refs, None, &Published::Committed(Box::new(committed)))?;
    Ok(commit)
}

/// Refuses an import before any work is done, if the branch exists or existed.
pub fn refuse_begun(repo: &Repo, refs: &Refs) -> Result<(), PublishError> {
    match repo.read_ref(&refs.rendered)? {
        Some(_) => Err(PublishError::Begun { name: refs.rendered.clone() }),
        None => refuse_gone(repo, refs),
    }
}

/// Returns the origin of an import's commit, and true if the commit is genuine. `None` for all other commits.
pub(crate) fn import_of(repo: &Repo, commit: &CommitInfo) -> Result<Option<(String, bool)>, PublishError> {
    let Some(trailers) = Trailers::read(&commit.message) else { return Ok(None) };
    let line = trailers.others.iter().find(|(name, _)| name == IMPORT);
    let Some((_, from)) = line.filter(|_| trailers.source.is_none()) else { return Ok(None) };
    let genuine = trailers.fit(tree::state_tree(&repo.tree(commit.tree)?)?);
    Ok(Some((from.clone(), genuine && commit.parents.is_empty())))
}
