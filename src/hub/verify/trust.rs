//! Trust in a rendered branch's tip.
//!
//! A tip is trusted if this machine made or proved it before, if an allowed key signed it for this fleet, or if it is
//! proven now, commit by commit along first parents, from the last trusted commit. Foreign commits, which do not
//! claim to be berth's, are skipped: nothing is taken from them. Trusting a commit includes its history.

use berth_git::shared_refs::Refs;
use std::collections::BTreeSet;

use super::VerifyError;
use super::bounds::{Expected, ExpectedLimits};
use super::proof::{Proof, Verdict, Verifier};
use crate::inputs::moment::MOST_AHEAD_SECONDS;
use crate::publish::own_files::{remember, remembered};
use crate::publish::trailers::LONGEST_WALK;
use crate::publish::{self};
use berth_base::model::Timestamp;
use berth_base::text::counted;
use berth_engine::gate::Limits;
use berth_git::signature::AllowedSigners;
use berth_git::{CommitId, CommitInfo, GitError, Repo};

/// The number of commits proven on a machine that does not know the branch.
pub const DEPTH: usize = 3;

/// The number of a commit's faults named in a message.
const MOST_FAULTS: usize = 3;

/// The settings that establish trust. Set by flags and environment only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchors {
    /// The keys that may sign generated commits.
    pub keys: Option<AllowedSigners>,
    /// The name of the fleet.
    pub fleet: Option<String>,
    /// A commit to trust without a proof.
    pub root: Option<CommitId>,
    /// The number of commits to prove if the branch is unknown.
    pub depth: usize,
}

impl Default for Anchors {
    fn default() -> Anchors {
        Anchors { keys: None, fleet: None, root: None, depth: DEPTH }
    }
}

/// The tip in question, with the inputs of the decision.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub tip: CommitId,
    pub refs: &'a Refs,
    pub anchors: &'a Anchors,
    pub clock: Timestamp,
    /// The tip of the source branch. `None` if the source may go back.
    pub source: Option<CommitId>,
    pub limits: &'a Limits,
    /// The branch need not contain earlier trusted commits.
    pub allow_rewritten: bool,
}

/// The reason to trust a tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The tip was made or proven here before, or signed.
    Known,
    /// Proven now, with this number of proofs.
    Proven(usize),
    /// The branch was unknown. The newest commits were proven, and the named one is trusted with its history; `None`
    /// if the proofs reach the first commit.
    FirstSight { proven: usize, from: Option<CommitId> },
}

/// A tip that is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is at {tip}, which is not trusted: {why}")]
pub struct Untrusted {
    pub name: String,
    pub tip: CommitId,
    pub why: String,
    /// The last trusted commit of the branch.
    pub last: Option<CommitId>,
}

impl Trust {
    /// Returns the note for the log, if there is one.
    pub fn note(&self, name: &str) -> Option<String> {
        match self {
            Trust::FirstSight { proven, from: Some(from) } => Some(format!(
                "this machine knew no commit of `{name}`: it proved {}, and trusts {from} and its history \
                 without proof",
                counted(*proven, "commit")
            )),
            Trust::Proven(proven) => Some(format!(
                "proved {} of `{name}` that this machine did not make",
                counted(*proven, "commit")
            )),
            Trust::Known | Trust::FirstSight { from: None, .. } => None,
        }
    }
}

impl Untrusted {
    /// Returns the hint.
    pub fn hint(&self) -> String {
        let Untrusted { name, tip, last, .. } = self;
        let believe =
            format!("to accept it anyway, once you know who made it and how, use --root {tip} for one run");
        match last {
            Some(last) => format!(
                "look at the difference (git diff {last} {tip}), and restore {last}, the last trusted \
                 commit: git update-ref {name} {last}, and at a remote git push --force REMOTE \
                 {last}:{name}; {believe}"
            ),
            None => believe,
        }
    }
}

/// Reports whether the content of one of berth's small refs is trusted: this machine wrote it, an allowed key signed
/// it, or nothing here could contradict it.
pub(crate) fn believes(repo: &Repo, refs: &Refs, name: &str, anchors: &Anchors) -> Result<bool, GitError> {
    let Some(commit) = repo.read_ref(name)? else { return Ok(true) };
    // A ref may point to a tag or a blob.
    if !repo.has_commit(commit) {
        return Ok(false);
    }
    Ok(remembered(repo, name).contains(&commit)
        || is_signed(repo, commit, anchors.keys.as_ref())?
        || anchors.keys.is_none() && anchors.root.is_none() && remembered(repo, &refs.rendered).is_empty())
}

