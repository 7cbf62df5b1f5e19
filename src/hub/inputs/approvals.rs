//! Approvals that people gave: in commit messages since the last pass, and in files.

use std::collections::{BTreeMap, BTreeSet};

use super::error::InputError;
use super::gate::{Basis, Step};
use crate::publish::trailers;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{Digest, Timestamp};
use berth_engine::gate::messages::ALLOW_DELETE;
use berth_engine::gate::{Approved, Held, Span, Verdict};
use berth_engine::state::ledger::GivenApproval;
use berth_git::{CommitId, CommitInfo, Repo};

/// The time for which an approval in a commit's message counts, from the pass that reads it.
const COUNTS_FOR: Span = Span::hours(7 * 24);

/// The approvals people gave.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    pub(super) expired: BTreeMap<Digest, Timestamp>,
    /// The approvals in the messages of commits that no pass has read.
    pub(super) in_messages: BTreeMap<Digest, GivenApproval>,
    /// The approvals that earlier passes read and that nothing used yet.
    kept: BTreeMap<Digest, GivenApproval>,
    /// The places of approvals in files.
    files: BTreeMap<Digest, Pos>,
    pub(super) diagnostics: Diagnostics,
}

impl Approvals {
    pub(super) fn gather(repo: &Repo, step: &Step<'_>, basis: &Basis) -> Result<Approvals, InputError> {
        let kept = step.states.current.ledger.approvals.clone();
        let mut approvals = Approvals { kept, ..Approvals::default() };
        for approval in step.files {
            if approval.expires > step.now {
                approvals.files.insert(approval.digest, approval.origin.clone());
            } else {
                approvals.expired.insert(approval.digest, approval.expires);
            }
        }
        for commit in new_commits(repo, step.source, basis.since)? {
            let values = trailers::values_in_message(&commit.message, ALLOW_DELETE);
            if !basis.limits.trailers {
                approvals.diagnostics.extend(switched_off(&commit, &values));
                continue;
            }
            approvals.diagnostics.extend(misplaced(&commit, values.len()));
            for value in values {
                match value.parse() {
                    Ok(digest) => {
                        let (commit, until) = (commit.id.to_string(), COUNTS_FOR.after(step.now));
                        approvals.in_messages.insert(digest, GivenApproval { commit, until });
                    }
                    Err(()) => approvals.diagnostics.push(Diagnostic::warning(
                        in_commit(&commit.id.to_string()),
                        format!(
                            "`{ALLOW_DELETE}` must have the 32 digits that berth printed for the removal"
                        ),
                    )),
                }
            }
        }
        Ok(approvals)
    }

    /// Returns the approvals in files that count now.
    pub(super) fn in_files(&self) -> BTreeSet<Digest> {
        self.files.keys().copied().collect()
    }

    /// Says what is held and what was let pass, and what became of approvals that did nothing.
    pub(super) fn explain(
        &self,
        verdict: &Verdict,
        used: &BTreeMap<Digest, u64>,
        rollback: Option<CommitId>,
        diagnostics: &mut Diagnostics,
    ) {
        diagnostics.extend(verdict.held.iter().map(Held::diagnostic));
        diagnostics.extend(verdict.approved.iter().map(|approved| self.approved(approved)));
        diagnostics.extend(rollback.map(|commit| {
            let earlier = commit.short();
            let message = format!(
                "this restores the state of rendered commit {earlier}, so its removals need no approval"
            );
            Diagnostic::note(message)
        }));
        let commits = self.in_messages.iter().filter(|_| rollback.is_none());
        let commits = commits.map(|(digest, given)| (digest, in_commit(&given.commit)));
        // A file may lie there for long, and matters only while something waits for an approval.
        let files = self.files.iter().filter(|_| !verdict.held.is_empty());
        let files = files.map(|(digest, at)| (digest, at.clone()));
        for (digest, at) in commits.chain(files).filter(|(digest, _)| !concerns(verdict, digest)) {
            let message = match used.get(digest) {
                Some(seq) => format!("the approval `{digest}` was already used, by publication {seq}"),
                None => format!("the approval `{digest}` matches no removal now"),
            };
            let hint = "a removal's digest changes with what it removes, and `berth plan` prints it; an approval in a \
                        commit's message counts for a week";
            diagnostics.push(Diagnostic::warning(at, message).hint(hint));
        }
    }

    fn approved(&self, approved: &Approved) -> Diagnostic {
        let by = |digest: &Digest| {
            let in_message = self.in_messages.get(digest).or_else(|| self.kept.get(digest));
            let in_message = in_message.map(|given| in_commit(&given.commit).to_string());
            Some((in_message.or_else(|| Some(self.files.get(digest)?.file.to_string()))?, *digest))
        };
        let given = approved.digests.iter().find_map(by);
        let (by, digest) = given.map_or_else(Default::default, |(by, digest)| (by, digest.to_string()));
        let key = &approved.key;
        let what = if approved.places.is_empty() { "its placement is" } else { "its removals are" };
        Diagnostic::note(format!("{key}: {what} approved by {by} (`{digest}`, which counts once)"))
    }
}

/// Reports whether an approval concerns a removal of this step.
pub(super) fn concerns(verdict: &Verdict, digest: &Digest) -> bool {
    verdict.approved.iter().any(|approved| approved.digests.contains(digest))
        || verdict.held.iter().any(|held| held.spent.contains(digest))
}

/// Warns of approvals in a message that are no trailers: forges put lines below them.
fn misplaced(commit: &CommitInfo, counting: usize) -> Option<Diagnostic> {
    let begins = |line: &&str| {
        let line = line.trim_start().as_bytes();
        line.get(..ALLOW_DELETE.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(ALLOW_DELETE.as_bytes()))
    };
    if commit.message.lines().filter(begins).count() <= counting {
        return None;
    }
    let message = format!("a `{ALLOW_DELETE}` outside the trailers of the message has no effect");
    let hint = format!(
        "end the message of a later commit with a paragraph of trailers only, one of them \
         `{ALLOW_DELETE}: ` and the digest; `git interpret-trailers --parse` shows the trailers of a \
         message"
    );
    Some(Diagnostic::warning(in_commit(&commit.id.to_string()), message).hint(hint))
}

/// Warns of approvals in a message where the daemon takes files only.
fn switched_off(commit: &CommitInfo, values: &[String]) -> Option<Diagnostic> {
    let message = format!(
        "a `{ALLOW_DELETE}` in a commit's message has no effect: the daemon runs with \
         --no-approval-trailers"
    );
    let hint = "approve the removal with a file under `approvals/`";
    (!values.is_empty()).then(|| Diagnostic::warning(in_commit(&commit.id.to_string()), message).hint(hint))
}

fn in_commit(commit: &str) -> Pos {
    Pos::file(format!("commit {}", commit.get(..12).unwrap_or(commit)))
}

/// The source commits that no pass has seen.
fn new_commits(
    repo: &Repo,
    source: CommitId,
    since: Option<CommitId>,
) -> Result<Vec<CommitInfo>, InputError> {
    match since {
        Some(since) if since == source => Ok(Vec::new()),
        Some(since) if repo.has_commit(since) => Ok(repo.commits_between(since, source)?),
        // Another history: only the commit itself is known to be new.
        _ => Ok(vec![repo.commit(source)?]),
    }
}
