//! `berth plan`: what a change does, removals first.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::Outcome;
use super::diff;
use super::exit::{CommandError, Exit};
use super::fleet::{Format, exit_for, moment};
use super::foresee::{lacks_base, refusal, refusals_json, refusals_text, refused_by_hubs};
use super::gate::{GateArgs, When, deadlines_json, deadlines_text, held_json, held_text};
use super::ui::{Tone, Ui, counted};
use crate::advance::{self, AdvanceError, Advanced, Leave, Start};
use crate::daemon::PassError;
use crate::diag::Diagnostics;
use crate::gate::Limits;
use crate::git::{CommitId, Identity, Repo};
use crate::model::{ContentId, ObjectId, Timestamp, path};
use crate::plan::{Change, ObjectChange, Plan, count, plan};
use crate::publish::{self, Previous, Processed, Published, Refs};
use crate::reading::Known;

/// Show what a change does to every cluster
///
/// Compares what the base gives with what the head gives. Without --base, what is on the rendered
/// branch now is the base; without --head, the current commit is the head.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth plan\n  berth plan --base main --head my-change --diff\n  berth plan --fail-on removals"
)]
pub struct PlanArgs {
    /// The fleet repository
    #[arg(long, value_name = "PATH", default_value = ".", env = "BERTH_REPO")]
    repo: std::path::PathBuf,
    /// Compare with this revision, in place of the rendered branch
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// The revision to look at
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    head: String,
    /// Decide for this moment, in place of the revision's date
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<Timestamp>,
    /// Show each object's difference
    #[arg(long)]
    diff: bool,
    /// Exit with 3 where there are such changes
    #[arg(long, value_name = "WHAT", value_enum)]
    fail_on: Option<FailOn>,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    gate: GateArgs,
}

/// Changes to fail on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    Any,
    Removals,
    /// Removals that would be held for approval, or anything that `run` would refuse; the exit code is 5
    Held,
}

pub fn cmd_plan(args: &PlanArgs, ui: &Ui) -> Outcome {
    if args.diff && args.output != Format::Text {
        let error = CommandError::usage("--diff goes with text only");
        return Err(error.hint("read the objects from Git by the paths in the plan"));
    }
    let repo = Repo::rehearsal(&args.repo)?;
    let refs = Refs::default();
    let mut rendered = publish::read_previous(&repo, &refs.rendered)?;
    let mut processed = publish::read_processed(&repo, &refs)?;
    let source = repo.require(&args.head)?;
    if rendered.as_ref().is_some_and(|rendered| rendered.commit == source) {
        return Err(PassError::SourceIsRendered(refs.rendered).into());
    }
    let rehearsal = Rehearsal { repo: &repo, refs: &refs, limits: args.gate.limits(), at: args.now };
    let mut diagnostics = Diagnostics::new();
    let mut refused = Vec::new();
    let (from, since) = match &args.base {
        Some(revision) => {
            let base = repo.require(revision)?;
            diagnostics.extend(lacks_base(&repo, (revision, base), (&args.head, source))?);
            // The state that the base gives, whatever is published now.
            let leave = Leave { rewind: true, empty: true, removals: true, ..Leave::default() };
            let (done, refusals) =
                rehearsal.step((revision, base), rendered.as_ref(), processed.as_ref(), leave)?;
            refused.extend(refusals);
            let label = done.reading.label.clone();
            (rendered, processed) = follow(base, done, rendered);
            (label, Some(base))
        }
        None => {
            let since = rendered.as_ref().and_then(|rendered| rendered.trailers.source);
            ("the rendered branch".to_owned(), since)
        }
    };
    let leave = Leave { rewind: args.base.is_some(), ..Leave::default() };
    let (done, refusals) =
        rehearsal.step((&args.head, source), rendered.as_ref(), processed.as_ref(), leave)?;
    refused.extend(refusals);
    let refused: Vec<CommandError> = refused.into_iter().map(refusal).collect();
    let Advanced { reading: head, built, held, deadlines, .. } = done;
    ui.status(&format!("{from} → {}", head.label));
    diagnostics.extend(done.diagnostics);
    diagnostics.extend(refused_by_hubs(&repo, since, head.tree())?);
    diagnostics.sort();
    ui.diagnostics(&diagnostics);
    let plan = plan(&head.previous, &built.state);
    let to_json = || {
        let mut form = plan_json(&plan);
        form["held"] = held_json(&held);
        form["deadlines"] = deadlines_json(&deadlines);
        form["refused"] = refusals_json(&refused);
        form
    };
    let read = |id: Option<ContentId>| id.map(|id| repo.blob(id)).transpose();
    match args.output {
        Format::Json => ui.json(&to_json()),
        Format::Yaml => ui.yaml(&to_json()),
        Format::Text => {
            if !refused.is_empty() {
                ui.out(&refusals_text(&refused, ui));
            }
            ui.out(&plan_text(&plan, ui));
            if !deadlines.is_empty() {
                ui.out(&deadlines_text(&deadlines, ui));
            }
            if !held.is_empty() {
                ui.out(&held_text(&held, When::Foreseen, 0, ui));
            }
            if args.diff {
                for change in plan.changes() {
                    ui.out(&object_diff(change, read(change.before)?, read(change.after)?, ui));
                }
            }
        }
    }
    let counts = plan.counts();
    let fails = |differs: bool, exit| if differs { exit } else { Exit::Done };
    let exit = match args.fail_on {
        Some(FailOn::Any) => fails(counts.added + counts.changed + counts.removed > 0, Exit::Different),
        Some(FailOn::Removals) => fails(counts.removed > 0, Exit::Different),
        Some(FailOn::Held) => fails(!held.is_empty() || !refused.is_empty(), Exit::Held),
        None => Exit::Done,
    };
    Ok(exit_for(&diagnostics).worst(exit))
}

