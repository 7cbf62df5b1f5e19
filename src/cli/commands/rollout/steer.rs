//! The commands that steer. `berth rollout approve`: approves a gate at which a staged rollout waits for a person. `berth
//! rollout pause` and `berth rollout resume`: stop and resume assigning releases of a workload to clusters. `berth rollout
//! abort` and `berth rollout restart`: orders about one release of a workload.

use serde_json::{Value as Json, json};

use super::order::{self, Order, OrderArgs, Steered, approval, newest_run, set_state};
use crate::editing::working_tree::Edit;
use crate::flags::fleet::moment;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};
use berth_base::edit::{self, Step, keys};
use berth_base::model::release::Releases;
use berth_base::model::rollout::{Stage, Strategy};
use berth_base::model::rollout_policy::RolloutPolicy;
use berth_base::model::staged::{Run, RunProgress, RunState, Side, StageGate};
use berth_base::model::{Key, Shared, Timestamp};
use berth_base::yaml::{Node, Value};
use berth_engine::release::policy::Orders;
use berth_git::Repo;
use berth_hub::inputs::{LocatedState, Search};

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
            order::approve(&steered, &args.order, &given)?
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

/// Take a release of a workload back
///
/// The clusters that have the release return to the last good one, and no further cluster gets it. The next
/// change of the workload is a new release. Adds an entry under `aborted` of the RolloutPolicy that is for this
/// workload alone, or makes one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth rollout abort shop/web --reason \"errors in eu-1\" --commit\n  berth rollout abort web --release 12"
)]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    order: OrderArgs,
    /// Number of the release; default: the one that is rolled out
    #[arg(long, value_name = "NUMBER")]
    release: Option<u64>,
    /// Reason, shown to everybody who asks
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Let a release that failed try again
///
/// Deadlines and failures of the release count anew. Adds an entry under `restarted` of the RolloutPolicy that is
/// for this workload alone, or makes one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth rollout restart shop/web --commit")]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    order: OrderArgs,
    /// Number of the release; default: the one that is rolled out
    #[arg(long, value_name = "NUMBER")]
    release: Option<u64>,
}

pub(crate) fn cmd_abort(args: &AbortArgs, ui: &Ui) -> Outcome {
    let steered = Steered::read(&args.order, ui)?;
    let meant = released(&steered, &args.order, args.release)?;
    let release = meant.release;
    let policies = steered.tree.loaded.fleet.policies_of(&steered.key);
    let mut aborted = policies.iter().flat_map(|policy| &policy.aborted);
    let is_new = !aborted.any(|one| one.release == release && one.workload.matches(&steered.key));
    let reason = args.reason.trim();
    let more = if reason.is_empty() { json!({}) } else { json!({"reason": reason}) };
    let edit = is_new.then(|| append(&steered, &args.order, "aborted", (&meant, more))).transpose()?;
    let order = Order {
        edits: edit.into_iter().collect(),
        effect: format!("release {release} {}", if is_new { "aborted" } else { "is aborted already" }),
        subject: format!("Abort release {release} of {}", steered.key),
        body: reason.to_owned(),
        ..Order::default()
    };
    order.carry_out(&steered, &args.order, ui)
}

pub(crate) fn cmd_restart(args: &RestartArgs, ui: &Ui) -> Outcome {
    let steered = Steered::read(&args.order, ui)?;
    let meant = released(&steered, &args.order, args.release)?;
    let release = meant.release;
    let known = steered.own_policy().and_then(|(policy, _)| {
        let is_meant = |index: &usize| {
            let one = &policy.restarted[*index];
            one.release == release && one.workload.matches(&steered.key)
        };
        let index = (0..policy.restarted.len()).find(is_meant)?;
        Some((index, policy.restarted[index].times))
    });
    let edit = match known {
        Some((index, times)) => {
            let mut path = keys(["spec", "restarted"]);
            path.extend([Step::Index(index), Step::from("times")]);
            steered.set(&args.order, &path, &json!(times + 1))?
        }
        None => append(&steered, &args.order, "restarted", (&meant, json!({"times": 1})))?,
    };
    let order = Order {
        edits: vec![edit],
        effect: format!("release {release} counts anew"),
        subject: format!("Restart release {release} of {}", steered.key),
        ..Order::default()
    };
    order.carry_out(&steered, &args.order, ui)
}