/// Decides, and remembers a trusted tip.
pub fn judge(repo: &Repo, question: &Question<'_>) -> Result<Result<Trust, Untrusted>, VerifyError> {
    let answer = ask(repo, question)?;
    if answer.is_ok() {
        remember(repo, &question.refs.rendered, question.tip);
    }
    Ok(answer)
}

/// Decides, and remembers nothing.
pub fn ask(repo: &Repo, question: &Question<'_>) -> Result<Result<Trust, Untrusted>, VerifyError> {
    if remembered(repo, &question.refs.rendered).first() == Some(&question.tip) {
        return Ok(Ok(Trust::Known));
    }
    Line::read(repo, question)?.judge()
}

/// Reports whether an allowed key signed a commit.
pub(crate) fn is_signed(
    repo: &Repo,
    commit: CommitId,
    keys: Option<&AllowedSigners>,
) -> Result<bool, GitError> {
    keys.map_or(Ok(false), |keys| Ok(repo.vouch(commit, keys)?.is_ok()))
}

/// The first parents from the tip down to the newest commit trusted before.
struct Line<'q> {
    repo: &'q Repo,
    question: &'q Question<'q>,
    tip: CommitInfo,
    /// The commits that claim to be berth's, newest first.
    claims: Vec<CommitId>,
    /// The newest commit that an allowed key signed, and the number of claims after it.
    signed: Option<(CommitId, usize)>,
    end: End,
}

/// The end of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A commit that this machine made or proved, or that a setting trusts.
    Trusted(CommitId),
    /// The branch's first commit.
    First,
    /// The boundary of a shallow clone.
    Cut,
    /// The limit of the walk, beyond any real history.
    TooLong,
}

impl<'q> Line<'q> {
    fn read(repo: &'q Repo, question: &'q Question<'q>) -> Result<Line<'q>, VerifyError> {
        let trusted: BTreeSet<CommitId> = known(repo, question).collect();
        let mut line = Line::walk(repo, question, &trusted)?;
        if !matches!(line.end, End::Trusted(_)) && !trusted.is_empty() {
            // An older state, whose commit is part of trusted history.
            let here = trusted.iter().filter(|id| repo.has_commit(**id));
            let older =
                here.flat_map(|id| repo.first_parents(*id).take(LONGEST_WALK)).map(|commit| commit.id);
            line = Line::walk(repo, question, &older.collect())?;
        }
        Ok(line)
    }

    fn walk(
        repo: &'q Repo,
        question: &'q Question<'q>,
        trusted: &BTreeSet<CommitId>,
    ) -> Result<Line<'q>, VerifyError> {
        let tip = repo.commit(question.tip)?;
        let (mut claims, mut signed, mut end) = (Vec::new(), None, End::TooLong);
        for commit in repo.first_parents(question.tip).take(LONGEST_WALK) {
            if trusted.contains(&commit.id) {
                end = End::Trusted(commit.id);
                break;
            }
            let trailers = publish::claimed(repo, &commit)?;
            if let Some(trailers) = &trailers {
                let fleet = question.anchors.fleet.as_deref();
                if signed.is_none()
                    // A commit without a fleet's name may predate the names.
                    && trailers.fleet().is_none_or(|named| fleet.is_none_or(|fleet| named == fleet))
                    && is_signed(repo, commit.id, question.anchors.keys.as_ref())?
                {
                    signed = Some((commit.id, claims.len()));
                }
                claims.push(commit.id);
            }
            end = match commit.parents.first() {
                // A shallow clone hides the parents of its oldest commits.
                None if repo.is_shallow() && trailers.is_none_or(|trailers| trailers.seq > 1) => End::Cut,
                None => End::First,
                Some(parent) if !repo.has_commit(*parent) => End::Cut,
                Some(_) => End::TooLong,
            };
        }
        Ok(Line { repo, question, tip, claims, signed, end })
    }

    fn judge(&self) -> Result<Result<Trust, Untrusted>, VerifyError> {
        let Question { clock, anchors, .. } = self.question;
        if self.tip.seconds > clock.as_second().saturating_add(MOST_AHEAD_SECONDS) {
            return Ok(Err(self.untrusted(self.last(), "its date is in the future")));
        }
        let knows = known(self.repo, self.question).next().is_some();
        match (self.end, self.signed) {
            (_, Some((from, unsigned))) if matches!(self.end, End::Trusted(_)) || !knows => {
                self.prove(Some(from), unsigned)
            }
            (End::Trusted(from), _) => self.prove(Some(from), self.claims.len()),
            (End::First | End::TooLong, _) if knows && !self.question.allow_rewritten => {
                let last = known(self.repo, self.question).find(|id| self.repo.has_commit(*id));
                let why =
                    "its first parents do not lead to any commit that this machine made, proved or trusts";
                Ok(Err(self.untrusted(last, why)))
            }
            (_, Some((from, unsigned))) => self.prove(Some(from), unsigned),
            _ if anchors.keys.is_some() => {
                Ok(Err(self.untrusted(None, "no commit of it is signed by an allowed key for this fleet")))
            }
            _ if self.claims.is_empty() => Ok(Err(self.untrusted(None, "berth made none of its commits"))),
            _ => self.first_sight(),
        }
    }

