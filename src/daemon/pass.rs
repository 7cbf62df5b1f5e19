//! One pass: read the source's newest commit, decide, render, publish, and bring the derived refs along.

use std::path::PathBuf;

use super::source::source;
use crate::diag::{Diagnostics, Severity};
use crate::git::{CommitId, GitContents, GitError, Identity, Repo};
use crate::model::{ContentError, Timestamp};
use crate::pipeline::Built;
use crate::plan::{Plan, plan};
use crate::publish::{self, PublishError, Published, Refs, Stamp, Summary, cluster_refs};
use crate::reading::{Reading, ReadingError};
use crate::report;

/// Where a daemon works. From flags and environment only, never from the fleet repository.
#[derive(Clone, Debug)]
pub struct Settings {
    pub repo: PathBuf,
    /// The source branch; `None` means the one HEAD names.
    pub source: Option<String>,
    pub refs: Refs,
    pub identity: Identity,
}

/// What a pass did.
#[derive(Debug)]
pub struct Passed {
    pub source: CommitId,
    pub outcome: PassOutcome,
    pub plan: Plan,
    pub diagnostics: Diagnostics,
    pub next_change: Option<Timestamp>,
    pub seen: Seen,
}

/// Whether there was anything to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOutcome {
    Published { commit: CommitId, seq: u64 },
    Unchanged,
}

impl PassOutcome {
    fn word(self) -> &'static str {
        match self {
            PassOutcome::Published { .. } => "published",
            PassOutcome::Unchanged => "unchanged",
        }
    }
}

impl Passed {
    pub fn errors(&self) -> usize {
        self.diagnostics.errors().count()
    }
}

/// The refs a pass depends on, to tell whether another one has anything to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    refs: Vec<(String, String)>,
}

/// A pass could not do its work. The fleet's own faults are diagnostics, not this.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error(transparent)]
    Reading(#[from] ReadingError),
    #[error("the source branch `{0}` has no commit yet")]
    NoSource(String),
    #[error("there is no source branch `{name}`")]
    NoSuchSource { name: String, hint: String },
    #[error("`{0}` is the rendered branch, which can not be its own source")]
    SourceIsRendered(String),
}

impl PassError {
    pub fn hint(&self) -> Option<String> {
        match self {
            PassError::Git(error) => error.hint(),
            PassError::Publish(error) => error.hint(),
            PassError::Content(_) => None,
            PassError::Reading(error) => error.hint(),
            PassError::NoSource(_) => {
                Some("commit the fleet's files first, or name a branch with --source".into())
            }
            PassError::NoSuchSource { hint, .. } => Some(hint.clone()),
            PassError::SourceIsRendered(_) => Some("name the branch people edit with --source".into()),
        }
    }

    pub fn is_race(&self) -> bool {
        match self {
            PassError::Publish(PublishError::Raced { .. }) => true,
            PassError::Publish(PublishError::Git(error)) => error.is_race(),
            PassError::Git(error) => error.is_race(),
            _ => false,
        }
    }
}

/// How often a lost race is run again before giving up.
const ATTEMPTS: usize = 5;

/// Moments a single pass catches up with, where several passed since the last one.
const MOST_DEADLINES: usize = 64;

