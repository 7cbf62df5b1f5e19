//! Asks the gate about a source commit: gathers approvals and what was used before, and gives the
//! verdict with the trailers from which anybody can repeat it.
//!
//! What the verdict depends on besides commits is its [`Basis`]; a daemon has it from the last pass,
//! and who proves a rendered commit has it from that commit's trailers.

use std::collections::{BTreeMap, BTreeSet};

use super::ReadingError;
use crate::diag::{Diagnostic, Diagnostics, Pos};
use crate::gate::{self, Approved, Held, HeldRecord, Limits, Question, Verdict, words::ALLOW_DELETE};
use crate::git::{CommitId, CommitInfo, Repo};
use crate::model::{Approval, Digest, Timestamp};
use crate::publish::{Previous, Processed, Trailers, ledger, rollback, trailers};
use crate::state::State;

const GATE: &str = "Berth-Gate";
const PROCESSED: &str = "Berth-Processed";
const RETRIED: &str = "Berth-Retried";
const HELD: &str = "Berth-Held";
const ROLLBACK: &str = "Berth-Rollback";
const RULES: &str = "Berth-Rules";

/// What a verdict depends on, besides the source and the rendered branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    pub limits: Limits,
    /// The source commit that was processed last.
    pub since: Option<CommitId>,
    /// What was held then.
    pub retried: Vec<HeldRecord>,
    /// The commit whose access rules held then.
    pub rules: Option<CommitId>,
}

/// What a verdict is about.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub source: CommitId,
    pub previous: &'a State,
    pub next: &'a State,
    /// The approvals among the source's files.
    pub files: &'a [Approval],
    pub now: Timestamp,
    /// The rendered branch, where earlier approvals and states are looked up.
    pub rendered: Option<&'a Previous>,
}

/// A verdict, with what to write down and to say.
#[derive(Clone, Debug, Default)]
pub struct Gated {
    pub verdict: Verdict,
    /// The rendered commit that this goes back to.
    pub rollback: Option<CommitId>,
    pub trailers: Vec<(String, String)>,
    pub diagnostics: Diagnostics,
}

impl Basis {
    /// What the daemon goes by. Where the last pass was cut short, the rendered branch knows better than
    /// the ref that says what was processed.
    pub fn in_force(limits: &Limits, rendered: Option<&Previous>, processed: Option<&Processed>) -> Basis {
        let commit = rendered.map(|rendered| rendered.commit);
        let (since, lines, rules) =
            match (processed.filter(|processed| processed.rendered == commit), rendered) {
                (Some(processed), _) => (Some(processed.source), processed.held.clone(), processed.rules),
                (None, Some(rendered)) => {
                    let (source, trailers) = (rendered.trailers.source, &rendered.trailers);
                    (source, all(trailers, HELD), source.and_then(|source| rules_of(trailers, source)))
                }
                (None, None) => (None, Vec::new(), None),
            };
        Basis { limits: limits.clone(), since, retried: records(&lines), rules }
    }

    /// The commit whose access rules hold for a source: the one before it, and as long as it is the newest,
    /// the same. `None` where nothing came before.
    pub fn rules_for(&self, source: CommitId) -> Option<CommitId> {
        if self.since == Some(source) { self.rules } else { self.since }
    }

    /// What a rendered commit says it went by; `None` where the gate was not asked.
    pub fn of_trailers(trailers: &Trailers) -> Option<Basis> {
        let one = |name| all(trailers, name).into_iter().next();
        Some(Basis {
            limits: one(GATE)?.parse().ok()?,
            since: one(PROCESSED).and_then(|id| id.parse().ok()),
            retried: records(&all(trailers, RETRIED)),
            rules: one(RULES).and_then(|id| id.parse().ok()),
        })
    }
}

/// The commit whose access rules a rendered commit was made under.
pub fn rules_of(trailers: &Trailers, source: CommitId) -> Option<CommitId> {
    Basis::of_trailers(trailers)?.rules_for(source)
}

