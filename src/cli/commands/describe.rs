//! `berth describe PLACEMENT`: a placement with its status, in its own system's terms.

use clap_complete::engine::ArgValueCandidates;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

use super::status::{FleetStatus, Selection, ShownCluster, gather};
use crate::flags::names::{self, find};
use crate::flags::state::{self, Located, RecordArgs};
use crate::output::results::{Format, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::{Pos, harmless_lines};
use berth_base::model::staged::{Run, RunProgress};
use berth_base::model::{Fleet, Key, Observed, Shared, Taint, Timestamp};
use berth_engine::dialects::{DIALECTS, cluster_kinds};
use berth_engine::release::runs::standing;
use berth_engine::release::stages::ClusterLabels;
use berth_engine::report::{self, DescribeInputs};
use berth_engine::state::State;
use berth_git::Repo;
use berth_git::shared_refs::{Statuses, read_statuses};
use berth_hub::publish::{ClusterRefCache, CurrentState, DifferingCache, differing};

/// Show a placement and its status, as its own system describes it, or a cluster and what is on it
///
/// Shows the same as `kubectl describe` of a ClusterResourcePlacement on a hub: conditions, selected resources and
/// each cluster's status, from the rendered branch and members' reports. Staged update runs come with their stages,
/// and federated objects and Open Cluster Management's placements in the words of theirs. A cluster comes with its labels
/// and taints, its member's report and the workloads that it has.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth describe web\n  berth describe crp/web -o json\n  berth describe ClusterStagedUpdateRun/web-2\n  berth describe cluster/oslo"
)]
pub(crate) struct DescribeArgs {
    /// NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME; cluster/NAME for a cluster
    #[arg(add = ArgValueCandidates::new(names::placements))]
    placement: String,
    #[command(flatten)]
    record: RecordArgs,
}

/// Descriptions, for programs.
#[derive(Serialize)]
struct DescriptionList {
    /// Each in the form of its own system.
    items: Vec<Json>,
}

/// A cluster, as an object with a status.
#[derive(Serialize)]
struct DescribedCluster<'a> {
    kind: &'static str,
    metadata: MetadataForm<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    status: StatusForm<'a>,
}

#[derive(Serialize)]
struct MetadataForm<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a BTreeMap<String, String>>,
}

#[derive(Serialize)]
struct StatusForm<'a> {
    #[serde(flatten)]
    shown: Option<&'a ShownCluster>,
    #[serde(skip_serializing_if = "Option::is_none")]
    taints: Option<Vec<String>>,
}

pub(crate) fn cmd_describe(args: &DescribeArgs, ui: &Ui) -> Outcome {
    let located = Located::find(&args.record, ui)?;
    let Some(current) = &located.state.current else {
        let error = CommandError::usage("nothing is published yet");
        return Err(error.hint("publish with `berth run --once`, or see the next state with `berth explain`"));
    };
    let now = args.record.now.unwrap_or_else(Timestamp::now);
    let named = named_cluster(&args.placement);
    let cluster = |name: &str| describe_cluster(&located, current, name, ui);
    let described = match find(current.state.decisions.keys().collect(), &args.placement) {
        Ok(keys) => placements(&located, current, &keys, now, ui)?,
        Err(_) if named.is_some() => vec![cluster(named.unwrap_or_default())?],
        Err(unknown) => match runs(&located, current, args, now, ui) {
            Ok(described) if !described.is_empty() => described,
            Ok(_) => vec![cluster(&args.placement).map_err(|_| unknown)?],
            // The name may be that of a staged run, which only the source contains.
            Err(error) => {
                let message = format!("{}; staged runs need the source: {}", unknown.message, error.message);
                return Err(CommandError { message, ..error });
            }
        },
    };
    match args.record.output {
        Format::Text => {
            let texts: Vec<String> = described.iter().map(text).collect();
            ui.out(&texts.join("\n"));
        }
        format => format.write(ResultKind::DescriptionList, &DescriptionList { items: described }, ui),
    }
    Ok(Exit::Done)
}

fn placements(
    located: &Located,
    current: &CurrentState,
    keys: &[&Key],
    now: Timestamp,
    ui: &Ui,
) -> Result<Vec<Json>, CommandError> {
    let (repo, refs) = (located.repo(), &located.state.refs);
    let Statuses { by_cluster: statuses, diagnostics, .. } = read_statuses(repo, refs)?;
    ui.diagnostics(&diagnostics);
    let mut cluster_refs = ClusterRefCache::default();
    let published = cluster_refs.folders(repo, &repo.list_refs(&refs.clusters)?)?;
    let fleet = fleet_of(repo, current);
    let (fleet, state) = (fleet.as_deref(), Some(&current.state));
    let differing = &differing(repo, &statuses, published, &mut DifferingCache::default());
    let observed = Observed { statuses: &statuses, published, differing, now };
    let known = DescribeInputs { fleet, state, ..DescribeInputs::new(observed) };
    let found = keys.iter().filter_map(|key| current.state.decisions.get(*key));
    Ok(found.map(|decision| report::describe(decision, known)).collect())
}

