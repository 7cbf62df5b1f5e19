//! `berth why NAME`: the publications that made a placement or an object what it is.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap_complete::engine::ArgValueCandidates;
use serde::Serialize;

use super::entry::{Entries, Entry, Traced};
use super::{HistoryArgs, subject, title};
use crate::flags::names;
use crate::flags::state::publication_inputs;
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::{did_you_mean, harmless_line};
use berth_base::model::{Decision, Key, Map, ObjectId, path};
use berth_base::text::some_of;
use berth_engine::{decide, pipeline, render};
use berth_git::Repo;
use berth_hub::history::{Event, Events, Subject};
use berth_hub::publish::CurrentState;

/// The number of clusters by name.
const MOST_CLUSTERS: usize = 8;

/// Explain since when and by whom something is what it is
///
/// For an object or a placement in one cluster: the publication since which it is there or not, the publication that
/// changed it last, the edited lines behind both, who made and who approved them, the placement that decides, and the
/// overrides that write its fields. Without --cluster: since when it is in each of its clusters. `berth explain` says
/// which rules decide now; `berth log` lists all changes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth why ConfigMap/shop/web --cluster oslo\n  berth why web\n  berth why web --cluster oslo --at 2026-01-31T12:00:00Z"
)]
pub(crate) struct WhyArgs {
    /// A placement, or an object as KIND/NAMESPACE/NAME
    #[arg(add = ArgValueCandidates::new(names::placements))]
    name: String,
    /// Explain it in this cluster
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(names::clusters))]
    cluster: Option<String>,
    /// Trace the causes of this many publications, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    causes: usize,
    #[command(flatten)]
    history: HistoryArgs,
}

pub(crate) fn cmd_why(args: &WhyArgs, ui: &Ui) -> Outcome {
    let located = args.history.open(ui)?;
    let current = args.history.current(&located)?;
    let repo = located.repo();
    let subject = subject::find(repo, &current, &args.name, args.cluster.as_deref())?;
    let entries = Entries { repo, branch: &located.state.refs.rendered, subject: &subject, ui };
    let answer = match &subject {
        Subject::Cluster(name) => {
            let error = CommandError::usage(format!("`{name}` is a cluster"));
            return Err(error.hint(format!(
                "`berth log cluster/{name}` lists its changes, and `berth describe cluster/{name}` what it has"
            )));
        }
        Subject::Placement { cluster: Some(cluster), .. }
        | Subject::Object { cluster: Some(cluster), .. } => {
            known(repo, cluster, &current)?;
            Answer::InCluster(Box::new(Place::explained(&entries, &current, cluster)?))
        }
        Subject::Placement { .. } | Subject::Object { .. } => {
            Answer::Everywhere(Runs::explained(&entries, &current, args.causes)?)
        }
    };
    match args.history.output {
        Format::Text => ui.paged(&answer.text(&title(&subject), ui)),
        format => format.write(ResultKind::Why, &Why { subject: title(&subject), answer }, ui),
    }
    Ok(Exit::Done)
}

/// Refuses a cluster that has no object, and never had one.
fn known(repo: &Repo, cluster: &str, current: &CurrentState) -> Result<(), CommandError> {
    let names = || current.state.folders.keys().map(String::as_str);
    let had_objects = || {
        let mut events = Events::of(repo, current.commit, Subject::Cluster(cluster.to_owned()))?;
        Ok::<bool, CommandError>(events.next().transpose()?.is_some())
    };
    if names().any(|name| name == cluster) || had_objects()? {
        return Ok(());
    }
    let error = CommandError::usage(format!("no cluster `{cluster}` in any publication until then"));
    Err(match did_you_mean(cluster, names()) {
        Some(near) => error.hint(near),
        None => error,
    })
}

/// The answer, for programs.
#[derive(Serialize)]
struct Why {
    subject: String,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    InCluster(Box<Place>),
    Everywhere(Runs),
}

impl Answer {
    fn text(&self, subject: &str, ui: &Ui) -> String {
        let subject = ui.tint(subject, Tone::Strong);
        match self {
            Answer::InCluster(place) => place.text(&subject),
            Answer::Everywhere(runs) => runs.text(&subject, ui),
        }
    }
}

