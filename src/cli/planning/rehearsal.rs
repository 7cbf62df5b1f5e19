//! Rehearses the step after merging a revision: computes it as the daemon would, without publishing it.

use std::collections::BTreeSet;

use crate::process::exit::{CommandError, Exit};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::{Digest, Timestamp};
use berth_base::text::{counted, some_of};
use berth_engine::gate::Limits;
use berth_git::{CommitId, Identity, Merged, Repo};
use berth_hub::inputs::{BuildCache, LocatedState, current_state};
use berth_hub::next_commit::{self, Exemptions, NextCommit, NextCommitError, StepInputs};
use berth_hub::publish::{CurrentState, Processed, Published};

/// A revision, with the name that the user gave.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub name: String,
    pub commit: CommitId,
}

/// The revision to rehearse, and the target of its merge.
#[derive(Clone, Debug)]
pub struct Change {
    pub head: Revision,
    pub into: Option<Revision>,
    /// The commits of `into` that the head lacks.
    pub behind: usize,
    /// The commit that the daemon would read after the merge.
    pub source: CommitId,
}

/// Computes steps without publishing them.
pub(crate) struct Rehearsal<'a> {
    pub repo: &'a Repo,
    pub located: &'a LocatedState,
    pub limits: Limits,
    /// The moment to decide for, instead of the one from the step's inputs.
    pub at: Option<Timestamp>,
    /// This moment, by the command's clock.
    pub clock: Timestamp,
    /// Allows a first state even if a remote's state was not fetched.
    pub first: bool,
}

/// The result of a rehearsed step.
#[derive(Debug)]
pub(crate) struct Rehearsed {
    pub step: NextCommit,
    /// The reasons why `run` would publish nothing.
    pub refusals: Vec<NextCommitError>,
}

/// The result of merging a head.
#[derive(Debug)]
pub(crate) enum Merging {
    Done(Change),
    /// Both sides changed these files in conflicting ways.
    Conflicts {
        head: Revision,
        into: Revision,
        files: Vec<String>,
    },
}

/// Makes the error of a merge with conflicts.
pub fn conflict(head: &Revision, into: &Revision, files: &[String]) -> CommandError {
    let (head, into) = (&head.name, &into.name);
    let count = counted(files.len(), "file");
    let message = format!("merging `{head}` into `{into}` conflicts in {count}:\n  {}", files.join("\n  "));
    let hint = format!("merge `{into}` into the branch first, or plan it unmerged with --no-merge");
    CommandError::new(Exit::Faulty, message).hint(hint)
}

/// Finds the target of a merge: the source branch, as far as this clone knows it.
pub(crate) fn source_tip(
    repo: &Repo,
    located: &LocatedState,
    named: Option<&str>,
) -> Result<Option<Revision>, CommandError> {
    let remote = located.remote.as_deref();
    let recorded = located.processed.as_ref().and_then(|processed| processed.branch.clone());
    let full =
        |name: &str| if name.starts_with("refs/") { name.to_owned() } else { format!("refs/heads/{name}") };
    let known = match (named, recorded, remote) {
        (Some(named), ..) => Some(full(named)),
        (None, Some(recorded), _) => Some(recorded),
        (None, None, Some(remote)) => repo.remote_head(remote)?,
        (None, None, None) => repo.head_branch()?,
    };
    let last = located.last_source();
    let missing = last.is_some_and(|last| !repo.has_commit(last));
    if missing && (remote.is_some() || repo.is_shallow()) {
        return Err(current_state::cut_off(repo, remote, "the source")?.into());
    }
    let last = last.filter(|_| !missing);
    if let Some(branch) = known {
        if let Some(tip) = branch_tip(repo, remote, &branch, last)? {
            return Ok(Some(tip));
        }
        if named.is_some() {
            return Err(match remote {
                Some(_) => current_state::cut_off(repo, remote, current_state::short(&branch))?.into(),
                None => no_branch(current_state::short(&branch)),
            });
        }
    }
    // The commit processed last is part of the source, whatever its branch is called.
    Ok(last.map(|commit| Revision { name: format!("the published source ({})", commit.short()), commit }))
}

