//! The flags that say whom to believe about the rendered branch.

use std::path::PathBuf;

use super::exit::CommandError;
use crate::daemon::PassError;
use crate::gate::Limits;
use crate::git::{CommitId, Repo};
use crate::model::Timestamp;
use crate::publish::Refs;
use crate::signature::{AllowedSigners, Signer};
use crate::sync::vouch;
use crate::verify::trust::{self, Anchors, DEPTH, Question};

/// Whom to believe about the rendered branch.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Trust")]
pub struct TrustArgs {
    /// Go on from commits that one of these keys signed: a file in the format of `ssh-keygen -Y verify`. The own signing key counts without it
    #[arg(long, value_name = "FILE", env = "BERTH_ALLOWED_SIGNERS")]
    allowed_signers: Option<PathBuf>,
    /// The fleet's name, which signed commits carry; without it, the name that the branch has
    #[arg(long, value_name = "NAME", env = "BERTH_FLEET")]
    fleet: Option<String>,
    /// Trust this commit of the rendered branch, whatever is known of it: its id in full
    #[arg(long, value_name = "COMMIT", value_parser = id)]
    root: Option<CommitId>,
    /// Prove so many commits of a rendered branch that this machine knows nothing of and no key signed
    #[arg(long, value_name = "NUMBER", default_value_t = DEPTH, env = "BERTH_TRUST_DEPTH")]
    trust_depth: usize,
}

impl TrustArgs {
    pub fn fleet(&self) -> Option<String> {
        self.fleet.clone()
    }

    /// With the daemon's own key among those that are allowed.
    pub fn anchors(&self, signer: Option<&Signer>) -> Result<Anchors, CommandError> {
        let own = signer.map(|signer| AllowedSigners::of(signer.public()));
        let others = match &self.allowed_signers {
            Some(file) => Some(vouch::read(file).map_err(CommandError::usage)?),
            None => None,
        };
        let keys = match (own, others) {
            (Some(own), Some(others)) => Some(own.and(others)),
            (own, others) => own.or(others),
        };
        Ok(Anchors { keys, fleet: self.fleet.clone(), root: self.root, depth: self.trust_depth })
    }
}

/// The refusal that `run` would give for a rendered tip here. A machine that knows nothing of the branch believes it.
pub fn refusal(
    repo: &Repo,
    refs: &Refs,
    tip: CommitId,
    limits: &Limits,
) -> Result<Option<CommandError>, CommandError> {
    let anchors = Anchors { depth: 0, ..Anchors::default() };
    let (clock, source, allow_rewritten) = (Timestamp::now(), None, false);
    let question = Question { tip, refs, anchors: &anchors, clock, source, limits, allow_rewritten };
    Ok(trust::ask(repo, &question)?.err().map(|untrusted| PassError::from(untrusted).into()))
}

fn id(text: &str) -> Result<CommitId, String> {
    text.parse().map_err(|()| "give all 40 digits of a commit's id; names can be moved".to_owned())
}