/// Returns the staged runs with the wanted name, each with its progress at the next step.
fn runs(
    located: &Located,
    current: &CurrentState,
    args: &DescribeArgs,
    now: Timestamp,
    ui: &Ui,
) -> Result<Vec<Json>, CommandError> {
    let built = located.build(now, ui)?;
    let Ok(keys) = find(built.fleet.runs.keys().collect(), &args.placement) else { return Ok(Vec::new()) };
    let labels = ClusterLabels::of(&built.fleet, &built.state.facts);
    let describe = |run: &Run| {
        let progress = |state: &'_ State| state.releases.get(&run.workload)?.run.clone();
        let is_own = |progress: &RunProgress| progress.run.as_ref() == Some(&run.key);
        let (recorded, next) = (progress(&current.state), progress(&built.state));
        let trace = built.rollouts.get(&run.workload).filter(|_| next.as_ref().is_some_and(is_own));
        let now = trace.and_then(|trace| trace.standing.as_ref());
        let decision = built.state.decisions.get(&run.workload);
        let standing = standing((&built.fleet, &labels), decision, run, recorded.as_ref(), now);
        report::describe_run(run, recorded.as_ref().filter(|one| is_own(one)), &standing, DIALECTS)
    };
    Ok(keys.into_iter().filter_map(|key| built.fleet.runs.get(key)).map(describe).collect())
}

/// Returns the fleet from which the current state was made. Without it, overrides are unknown.
fn fleet_of(repo: &Repo, current: &CurrentState) -> Option<Shared<Fleet>> {
    Some(state::publication_inputs(repo, current, current)?.fleet())
}

/// Prints an object in kubectl's format for unknown kinds.
fn text(object: &Json) -> String {
    let mut text = String::new();
    let metadata = &object["metadata"];
    for (title, value) in [
        ("Name", &metadata["name"]),
        ("Namespace", &metadata["namespace"]),
        ("Kind", &object["kind"]),
        ("Group", &object["group"]),
        ("Source", &object["source"]),
    ] {
        text.push_str(&format!(
            "{title}:{}{}\n",
            " ".repeat(13 - title.len()),
            value.as_str().unwrap_or_default()
        ));
    }
    text.push_str("Status:\n");
    fields(&object["status"], 1, &mut text);
    let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
    harmless_lines(&format!("{}\n", trimmed.join("\n"))).into_owned()
}

/// Prints the fields of a mapping. Fields with a single value are aligned.
fn fields(value: &Json, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let Some(fields) = value.as_object() else { return };
    let single = fields.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    let width = single.map(|(key, _)| title(key).len()).max().unwrap_or_default();
    for (key, value) in fields {
        let title = title(key);
        match value {
            Json::Object(_) => {
                text.push_str(&format!("{indent}{title}:\n"));
                self::fields(value, depth + 1, text);
            }
            Json::Array(items) => {
                text.push_str(&format!("{indent}{title}:\n"));
                for item in items {
                    match item {
                        Json::Object(_) => self::fields(item, depth + 2, text),
                        other => text.push_str(&format!("{indent}  {}\n", plain(other))),
                    }
                }
            }
            other => {
                let gap = " ".repeat(width - title.len() + 2);
                text.push_str(&format!("{indent}{title}:{gap}{}\n", plain(other)));
            }
        }
    }
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Converts `clusterName` to `Cluster Name`.
fn title(key: &str) -> String {
    let mut title = String::new();
    for (index, letter) in key.chars().enumerate() {
        if index == 0 {
            title.extend(letter.to_uppercase());
        } else {
            if letter.is_uppercase() {
                title.push(' ');
            }
            title.push(letter);
        }
    }
    title
}

/// Returns the name in `cluster/NAME`, or after a system's kind, as in `MemberCluster/NAME`.
fn named_cluster(wanted: &str) -> Option<&str> {
    let (kind, name) = wanted.split_once('/')?;
    let is_kind = |known: &str| kind.eq_ignore_ascii_case(known);
    (is_kind("cluster") || cluster_kinds().any(|known| is_kind(known.kind))).then_some(name)
}

/// Describes a cluster, as an object with a status.
fn describe_cluster(
    located: &Located,
    current: &CurrentState,
    name: &str,
    ui: &Ui,
) -> Result<Json, CommandError> {
    let repo = located.repo();
    let gathered = gather(repo, &located.state, ui)?;
    let names = [name.to_owned()];
    let selection = Selection::of(&names, None, repo, &located.state, &gathered)?;
    let status = FleetStatus::of(repo, &located.state, gathered, &selection)?;
    // Without the source, only the published state is known.
    let fleet = state::publication_inputs(repo, current, current).map(|inputs| inputs.fleet());
    let cluster = fleet.as_ref().and_then(|fleet| fleet.clusters.get(name));
    let place = |at: &Pos| format!("{}:{}", at.file, at.line);
    let taint = |taint: &Taint| match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect_word),
        value => format!("{}={value}:{}", taint.key, taint.effect_word),
    };
    let form = DescribedCluster {
        kind: "Cluster",
        metadata: MetadataForm { name, labels: cluster.map(|cluster| &cluster.labels) },
        source: cluster.map(|cluster| cluster.origins.iter().map(place).collect::<Vec<_>>().join(", ")),
        status: StatusForm {
            shown: status.fleet.clusters.first(),
            taints: cluster.map(|cluster| cluster.taints.iter().map(taint).collect()),
        },
    };
    Ok(serde_json::to_value(form).expect("texts and numbers"))
}
