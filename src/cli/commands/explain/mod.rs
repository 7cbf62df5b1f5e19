//! `berth explain PLACEMENT`: why each cluster was picked or not.

mod division;
mod remedies;
mod values;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use clap_complete::engine::ArgValueCandidates;

use crate::flags::fleet::FleetArgs;
use crate::flags::names;
use crate::flags::names::find;
use crate::output::results::{Format, NameForm, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::planning::difference::{Difference, Published};
use crate::planning::since::{Since, Then};
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use berth_base::diag::{Diagnostics, Pos, Severity, did_you_mean};
use berth_base::model::fleet::Doubt;
use berth_base::model::{Decision, Key, Pick};
use berth_base::text::counted;
use berth_engine::decide::{self, ClusterTrace, ScorePart, Trace, TraceStep};
use berth_engine::pipeline;
use berth_engine::state::ConditionForm;
use division::{DivisionForm, ReplicasForm};
use remedies::{Remedies, Remedy};

/// Explain why each cluster was picked or not
///
/// With --cluster, and where the placement does not pick the cluster, the smallest edits of the fleet's files are
/// listed that would change that. Each was tried in memory; nothing is written. `berth why` says since when and by whom
/// a placement is where it is.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth explain web\n  berth explain FederatedDeployment/shop/web --cluster oslo\n  berth explain shop/web --since HEAD~5 -o json\n  berth explain web --render --cluster oslo"
)]
pub(crate) struct ExplainArgs {
    /// NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME; with --render, the name of a HelmSource
    #[arg(add = ArgValueCandidates::new(names::placements))]
    placement: String,
    /// Show every step for this cluster alone
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(names::clusters))]
    cluster: Option<String>,
    /// Show what changed since this revision of the source
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Show the merged values of this HelmSource, and the line that sets each, in the cluster or where no variant counts
    #[arg(long, conflicts_with = "since")]
    render: bool,
    #[command(flatten)]
    fleet: FleetArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(crate) fn cmd_explain(args: &ExplainArgs, ui: &Ui) -> Outcome {
    let mut inputs = args.fleet.read(ui)?;
    if args.render {
        return values::cmd_values(args, inputs, ui);
    }
    let (loaded, decided, diagnostics) = inputs.decide();
    ui.diagnostics(&diagnostics);
    let (fleet, in_force) = (&loaded.fleet, &inputs.current.decisions.clone());
    let published = Published::of(&inputs, &args.fleet.repo.path, &args.fleet.state)?;
    let statuses = pipeline::with_first_seen(&inputs.current, &inputs.reports.statuses);
    let all = fleet.placements.keys().chain(in_force.keys()).chain(fleet.replaced.keys());
    let all: BTreeSet<&Key> = all.collect();
    let then = args.since.as_ref().map(|revision| {
        let search = args.fleet.state.search(&args.fleet.repo.path)?;
        ui.watching("reading the earlier fleet", || Then::read(&args.fleet.repo.path, &search, revision))
    });
    let then = then.transpose()?;
    let mut explained = Vec::new();
    // A policy stands for the placements that it replaced.
    let found: BTreeSet<&Key> =
        find(all.into_iter().collect(), &args.placement)?.into_iter().map(|key| fleet.key_of(key)).collect();
    for key in found {
        let trace = decide::explain(fleet, in_force, &statuses, inputs.now, key);
        let is_gone = trace.is_none();
        let mut trace = match (trace, in_force.get(key)) {
            (Some(trace), _) => trace,
            (None, Some(decision)) => published_trace(decision),
            (None, None) => return Err(CommandError::new(Exit::Bug, format!("{key} has no trace"))),
        };
        let next = if is_gone { None } else { decided.decisions.get(key) };
        let difference = match &published {
            Some(published) => published.difference(key, in_force.get(key), next, fleet)?,
            None => None,
        };
        let mut since = then.as_ref().map(|then| then.compared(key, &trace, next, fleet));
        if let Some(wanted) = &args.cluster {
            narrow(&mut trace, wanted)?;
            since.iter_mut().for_each(|since| since.narrow(wanted));
        }
        let unreadable = unreadable(&trace, &fleet.doubt, &diagnostics);
        explained.push(Explained { trace, is_gone, difference, since, unreadable, remedies: None });
    }
    if args.cluster.is_some() {
        for one in &mut explained {
            let left_out = one.trace.clusters.first().filter(|cluster| !cluster.picked && !one.is_gone);
            one.remedies = left_out.map(|cluster| {
                let search = || remedies::find(&mut inputs, &one.trace.key, cluster);
                ui.watching("trying edits", search)
            });
        }
    }
    match args.output {
        Format::Text => {
            for one in &explained {
                ui.out(&explained_text(one, args.cluster.is_some(), ui));
            }
        }
        format => format.write(ResultKind::ExplanationList, &ExplanationList::of(&explained), ui),
    }
    Ok(exit_for(&diagnostics))
}

