//! `berth rollout abort` and `berth rollout restart`: orders about one release of a workload.

use berth_base::model::Shared;
use serde_json::{Value as Json, json};

use super::order::{Order, OrderArgs, Steered};
use crate::editing::working_tree::Edit;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};
use berth_base::edit::{self, Step, keys};
use berth_base::model::Key;
use berth_base::model::release::Releases;
use berth_base::model::rollout_policy::RolloutPolicy;
use berth_base::yaml::{Node, Value};
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