/// Runs a pass; `clock` decides only which deadlines have passed, and shows in no output by itself.
pub fn pass(settings: &Settings, clock: Timestamp) -> Result<Passed, PassError> {
    let mut attempt = 1;
    loop {
        match attempt_pass(settings, clock) {
            Err(error) if error.is_race() && attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

/// The folders whose refs are to be watched: of this work tree, and what all work trees share. An error
/// where waiting would not help: a source without a commit may get one, a misspelt one never does.
pub fn git_folders(settings: &Settings) -> Result<[PathBuf; 2], PassError> {
    let repo = Repo::open(&settings.repo)?;
    match source(&repo, settings) {
        Ok(_) | Err(PassError::NoSource(_)) => Ok([repo.path().to_owned(), repo.shared_path().to_owned()]),
        Err(error) => Err(error),
    }
}

/// The refs as they are now.
pub fn see(settings: &Settings) -> Result<Seen, PassError> {
    let repo = Repo::open(&settings.repo)?;
    let (name, source) = source(&repo, settings)?;
    see_refs(&repo, settings, &name, source)
}

fn see_refs(repo: &Repo, settings: &Settings, name: &str, source: CommitId) -> Result<Seen, PassError> {
    let mut refs = vec![(name.to_owned(), source.to_string())];
    for prefix in [&settings.refs.rendered, &settings.refs.status, &settings.refs.clusters] {
        refs.extend(repo.list_refs(prefix)?.into_iter().map(|(name, id)| (name, id.to_string())));
    }
    Ok(Seen { refs })
}

fn attempt_pass(settings: &Settings, clock: Timestamp) -> Result<Passed, PassError> {
    let repo = Repo::open(&settings.repo)?;
    let (name, source) = source(&repo, settings)?;
    let previous = publish::read_previous(&repo, &settings.refs.rendered)?;
    let mut reading = Reading::commit(&repo, source, previous.as_ref(), &settings.refs, clock)?;
    let mut contents = GitContents::writing(&repo)?;
    let built = build_up_to(&mut reading, clock, &mut contents)?;
    let plan = plan(&reading.previous, &built.state);
    let mut diagnostics = reading.diagnostics.clone();
    diagnostics.extend(built.diagnostics);
    diagnostics.sort();
    let info = repo.commit(source)?;
    let stamp = Stamp {
        identity: settings.identity.clone(),
        ..Stamp::new(source, info.subject(), info.seconds, reading.now)
    };
    let summary = Summary::between(previous.as_ref().map(|previous| &previous.state), &built.state)
        .with_problems(&diagnostics);
    let published =
        publish::publish(&repo, &settings.refs, previous.as_ref(), &built.state, &stamp, &summary)?;
    let outcome = outcome(&published);
    let rendered = match published {
        Published::Committed(committed) => Some(committed.into_previous(built.state)),
        Published::Unchanged => previous,
    };
    if let Some(rendered) = &rendered {
        let clusters = built.fleet.clusters.keys().cloned().collect();
        cluster_refs::repair(&repo, &settings.refs, rendered, &clusters, &settings.identity)?;
    }
    let processed = publish::Processed {
        source,
        rendered: rendered.as_ref().map(|rendered| rendered.commit),
        errors: diagnostics.errors().count(),
        warnings: diagnostics.iter().filter(|d| d.severity == Severity::Warning).count(),
        result: outcome.word().to_owned(),
    };
    let seconds = reading.now.as_second();
    publish::write_processed(&repo, &settings.refs, &processed, &settings.identity, seconds)?;
    if let Some(rendered) = &rendered {
        let folders = cluster_refs::read_all(&repo, &settings.refs)?;
        let fleet_report =
            report::summarize(&reading.statuses, &rendered.state.decisions, &folders, reading.now);
        publish::write_report(&repo, &settings.refs, &fleet_report, &settings.identity, seconds)?;
    }
    let seen = see_refs(&repo, settings, &name, source)?;
    Ok(Passed { source, outcome, plan, diagnostics, next_change: built.next_change, seen })
}

fn outcome(published: &Published) -> PassOutcome {
    match published {
        Published::Committed(committed) => {
            PassOutcome::Published { commit: committed.commit, seq: committed.seq }
        }
        Published::Unchanged => PassOutcome::Unchanged,
    }
}

/// Builds for the reading's moment, then for each moment since at which something changed by itself.
fn build_up_to(
    reading: &mut Reading,
    clock: Timestamp,
    contents: &mut GitContents<'_>,
) -> Result<Built, PassError> {
    let mut built = reading.build(contents)?;
    for _ in 0..MOST_DEADLINES {
        match built.next_change.filter(|at| *at <= clock && *at > reading.now) {
            Some(at) => reading.now = at,
            None => break,
        }
        built = reading.build(contents)?;
    }
    Ok(built)
}
