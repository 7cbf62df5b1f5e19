//! The publications of a page, read from the rendered branch.
//!
//! The changes of a publication are read from the difference of two trees, so that the cost follows the change. The newest
//! ones are also explained: their causes are traced as `berth diff` does.

use std::collections::{BTreeMap, BTreeSet};

use super::PageArgs;
use crate::flags::state::{self, Located};
use crate::output::ui::Ui;
use crate::planning::published_change::PublishedChange;
use crate::process::exit::CommandError;
use berth_base::diag::Diagnostics;
use berth_base::model::{Key, Map, Timestamp, path};
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::gate::HeldRecord;
use berth_engine::state::{ObjectIndex, State, layout};
use berth_git::shared_refs::trailers::{HELD, ROLLBACK, USED_APPROVAL};
use berth_git::{CommitInfo, PathChange, Repo, TreeId};
use berth_hub::publish::{CurrentState, Trailers, claimed};
use berth_site::inputs::{ChangeCounts, Held, Publication};

/// A publication as Git has it, and its trailers.
type Published = (CommitInfo, Trailers);

/// Reads the publications up to a state, the newest first.
pub(super) fn read(
    args: &PageArgs,
    located: &Located,
    current: &CurrentState,
    ui: &Ui,
) -> Result<Vec<Publication>, CommandError> {
    let repo = located.repo();
    // One more than shown: the oldest one is compared with it.
    let commits = published(repo, current, args.history.saturating_add(1))?;
    let owners = Owners::of(current);
    let mut history = Vec::new();
    for (index, commit) in commits.iter().take(args.history).enumerate() {
        history.push(publication(repo, commit, commits.get(index + 1), &owners)?);
    }
    let branch = &located.state.refs.rendered;
    for (publication, explained) in
        history.iter_mut().zip(explained(repo, branch, &commits, args.causes.min(args.history), ui)?)
    {
        publication.explained = explained;
    }
    Ok(history)
}

/// Returns berth's own commits of the branch, the newest first.
fn published(repo: &Repo, current: &CurrentState, most: usize) -> Result<Vec<Published>, CommandError> {
    let mut found = Vec::new();
    for commit in repo.first_parents(current.commit) {
        if found.len() == most {
            break;
        }
        let trailers = claimed(repo, &commit)?;
        found.extend(trailers.map(|trailers| (commit, trailers)));
    }
    Ok(found)
}

fn publication(
    repo: &Repo,
    (commit, trailers): &Published,
    before: Option<&Published>,
    owners: &Owners,
) -> Result<Publication, CommandError> {
    let source = trailers.source;
    let is_new_source = before.is_none_or(|(_, before)| before.source != source);
    let subject = match source.filter(|source| is_new_source && repo.has_commit(*source)) {
        Some(source) => Some(repo.commit(source)?.subject().to_owned()),
        None => None,
    };
    let parent = commit.parents.first();
    let old = match before {
        Some((before, _)) => Some(before.tree),
        None if is_first(commit, trailers) => Some(TreeId::EMPTY),
        // A shallow clone lacks the commit before.
        None => None,
    };
    let changes = old.map(|old| Changes::between(repo, old, commit.tree, owners)).transpose()?;
    let (counts, touched) = changes.map(|changes| (changes.counts, changes.touched)).unzip();
    let values = |name: &str| -> Vec<String> {
        let named = trailers.others.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.clone()).collect()
    };
    let held = values(HELD).into_iter().filter_map(|line| line.parse::<HeldRecord>().ok());
    Ok(Publication {
        sequence: trailers.seq,
        commit: commit.id.to_string(),
        parent: parent.map(ToString::to_string),
        source: source.map(|source| source.to_string()),
        published: Timestamp::from_second(commit.seconds).unwrap_or_default(),
        digest: trailers.digest.map(|digest| digest.to_string()),
        subject,
        message: without_trailers(&commit.message).to_owned(),
        changes: counts,
        touched: touched.into_iter().flatten().collect(),
        held: held.map(|record| Held { key: record.key, digest: record.digest }).collect(),
        approvals: values(USED_APPROVAL),
        rollback: values(ROLLBACK).into_iter().next(),
        explained: None,
    })
}

/// Reports whether nothing was published before a commit. In a shallow clone, the oldest commit seems to have no parents.
fn is_first(commit: &CommitInfo, trailers: &Trailers) -> bool {
    commit.parents.is_empty() && trailers.seq <= 1
}

fn without_trailers(message: &str) -> &str {
    let message = message.trim_end();
    message.rsplit_once("\n\n").map_or(message, |(words, _)| words)
}

/// The placements behind the files of a state.
struct Owners {
    by_path: BTreeMap<String, Key>,
    objects: ObjectIndex,
}

impl Owners {
    fn of(current: &CurrentState) -> Owners {
        let decisions = &current.state.decisions;
        let mut objects = ObjectIndex::default();
        objects.update(decisions);
        Owners { by_path: decisions.keys().map(|key| (path::of_key(key), key.clone())).collect(), objects }
    }
}

/// The files that a publication changed.
#[derive(Default)]
struct Changes {
    counts: ChangeCounts,
    touched: BTreeSet<Key>,
}

impl Changes {
    fn between(repo: &Repo, old: TreeId, new: TreeId, owners: &Owners) -> Result<Changes, CommandError> {
        let mut changes = Changes::default();
        let (mut clusters, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for (path, change) in repo.path_changes(old, new, &[layout::CLUSTERS, layout::DECISIONS])? {
            let Some((folder, below)) = path.split_once('/') else { continue };
            if folder == layout::DECISIONS {
                changes.touched.extend(owners.by_path.get(below).cloned());
                continue;
            }
            let Some((cluster, file)) = below.split_once('/') else { continue };
            match change {
                PathChange::Removed => changes.counts.removed += 1,
                PathChange::Changed => changes.counts.changed += 1,
                PathChange::Added => changes.counts.added += 1,
            }
            clusters.insert(cluster.to_owned());
            paths.insert(file.to_owned());
        }
        changes.counts.clusters = clusters.len();
        let workloads = owners.objects.at(paths.iter().map(String::as_str));
        changes.touched.extend(workloads.into_keys().cloned());
        Ok(changes)
    }
}

/// Traces the causes of the newest publications. Each state is read once.
fn explained(
    repo: &Repo,
    branch: &str,
    commits: &[Published],
    most: usize,
    ui: &Ui,
) -> Result<Vec<Option<FoldedPlan>>, CommandError> {
    let read = |commit: &CommitInfo| state::read_publication(repo, branch, commit.id);
    let mut explained = Vec::new();
    let mut end: Option<CurrentState> = None;
    for (index, (commit, trailers)) in commits.iter().take(most).enumerate() {
        let after = match end.take() {
            Some(state) => state,
            None => read(commit)?,
        };
        let before = match commits.get(index + 1) {
            Some((earlier, _)) => read(earlier)?,
            None if is_first(commit, trailers) => nothing(&after),
            // A shallow clone lacks the commit before.
            None => break,
        };
        let has_source = trailers.source.is_some_and(|source| repo.has_commit(source));
        explained.push(match has_source {
            true => Some(PublishedChange::between([&before, &after], repo, None, ui)?.folded),
            false => None,
        });
        end = Some(before);
    }
    Ok(explained)
}

/// Returns the state before the first publication.
fn nothing(first: &CurrentState) -> CurrentState {
    CurrentState {
        commit: first.commit,
        tree: TreeId::EMPTY,
        state: State::default(),
        trees: Map::new(),
        trailers: Trailers::default(),
        seconds: first.seconds,
        foreign: Diagnostics::new(),
    }
}
