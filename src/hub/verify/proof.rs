//! The proof of a rendered commit: its inputs must give exactly this commit.
//!
//! The inputs are the source commit and the facts that the commit names and contains, its trailers, and its parent's
//! state. The identity is taken from the commit, since nothing determines it. Trailers that are inputs have
//! [`bounds`].
//!
//! The commits to prove are selected from a commit, branch or range: oldest first, along first parents.

use super::VerifyError;
use super::bounds::{self, Claims, Expected};
use super::compare::{Difference, compare};
use crate::next_commit::{CommitInputs, NextCommit, NextCommitError, Outside, compute};
use crate::publish::{self, CurrentState, PublishError, Published, Trailers};
use berth_base::model::{ClusterStatus, Map, Shared};
use berth_engine::state::layout;
use berth_git::shared_refs::Refs;
use berth_git::shared_refs::trailers::RENDERER;
use berth_git::{CommitId, CommitInfo, GitError, Identity, Repo, Scratch, TreeId};
use berth_sources::Renderer;

/// The result of proving a commit.
#[derive(Clone, Debug)]
pub struct Proof {
    pub commit: CommitId,
    pub subject: String,
    /// The sequence in the trailers, if the commit is berth's.
    pub seq: Option<u64>,
    pub source: Option<CommitId>,
    pub verdict: Verdict,
    /// Settings that weaken the gate. They may be intended, so they do not fail the proof.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The inputs give this commit, to the last byte.
    Proven,
    /// The branch's first commit, imported from a live hub. All others are proven from it. It can only be trusted, if
    /// it is pinned.
    Root(String),
    Differs(Vec<Difference>),
    /// A foreign commit, with the paths of berth's that it changed.
    Foreign(Vec<String>),
    /// An input is missing in this repository.
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

    /// Reports whether the commit contains anything that its inputs do not explain.
    pub fn is_failed(&self) -> bool {
        match self {
            Verdict::Differs(_) => true,
            Verdict::Foreign(changed) => !changed.is_empty(),
            Verdict::Proven | Verdict::Root(_) | Verdict::Missing(_) => false,
        }
    }
}

/// Computes one repository's commits again, in a scratch repository.
#[derive(Debug)]
pub struct Verifier<'r> {
    repo: &'r Repo,
    refs: &'r Refs,
    scratch: Scratch,
    /// The only trusted import; `None` trusts no import.
    root: Option<CommitId>,
    expected: Expected,
}

impl<'r> Verifier<'r> {
    /// `refs` must be those of the daemon, because a message may contain the branch's name.
    pub fn new(repo: &'r Repo, refs: &'r Refs, expected: Expected) -> Result<Verifier<'r>, VerifyError> {
        let root = repo.read_ref(&refs.root)?;
        Ok(Verifier { repo, refs, scratch: repo.scratch()?, root, expected })
    }

    /// Trusts this import instead of the one pinned in the repository.
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
        match self.compare_generated(info, trailers) {
            Ok(verdict) | Err(Early::Verdict(verdict)) => Ok(verdict),
            Err(Early::Failed(error)) => Err(error),
        }
    }

    fn compare_generated(&self, info: &CommitInfo, trailers: &Trailers) -> Result<Verdict, Early> {
        self.pass_over_import(info)?;
        let source = self.source(info, trailers)?;
        let current = self.current(info)?;
        let facts = publish::read_state(self.repo, info.id)?.state.facts;
        let claims = Claims { info, trailers, facts: &facts };
        let bounds = bounds::check(self.repo, &self.expected, claims, current.as_ref())?;
        let next = self.compute(info, trailers, source, current.as_ref(), facts)?;
        let mut differences: Vec<Difference> = bounds.findings.into_iter().map(Difference::Claim).collect();
        let Published::Committed(computed) = &next.drafted else {
            let before = current.as_ref().map_or(TreeId::EMPTY, |current| current.tree);
            let paths = self.repo.changed_paths(before, info.tree, &[])?.into_iter().map(Difference::Path);
            differences.push(Difference::Nothing);
            return Ok(Verdict::Differs(differences.into_iter().chain(paths).collect()));
        };
        // The signature is not determined by the inputs.
        if computed.commit == self.repo.unsigned_id(info.id)? {
            return Ok(match (differences.is_empty(), bounds.missing) {
                (false, _) => Verdict::Differs(differences),
                (true, Some((what, commit))) => no_commit(what, commit),
                (true, None) => Verdict::Proven,
            });
        }
        let last_source = current.as_ref().and_then(|current| current.trailers.source);
        let lost = last_source.filter(|last| !self.repo.has_commit(*last));
        if let Some(lost) = lost.filter(|_| next.inputs.lacks_history()) {
            return Ok(no_commit("parent's source", lost));
        }
        differences.extend(other_renderer(trailers).map(Difference::Renderer));
        let scratch = self.scratch.repo();
        differences.extend(compare(scratch, info, &scratch.commit(computed.commit)?)?);
        Ok(Verdict::Differs(differences))
    }

    /// Ends the proof of an imported commit.
    fn pass_over_import(&self, info: &CommitInfo) -> Result<(), Early> {
        let Some((from, is_root)) = publish::commit::import_of(self.repo, info)? else { return Ok(()) };
        Err(Early::Verdict(match self.root {
            _ if !is_root => Verdict::Differs(vec![Difference::NoRoot]),
            Some(root) if root == info.id => Verdict::Root(from),
            Some(root) => Verdict::Differs(vec![Difference::OtherRoot(root)]),
            None => Verdict::Differs(vec![Difference::UnpinnedRoot(info.id)]),
        }))
    }

    fn source(&self, info: &CommitInfo, trailers: &Trailers) -> Result<CommitId, Early> {
        let differs = |difference| Early::Verdict(Verdict::Differs(vec![difference]));
        let source = trailers.source.ok_or_else(|| differs(Difference::NoSource))?;
        if let Some(root) = self.root.filter(|_| info.parents.is_empty() && trailers.seq == 1) {
            return Err(differs(Difference::OtherRoot(root)));
        }
        match self.repo.has_commit(source) {
            true => Ok(source),
            false => Err(Early::Verdict(no_commit("source", source))),
        }
    }

    /// Returns the state of the parent.
    fn current(&self, info: &CommitInfo) -> Result<Option<CurrentState>, Early> {
        let Some(parent) = info.parents.first() else { return Ok(None) };
        if !self.repo.has_commit(*parent) {
            return Err(Early::Verdict(no_commit("parent", *parent)));
        }
        Ok(Some(publish::read_current_at(self.repo, &self.refs.rendered, *parent)?))
    }

    /// Computes the commit again.
    fn compute(
        &self,
        info: &CommitInfo,
        trailers: &Trailers,
        source: CommitId,
        current: Option<&CurrentState>,
        facts: Map<String, Shared<ClusterStatus>>,
    ) -> Result<NextCommit, Early> {
        let identity = Identity {
            name: info.author.clone(),
            email: info.email.clone(),
            signer: None,
            fleet: trailers.fleet().map(str::to_owned),
        };
        let signs_anew =
            self.repo.claimed_key(info.id)?.is_some() && publish::is_unsigned(self.repo, current)?;
        let outside = Outside::Recorded { facts, trailers: trailers.clone() };
        let inputs = CommitInputs { source, current, identity: &identity, signs_anew, outside };
        compute(self.scratch.repo(), inputs).map_err(Early::of_computation)
    }
}

