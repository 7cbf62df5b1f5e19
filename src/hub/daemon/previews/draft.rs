//! One preview: a commit that shows the state after merging a branch, when all waves are done. It is made on
//! its own thread, so that passes do not wait for it.
//!
//! The commit is for people, on top of the current state. It has no trailers of a publication and no
//! signature, so nobody can present it as a state.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing::Span;

use crate::daemon::{PassError, Settings};
use crate::inputs::{BuildCache, Reports};
use crate::next_commit::{self, NextCommit, NextCommitError, StepInputs};
use crate::publish::{self, CurrentState, Processed, Summary};
use berth_base::model::Timestamp;
use berth_base::text::{counted, some_of};
use berth_engine::plan::plan;
use berth_git::shared_refs::trailers::one_line;
use berth_git::{CommitId, GitError, Identity, Merged, Repo, TreeId, Writer};

const SHOWN_FILES: usize = 10;

/// A commit with the name that people use for it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) commit: CommitId,
}

/// The state on which a preview is based.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) current: Option<CurrentState>,
    pub(super) processed: Option<Processed>,
}

/// Writes the preview of merging `head` into `onto`. No ref points to it yet.
pub(super) fn draft(
    repo: &Repo,
    settings: &Settings,
    base: &Base,
    (head, onto): (&Named, &Named),
    clock: Timestamp,
) -> Result<CommitId, PassError> {
    let (tree, story) = match merged(repo, settings, base, (head, onto), clock) {
        Ok(shown) => shown,
        // A fault of the repository is not a fault of the branch.
        Err(error) if error.git().is_some_and(|error| !matches!(error, GitError::TooLarge { .. })) => {
            return Err(error.into());
        }
        Err(error) => nothing(base, &format!(": {error}")),
    };
    let identity = Identity { signer: None, ..settings.identity.clone() };
    let mut seconds = base.current.as_ref().map_or(i64::MIN, |current| current.seconds);
    for one in [head, onto] {
        seconds = seconds.max(repo.commit(one.commit)?.seconds);
    }
    let parents: Vec<CommitId> = base.current.iter().map(|current| current.commit).collect();
    let message = format!(
        "Preview of {} ({}) merged into {} ({})\n\n{story}",
        one_line(&head.name),
        head.commit.short(),
        one_line(&onto.name),
        onto.commit.short()
    );
    let mut writer = Writer::new(repo)?;
    let tree: TreeId = match tree {
        Some(tree) => tree,
        None => writer.tree(Vec::new())?,
    };
    let commit = writer.commit(tree, &parents, &message, &identity, seconds)?;
    repo.flush()?;
    Ok(commit)
}

/// Merges, and returns the resulting tree and the preview's message.
fn merged(
    repo: &Repo,
    settings: &Settings,
    base: &Base,
    (head, onto): (&Named, &Named),
    clock: Timestamp,
) -> Result<(Option<TreeId>, String), NextCommitError> {
    let before = base.current.as_ref().map(|current| current.tree);
    let merge = format!("Merge {} into {}\n", one_line(&head.name), one_line(&onto.name));
    let source = match repo.merge(onto.commit, head.commit, &merge)? {
        Merged::Contained(source) | Merged::Merge(source) => source,
        Merged::Conflicts(files) => {
            let files = some_of(&files, SHOWN_FILES);
            return Ok(nothing(base, &format!(". The merge has conflicts in {files}")));
        }
        Merged::Unrelated => return Ok(nothing(base, ": no commit is in common")),
    };
    let (next, refusals) = rehearse(repo, settings, base, (&onto.name, source), clock)?;
    let tree = publish::tree_of(repo, base.current.as_ref(), &next.end)?;
    Ok((Some(tree), story(&next, (before.is_none(), before != Some(tree)), &refusals)))
}

/// Shows the current state, with the reason why there is no other.
fn nothing(base: &Base, why: &str) -> (Option<TreeId>, String) {
    let before = base.current.as_ref().map(|current| current.tree);
    (before, format!("There is no state to show{why}\n"))
}

fn rehearse(
    repo: &Repo,
    settings: &Settings,
    base: &Base,
    (name, source): (&str, CommitId),
    clock: Timestamp,
) -> Result<(NextCommit, Vec<NextCommitError>), NextCommitError> {
    let current = base.current.as_ref();
    let labels = settings.limits.labels.clone();
    let start = StepInputs {
        name,
        source,
        current,
        processed: base.processed.as_ref(),
        refs: &settings.refs,
        reports: Reports::read(repo, &settings.refs, &labels, current)?,
        identity: &Identity::default(),
        signs_anew: false,
        limits: &settings.limits,
        exemptions: settings.exemptions(),
        clock,
        at: None,
        cache: BuildCache::default(),
    };
    next_commit::rehearse(repo, start)
}

