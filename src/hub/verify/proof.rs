//! The proof of a rendered commit: its inputs must give exactly this commit.
//!
//! Inputs are the source commit and the facts that the commit names and holds, the trailers, and the state of its
//! parent. The identity is taken from the commit, since nothing determines it. Trailers that are inputs have
//! [`bounds`].

use super::bounds::{self, Claims, Expected};
use super::compare::{Difference, compare};
use super::error::VerifyError;
use crate::next_commit::{CommitInputs, NextCommitError, Outside, compute};
use crate::publish::{self, PublishError, Published, Trailers};
use berth_engine::state::layout;
use berth_git::protocol::Refs;
use berth_git::{CommitId, CommitInfo, Identity, Repo, Scratch, TreeId};

/// The result of proving a commit.
#[derive(Clone, Debug)]
pub struct Proof {
    pub commit: CommitId,
    pub subject: String,
    /// The sequence number in the trailers of berth's commits.
    pub seq: Option<u64>,
    pub source: Option<CommitId>,
    pub verdict: Verdict,
    /// Settings that weaken the gate. They may be meant, so that they fail no proof.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its inputs give this commit, to the last byte.
    Proven,
    /// The first commit of its branch, which an import wrote from a live hub: all others are proven from it.
    /// It can only be trusted, and is where it is the one that was pinned.
    Root(String),
    Differs(Vec<Difference>),
    /// Made by somebody else: these of the paths that are berth's alone it changed.
    Foreign(Vec<String>),
    /// Something it was made from is not in this repository.
    Missing(String),
}

impl Verdict {
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Proven => "ok",
            Verdict::Root(_) => "root",
            Verdict::Differs(_) => "differs",
            Verdict::Foreign(_) => "foreign",
            Verdict::Missing(_) => "missing",
        }
    }

    /// Reports whether the commit holds anything that its inputs do not account for.
    pub fn is_failed(&self) -> bool {
        match self {
            Verdict::Differs(_) => true,
            Verdict::Foreign(changed) => !changed.is_empty(),
            Verdict::Proven | Verdict::Root(_) | Verdict::Missing(_) => false,
        }
    }
}

/// Computes commits of one repository again, in a scratch repository.
#[derive(Debug)]
pub struct Verifier<'r> {
    repo: &'r Repo,
    refs: &'r Refs,
    scratch: Scratch,
    /// The one import that is trusted; `None` for none at all.
    root: Option<CommitId>,
    expected: Expected,
}