fn all(trailers: &Trailers, name: &str) -> Vec<String> {
    trailers.others.iter().filter(|(found, _)| found == name).map(|(_, value)| value.clone()).collect()
}

fn records(lines: &[String]) -> Vec<HeldRecord> {
    lines.iter().filter_map(|line| line.parse().ok()).collect()
}

/// Asks the gate.
pub fn ask(repo: &Repo, step: &Step<'_>, basis: &Basis) -> Result<Gated, ReadingError> {
    let offers = Offers::gather(repo, step, basis)?;
    let judge = |used: &BTreeSet<Digest>| {
        gate::judge(&Question {
            previous: step.previous,
            next: step.next,
            limits: &basis.limits,
            source_changed: basis.since != Some(step.source),
            retried: &basis.retried,
            approvals: &offers.counting,
            used,
        })
    };
    let mut used = BTreeMap::new();
    let mut verdict = judge(&BTreeSet::new());
    if !verdict.held.is_empty() || !verdict.approved.is_empty() {
        // A look at the whole history, so only where it matters.
        if let Some(rendered) = step.rendered {
            used = ledger::used_approvals(repo, rendered.commit)?;
        }
        if !used.is_empty() {
            verdict = judge(&used.keys().copied().collect());
        }
    }
    let mut rollback = None;
    if let Some(rendered) = step.rendered.filter(|_| !verdict.held.is_empty()) {
        rollback = rollback::in_force_before(repo, rendered, step.next, basis.limits.rollback)?;
    }
    if rollback.is_some() {
        verdict = Verdict::default();
    }
    for held in &mut verdict.held {
        held.expired = offers.expired.get(&held.digest).copied();
    }
    let trailers = trailers_of(step.source, basis, &verdict, rollback);
    let mut diagnostics = offers.diagnostics.clone();
    offers.explain(&verdict, &used, rollback, &mut diagnostics);
    Ok(Gated { verdict, rollback, trailers, diagnostics })
}