/// Returns the newest commit of a branch known to this clone. `last` is an earlier commit of the branch.
fn branch_tip(
    repo: &Repo,
    remote: Option<&str>,
    branch: &str,
    last: Option<CommitId>,
) -> Result<Option<Revision>, CommandError> {
    let tracking = remote.map(|remote| repo.tracking_ref(remote, branch)).transpose()?;
    for place in tracking.iter().map(String::as_str).chain([branch]) {
        let Some(mut commit) = repo.read_ref(place)? else { continue };
        // A branch fetched before the state may be older than the published source.
        if let Some(last) = last.filter(|_| remote.is_some())
            && repo.is_same_or_after(last, commit)?
        {
            commit = last;
        }
        return Ok(Some(Revision { name: current_state::short(place).to_owned(), commit }));
    }
    Ok(None)
}

/// Merges a head as a forge would. Merges nothing if there is no target.
pub fn merge(
    repo: &Repo,
    located: &LocatedState,
    head: Revision,
    into: Option<Revision>,
) -> Result<Merging, CommandError> {
    let Some(into) = into else {
        let source = head.commit;
        return Ok(Merging::Done(Change { head, into: None, behind: 0, source }));
    };
    let message = format!("Merge {} into {}\n", head.name, into.name);
    let common = repo.common_ancestor(into.commit, head.commit)?;
    let merged = repo.merge(into.commit, head.commit, &message)?;
    let cut = || current_state::cut_off(repo, located.remote.as_deref(), &head.name);
    if !matches!(merged, Merged::Contained(_)) {
        for side in [into.commit, head.commit] {
            if repo.is_cut_between(common, side)? {
                return Err(cut()?.into());
            }
        }
    }
    let source = match merged {
        Merged::Contained(commit) | Merged::Merge(commit) => commit,
        Merged::Conflicts(files) => return Ok(Merging::Conflicts { head, into, files }),
        Merged::Unrelated => {
            let message = format!("`{}` and `{}` have no commit in common", head.name, into.name);
            let error = CommandError::usage(message);
            return Err(
                error.hint("name its target branch with --source, or plan it unmerged with --no-merge")
            );
        }
    };
    let behind =
        if source == head.commit { 0 } else { repo.commits_between(head.commit, into.commit)?.len() };
    Ok(Merging::Done(Change { head, into: Some(into), behind, source }))
}

impl Change {
    /// Describes the change briefly.
    pub fn words(&self, subject: &str) -> String {
        let head = format!("`{}` ({}: {subject})", self.head.name, self.head.commit.short());
        match &self.into {
            Some(into) if self.source == into.commit && self.source != self.head.commit => {
                format!("{head}, which {} already contains", into.name)
            }
            Some(into) if self.source != self.head.commit => format!("{head} merged into {}", into.name),
            _ => head,
        }
    }

    /// Describes the commits that the head lacks.
    pub fn notes(&self) -> Option<Diagnostic> {
        let into = self.into.as_ref().filter(|_| self.behind > 0)?;
        let behind = counted(self.behind, "commit");
        let (head, into) = (&self.head.name, &into.name);
        Some(Diagnostic::note(format!("`{head}` is {behind} behind {into}; the plan merges them first")))
    }
}

