//! `berth suspend` and `berth resume`: stop a member's changes for a while, and resume them.

use std::path::PathBuf;
use std::time::Duration;

use super::sync::target::{Place, place};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::model::Timestamp;
use berth_base::model::status::Suspension;
use berth_member::live::Access;
use berth_member::sync::backends::folder::suspend as suspend_folder;
use berth_member::sync::backends::kube::suspend as suspend_cluster;

/// Ask a member's syncer to change nothing for a while; what differs is still reported
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth suspend --target kube --context oslo --reason \"disk is full\" --until 2026-02-01T08:00:00Z\n  berth suspend --target dir:/var/lib/berth/oslo --reason \"looking into it\""
)]
pub(crate) struct SuspendArgs {
    #[command(flatten)]
    member: MemberTargetArgs,
    /// Reason, shown to everybody who asks
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// End of the suspension, in RFC 3339; without it, only `berth resume` ends it
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
}

/// End a suspension
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth resume --target kube --context oslo")]
pub(crate) struct ResumeMemberArgs {
    #[command(flatten)]
    member: MemberTargetArgs,
}

/// The member
#[derive(Debug, clap::Args)]
pub(crate) struct MemberTargetArgs {
    /// Target of the member: `kube` for a Kubernetes cluster, or `dir:PATH` for a folder
    #[arg(long, value_name = "TARGET", env = "BERTH_TARGET", default_value = "kube", value_parser = place)]
    target: Place,
    /// Kubeconfig of the cluster; default: the usual places, or a pod's own credentials
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of berth's record of the objects it owns
    #[arg(long, value_name = "NAMESPACE", default_value = "berth-system", env = "BERTH_NAMESPACE")]
    namespace: String,
    /// The fleet's name
    #[arg(long, value_name = "NAME", default_value = "fleet", env = "BERTH_FLEET")]
    fleet: String,
}

impl MemberTargetArgs {
    fn set(&self, suspension: Option<&Suspension>) -> Result<bool, CommandError> {
        let done = match &self.target {
            Place::Folder(path) => suspend_folder(path, suspension),
            Place::Kube => {
                let access = Access {
                    kubeconfig: self.kubeconfig.clone(),
                    context: self.context.clone(),
                    patience: Duration::from_secs(30),
                    pod: None,
                };
                suspend_cluster(&access, &self.fleet, &self.namespace, suspension)
            }
        };
        done.map_err(|error| CommandError::new(Exit::Unreachable, error.to_string()))
    }
}

pub(crate) fn cmd_suspend(args: &SuspendArgs, ui: &Ui) -> Outcome {
    if args.reason.trim().is_empty() {
        return Err(CommandError::usage("a suspension requires a reason").hint("give one: `--reason TEXT`"));
    }
    if args.until.is_some_and(|until| until <= ui.now()) {
        return Err(CommandError::usage("`--until` is in the past"));
    }
    let suspension = Suspension { reason: args.reason.clone(), until: args.until };
    args.member.set(Some(&suspension))?;
    ui.out(&format!("{} is {suspension}", args.member.target));
    Ok(Exit::Done)
}

pub(crate) fn cmd_resume(args: &ResumeMemberArgs, ui: &Ui) -> Outcome {
    let was = args.member.set(None)?;
    ui.out(&format!("{} {}", args.member.target, if was { "is resumed" } else { "was not suspended" }));
    Ok(Exit::Done)
}