fn trailers_of(
    source: CommitId,
    basis: &Basis,
    verdict: &Verdict,
    rollback: Option<CommitId>,
) -> Vec<(String, String)> {
    let mut lines = vec![(GATE, basis.limits.to_string())];
    lines.extend(basis.since.map(|since| (PROCESSED, since.to_string())));
    let same_source = basis.rules.filter(|_| basis.since == Some(source));
    lines.extend(same_source.map(|commit| (RULES, commit.to_string())));
    lines.extend(basis.retried.iter().map(|record| (RETRIED, record.to_string())));
    let used: BTreeSet<Digest> = verdict.approved.iter().map(|approved| approved.digest).collect();
    lines.extend(used.into_iter().map(|digest| (trailers::USED_APPROVAL, digest.to_string())));
    let prunable = verdict.prunable();
    let prunable = prunable.iter().map(|(path, clusters)| ledger::allow_prune_line(path, clusters));
    lines.extend(prunable.map(|line| (trailers::ALLOW_PRUNE, line)));
    lines.extend(verdict.records().iter().map(|record| (HELD, record.to_string())));
    lines.extend(rollback.map(|commit| (ROLLBACK, commit.to_string())));
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The approvals people gave.
#[derive(Debug, Default)]
struct Offers {
    /// Those that count for this moment.
    counting: BTreeSet<Digest>,
    expired: BTreeMap<Digest, Timestamp>,
    /// Where trailers stand.
    commits: BTreeMap<Digest, CommitId>,
    /// Where those approvals stand that are files.
    files: BTreeMap<Digest, Pos>,
    diagnostics: Diagnostics,
}

impl Offers {
    fn gather(repo: &Repo, step: &Step<'_>, basis: &Basis) -> Result<Offers, ReadingError> {
        let mut offers = Offers::default();
        for approval in step.files {
            if approval.expires > step.now {
                offers.counting.insert(approval.digest);
                offers.files.insert(approval.digest, approval.origin.clone());
            } else {
                offers.expired.insert(approval.digest, approval.expires);
            }
        }
        for commit in new_commits(repo, step.source, basis.since)? {
            offers.diagnostics.extend(misplaced(&commit));
            for value in trailers::values(&commit.message, ALLOW_DELETE) {
                match value.parse() {
                    Ok(digest) => {
                        offers.counting.insert(digest);
                        offers.commits.insert(digest, commit.id);
                    }
                    Err(()) => offers.diagnostics.push(Diagnostic::warning(
                        in_commit(commit.id),
                        format!(
                            "`{ALLOW_DELETE}` must have the 32 digits that berth printed for the removal"
                        ),
                    )),
                }
            }
        }
        Ok(offers)
    }

    /// Says what is held and what was let pass, and what became of approvals that did nothing.
    fn explain(
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
                "this goes back to the state that the rendered commit {earlier} had, so its removals need no approval"
            );
            Diagnostic::note(message)
        }));
        let matched = |digest: &Digest| {
            verdict.approved.iter().any(|approved| approved.digest == *digest)
                || verdict.held.iter().any(|held| held.spent.contains(digest))
        };
        let commits = self.commits.iter().filter(|_| rollback.is_none());
        let commits = commits.map(|(digest, commit)| (digest, in_commit(*commit)));
        // A file may lie there for long, and matters only while something waits for an approval.
        let files = self.files.iter().filter(|_| !verdict.held.is_empty());
        let files = files.map(|(digest, at)| (digest, at.clone()));
        for (digest, at) in commits.chain(files).filter(|(digest, _)| !matched(digest)) {
            let message = match used.get(digest) {
                Some(seq) => format!("the approval `{digest}` was used already, by number {seq}"),
                None => format!("the approval `{digest}` fits no removal"),
            };
            let hint = "a removal's digest changes with what it removes; `berth plan` prints it";
            diagnostics.push(Diagnostic::warning(at, message).hint(hint));
        }
    }

    fn approved(&self, approved: &Approved) -> Diagnostic {
        let by = match (self.commits.get(&approved.digest), self.files.get(&approved.digest)) {
            (Some(commit), _) => in_commit(*commit).to_string(),
            (None, Some(at)) => at.file.to_string(),
            (None, None) => "somebody".to_owned(),
        };
        let (key, digest) = (&approved.key, approved.digest);
        Diagnostic::note(format!("{key}: its removals are approved by {by} (`{digest}`, which counts once)"))
    }
}

/// Says of approvals in a message that they do not count where they stand: forges put lines below.
fn misplaced(commit: &CommitInfo) -> Option<Diagnostic> {
    let begins = |line: &&str| {
        let line = line.trim_start().as_bytes();
        line.get(..ALLOW_DELETE.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(ALLOW_DELETE.as_bytes()))
    };
    let written = commit.message.lines().filter(begins).count();
    if written <= trailers::values(&commit.message, ALLOW_DELETE).count() {
        return None;
    }
    let message = format!("a `{ALLOW_DELETE}` does not count where it stands in the message");
    let hint = format!(
        "it counts in the last paragraph only, on a line of its own as `{ALLOW_DELETE}: ` and the digest; \
         write it again in a later commit"
    );
    Some(Diagnostic::warning(in_commit(commit.id), message).hint(hint))
}

fn in_commit(commit: CommitId) -> Pos {
    Pos::file(format!("commit {}", commit.short()))
}

/// The source commits that no pass has seen.
fn new_commits(
    repo: &Repo,
    source: CommitId,
    since: Option<CommitId>,
) -> Result<Vec<CommitInfo>, ReadingError> {
    match since {
        Some(since) if since == source => Ok(Vec::new()),
        Some(since) if repo.has_commit(since) => Ok(repo.commits_between(since, source)?),
        // Another history: only the commit itself is known to be new.
        _ => Ok(vec![repo.commit(source)?]),
    }
}