    fn last(&self) -> Option<CommitId> {
        match self.end {
            End::Trusted(id) => Some(id),
            _ => self.signed.map(|(id, _)| id),
        }
    }

    fn untrusted(&self, last: Option<CommitId>, why: &str) -> Untrusted {
        let (name, tip) = (self.question.refs.rendered.clone(), self.question.tip);
        Untrusted { name, tip, why: why.to_owned(), last }
    }

    fn expected(&self, limits: ExpectedLimits) -> Expected {
        let Question { clock, source, anchors, .. } = self.question;
        let sources = source.iter().copied().collect();
        Expected { clock: *clock, limits, fleet: anchors.fleet.clone(), sources }
    }

    /// Proves the newest claims, oldest first, from a trusted commit.
    fn prove(&self, from: Option<CommitId>, newest: usize) -> Result<Result<Trust, Untrusted>, VerifyError> {
        let limits = ExpectedLimits::Given(self.question.limits.clone());
        Ok(match self.prove_newest(from, newest, limits, false)? {
            Err(untrusted) => Err(untrusted),
            Ok((0, _)) => Ok(Trust::Known),
            Ok((proven, _)) => Ok(Trust::Proven(proven)),
        })
    }

    /// Returns the number of proofs, and the commit after which they begin.
    fn prove_newest(
        &self,
        mut from: Option<CommitId>,
        newest: usize,
        limits: ExpectedLimits,
        is_first_sight: bool,
    ) -> Result<Result<(usize, Option<CommitId>), Untrusted>, VerifyError> {
        if newest == 0 {
            return Ok(Ok((0, from)));
        }
        let verifier = Verifier::new(self.repo, self.question.refs, self.expected(limits))?;
        let (mut proven, mut last) = (0, from);
        for claim in self.claims.iter().take(newest).rev() {
            let proof = verifier.prove(*claim)?;
            // A shallow clone also lacks source commits.
            if is_first_sight && self.repo.is_shallow() && matches!(proof.verdict, Verdict::Missing(_)) {
                (proven, from) = (0, Some(*claim));
            } else if let Some(why) = fault(&proof) {
                let why = format!("commit {} claims to be berth's, but {why}", claim.short());
                return Ok(Err(self.untrusted(last, &why)));
            } else {
                proven += 1;
            }
            last = Some(*claim);
        }
        Ok(Ok((proven, from)))
    }

    /// Proves the requested number of commits, as far as they can be computed here.
    fn first_sight(&self) -> Result<Result<Trust, Untrusted>, VerifyError> {
        let mut provable = self.claims.len();
        let first = self.repo.commit(*self.claims.last().unwrap_or(&self.question.tip))?;
        // A shallow clone's oldest commit has no parent here, and an import has no inputs.
        let is_import = matches!(publish::commit::import_of(self.repo, &first)?, Some((_, true)));
        if self.end != End::First || is_import {
            provable -= 1;
        }
        let pinned = self.repo.read_ref(&self.question.refs.root)?;
        if let Some(root) = pinned.filter(|root| self.end == End::First && *root != first.id) {
            let why = format!("it does not begin with the import {root}, which this repository pins");
            return Ok(Err(self.untrusted(None, &why)));
        }
        let newest = provable.min(self.question.anchors.depth);
        let from = self.claims.get(newest).copied();
        let answer = self.prove_newest(from, newest, ExpectedLimits::Any, true)?;
        Ok(answer.map(|(proven, from)| Trust::FirstSight { proven, from }))
    }
}

/// Returns the commits trusted without a proof.
fn known<'q>(repo: &Repo, question: &'q Question<'_>) -> impl Iterator<Item = CommitId> + use<'q> {
    remembered(repo, &question.refs.rendered).into_iter().chain(question.anchors.root)
}

/// Returns the fault of a commit, ignoring differences that only people read.
fn fault(proof: &Proof) -> Option<String> {
    match &proof.verdict {
        Verdict::Proven | Verdict::Root(_) => None,
        Verdict::Missing(what) => Some(what.clone()),
        Verdict::Foreign(_) => Some("its trailers cannot be read".to_owned()),
        Verdict::Differs(differences) => {
            let found = differences.iter().filter(|one| one.is_of_substance()).map(ToString::to_string);
            let found: Vec<String> = found.take(MOST_FAULTS).collect();
            (!found.is_empty()).then(|| found.join("; "))
        }
    }
}