/// The early end of a proof.
enum Early {
    Verdict(Verdict),
    Failed(VerifyError),
}

impl Early {
    fn of_computation(error: NextCommitError) -> Early {
        if let Some(missing) = error.lacks_renderer() {
            return Early::Verdict(Verdict::Missing(missing));
        }
        match (error.lacks_rules_of(), error) {
            (Some(commit), _) => Early::Verdict(no_commit("rules'", commit)),
            (None, NextCommitError::Publish(error)) => error.into(),
            (None, error) => Early::Failed(error.into()),
        }
    }
}

impl From<GitError> for Early {
    fn from(error: GitError) -> Early {
        Early::Failed(error.into())
    }
}

impl From<VerifyError> for Early {
    fn from(error: VerifyError) -> Early {
        Early::Failed(error)
    }
}

/// A state that berth refuses counts as a difference.
impl From<PublishError> for Early {
    fn from(error: PublishError) -> Early {
        match error {
            PublishError::Git(error) => error.into(),
            refusal => Early::Verdict(refused(&refusal)),
        }
    }
}

/// Returns the identity of the renderer that a commit names, if this machine has another one.
fn other_renderer(trailers: &Trailers) -> Option<String> {
    let named = trailers.others.iter().find(|(name, _)| name == RENDERER).map(|(_, value)| value);
    named.filter(|named| Renderer::shared().identity().is_ok_and(|own| own != **named)).cloned()
}

fn no_commit(what: &str, commit: CommitId) -> Verdict {
    Verdict::Missing(format!("its {what} commit {commit} is not in this repository"))
}

fn refused(why: &PublishError) -> Verdict {
    Verdict::Differs(vec![Difference::Refused(why.to_string())])
}

/// Selects all commits of a branch or of `A..B`, and a single one for any other revision. Either end of a range may
/// be omitted: it begins with the branch, and ends with `rendered`.
pub fn select(repo: &Repo, wanted: &str, rendered: &str) -> Result<Vec<CommitId>, VerifyError> {
    let Some((base, tip)) = wanted.split_once("..") else {
        let tip = repo.require(wanted)?;
        return if is_branch(repo, wanted) { line(repo, None, tip) } else { Ok(vec![tip]) };
    };
    let tip = if tip.is_empty() { rendered } else { tip };
    let end = repo.require(tip)?;
    if base.is_empty() {
        return line(repo, None, end);
    }
    let start = repo.require(base)?;
    let commits = line(repo, Some(start), end)?;
    let joins = match commits.first() {
        Some(first) => repo.commit(*first)?.parents.first() == Some(&start),
        None => true,
    };
    if joins { Ok(commits) } else { Err(VerifyError::NotBefore { base: base.into(), tip: tip.into() }) }
}

fn is_branch(repo: &Repo, name: &str) -> bool {
    let full = ["", "refs/", "refs/heads/", "refs/remotes/"].map(|folder| format!("{folder}{name}"));
    full.iter().any(|full| full.starts_with("refs/") && repo.read_ref(full).is_ok_and(|id| id.is_some()))
}

/// Returns the first parents from `tip` back to `after`, without `after`.
fn line(repo: &Repo, after: Option<CommitId>, tip: CommitId) -> Result<Vec<CommitId>, VerifyError> {
    let mut commits = Vec::new();
    let mut next = Some(tip);
    while let Some(commit) = next.filter(|commit| Some(*commit) != after) {
        // The boundary of a shallow clone.
        if commit != tip && !repo.has_commit(commit) {
            break;
        }
        commits.push(commit);
        next = repo.commit(commit)?.parents.first().copied();
    }
    commits.reverse();
    Ok(commits)
}