/// The subject in one cluster.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    is_there: bool,
    /// The publication since which it is there, or not there any more. `None` if it never was there, or if the
    /// history of this clone does not reach back.
    since: Option<Entry>,
    /// The publication that changed it last, if it is a later one.
    last_change: Option<Entry>,
    placements: Vec<PlacementForm>,
    /// The overrides that write its fields.
    overrides: Vec<String>,
}

/// A placement that has the object, and why it picks the cluster or does not.
#[derive(Serialize)]
struct PlacementForm {
    name: String,
    source: String,
    picked: bool,
    reason: String,
}

impl Place {
    fn explained(
        entries: &Entries<'_>,
        current: &CurrentState,
        cluster: &str,
    ) -> Result<Place, CommandError> {
        let (repo, subject) = (entries.repo, entries.subject);
        let is_there = is_in(subject, current, cluster);
        let is_turn = |event: &Event| match is_there {
            true => event.change.joined.contains(cluster),
            false => event.change.left.contains(cluster),
        };
        let (mut since, mut last_change) = (None, None);
        for event in Events::of(repo, current.commit, subject.clone())? {
            let event = event?;
            if is_turn(&event) {
                since = Some(entries.entry(&event, Traced::All)?);
                break;
            }
            if is_there && last_change.is_none() {
                last_change = Some(entries.entry(&event, Traced::All)?);
            }
        }
        let (placements, overrides) = placements(repo, subject, current, cluster);
        Ok(Place { is_there, since, last_change, placements, overrides })
    }

    fn text(&self, subject: &str) -> String {
        let mut text = String::new();
        let is = if self.is_there { "is there" } else { "is not there" };
        let _ = writeln!(text, "{subject} {is}");
        match &self.since {
            Some(entry) => write_entry(&mut text, "since", entry),
            None if self.is_there => text.push_str("\n  since before the oldest publication in this clone\n"),
            None => text.push_str("\n  and never was, as far as this clone reaches back\n"),
        }
        if let Some(entry) = &self.last_change {
            write_entry(&mut text, "last changed by", entry);
        }
        for placement in &self.placements {
            let picks = if placement.picked { "picks" } else { "does not pick" };
            let line = format!(
                "{} ({}) {picks} the cluster: {}",
                placement.name, placement.source, placement.reason
            );
            let _ = write!(text, "\n  {}\n", harmless_line(&line));
        }
        for line in &self.overrides {
            let _ = write!(text, "\n  {}\n", harmless_line(line));
        }
        text
    }
}

fn write_entry(text: &mut String, relation: &str, entry: &Entry) {
    let _ = write!(text, "\n  {relation} number {}, {}\n", entry.sequence, entry.published);
    let _ = writeln!(text, "    {}", entry.why_text());
    let who = entry.who_text();
    if !who.is_empty() {
        let _ = writeln!(text, "    by {who}");
    }
}

/// Reports whether a state has the subject in a cluster.
fn is_in(subject: &Subject, current: &CurrentState, cluster: &str) -> bool {
    match subject {
        Subject::Placement { key, .. } => {
            let decision = current.state.decisions.get(key);
            decision.is_some_and(|decision| decision.picked().any(|pick| &*pick.cluster == cluster))
        }
        Subject::Object { object, .. } => {
            let folder = current.state.folders.get(cluster);
            folder.is_some_and(|folder| folder.contains_key(path::of_object(object).as_str()))
        }
        Subject::Cluster(_) => false,
    }
}