/// One placement with its complete explanation.
struct Explained {
    trace: Trace,
    /// The placement exists only in the published state.
    is_gone: bool,
    difference: Option<Difference>,
    /// The changes since the given revision.
    since: Option<Since>,
    /// The fault of the unreadable file because of which the placement keeps its clusters.
    unreadable: Option<String>,
    /// The edits with which the placement would pick the given cluster.
    remedies: Option<Remedies>,
}

/// Converts a published decision to a trace, for a placement that is not in the source.
fn published_trace(decision: &Decision) -> Trace {
    let cluster = |pick: &Pick| ClusterTrace {
        cluster: pick.cluster.to_string(),
        picked: true,
        reason: pick.reason.clone(),
        group: pick.group.clone(),
        ..ClusterTrace::default()
    };
    Trace {
        key: decision.key.clone(),
        origin: Pos::file(decision.source.as_str()),
        sticky: false,
        condition: decision.condition.clone(),
        division: None,
        clusters: decision.picks.iter().map(cluster).collect(),
    }
}

/// Returns the first fault of the placement's file, or of one that may contain anything.
fn unreadable(trace: &Trace, doubt: &Doubt, diagnostics: &Diagnostics) -> Option<String> {
    let own = doubt.files.contains(&*trace.origin.file);
    if !own && !doubt.everything {
        return None;
    }
    let errors = || diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let of_own = errors().find(|one| one.at.as_ref().is_some_and(|at| at.file == trace.origin.file));
    let fault = if own { of_own } else { of_own.or_else(|| errors().next()) };
    let place = |at: &Option<Pos>| at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
    let fault = fault.map(|one| format!("{}{}", place(&one.at), one.message)).unwrap_or_default();
    Some(if own {
        format!("its file cannot be read, so its last good form applies and it loses no cluster: {fault}")
    } else {
        format!("a file that may affect it cannot be read, so it loses no cluster: {fault}")
    })
}

fn narrow(trace: &mut Trace, wanted: &str) -> Result<(), CommandError> {
    let unknown = no_cluster(wanted, trace.clusters.iter().map(|cluster| cluster.cluster.as_str()));
    trace.clusters.retain(|cluster| cluster.cluster == wanted);
    if trace.clusters.is_empty() { Err(unknown) } else { Ok(()) }
}

/// Makes the error for a cluster that is not among the known ones.
fn no_cluster<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> CommandError {
    let error = CommandError::usage(format!("no cluster `{wanted}` in this fleet"));
    match did_you_mean(wanted, known) {
        Some(near) => error.hint(near),
        None => error,
    }
}

fn explained_text(one: &Explained, every_step: bool, ui: &Ui) -> String {
    let trace = &one.trace;
    let picked = trace.clusters.iter().filter(|cluster| cluster.picked).count();
    let was = if one.is_gone { "was in " } else { "" };
    let mut text = format!("{} ({was}{})\n", ui.tint(&trace.key.to_string(), Tone::Strong), trace.origin);
    if one.is_gone {
        let _ =
            writeln!(text, "published in {}; the source no longer describes it", counted(picked, "cluster"));
    } else if !every_step {
        let _ = writeln!(text, "picks {picked} of {}", counted(trace.clusters.len(), "cluster"));
    }
    match &one.unreadable {
        Some(why) => {
            let _ = writeln!(text, "{}", ui.tint(why, Tone::Warn));
        }
        None if trace.sticky => text.push_str(
            "unchanged: its inputs are equal to those of the current \
                decision\n",
        ),
        None => {}
    }
    if let Some(condition) = &trace.condition {
        let status = if condition.status { "True" } else { "False" };
        let _ = writeln!(text, "{}={status} {}: {}", condition.kind, condition.reason, condition.message);
    }
    let mut text = ui.prose(&text);
    text.push('\n');
    let rows: Vec<_> = trace.clusters.iter().map(|cluster| row(cluster, ui)).collect();
    text.push_str(&table(&["CLUSTER", "PICKED", "SCORE", "WHY"], &rows, ui));
    text.push_str(&division::text(trace, ui));
    if let Some(difference) = &one.difference {
        text.push_str(&difference.text(ui));
    }
    if let Some(since) = &one.since {
        text.push_str(&since.text(ui));
    }
    if every_step {
        for cluster in &trace.clusters {
            text.push_str(&ui.prose(&steps_text(cluster, ui)));
        }
        text.push_str(&one.remedies.as_ref().map(|remedies| remedies.text(ui)).unwrap_or_default());
    }
    text
}