/// Describes the result of the merge, like the message of a publication.
fn story(next: &NextCommit, (is_first, changes): (bool, bool), refusals: &[NextCommitError]) -> String {
    let mut out = String::new();
    for refusal in refusals {
        let _ = writeln!(out, "berth run would publish nothing: {}\n", one_line(&refusal.to_string()));
    }
    let leads_to = plan(&next.inputs.current, &next.end);
    let summary =
        Summary::of(&leads_to, is_first).with_rollouts(&next.rollout_steps).with_problems(&next.diagnostics);
    match changes {
        false => out.push_str(&format!("Nothing would change.\n{}", summary.problems_text())),
        true => out.push_str(&summary.text()),
    }
    if !next.held.is_empty() {
        let _ = writeln!(out, "\nheld for approval: {}", counted(next.held.len(), "workload"));
        for held in &next.held {
            let _ =
                writeln!(out, "- {}: removes {}", one_line(&held.key.to_string()), one_line(&held.losses()));
        }
    }
    out
}

/// The time limit of a preview. The limits of trees also bound it; this limit is for a busy machine.
pub(super) const LONGEST: Duration = Duration::from_secs(120);

/// Background work whose outcome can be awaited for a limited time.
#[derive(Debug)]
pub(super) struct Drafting<Subject, Outcome> {
    pub(super) subject: Subject,
    begun: Instant,
    done: Receiver<Outcome>,
    is_given_up: bool,
}

/// The progress of the work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress<Outcome> {
    Done(Outcome),
    UnderWay,
    /// The work exceeded its time limit. Returned once; a later outcome is ignored.
    GivenUp,
    /// The work ended without an outcome, or after it was given up.
    Gone,
}

impl<Subject, Outcome: Send + 'static> Drafting<Subject, Outcome> {
    /// Starts the work.
    pub(super) fn start(
        subject: Subject,
        work: impl FnOnce() -> Outcome + Send + 'static,
    ) -> std::io::Result<Drafting<Subject, Outcome>> {
        let (tell, done) = channel();
        let span = Span::current();
        thread::Builder::new().name("preview".to_owned()).spawn(move || {
            // The receiver may be gone.
            let _ = tell.send(span.in_scope(work));
        })?;
        Ok(Drafting { subject, begun: Instant::now(), done, is_given_up: false })
    }

    /// Waits for the outcome, at most for `patience`. Gives up work that takes longer than `longest` in total.
    pub(super) fn wait(&mut self, patience: Duration, longest: Duration) -> Progress<Outcome> {
        match self.done.recv_timeout(patience) {
            Ok(outcome) if !self.is_given_up => Progress::Done(outcome),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Progress::Gone,
            Err(RecvTimeoutError::Timeout) if !self.is_given_up && self.begun.elapsed() >= longest => {
                self.is_given_up = true;
                Progress::GivenUp
            }
            Err(RecvTimeoutError::Timeout) => Progress::UnderWay,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn nobody_waits_for_work_that_goes_on() {
        let (go_on, waits) = channel();
        let mut drafting =
            Drafting::start("fix", move || waits.recv().map_or(0, |number: i32| number)).unwrap();
        assert_eq!(drafting.wait(NONE, LONG), Progress::UnderWay);
        go_on.send(7).unwrap();
        assert_eq!(drafting.wait(LONG, LONG), Progress::Done(7));
        assert_eq!(drafting.wait(LONG, LONG), Progress::Gone);
    }

    #[test]
    fn work_that_takes_too_long_is_given_up_once_and_its_outcome_does_not_count() {
        let (go_on, waits) = channel();
        let mut drafting =
            Drafting::start("fix", move || waits.recv().map_or(0, |number: i32| number)).unwrap();
        assert_eq!(drafting.wait(NONE, NONE), Progress::GivenUp);
        assert_eq!(drafting.wait(NONE, NONE), Progress::UnderWay);
        go_on.send(7).unwrap();
        assert_eq!(drafting.wait(LONG, NONE), Progress::Gone);
    }

    #[test]
    fn work_that_breaks_is_gone() {
        let mut drafting = Drafting::start("fix", || std::panic::resume_unwind(Box::new(()))).unwrap();
        assert_eq!(drafting.wait(LONG, LONG), Progress::<i32>::Gone);
    }
}