impl Rehearsal<'_> {
    /// Rehearses a change on the current state.
    pub fn change(&self, change: &Change) -> Result<Rehearsed, CommandError> {
        self.refuse_cut(change.source)?;
        let (current, processed) = (self.located.current.as_ref(), self.located.processed.as_ref());
        let exemptions = Exemptions { first: self.first, ..Exemptions::default() };
        self.step((&change.head.name, change.source), current, processed, exemptions)
    }

    /// Rehearses a change on the state of another revision, whatever is published now.
    pub(crate) fn change_upon(&self, base: &Revision, change: &Change) -> Result<Rehearsed, CommandError> {
        self.refuse_cut(change.source)?;
        let (current, processed) = (self.located.current.as_ref(), self.located.processed.as_ref());
        let ungated = Exemptions {
            rewind: true,
            empty: true,
            removals: true,
            first: self.first,
            ..Exemptions::default()
        };
        let upon = |exemptions: Exemptions| {
            let before = self.step((&base.name, base.commit), current, processed, exemptions)?;
            let files = approvals_in_files(&before.step);
            let (current, processed) = follow(base.commit, before.step, current.cloned());
            let exemptions = Exemptions { rewind: true, ..Exemptions::default() };
            let head = (change.head.name.as_str(), change.source);
            let mut after = self.step(head, current.as_ref(), Some(&processed), exemptions)?;
            after.refusals.splice(0..0, before.refusals);
            let is_used = |digest| after.step.approved.iter().any(|one| one.digests.contains(digest));
            let in_files = approvals_in_files(&after.step);
            let has_idle_approval =
                after.step.has_idle_approval || in_files.difference(&files).any(|digest| !is_used(digest));
            Ok::<_, CommandError>((after, has_idle_approval))
        };
        // The change does not answer for removals of the base, unless it approves them: then the base still holds them.
        match upon(ungated)? {
            (_, true) => upon(Exemptions { removals: false, ..ungated }).map(|(after, _)| after),
            (after, false) => Ok(after),
        }
    }

    /// Refuses a truncated history: the gate, rules and approvals would lack commits.
    fn refuse_cut(&self, source: CommitId) -> Result<(), CommandError> {
        let Some(current) = &self.located.current else { return Ok(()) };
        let cut = |what: &str| current_state::cut_off(self.repo, self.located.remote.as_deref(), what);
        if self.repo.is_cut_between(None, current.commit)? {
            return Err(cut(&self.located.refs.rendered)?.into());
        }
        let needed = [self.located.last_source(), current.trailers.source];
        for since in needed.into_iter().flatten() {
            if self.repo.is_cut_between(Some(since), source)? {
                return Err(cut("the source")?.into());
            }
        }
        Ok(())
    }

    fn step(
        &self,
        (name, source): (&str, CommitId),
        current: Option<&CurrentState>,
        processed: Option<&Processed>,
        exemptions: Exemptions,
    ) -> Result<Rehearsed, CommandError> {
        let start = StepInputs {
            name,
            source,
            current,
            processed,
            refs: &self.located.refs,
            reports: self.located.reports(self.repo, &self.limits.labels)?,
            identity: &Identity::default(),
            signs_anew: false,
            limits: &self.limits,
            exemptions,
            clock: self.clock,
            at: self.at,
            cache: BuildCache::default(),
        };
        let (step, refusals) = next_commit::rehearse(self.repo, start)?;
        Ok(Rehearsed { step, refusals })
    }
}

fn approvals_in_files(step: &NextCommit) -> BTreeSet<Digest> {
    step.built.fleet.approvals.iter().map(|approval| approval.digest).collect()
}

/// Returns the state after a step as if it had been published, and the record of its source.
fn follow(
    source: CommitId,
    step: NextCommit,
    before: Option<CurrentState>,
) -> (Option<CurrentState>, Processed) {
    let NextCommit { drafted, inputs, state, rules, .. } = step;
    let current = match drafted {
        Published::Committed(committed) => Some(committed.into_current(state)),
        Published::Unchanged => before,
    };
    let processed = Processed {
        source,
        branch: None,
        rendered: current.as_ref().map(|current| current.commit),
        errors: 0,
        warnings: 0,
        result: String::new(),
        held: Vec::new(),
        rules,
        moment: inputs.now,
    };
    (current, processed)
}

/// Warns about files of the working tree that differ from HEAD, because no plan of HEAD includes them.
pub fn uncommitted(repo: &Repo) -> Result<Diagnostics, CommandError> {
    const SHOWN: usize = 5;
    let mut found = Diagnostics::new();
    let files = repo.uncommitted()?;
    if files.is_empty() {
        return Ok(found);
    }
    let names = some_of(&files, SHOWN);
    let message = format!(
        "{} uncommitted and not in this plan: {names}",
        match files.len() {
            1 => "1 file is".to_owned(),
            several => format!("{several} files are"),
        }
    );
    found.push(
        Diagnostic::note(message)
            .hint("commit first; `berth decide` and `berth validate` read the working tree"),
    );
    Ok(found)
}

fn no_branch(name: &str) -> CommandError {
    let error = CommandError::usage(format!("there is no source branch `{name}`"));
    error.hint("name the branch that `berth run` reads, or a ref in full as `refs/heads/main`")
}
