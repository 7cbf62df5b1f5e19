//! `berth rollout approve`: approves a gate at which a staged rollout waits for a person.

use serde_json::json;

use super::order::{Order, OrderArgs, Steered};
use super::records::{append, recorded, released};
use super::runs::{self, approval, newest_run};
use crate::flags::fleet::moment;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};
use berth_base::model::Timestamp;
use berth_base::model::rollout::{Stage, Strategy};
use berth_base::model::staged::{Run, RunProgress, Side, StageGate};
use berth_engine::release::policy::Orders;

/// Approve a stage of a workload's rollout
///
/// For a staged update run, commits the approval request with its condition `Approved`. For stages of a
/// RolloutPolicy, adds an entry under `approved`, for one release.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth rollout approve web --stage canary --task after --commit\n  berth rollout approve shop/web --stage eu --release 12 --reason \"looks good\""
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    order: OrderArgs,
    /// Name of the stage; default: the one that waits for an approval
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// The side of the stage that is approved
    #[arg(long, value_name = "SIDE", value_parser = side)]
    task: Option<Side>,
    /// Number of the release; default: the one that is rolled out
    #[arg(long, value_name = "NUMBER")]
    release: Option<u64>,
    /// Reason, for people
    #[arg(long, value_name = "TEXT", default_value = "approved")]
    reason: String,
    /// Date the approval at this moment (RFC 3339), in place of now
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<Timestamp>,
}

fn side(word: &str) -> Result<Side, String> {
    match word {
        "before" => Ok(Side::Before),
        "after" => Ok(Side::After),
        _ => Err("write `before` or `after`".to_owned()),
    }
}

pub(crate) fn cmd_approve(args: &ApproveArgs, ui: &Ui) -> Outcome {
    let steered = Steered::read(&args.order, ui)?;
    let fleet = &steered.tree.loaded.fleet;
    let strategy = Orders::of(fleet, &steered.key).strategy();
    let run = newest_run(&steered).filter(|_| *strategy == Strategy::Runs);
    let stages: Vec<Stage> = match (&*strategy, run) {
        (Strategy::Stages(stages), _) => stages.clone(),
        (_, Some(run)) => {
            fleet.stage_strategies.get(&run.strategy).map(|found| found.stages.clone()).unwrap_or_default()
        }
        _ => {
            let why = match *strategy {
                Strategy::Runs => "has no staged update run",
                _ => "does not roll out by stages",
            };
            let error = CommandError::usage(format!("{} {why}", steered.key));
            return Err(error.hint("nothing waits for an approval"));
        }
    };
    let progress = progress(&steered, args, &stages, run)?;
    let gates = match &progress {
        Some(progress) => progress.gates(),
        None => stages.iter().flat_map(|stage| stage.gates()).collect(),
    };
    let gate = match (choose(&gates, args), args.stage.is_none() && args.task.is_none()) {
        // If several gates match, choose the one at which the rollout waits.
        (Err(error), true) => progress.and_then(|progress| progress.waits_at()).ok_or(error)?,
        (chosen, _) => chosen?,
    };
    let mut order = Order {
        effect: format!("approved {} the stage `{}`", gate.side.word(), gate.stage),
        subject: format!("Approve {} {} of {}", gate.side.word(), gate.stage, steered.key),
        body: args.reason.clone(),
        ..Order::default()
    };
    let edit = match run {
        Some(run) => {
            order.effect = format!("{} of {}", order.effect, run.key);
            let given = approval(run, &gate, &args.reason, args.now);
            runs::approve(&steered, &args.order, &given)?
        }
        None => {
            let meant = released(&steered, &args.order, args.release)?;
            let release = meant.release;
            order.effect = format!("{} for release {release}", order.effect);
            let is_new = !Orders::of(fleet, &steered.key).approved(release).contains(&gate);
            let more = json!({"stage": gate.stage, "task": gate.side.word()});
            is_new.then(|| append(&steered, &args.order, "approved", (&meant, more))).transpose()?
        }
    };
    order.edits.extend(edit);
    order.carry_out(&steered, &args.order, ui)
}

/// Returns the progress of the published rollout to approve, with the tasks that it needs now.
fn progress(
    steered: &Steered,
    args: &ApproveArgs,
    stages: &[Stage],
    run: Option<&Run>,
) -> Result<Option<RunProgress>, CommandError> {
    let progress = recorded(steered, &args.order, args.release)?.and_then(|releases| {
        let release = args.release.unwrap_or(releases.current.number);
        let is_meant = |progress: &&RunProgress| match run {
            Some(run) => progress.run.as_ref() == Some(&run.key),
            None => progress.run.is_none() && progress.release == release,
        };
        releases.run.as_ref().filter(is_meant).cloned()
    });
    Ok(progress.map(|mut progress| {
        if run.is_none() {
            progress.follow(stages);
        }
        progress
    }))
}

/// Returns the only matching gate.
fn choose(gates: &[StageGate], args: &ApproveArgs) -> Result<StageGate, CommandError> {
    let is_meant = |gate: &&StageGate| {
        args.stage.as_ref().is_none_or(|stage| *stage == gate.stage)
            && args.task.is_none_or(|side| side == gate.side)
    };
    let meant: Vec<&StageGate> = gates.iter().filter(is_meant).collect();
    let names = |gates: &[&StageGate]| {
        let one = |gate: &&StageGate| format!("`--stage {} --task {}`", gate.stage, gate.side.word());
        gates.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] if gates.is_empty() => Err(CommandError::usage("no stage needs an approval")),
        [] => {
            let error = CommandError::usage("no such stage needs an approval");
            Err(error.hint(format!("name one of {}", names(&gates.iter().collect::<Vec<_>>()))))
        }
        several => {
            let error = CommandError::usage("several stages need approvals");
            Err(error.hint(format!("name one of {}", names(several))))
        }
    }
}
