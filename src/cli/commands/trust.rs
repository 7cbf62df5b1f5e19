//! The flags that say whom to believe about the rendered branch.

use std::path::{Path, PathBuf};

use crate::process::exit::CommandError;
use berth_base::diag::Diagnostic;
use berth_base::model::Timestamp;
use berth_engine::gate::Limits;
use berth_git::protocol::Refs;
use berth_git::signature::{AllowedSigners, Signer};
use berth_git::{CommitId, Repo};
use berth_hub::daemon::PassError;
use berth_hub::inputs::current_state;
use berth_hub::verify::trust::{self, Anchors, DEPTH, Question, Trust};
use berth_member::sync::commit_trust;

/// The flags for trust in the rendered branch.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustArgs {
    /// Trust commits that one of these keys signed: a file in the format of `ssh-keygen -Y verify`. The key of --signing-key is trusted without it
    #[arg(long, value_name = "FILE", env = "BERTH_ALLOWED_SIGNERS")]
    allowed_signers: Option<PathBuf>,
    /// Name of the fleet in signed commits; default: the name on the branch
    #[arg(long, value_name = "NAME", env = "BERTH_FLEET")]
    fleet: Option<String>,
    /// Trust this commit of the rendered branch without proof: its full id
    #[arg(long, value_name = "COMMIT", value_parser = id)]
    root: Option<CommitId>,
    /// Prove so many commits of a rendered branch that this machine knows nothing of and no key signed; without it,
    /// 3 for `run`, and 1 for `plan`, which each takes as long as the plan itself
    #[arg(long, value_name = "NUMBER", env = "BERTH_TRUST_DEPTH")]
    trust_depth: Option<usize>,
}

/// Commits that a plan proves of a branch that this machine knows nothing of.
const PLAN_DEPTH: usize = 1;

impl TrustArgs {
    pub fn fleet(&self) -> Option<String> {
        self.fleet.clone()
    }

    pub fn signers_file(&self) -> Option<&Path> {
        self.allowed_signers.as_deref()
    }

    /// With the daemon's own key among those that are allowed.
    pub fn anchors(&self, signer: Option<&Signer>) -> Result<Anchors, CommandError> {
        let own = signer.map(|signer| AllowedSigners::of(signer.public()));
        let others = match &self.allowed_signers {
            Some(file) => Some(commit_trust::read_allowed_signers(file).map_err(CommandError::usage)?),
            None => None,
        };
        let keys = match (own, others) {
            (Some(own), Some(others)) => Some(own.and(others)),
            (own, others) => own.or(others),
        };
        let depth = self.trust_depth.unwrap_or(DEPTH);
        Ok(Anchors { keys, fleet: self.fleet.clone(), root: self.root, depth })
    }
}

/// A rendered tip to judge without remembering anything of it.
#[derive(Debug)]
pub(crate) struct Tip<'a> {
    pub refs: &'a Refs,
    pub commit: CommitId,
    /// The tip of the source branch, where it is known.
    pub source: Option<CommitId>,
    pub limits: &'a Limits,
}

impl TrustArgs {
    /// Judges a rendered tip as `run` would here. Gives its refusal, or the note on a tip that nothing could be
    /// proven of.
    pub fn judge(
        &self,
        repo: &Repo,
        tip: &Tip<'_>,
    ) -> Result<Result<Option<Diagnostic>, CommandError>, CommandError> {
        let depth = self.trust_depth.unwrap_or(PLAN_DEPTH);
        let anchors = Anchors { depth, ..self.anchors(None)? };
        let Tip { refs, commit, source, limits } = *tip;
        let (clock, allow_rewritten) = (Timestamp::now(), false);
        let question =
            Question { tip: commit, refs, anchors: &anchors, clock, source, limits, allow_rewritten };
        Ok(match trust::ask(repo, &question)? {
            Err(untrusted) => Err(PassError::from(untrusted).into()),
            Ok(Trust::FirstSight { proven: 0, from: Some(_) }) => Ok(Some(unproven(repo, tip, depth))),
            Ok(_) => Ok(None),
        })
    }
}

fn unproven(repo: &Repo, tip: &Tip<'_>, depth: usize) -> Diagnostic {
    let name = current_state::short(&tip.refs.rendered);
    let why = match repo.is_shallow() {
        true => "this clone lacks the history for a proof",
        false if depth == 0 => "`--trust-depth` is 0",
        false => "it is an import",
    };
    Diagnostic::note(format!(
        "the current state `{name}` is not proven here, because {why}; the plan \
                              trusts it"
    ))
}

fn id(text: &str) -> Result<CommitId, String> {
    text.parse().map_err(|()| "give all 40 digits of a commit's id: a name can be moved".to_owned())
}