/// Steps that are computed and not published.
struct Rehearsal<'a> {
    repo: &'a Repo,
    refs: &'a Refs,
    limits: Limits,
    at: Option<Timestamp>,
}

impl Rehearsal<'_> {
    fn step(
        &self,
        (name, source): (&str, CommitId),
        previous: Option<&Previous>,
        processed: Option<&Processed>,
        leave: Leave,
    ) -> Result<(Advanced, Vec<AdvanceError>), AdvanceError> {
        let start = Start {
            name,
            source,
            previous,
            processed,
            refs: self.refs,
            identity: &Identity::default(),
            limits: &self.limits,
            leave,
            clock: Timestamp::now(),
            at: self.at,
            known: Known::default(),
        };
        advance::rehearse(self.repo, start)
    }
}

/// The state after a step, as if it had been published, and what would be known of its source.
fn follow(
    source: CommitId,
    done: Advanced,
    before: Option<Previous>,
) -> (Option<Previous>, Option<Processed>) {
    let Advanced { drafted, state, records, rules, .. } = done;
    let previous = match drafted {
        Published::Committed(committed) => Some(committed.into_previous(state)),
        Published::Unchanged => before,
    };
    let processed = Processed {
        source,
        rendered: previous.as_ref().map(|previous| previous.commit),
        errors: 0,
        warnings: 0,
        result: String::new(),
        held: records.iter().map(ToString::to_string).collect(),
        rules,
    };
    (previous, Some(processed))
}