/// The release that an order is about.
pub(super) struct Meant {
    pub release: u64,
    /// The last good release, if it is known.
    good: Option<u64>,
}

/// Adds a record about one release to a list of the workload's own policy. Removes outdated records.
pub(super) fn append(
    steered: &Steered,
    args: &OrderArgs,
    field: &'static str,
    (meant, more): (&Meant, Json),
) -> Result<Edit, CommandError> {
    let Key { kind, namespace, name, .. } = &steered.key;
    let mut record = json!({"workload": {"kind": kind, "name": name}, "release": meant.release});
    if !namespace.is_empty() {
        record["workload"]["namespace"] = json!(namespace);
    }
    if let (Some(record), Json::Object(more)) = (record.as_object_mut(), more) {
        record.extend(more);
    }
    let mut path = keys(["spec", field]);
    let edit = match records_in(steered, field) {
        Some(items) => {
            path.push(Step::Index(items.len()));
            steered.set(args, &path, &record)?
        }
        None => steered.set(args, &path, &json!([record]))?,
    };
    Ok(Edit { text: edit.text.map(|text| without_old(steered, meant, text)), ..edit })
}

/// Returns the records in a list of the workload's own policy.
fn records_in<'s>(steered: &'s Steered, field: &str) -> Option<&'s [Node]> {
    let (_, (_, found)) = steered.own_policy()?;
    match &found.node.get("spec")?.get(field)?.value {
        Value::List(items) => Some(items),
        _ => None,
    }
}

/// Removes records about releases before the last good one, which cannot return. Keeps a record with a comment,
/// because a person wrote it.
fn without_old(steered: &Steered, meant: &Meant, mut text: String) -> String {
    let Some(((policy, (_, found)), good)) = steered.own_policy().zip(meant.good) else { return text };
    let RolloutPolicy { approved, aborted, restarted, .. } = policy;
    let releases: [(_, Vec<u64>); 3] = [
        ("approved", approved.iter().map(|one| one.release).collect()),
        ("aborted", aborted.iter().map(|one| one.release).collect()),
        ("restarted", restarted.iter().map(|one| one.release).collect()),
    ];
    for (field, releases) in releases {
        // An unreadable record exists only in the file.
        if records_in(steered, field).is_none_or(|items| items.len() != releases.len()) {
            continue;
        }
        let is_old = |index: &usize| releases[*index] < good && releases[*index] != meant.release;
        for index in (0..releases.len()).rev().filter(is_old) {
            let mut path = keys(["spec", field]);
            path.push(Step::Index(index));
            let without = edit::remove_with_holder(&text, found.document, &found.path_to(&path));
            if let Some(without) = without.ok().filter(|without| !has_comment(&text, without)) {
                text = without;
            }
        }
    }
    text
}

/// Reports whether the removed lines, or the line above them, contain a comment.
fn has_comment(before: &str, after: &str) -> bool {
    let start = before.lines().zip(after.lines()).take_while(|(before, after)| before == after).count();
    let count = before.lines().count().saturating_sub(after.lines().count());
    before.lines().skip(start.saturating_sub(1)).take(count + 1).any(|line| line.contains('#'))
}

/// Returns the release of the order: the one that it names, or the current one.
pub(super) fn released(
    steered: &Steered,
    args: &OrderArgs,
    named: Option<u64>,
) -> Result<Meant, CommandError> {
    let releases = recorded(steered, args, named)?;
    let good = releases.as_ref().and_then(|releases| releases.good);
    let release = named.or(releases.map(|releases| releases.current.number)).ok_or_else(|| {
        let error = CommandError::usage(format!("no release of {} is published yet", steered.key));
        error.hint("name the release: `--release NUMBER`")
    })?;
    Ok(Meant { release, good })
}

/// Returns the workload's releases on the rendered branch. An order that names its release needs none.
pub(super) fn recorded(
    steered: &Steered,
    args: &OrderArgs,
    named: Option<u64>,
) -> Result<Option<Shared<Releases>>, CommandError> {
    if !args.repo.path.join(".git").exists() {
        return Ok(None);
    }
    let find = || LocatedState::find(&Repo::open(&args.repo.path)?, &Search::leniently());
    let located = match find() {
        Err(_) if named.is_some() => return Ok(None),
        located => located?,
    };
    Ok(located.current.and_then(|current| current.state.releases.get(&steered.key).cloned()))
}
