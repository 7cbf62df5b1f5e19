//! The flags of a pass, which `run` makes and `plan` simulates: the gate's limits, and the trust in the rendered
//! branch.

use std::path::{Path, PathBuf};

use crate::process::exit::CommandError;
use berth_base::diag::Diagnostic;
use berth_base::model::{LabelKeys, Timestamp};
use berth_engine::gate::limits::Limit;
use berth_engine::gate::{Limits, Percent, Span};
use berth_git::shared_refs::Refs;
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

/// The number of commits that a plan proves of an unknown branch.
const PLAN_DEPTH: usize = 1;

impl TrustArgs {
    pub fn fleet(&self) -> Option<String> {
        self.fleet.clone()
    }

    pub fn signers_file(&self) -> Option<&Path> {
        self.allowed_signers.as_deref()
    }

    /// Returns the anchors of trust, including the daemon's own key.
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

/// A rendered tip to judge, without remembering the result.
#[derive(Debug)]
pub(crate) struct Tip<'a> {
    pub refs: &'a Refs,
    pub commit: CommitId,
    /// The tip of the source branch, if it is known.
    pub source: Option<CommitId>,
    pub limits: &'a Limits,
}

impl TrustArgs {
    /// Judges a rendered tip as `run` would. Returns its refusal, or a note about a tip of which nothing could be
    /// proven.
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

/// The flags of the gate's limits.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Removals")]
pub(crate) struct GateArgs {
    /// Hold a workload that would lose more than this share of its clusters, or all; the first two are free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_CLUSTERS")]
    max_removed_clusters: Percent,
    /// Hold removals of more than this share of one cluster's objects; the first ten are free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_OBJECTS")]
    max_removed_objects: Percent,
    /// Hold all removals caused by statuses or time that reach more than this share of the clusters; the first two are free
    #[arg(long, value_name = "SHARE", default_value = "30%", env = "BERTH_MAX_EVICTED_CLUSTERS")]
    max_evicted_clusters: Percent,
    /// Treat namespaces, CRDs and volume claims like any other object
    #[arg(long, env = "BERTH_ALLOW_RISKY_REMOVALS")]
    allow_risky_removals: bool,
    /// Add up all removals within this time, over all causes, commits and passes
    #[arg(long, value_name = "TIME", default_value = "24h", env = "BERTH_REMOVAL_WINDOW")]
    removal_window: Span,
    /// Allow a state equal to one of this many earlier states, or to any within --rollback-window
    #[arg(long, value_name = "COUNT", default_value_t = 10, env = "BERTH_ROLLBACK_DEPTH")]
    rollback_depth: usize,
    /// Allow a state equal to one that was replaced within this time
    #[arg(long, value_name = "TIME", default_value = "24h", env = "BERTH_ROLLBACK_WINDOW")]
    rollback_window: Span,
    /// Let members report these labels where no file sets the key: KEY or PREFIX*, separated by commas
    #[arg(long, value_name = "KEYS", default_value = "none", env = "BERTH_MEMBER_LABELS")]
    member_labels: LabelKeys,
    /// Accept approvals only as files under approvals/, which access rules protect, and not in commit messages
    #[arg(long, env = "BERTH_NO_APPROVAL_TRAILERS")]
    no_approval_trailers: bool,
}

impl GateArgs {
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            clusters: Limit { share: self.max_removed_clusters, ..usual.clusters },
            objects: Limit { share: self.max_removed_objects, ..usual.objects },
            evictions: Limit { share: self.max_evicted_clusters, ..usual.evictions },
            allow_risky: self.allow_risky_removals,
            rollback: self.rollback_depth,
            window: self.removal_window,
            rollback_window: self.rollback_window,
            trailers: !self.no_approval_trailers,
            labels: self.member_labels.clone(),
            failover: true,
        }
    }
}