/// The plan for people.
pub fn plan_text(plan: &Plan, ui: &Ui) -> String {
    if plan.is_empty() {
        return "no changes\n".to_owned();
    }
    let counts = plan.counts();
    let mut text = format!(
        "{} removed, {} changed, {} added in {}\n",
        counts.removed,
        counts.changed,
        counts.added,
        counted(counts.clusters, "cluster")
    );
    for (what, names) in
        [("is left with nothing", &plan.clusters.lost), ("gets its first objects", &plan.clusters.gained)]
    {
        for name in names {
            let _ = writeln!(text, "cluster {name} {what}");
        }
    }
    // Workloads that lose something are shown before those that do not.
    let mut workloads: Vec<_> = plan.workloads.iter().collect();
    workloads.sort_by_key(|(_, changes)| count(changes.iter()).removed == 0);
    for (key, changes) in workloads {
        let _ = writeln!(text, "\n{}", ui.tint(&key.to_string(), Tone::Strong));
        changes.iter().for_each(|change| text.push_str(&change_line(change, ui)));
    }
    if !plan.unaccounted.is_empty() {
        text.push_str("\nother files\n");
        plan.unaccounted.iter().for_each(|change| text.push_str(&change_line(change, ui)));
    }
    let without_objects = plan.placements.iter().filter(|(key, _)| !plan.workloads.contains_key(*key));
    for (key, change) in without_objects {
        let signed = |sign: &str, names: &[String]| {
            names.iter().map(|name| format!(" {sign}{name}")).collect::<String>()
        };
        let _ =
            writeln!(text, "\n{key}: decision{}{}", signed("-", &change.lost), signed("+", &change.gained));
    }
    text
}

fn change_line(change: &ObjectChange, ui: &Ui) -> String {
    let tone = match change.change {
        Change::Removed => Tone::Bad,
        Change::Changed => Tone::Warn,
        Change::Added => Tone::Good,
    };
    let object = change.object.as_ref().map_or_else(|| change.path.to_string(), ToString::to_string);
    let line = format!("  {} {}: {object}", change.change.sign(), change.cluster);
    format!("{}\n", ui.tint(&line, tone))
}

/// The plan for programs.
pub fn plan_json(plan: &Plan) -> Json {
    let change = |change: &ObjectChange| {
        json!({
            "change": change.change.word(),
            "cluster": change.cluster,
            "path": &*change.path,
            "object": change.object.as_ref().map(ToString::to_string),
        })
    };
    let workload = |(key, changes): (&crate::model::Key, &Vec<ObjectChange>)| {
        json!({
            "kind": &*key.kind,
            "namespace": &*key.namespace,
            "name": &*key.name,
            "changes": changes.iter().map(change).collect::<Vec<_>>(),
        })
    };
    let counts = plan.counts();
    json!({
        "counts": {"removed": counts.removed, "changed": counts.changed, "added": counts.added, "clusters": counts.clusters},
        "clusters": {"lost": plan.clusters.lost, "gained": plan.clusters.gained},
        "workloads": plan.workloads.iter().map(workload).collect::<Vec<_>>(),
        "other": plan.unaccounted.iter().map(change).collect::<Vec<_>>(),
        "placements": plan.placements.iter().map(|(key, change)| json!({
            "kind": &*key.kind, "namespace": &*key.namespace, "name": &*key.name,
            "lost": change.lost, "gained": change.gained,
        })).collect::<Vec<_>>(),
    })
}

/// One object's difference, line by line. The data of Secrets is not shown.
pub fn object_diff(
    change: &ObjectChange,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    ui: &Ui,
) -> String {
    // A file that no decision accounts for has only its path.
    let is_secret =
        change.object.as_ref().is_some_and(ObjectId::is_secret) || path::is_of_secret(&change.path);
    let title = format!("{}/{}", change.cluster, change.path);
    if is_secret {
        return format!("--- {title}\n(the data of a Secret is not shown)\n");
    }
    let text = |bytes: Option<Vec<u8>>| {
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    let (before, after) = (text(before), text(after));
    diff::coloured(&before, &after, &title, ui)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_nobody_accounts_for_is_not_shown_either() {
        let ui = Ui::new(true, super::super::ui::ColourChoice::Never);
        let diff = |path: &str| {
            let change = ObjectChange {
                change: Change::Removed,
                cluster: "a".to_owned(),
                path: path.into(),
                object: None,
                before: None,
                after: None,
            };
            object_diff(&change, Some(b"data: hunter2\n".to_vec()), None, &ui)
        };
        assert!(!diff("shop/Secret_x.yaml").contains("hunter2"), "{}", diff("shop/Secret_x.yaml"));
        assert!(diff("shop/ConfigMap_x.yaml").contains("hunter2"));
    }
}
