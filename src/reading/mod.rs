//! Gathers what the pipeline is a function of: a source tree with its history, the state in force,
//! what members reported, and the moment.
//!
//! Commands and the daemon read through here, so that `plan` shows what `run` will do.

pub mod gate;
mod history;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decide::Decided;
use crate::diag::Diagnostics;
use crate::dialects;
use crate::git::{self, CommitId, GitError, Repo};
use crate::load::{self, History, Loaded};
use crate::model::{ClusterStatus, ContentError, ContentId, Contents, Decision, Key, Timestamp};
use crate::pipeline::{self, Built, Inputs};
use crate::publish::{self, Previous, PublishError, Refs};
use crate::source::{self, SourceTree};
use crate::state::{self, State};

/// All inputs of one run.
#[derive(Debug)]
pub struct Reading {
    /// What was read, in a few words.
    pub label: String,
    pub tree: SourceTree,
    pub previous: State,
    pub statuses: BTreeMap<String, ClusterStatus>,
    pub now: Timestamp,
    /// What was odd about the rendered branch and the reports.
    pub diagnostics: Diagnostics,
    history: GoodForms,
    /// The repository, where there is one.
    repo: Option<PathBuf>,
}

/// The last good forms of files that are broken now.
#[derive(Debug)]
enum GoodForms {
    /// Nothing was decided before.
    None,
    /// Decisions exist, but the source they were made from is gone.
    Unavailable,
    Found(BTreeMap<String, Arc<[u8]>>),
}

/// A fleet could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Folder(#[from] source::SourceError),
    #[error("the rendered branch has no `{0}`, which an earlier state named")]
    MissingContent(ContentId),
}

impl ReadingError {
    pub fn hint(&self) -> Option<String> {
        match self {
            ReadingError::Git(error) => error.hint(),
            ReadingError::Publish(error) => error.hint(),
            ReadingError::Folder(_) | ReadingError::MissingContent(_) => None,
        }
    }
}

impl Reading {
    /// A folder as it stands, committed or not. The rendered branch counts if the folder is a repository's root.
    pub fn folder(path: &Path, now: Timestamp) -> Result<Reading, ReadingError> {
        let tree = source::read_dir(path, &crate::yaml::Limits::default())?;
        let label = format!("the working tree at {}", path.display());
        let repo = if path.join(".git").exists() { Some(Repo::open(path)?) } else { None };
        let Some(repo) = repo else {
            return Ok(Reading {
                label,
                tree,
                previous: State::default(),
                statuses: BTreeMap::new(),
                now,
                diagnostics: Diagnostics::new(),
                history: GoodForms::None,
                repo: None,
            });
        };
        let refs = Refs::default();
        let previous = publish::read_previous(&repo, &refs.rendered)?;
        let head = repo.resolve("HEAD")?;
        let mut reading = Reading::with(&repo, label, tree, head, previous.as_ref(), &refs)?;
        reading.now = now;
        Ok(reading)
    }

    /// A revision, straight from Git.
    pub fn revision(path: &Path, revision: &str, now: Option<Timestamp>) -> Result<Reading, ReadingError> {
        let repo = Repo::open(path)?;
        let commit = repo.require(revision)?;
        let refs = Refs::default();
        let previous = publish::read_previous(&repo, &refs.rendered)?;
        let mut reading = Reading::commit(&repo, commit, previous.as_ref(), &refs, Timestamp::now())?;
        if let Some(now) = now {
            reading.now = now;
        }
        Ok(reading)
    }

    /// A commit against a rendered state, for the moment a daemon would decide it for: the latest of the
    /// commit's date, the members' reports, and the moment of the state in force. A report from after
    /// `clock` is a member's clock gone wrong, and moves nothing.
    pub fn commit(
        repo: &Repo,
        commit: CommitId,
        previous: Option<&Previous>,
        refs: &Refs,
        clock: Timestamp,
    ) -> Result<Reading, ReadingError> {
        let info = repo.commit(commit)?;
        let label = format!("commit {commit} ({})", info.subject());
        let tree = git::read_source(repo, commit)?;
        let parents = info.parents.first().copied();
        let mut reading = Reading::with(repo, label, tree, parents, previous, refs)?;
        let reported = reading
            .statuses
            .values()
            .filter_map(|status| status.reported)
            .filter(|reported| *reported <= clock);
        let dated = Timestamp::from_second(info.seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        let before = previous.and_then(|previous| previous.trailers.now);
        reading.now = reported.chain(before).fold(dated, Timestamp::max);
        Ok(reading)
    }

    fn with(
        repo: &Repo,
        label: String,
        tree: SourceTree,
        older: Option<CommitId>,
        previous: Option<&Previous>,
        refs: &Refs,
    ) -> Result<Reading, ReadingError> {
        let (statuses, odd) = publish::read_statuses(repo, refs)?;
        let mut diagnostics = odd;
        if let Some(previous) = previous {
            diagnostics.extend(previous.foreign.iter().cloned());
        }
        let history = history::find(repo, &tree, older, previous)?;
        Ok(Reading {
            label,
            tree,
            previous: previous.map(|previous| previous.state.clone()).unwrap_or_default(),
            statuses,
            now: Timestamp::UNIX_EPOCH,
            diagnostics,
            history,
            repo: Some(repo.path().to_owned()),
        })
    }

    /// Takes decisions as printed for the ones in force, in place of the rendered branch.
    pub fn take_previous(&mut self, printed: BTreeMap<Key, Decision>) {
        let fleet = self.inputs(|inputs| load::load(inputs.tree, inputs.history)).fleet;
        let mut decisions = state::adopt(printed, fleet.placements.keys());
        for (key, decision) in &mut decisions {
            decision.policy =
                decision.policy.take().map(|written| dialects::policy_text(&key.kind, &written));
        }
        self.previous = State { decisions, ..State::default() };
    }

    /// Reads the fleet and decides.
    pub fn decide(&self) -> (Loaded, Decided, Diagnostics) {
        self.inputs(pipeline::decide)
    }

    /// Reads the fleet, decides and renders.
    pub fn build(&self, contents: &mut dyn Contents) -> Result<Built, ContentError> {
        self.inputs(|inputs| pipeline::build(inputs, contents))
    }

    fn inputs<T>(&self, run: impl FnOnce(Inputs<'_>) -> T) -> T {
        let good_form = |path: &str| match &self.history {
            GoodForms::Found(forms) => forms.get(path).cloned(),
            _ => None,
        };
        let history = match &self.history {
            GoodForms::None => History::None,
            GoodForms::Unavailable => History::Unavailable,
            GoodForms::Found(_) => History::Known(&good_form),
        };
        run(Inputs {
            tree: &self.tree,
            history,
            previous: &self.previous,
            statuses: &self.statuses,
            now: self.now,
        })
    }

    /// The bytes of a copy that keeps its last good form.
    pub fn earlier_content(&self, id: &ContentId) -> Result<Vec<u8>, ReadingError> {
        match &self.repo {
            Some(path) => Ok(Repo::open(path)?.blob(*id)?),
            None => Err(ReadingError::MissingContent(*id)),
        }
    }
}
