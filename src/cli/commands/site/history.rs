//! The publications of a page, read from the rendered branch.
//!
//! The changes of a publication are read from the difference of two trees, so that the cost follows the change. The newest
//! ones are also explained: their causes are traced as `berth diff` does. A process that makes several pages reads each
//! publication once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::PageOptions;
use crate::flags::state::{self, Located};
use crate::output::ui::Ui;
use crate::planning::published_change::PublishedChange;
use crate::process::exit::CommandError;
use berth_base::diag::Diagnostics;
use berth_base::model::{Map, Timestamp};
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::gate::HeldRecord;
use berth_engine::state::State;
use berth_git::shared_refs::trailers::{HELD, ROLLBACK, USED_APPROVAL};
use berth_git::{CommitId, CommitInfo, Repo, TreeId};
use berth_hub::history::{Touched, TouchedPlacements};
use berth_hub::publish::{CurrentState, Trailers, claimed};
use berth_site::inputs::{Held, Publication};

/// The causes of a publication that changed more objects are not traced, and none in a fleet of more copies: a trace decides
/// and renders the fleet again. The page names `berth diff` in their place.
const MOST_TRACED: usize = 50_000;
const MOST_COPIES: usize = 250_000;

/// A publication as Git has it, and its trailers.
type Published = (CommitInfo, Trailers);

/// The publications read for earlier pages of the same process.
#[derive(Debug, Default)]
pub(crate) struct KnownHistory {
    /// The changes of a publication, by the trees before and after it.
    changes: BTreeMap<[TreeId; 2], Touched>,
    /// The explanation of a publication, by the commits before and after it.
    explained: BTreeMap<(Option<CommitId>, CommitId), FoldedPlan>,
}

impl KnownHistory {
    /// Forgets publications that pages no longer show.
    fn forget_older(&mut self, commits: &[Published]) {
        let trees: BTreeSet<TreeId> = commits.iter().map(|(commit, _)| commit.tree).collect();
        let shown: BTreeSet<CommitId> = commits.iter().map(|(commit, _)| commit.id).collect();
        self.changes.retain(|[_, after], _| trees.contains(after));
        self.explained.retain(|(_, after), _| shown.contains(after));
    }
}

/// Reads the publications up to a state, the newest first.
pub(super) fn read(
    options: &PageOptions,
    located: &Located,
    current: &CurrentState,
    known: &mut KnownHistory,
    ui: &Ui,
) -> Result<Vec<Publication>, CommandError> {
    let repo = located.repo();
    // One more than shown: the oldest one is compared with it.
    let commits = published(repo, current, options.history.saturating_add(1))?;
    known.forget_older(&commits);
    let mut placements = TouchedPlacements::of(repo, &current.state.decisions);
    let mut history = Vec::new();
    for (index, commit) in commits.iter().take(options.history).enumerate() {
        let before = commits.get(index + 1);
        let touched = touched(&mut placements, commit, before, known)?;
        history.push(publication(repo, commit, before, touched)?);
    }
    let explaining = Explaining { repo, branch: &located.state.refs.rendered, ui };
    let copies: usize = current.state.decisions.values().map(|decision| decision.picks.len()).sum();
    let is_small = |publication: &Publication| {
        let counts = publication.changes.unwrap_or_default();
        copies <= MOST_COPIES && counts.removed + counts.changed + counts.added <= MOST_TRACED
    };
    let small: Vec<bool> = history.iter().map(is_small).collect();
    let explained = explaining.newest(&commits, &small, options.causes.min(options.history), known)?;
    for (publication, explained) in history.iter_mut().zip(explained) {
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
    touched: Option<&Touched>,
) -> Result<Publication, CommandError> {
    let source = trailers.source;
    let is_new_source = before.is_none_or(|(_, before)| before.source != source);
    let subject = match source.filter(|source| is_new_source && repo.has_commit(*source)) {
        Some(source) => Some(repo.commit(source)?.subject().to_owned()),
        None => None,
    };
    let parent = commit.parents.first();
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
        changes: touched.map(|touched| touched.counts.into()),
        touched: touched.map(|touched| touched.placements.clone()).unwrap_or_default(),
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

/// Returns the changes of a publication. `None` if this clone lacks the publication before.
fn touched<'k>(
    placements: &mut TouchedPlacements<'_>,
    (commit, trailers): &Published,
    before: Option<&Published>,
    known: &'k mut KnownHistory,
) -> Result<Option<&'k Touched>, CommandError> {
    let old = match before {
        Some((before, _)) => before.tree,
        None if is_first(commit, trailers) => TreeId::EMPTY,
        // A shallow clone lacks the commit before.
        None => return Ok(None),
    };
    let trees = [old, commit.tree];
    Ok(Some(match known.changes.entry(trees) {
        Entry::Occupied(known) => {
            let known = known.into_mut();
            placements.pass(known);
            known
        }
        Entry::Vacant(free) => free.insert(placements.between(trees)?),
    }))
}

/// Traces the causes of publications.
struct Explaining<'a> {
    repo: &'a Repo,
    branch: &'a str,
    ui: &'a Ui,
}

impl Explaining<'_> {
    /// Explains the newest publications. Each state is read once, and only for a publication that was not explained
    /// before.
    fn newest(
        &self,
        commits: &[Published],
        small: &[bool],
        most: usize,
        known: &mut KnownHistory,
    ) -> Result<Vec<Option<FoldedPlan>>, CommandError> {
        let mut explained = Vec::new();
        let mut end: Option<CurrentState> = None;
        for (index, published) in commits.iter().take(most).enumerate() {
            let (commit, trailers) = published;
            let earlier = commits.get(index + 1);
            // A shallow clone lacks the commit before.
            if earlier.is_none() && !is_first(commit, trailers) {
                break;
            }
            let has_source = trailers.source.is_some_and(|source| self.repo.has_commit(source));
            if !has_source || !small[index] {
                explained.push(None);
                end = None;
                continue;
            }
            let place = (earlier.map(|(earlier, _)| earlier.id), commit.id);
            if let Some(plan) = known.explained.get(&place) {
                explained.push(Some(plan.clone()));
                end = None;
                continue;
            }
            let after = match end.take() {
                Some(state) => state,
                None => self.state(commit)?,
            };
            let before = match earlier {
                Some((earlier, _)) => self.state(earlier)?,
                None => nothing(&after),
            };
            let plan = PublishedChange::between([&before, &after], self.repo, None, self.ui)?.folded;
            known.explained.insert(place, plan.clone());
            explained.push(Some(plan));
            end = Some(before);
        }
        Ok(explained)
    }

    fn state(&self, commit: &CommitInfo) -> Result<CurrentState, CommandError> {
        state::read_publication(self.repo, self.branch, commit.id)
    }
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