/// Returns the placements of the subject with their reasons, and the overrides that write its fields.
fn placements(
    repo: &Repo,
    subject: &Subject,
    current: &CurrentState,
    cluster: &str,
) -> (Vec<PlacementForm>, Vec<String>) {
    let all = current.state.decisions.iter().filter(|(key, decision)| match subject {
        Subject::Placement { key: wanted, .. } => *key == wanted,
        Subject::Object { object, .. } => decision.objects.contains(object),
        Subject::Cluster(_) => false,
    });
    let all: Vec<(&Key, &Decision)> = all.collect();
    let inputs = publication_inputs(repo, current, current);
    let reason = |key: &Key, decision: &Decision| {
        if let Some(pick) = decision.pick(cluster) {
            return Some(pick.reason.clone());
        }
        let inputs = inputs.as_ref()?;
        let statuses = pipeline::with_first_seen(&inputs.current, &inputs.reports.statuses);
        let decisions = &current.state.decisions;
        let trace = decide::explain(&inputs.fleet(), decisions, &statuses, inputs.now, key)?;
        let found = trace.clusters.into_iter().find(|found| found.cluster == cluster)?;
        Some(found.reason)
    };
    let forms = all.iter().map(|(key, decision)| PlacementForm {
        name: key.to_string(),
        source: decision.source.clone(),
        picked: decision.has(cluster),
        reason: reason(key, decision)
            .unwrap_or_else(|| "the source of this publication is not in this clone".to_owned()),
    });
    let forms = forms.collect();
    let mut overrides = Vec::new();
    if let Some(inputs) = &inputs {
        let own: Map<Key, Decision> = all.iter().map(|(key, one)| ((*key).clone(), (*one).clone())).collect();
        let previous =
            render::Previous { decisions: &current.state.decisions, folders: &current.state.folders };
        let copies = render::touched(&inputs.fleet(), &own, previous).into_iter();
        let is_wanted = |object: &ObjectId| match subject {
            Subject::Object { object: wanted, .. } => object == wanted,
            Subject::Placement { .. } | Subject::Cluster(_) => true,
        };
        for copy in copies.filter(|copy| copy.cluster == cluster && is_wanted(&copy.object)) {
            overrides.extend(copy.by.iter().map(|by| format!("{}: {by}", copy.object)));
        }
    }
    (forms, overrides)
}

/// The clusters of a subject, by the publication since which it is there.
#[derive(Serialize)]
struct Runs {
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    /// `None` if the history of this clone does not reach back.
    since: Option<Entry>,
    clusters: BTreeSet<String>,
}

impl Runs {
    fn explained(entries: &Entries<'_>, current: &CurrentState, traced: usize) -> Result<Runs, CommandError> {
        let (repo, subject) = (entries.repo, entries.subject);
        let all = current.state.folders.keys().filter(|cluster| is_in(subject, current, cluster));
        let mut open: BTreeSet<String> = all.cloned().collect();
        let mut runs = Vec::new();
        let mut events = Events::of(repo, current.commit, subject.clone())?;
        while !open.is_empty() {
            let Some(event) = events.next().transpose()? else { break };
            let joined = event.change.joined.iter().filter(|cluster| open.contains(*cluster));
            let clusters: BTreeSet<String> = joined.cloned().collect();
            if clusters.is_empty() {
                continue;
            }
            open.retain(|cluster| !clusters.contains(cluster));
            let traced = if runs.len() < traced { Traced::In(&clusters) } else { Traced::No };
            runs.push(Run { since: Some(entries.entry(&event, traced)?), clusters });
        }
        if !open.is_empty() {
            runs.push(Run { since: None, clusters: open });
        }
        Ok(Runs { runs })
    }

    fn text(&self, subject: &str, ui: &Ui) -> String {
        if self.runs.is_empty() {
            return format!("{subject} is in no cluster; `berth log` lists what happened to it\n");
        }
        let rows: Vec<Vec<String>> = self
            .runs
            .iter()
            .map(|run| {
                let clusters = harmless_line(&some_of(&run.clusters, MOST_CLUSTERS)).into_owned();
                match &run.since {
                    Some(entry) => vec![
                        entry.sequence.to_string(),
                        entry.published.to_string(),
                        clusters,
                        entry.why_text(),
                        entry.who_text(),
                    ],
                    None => vec!["?".to_owned(), String::new(), clusters, String::new(), String::new()],
                }
            })
            .collect();
        format!("{subject}\n\n{}", table(&["SINCE", "PUBLISHED", "CLUSTERS", "WHY", "BY"], &rows, ui))
    }
}
