//! `berth explain PLACEMENT`: why each cluster was picked or not.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::exit::{CommandError, Exit};
use super::fleet::{FleetArgs, Format, exit_for};
use super::table::table;
use super::ui::{Tone, Ui, counted};
use super::{Outcome, division};
use crate::decide::{self, ClusterTrace, Trace};
use crate::diag::did_you_mean;
use crate::model::Key;
use crate::pipeline;

/// Explain why each cluster was picked or not
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth explain web\n  berth explain FederatedDeployment/shop/web --cluster oslo\n  berth explain shop/web -o json"
)]
pub struct ExplainArgs {
    /// NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME
    placement: String,
    /// Show every step for this cluster alone
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    #[command(flatten)]
    fleet: FleetArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub fn cmd_explain(args: &ExplainArgs, ui: &Ui) -> Outcome {
    let reading = args.fleet.read(ui)?;
    let (loaded, _, diagnostics) = reading.decide();
    ui.diagnostics(&diagnostics);
    let statuses = pipeline::with_first_seen(&reading.previous, &reading.statuses);
    let mut traces = Vec::new();
    for key in find(loaded.fleet.placements.keys().collect(), &args.placement)? {
        let trace = decide::explain(&loaded.fleet, &reading.previous.decisions, &statuses, reading.now, key);
        let mut trace = trace.ok_or_else(|| CommandError::new(Exit::Bug, format!("{key} has no trace")))?;
        if let Some(wanted) = &args.cluster {
            narrow(&mut trace, wanted)?;
        }
        traces.push(trace);
    }
    match args.output {
        Format::Text => {
            for trace in &traces {
                ui.out(&trace_text(trace, args.cluster.is_some(), ui));
            }
        }
        Format::Json => ui.json(&traces_json(&traces)),
        Format::Yaml => ui.yaml(&traces_json(&traces)),
    }
    Ok(exit_for(&diagnostics))
}

/// What kubectl lets people type for kinds.
const SHORT: [(&str, &str); 3] =
    [("crp", "ClusterResourcePlacement"), ("rp", "ResourcePlacement"), ("mwrs", "ManifestWorkReplicaSet")];

/// The placements that the words on the command line mean.
pub(super) fn find<'f>(all: Vec<&'f Key>, wanted: &str) -> Result<Vec<&'f Key>, CommandError> {
    let parts: Vec<&str> = wanted.split('/').collect();
    let is_kind = |key: &Key, word: &str| {
        key.kind.eq_ignore_ascii_case(word)
            || SHORT.iter().any(|(short, kind)| word.eq_ignore_ascii_case(short) && *key.kind == **kind)
    };
    let fits = |key: &&Key| match parts.as_slice() {
        [name] => *key.name == **name,
        [first, name] => *key.name == **name && (*key.namespace == **first || is_kind(key, first)),
        [kind, namespace, name] => is_kind(key, kind) && *key.namespace == **namespace && *key.name == **name,
        _ => false,
    };
    let found: Vec<&Key> = all.iter().copied().filter(fits).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let name = parts.last().copied().unwrap_or_default();
    let error = CommandError::usage(format!("no placement `{wanted}` in this fleet"));
    let near = did_you_mean(name, all.iter().map(|key| &*key.name));
    Err(error.hint(
        near.unwrap_or_else(|| format!("there are {}, see `berth decide`", counted(all.len(), "placement"))),
    ))
}

fn narrow(trace: &mut Trace, wanted: &str) -> Result<(), CommandError> {
    let near = did_you_mean(wanted, trace.clusters.iter().map(|cluster| cluster.cluster.as_str()));
    trace.clusters.retain(|cluster| cluster.cluster == wanted);
    if trace.clusters.is_empty() {
        let error = CommandError::usage(format!("no cluster `{wanted}` in this fleet"));
        return Err(match near {
            Some(near) => error.hint(near),
            None => error,
        });
    }
    Ok(())
}

fn trace_text(trace: &Trace, every_step: bool, ui: &Ui) -> String {
    let picked = trace.clusters.iter().filter(|cluster| cluster.picked).count();
    let mut text = format!("{} ({})\n", ui.tint(&trace.key.to_string(), Tone::Strong), trace.origin);
    if !every_step {
        let _ = writeln!(text, "picks {picked} of {}", counted(trace.clusters.len(), "cluster"));
    }
    if trace.stood {
        text.push_str("stands as it was decided: nothing it reads has changed\n");
    }
    if let Some(condition) = &trace.condition {
        let status = if condition.status { "True" } else { "False" };
        let _ = writeln!(text, "{}={status} {}: {}", condition.kind, condition.reason, condition.message);
    }
    text.push('\n');
    let rows: Vec<_> = trace.clusters.iter().map(|cluster| row(cluster, ui)).collect();
    text.push_str(&table(&["CLUSTER", "PICKED", "SCORE", "WHY"], &rows));
    text.push_str(&division::text(trace));
    if every_step {
        for cluster in &trace.clusters {
            text.push_str(&steps_text(cluster, ui));
        }
    }
    text
}

fn row(cluster: &ClusterTrace, ui: &Ui) -> Vec<String> {
    let scores: Vec<String> = cluster
        .scores
        .iter()
        // A part without a name only breaks ties: for what was there under an earlier policy.
        .filter(|part| !part.name.is_empty() || part.score != 0)
        .map(|part| match part.weight {
            _ if part.name.is_empty() => "was there before".to_owned(),
            1 => format!("{} {}", part.name, part.score),
            weight => format!("{} {}x{weight}", part.name, part.score),
        })
        .collect();
    let picked = if cluster.picked { ui.tint("yes", Tone::Good) } else { ui.tint("no", Tone::Faint) };
    // Who asked for the rule that kept the cluster out, where that is not the placement itself.
    let by = cluster.steps.iter().find(|step| !step.passed).and_then(|step| step.by.as_ref());
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

/// The traces for programs.
fn traces_json(traces: &[Trace]) -> Json {
    json!({"placements": traces.iter().map(trace_json).collect::<Vec<_>>()})
}

fn trace_json(trace: &Trace) -> Json {
    let cluster = |cluster: &ClusterTrace| {
        json!({
            "name": cluster.cluster,
            "picked": cluster.picked,
            "replicas": cluster.replicas.as_ref().map(division::replicas_json),
            "reason": cluster.reason,
            "rank": cluster.rank,
            "group": cluster.group.as_ref().map(|group| json!({"index": group.index, "name": group.name})),
            "steps": cluster.steps.iter().map(|step| json!({
                "stage": step.stage.word(),
                "rule": step.rule,
                "by": step.by.as_ref().map(ToString::to_string),
                "passed": step.passed,
                "why": step.why,
            })).collect::<Vec<_>>(),
            "scores": cluster.scores.iter().map(|part| json!({
                "name": part.name, "weight": part.weight, "score": part.score,
            })).collect::<Vec<_>>(),
        })
    };
    json!({
        "kind": &*trace.key.kind,
        "namespace": &*trace.key.namespace,
        "name": &*trace.key.name,
        "source": trace.origin.to_string(),
        "stood": trace.stood,
        "division": trace.division.as_ref().map(division::json),
        "condition": trace.condition.as_ref().map(|condition| json!({
            "type": condition.kind,
            "status": if condition.status { "True" } else { "False" },
            "reason": condition.reason,
            "message": condition.message,
        })),
        "clusters": trace.clusters.iter().map(cluster).collect::<Vec<_>>(),
    })
}