fn row(cluster: &ClusterTrace, ui: &Ui) -> Vec<String> {
    let scores: Vec<String> = cluster
        .scores
        .iter()
        // A part without a name is a tiebreaker for existing picks under an earlier policy.
        .filter(|part| !part.name.is_empty() || part.score != 0)
        .map(|part| match part.weight {
            _ if part.name.is_empty() => "was there before".to_owned(),
            1 => format!("{} {}", part.name, part.score),
            weight => format!("{} {}x{weight}", part.name, part.score),
        })
        .collect();
    let picked = if cluster.picked { ui.tint("yes", Tone::Good) } else { ui.tint("no", Tone::Faint) };
    // The object with the rule that refused the cluster, if it is not the placement itself.
    let refusal = cluster.steps.iter().find(|step| !step.passed && !cluster.picked);
    let by = refusal.and_then(|step| step.by.as_ref());
    let why = match by {
        Some(by) if !cluster.reason.contains(&*by.kind) => format!("{} (asked by {by})", cluster.reason),
        _ => cluster.reason.clone(),
    };
    let group = cluster.group.as_ref().map(|group| format!(" [group {}]", group.index)).unwrap_or_default();
    vec![cluster.cluster.clone(), picked, scores.join(", "), format!("{why}{group}")]
}

fn steps_text(cluster: &ClusterTrace, ui: &Ui) -> String {
    let mut text = format!("\nsteps for {}\n", cluster.cluster);
    for step in &cluster.steps {
        let mark = if step.passed { ui.tint("pass", Tone::Good) } else { ui.tint("fail", Tone::Bad) };
        let by = step.by.as_ref().map(|by| format!(" (asked by {by})")).unwrap_or_default();
        let why = if step.why.is_empty() { String::new() } else { format!(": {}", step.why) };
        let rule = if step.rule.is_empty() { "any labels" } else { &step.rule };
        let _ = writeln!(text, "  {mark}  {}: {rule}{by}{why}", step.stage.word());
    }
    if let Some(rank) = cluster.rank {
        let _ = writeln!(text, "  rank {rank}");
    }
    text
}

/// The explanations for programs.
#[derive(Serialize)]
struct ExplanationList<'a> {
    placements: Vec<Explanation<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    #[serde(flatten)]
    name: NameForm,
    source: String,
    sticky: bool,
    unreadable: Option<&'a str>,
    in_source: bool,
    difference: Option<&'a Difference>,
    since: Option<&'a Since>,
    division: Option<DivisionForm<'a>>,
    condition: Option<ConditionForm<'a>>,
    clusters: Vec<ClusterTraceForm<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterTraceForm<'a> {
    name: &'a str,
    picked: bool,
    replicas: Option<ReplicasForm>,
    reason: &'a str,
    rank: Option<usize>,
    group: Option<GroupForm<'a>>,
    steps: Vec<StepForm<'a>>,
    would_be_picked_by: Option<&'a [Remedy]>,
    scores: Vec<ScoreForm<'a>>,
}

#[derive(Serialize)]
struct GroupForm<'a> {
    index: usize,
    name: &'a str,
}

#[derive(Serialize)]
struct StepForm<'a> {
    stage: &'static str,
    rule: &'a str,
    by: Option<String>,
    passed: bool,
    why: &'a str,
}

#[derive(Serialize)]
struct ScoreForm<'a> {
    name: &'a str,
    weight: i64,
    score: i64,
}

impl<'a> ExplanationList<'a> {
    fn of(explained: &'a [Explained]) -> ExplanationList<'a> {
        ExplanationList { placements: explained.iter().map(Explanation::of).collect() }
    }
}

impl<'a> Explanation<'a> {
    fn of(one: &'a Explained) -> Explanation<'a> {
        let trace = &one.trace;
        Explanation {
            name: NameForm::of(&trace.key),
            source: trace.origin.to_string(),
            sticky: trace.sticky && one.unreadable.is_none(),
            unreadable: one.unreadable.as_deref(),
            in_source: !one.is_gone,
            difference: one.difference.as_ref(),
            since: one.since.as_ref(),
            division: trace.division.as_ref().map(DivisionForm::of),
            condition: trace.condition.as_ref().map(ConditionForm::of),
            clusters: trace.clusters.iter().map(|cluster| ClusterTraceForm::of(cluster, one)).collect(),
        }
    }
}

impl<'a> ClusterTraceForm<'a> {
    fn of(cluster: &'a ClusterTrace, one: &'a Explained) -> ClusterTraceForm<'a> {
        let step = |step: &'a TraceStep| StepForm {
            stage: step.stage.word(),
            rule: &step.rule,
            by: step.by.as_ref().map(ToString::to_string),
            passed: step.passed,
            why: &step.why,
        };
        let score =
            |part: &'a ScorePart| ScoreForm { name: &part.name, weight: part.weight, score: part.score };
        ClusterTraceForm {
            name: &cluster.cluster,
            picked: cluster.picked,
            replicas: cluster.replicas.as_ref().map(ReplicasForm::of),
            reason: &cluster.reason,
            rank: cluster.rank,
            group: cluster.group.as_ref().map(|group| GroupForm { index: group.index, name: &group.name }),
            steps: cluster.steps.iter().map(step).collect(),
            would_be_picked_by: one.remedies.as_ref().map(|remedies| &*remedies.found),
            scores: cluster.scores.iter().map(score).collect(),
        }
    }
}
