//! `berth rollout pause` and `berth rollout resume`: stop and resume assigning releases of a workload to clusters.

use serde_json::json;

use super::order::{Order, OrderArgs, Steered};
use super::runs::{newest_run, set_state};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};
use berth_base::edit::keys;
use berth_base::model::rollout::Strategy;
use berth_base::model::rollout_policy::RolloutPolicy;
use berth_base::model::staged::RunState;
use berth_engine::release::policy::Orders;

/// Pause the rollout of a workload
///
/// Clusters keep what they have until the rollout is resumed. Writes `paused` into the RolloutPolicy that is for
/// this workload alone, or makes one. A staged update run gets the state `Stop`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth rollout pause shop/web --reason \"waiting for legal\"\n  berth rollout pause web --reason \"errors in eu-1\" --commit"
)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    order: OrderArgs,
    /// Reason, shown to everybody who asks
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Go on with a rollout that was paused
///
/// Takes `paused` out of the RolloutPolicy that is for this workload alone. A policy that then says nothing is
/// removed. A staged update run gets the state `Run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth rollout resume shop/web --commit")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    order: OrderArgs,
}

pub(crate) fn cmd_pause(args: &PauseArgs, ui: &Ui) -> Outcome {
    let reason = args.reason.trim();
    if reason.is_empty() {
        return Err(CommandError::usage("a pause requires a reason").hint("give one: `--reason TEXT`"));
    }
    let steered = Steered::read(&args.order, ui)?;
    let is_paused = |policy: &RolloutPolicy| policy.paused.as_deref() == Some(reason);
    let running = newest_run(&steered).filter(|_| rolls_out_by_runs(&steered));
    let edits = match (running, steered.own_policy()) {
        (Some(run), _) if run.state != RunState::Run => Vec::new(),
        (Some(run), _) => vec![set_state(&steered, run, RunState::Stop)?],
        (None, Some((policy, _))) if is_paused(policy) => Vec::new(),
        _ => vec![steered.set(&args.order, &keys(["spec", "paused", "reason"]), &json!(reason))?],
    };
    let effect = if edits.is_empty() { "is paused already" } else { "paused" };
    let subject = format!("Pause the rollout of {}", steered.key);
    let order =
        Order { edits, effect: effect.to_owned(), subject, body: reason.to_owned(), ..Order::default() };
    order.carry_out(&steered, &args.order, ui)
}

pub(crate) fn cmd_resume(args: &ResumeArgs, ui: &Ui) -> Outcome {
    let steered = Steered::read(&args.order, ui)?;
    let fleet = &steered.tree.loaded.fleet;
    let own = steered.own_policy().map(|(policy, _)| policy);
    let is_own = |policy: &RolloutPolicy| own.is_some_and(|own| own.key == policy.key);
    let others: Vec<String> = fleet
        .policies_of(&steered.key)
        .into_iter()
        .filter(|policy| policy.paused.is_some() && !is_own(policy))
        .map(|policy| format!("the policy `{}` ({})", policy.key.full_name(), policy.origin))
        .collect();
    let stopped = newest_run(&steered).filter(|_| rolls_out_by_runs(&steered));
    let stopped = stopped.filter(|run| run.state == RunState::Stop);
    let is_paused = stopped.is_some() || own.is_some_and(|policy| policy.paused.is_some());
    if !is_paused && !others.is_empty() {
        let message = format!("{} is paused by {}", steered.key, others.join(" and "));
        let hint = "remove `paused` there; this may also resume other workloads";
        return Err(CommandError::usage(message).hint(hint));
    }
    let is_paused_here = own.is_some_and(|policy| policy.paused.is_some());
    // One file may contain both, so only one edit is made at a time.
    let edits = match stopped {
        _ if is_paused_here => steered.remove("paused")?,
        Some(run) => vec![set_state(&steered, run, RunState::Run)?],
        None => Vec::new(),
    };
    let still = stopped.filter(|_| is_paused_here);
    let still = still.map(|run| format!("{} stays stopped: run the command again", run.key));
    let effect = if is_paused { "resumed" } else { "was not paused" };
    let paused_by = others.iter().map(|other| format!("{} stays paused by {other}", steered.key));
    let notes = paused_by.chain(still).collect();
    let subject = format!("Resume the rollout of {}", steered.key);
    let order = Order { edits, effect: effect.to_owned(), subject, notes, ..Order::default() };
    order.carry_out(&steered, &args.order, ui)
}

fn rolls_out_by_runs(steered: &Steered) -> bool {
    *Orders::of(&steered.tree.loaded.fleet, &steered.key).strategy() == Strategy::Runs
}