impl<'r> Verifier<'r> {
    /// `refs` as the daemon had them: the branch's name can stand in a message.
    pub fn new(repo: &'r Repo, refs: &'r Refs, expected: Expected) -> Result<Verifier<'r>, VerifyError> {
        let root = repo.read_ref(&refs.root)?;
        Ok(Verifier { repo, refs, scratch: repo.scratch()?, root, expected })
    }

    /// Trusts this import, whatever the repository's own ref says.
    #[must_use]
    pub fn trusting(mut self, root: CommitId) -> Verifier<'r> {
        self.root = Some(root);
        self
    }

    pub fn prove(&self, commit: CommitId) -> Result<Proof, VerifyError> {
        let info = self.repo.commit(commit)?;
        let trailers = Trailers::read(&info.message);
        let verdict = match &trailers {
            Some(trailers) => self.generated(&info, trailers)?,
            None => self.foreign(&info)?,
        };
        Ok(Proof {
            commit,
            subject: info.subject().to_owned(),
            seq: trailers.as_ref().map(|trailers| trailers.seq),
            notes: trailers
                .iter()
                .filter_map(|trailers| bounds::loose_limits(&self.expected, trailers))
                .collect(),
            source: trailers.and_then(|trailers| trailers.source),
            verdict,
        })
    }

    fn foreign(&self, info: &CommitInfo) -> Result<Verdict, VerifyError> {
        let before = match info.parents.first() {
            Some(parent) if !self.repo.has_commit(*parent) => return Ok(no_commit("parent", *parent)),
            Some(parent) => self.repo.commit(*parent)?.tree,
            None => TreeId::EMPTY,
        };
        let owned: Vec<&str> = layout::OWNED.into_iter().chain([layout::MARKER]).collect();
        Ok(Verdict::Foreign(self.repo.changed_paths(before, info.tree, &owned)?))
    }

    fn generated(&self, info: &CommitInfo, trailers: &Trailers) -> Result<Verdict, VerifyError> {
        match publish::import::import_of(self.repo, info) {
            Ok(Some((from, true))) => {
                return Ok(match self.root {
                    Some(root) if root == info.id => Verdict::Root(from),
                    Some(root) => Verdict::Differs(vec![Difference::OtherRoot(root)]),
                    None => Verdict::Differs(vec![Difference::UnpinnedRoot(info.id)]),
                });
            }
            Ok(Some((_, false))) => return Ok(Verdict::Differs(vec![Difference::NoRoot])),
            Ok(None) => {}
            Err(PublishError::Git(error)) => return Err(error.into()),
            Err(refusal) => return Ok(refused(&refusal)),
        }
        let Some(source) = trailers.source else { return Ok(Verdict::Differs(vec![Difference::NoSource])) };
        if let Some(root) = self.root.filter(|_| info.parents.is_empty() && trailers.seq == 1) {
            return Ok(Verdict::Differs(vec![Difference::OtherRoot(root)]));
        }
        if !self.repo.has_commit(source) {
            return Ok(no_commit("source", source));
        }
        let current = match info.parents.first() {
            Some(parent) if !self.repo.has_commit(*parent) => return Ok(no_commit("parent", *parent)),
            Some(parent) => match publish::read_current_at(self.repo, &self.refs.rendered, *parent) {
                Err(PublishError::Git(error)) => return Err(error.into()),
                Err(refusal) => return Ok(refused(&refusal)),
                Ok(current) => Some(current),
            },
            None => None,
        };
        let committed = match publish::read_state(self.repo, info.id) {
            Err(PublishError::Git(error)) => return Err(error.into()),
            Err(refusal) => return Ok(refused(&refusal)),
            Ok(read) => read.state,
        };
        let facts = committed.facts;
        let claims = Claims { info, trailers, facts: &facts };
        let bounds = bounds::check(self.repo, &self.expected, claims, current.as_ref())?;
        let claims = bounds.findings.into_iter().map(Difference::Claim);
        let given = CommitInputs {
            source,
            current: current.as_ref(),
            identity: &Identity {
                name: info.author.clone(),
                email: info.email.clone(),
                signer: None,
                fleet: trailers.fleet().map(str::to_owned),
            },
            signs_anew: self.repo.claimed_key(info.id)?.is_some()
                && publish::is_unsigned(self.repo, current.as_ref())?,
            outside: Outside::Recorded { facts, trailers: trailers.clone() },
        };
        let next = match compute(self.scratch.repo(), given) {
            Err(NextCommitError::Publish(PublishError::Git(error))) => return Err(error.into()),
            Err(NextCommitError::Publish(refusal)) => return Ok(refused(&refusal)),
            Err(error) => match error.lacks_rules_of() {
                Some(commit) => return Ok(no_commit("rules'", commit)),
                None => return Err(error.into()),
            },
            Ok(done) => done,
        };
        let Published::Committed(computed) = next.drafted else {
            let before = current.as_ref().map_or(TreeId::EMPTY, |current| current.tree);
            let paths = self.repo.changed_paths(before, info.tree, &[])?.into_iter().map(Difference::Path);
            return Ok(Verdict::Differs(claims.chain([Difference::Nothing]).chain(paths).collect()));
        };
        let claims: Vec<Difference> = claims.collect();
        // Inputs do not determine the signature.
        if computed.commit == self.repo.unsigned_id(info.id)? {
            return Ok(match (claims.is_empty(), bounds.missing) {
                (false, _) => Verdict::Differs(claims),
                (true, Some((what, commit))) => no_commit(what, commit),
                (true, None) => Verdict::Proven,
            });
        }
        if let Some(lost) = current
            .as_ref()
            .and_then(|current| current.trailers.source)
            .filter(|lost| !self.repo.has_commit(*lost))
            && next.inputs.lacks_history()
        {
            return Ok(no_commit("parent's source", lost));
        }
        let scratch = self.scratch.repo();
        let differences = compare(scratch, info, &scratch.commit(computed.commit)?)?;
        Ok(Verdict::Differs(claims.into_iter().chain(differences).collect()))
    }
}

fn no_commit(what: &str, commit: CommitId) -> Verdict {
    Verdict::Missing(format!("its {what} commit {commit} is not in this repository"))
}

fn refused(why: &PublishError) -> Verdict {
    Verdict::Differs(vec![Difference::Refused(why.to_string())])
}
