//! `berth rollout abort` and `berth rollout restart`: orders about one release of a workload.

use serde_json::{Value as Json, json};

use super::super::exit::{CommandError, Outcome};
use super::super::ui::Ui;
use super::super::working_tree::Edit;
use super::order::{Order, OrderArgs, Steered};
use berth_base::edit::{Step, keys};
use berth_base::model::Key;
use berth_base::model::release::Releases;
use berth_base::yaml::Value;
use berth_git::Repo;
use berth_hub::inputs::{LocatedState, Search};

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
    let release = released(&steered, &args.order, args.release)?;
    let policies = steered.tree.loaded.fleet.policies_of(&steered.key);
    let mut aborted = policies.iter().flat_map(|policy| &policy.aborted);
    let is_new = !aborted.any(|one| one.release == release && one.workload.matches(&steered.key));
    let reason = args.reason.trim();
    let more = if reason.is_empty() { json!({}) } else { json!({"reason": reason}) };
    let edit = is_new.then(|| append(&steered, &args.order, "aborted", (release, more))).transpose()?;
    let order = Order {
        edits: edit.into_iter().collect(),
        said: format!("release {release} {}", if is_new { "aborted" } else { "is aborted already" }),
        subject: format!("Abort release {release} of {}", steered.key),
        body: reason.to_owned(),
        ..Order::default()
    };
    order.carry_out(&steered, &args.order, ui)
}

pub(crate) fn cmd_restart(args: &RestartArgs, ui: &Ui) -> Outcome {
    let steered = Steered::read(&args.order, ui)?;
    let release = released(&steered, &args.order, args.release)?;
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
        None => append(&steered, &args.order, "restarted", (release, json!({"times": 1})))?,
    };
    let order = Order {
        edits: vec![edit],
        said: format!("release {release} counts anew"),
        subject: format!("Restart release {release} of {}", steered.key),
        ..Order::default()
    };
    order.carry_out(&steered, &args.order, ui)
}

/// Adds a record about one release to a list of the workload's own policy.
pub(super) fn append(
    steered: &Steered,
    args: &OrderArgs,
    field: &'static str,
    (release, more): (u64, Json),
) -> Result<Edit, CommandError> {
    let Key { kind, namespace, name, .. } = &steered.key;
    let mut record = json!({"workload": {"kind": kind, "name": name}, "release": release});
    if !namespace.is_empty() {
        record["workload"]["namespace"] = json!(namespace);
    }
    if let (Some(record), Json::Object(more)) = (record.as_object_mut(), more) {
        record.extend(more);
    }
    let list = steered.own_policy().and_then(|(_, (_, found))| found.node.get("spec")?.get(field));
    let mut path = keys(["spec", field]);
    match list.map(|node| &node.value) {
        Some(Value::List(items)) => {
            path.push(Step::Index(items.len()));
            steered.set(args, &path, &record)
        }
        _ => steered.set(args, &path, &json!([record])),
    }
}

/// Returns the number of the release that is meant: the one named, or the current one.
pub(super) fn released(steered: &Steered, args: &OrderArgs, named: Option<u64>) -> Result<u64, CommandError> {
    if let Some(number) = named {
        return Ok(number);
    }
    let releases = recorded(steered, args)?;
    releases.map(|releases| releases.current.number).ok_or_else(|| {
        let error = CommandError::usage(format!("no release of {} is published yet", steered.key));
        error.hint("name the release: `--release NUMBER`")
    })
}

/// Returns the workload's releases as the rendered branch has them.
pub(super) fn recorded(steered: &Steered, args: &OrderArgs) -> Result<Option<Releases>, CommandError> {
    if !args.repo.repo.join(".git").exists() {
        return Ok(None);
    }
    let located = LocatedState::find(&Repo::open(&args.repo.repo)?, &Search::leniently())?;
    Ok(located.current.and_then(|current| current.state.releases.get(&steered.key).cloned()))
}
