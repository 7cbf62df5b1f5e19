//! `berth status`: an overview of the fleet, or of some clusters, for people.
//!
//! - [`fleet_status`]: the status as values, of the selected clusters.

mod fleet_status;

use std::time::{Duration, Instant};

use clap_complete::engine::ArgValueCandidates;

use crate::flags::fleet::RepoArg;
use crate::flags::names;
use crate::flags::state::{StateArgs, StateRepo};
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::backoff::pace::paced;
use berth_base::diag::harmless_line;
use berth_base::model::{Map, MemberState};
use berth_base::text::counted;
use berth_engine::report::{ClusterLine, PlacedLine, WorkloadLine};
use berth_git::{CommitId, Repo};
use berth_hub::inputs::LocatedState;
use fleet_status::{HeldWorkload, IN_SYNC, NO_ANSWER, OnCluster, Pending, ProcessedSource};

pub(super) use fleet_status::{FleetStatus, Selection, ShownCluster, gather};

/// Show what is published and where members stand
///
/// The clusters that need somebody come first. With names or a selector it shows these clusters alone, each with the
/// workloads that it has and with what is wrong there. `berth wait` waits until all of them are in sync. With `--rendered`
/// and an address, no repository is needed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth status --repo /srv/fleet.git\n  berth status oslo\n  berth status -l region=eu\n  berth status --rendered https://git.example.com/fleet.git\n  berth status -o json\n  berth status --watch"
)]
pub(crate) struct StatusArgs {
    /// Show these clusters alone, with what is on them
    #[arg(value_name = "CLUSTER", add = ArgValueCandidates::new(names::clusters))]
    clusters: Vec<String>,
    #[command(flatten)]
    place: StatusSourceArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    /// Show it again each time that something is published or reported, until it is ended
    #[arg(long)]
    watch: bool,
}

/// The state to look at, and the clusters.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct StatusSourceArgs {
    /// Take the clusters with these labels: `env=prod,tier in (web, api)`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    state: StateArgs,
}

/// The interval of reading the refs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The interval of reading the refs of a remote.
const BETWEEN_FETCHES: Duration = Duration::from_secs(5);

impl StatusSourceArgs {
    pub fn open(&self) -> Result<StateRepo, CommandError> {
        self.state.open(&self.repo.path)
    }

    /// Finds the state. Fetches it if it is at an address.
    pub fn locate(&self, opened: &StateRepo) -> Result<LocatedState, CommandError> {
        Ok(LocatedState::find(&opened.repo, &self.state.search(&opened.path)?)?)
    }

    /// Reads the state, and again each time that a ref moves, until `look` returns a result. `None` if the time is up
    /// before.
    pub fn follow<T>(
        &self,
        opened: &StateRepo,
        end: Option<Instant>,
        mut look: impl FnMut(&LocatedState) -> Result<Option<T>, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        let pause = if self.state.address().is_some() { BETWEEN_FETCHES } else { BETWEEN_LOOKS };
        let mut seen = None;
        loop {
            // Fetches the state if it is at an address.
            self.locate(opened)?;
            let now = everything(&opened.repo)?;
            if seen.as_ref() != Some(&now) {
                // Refs that move after this are for the next look.
                if let Some(found) = look(&self.locate(opened)?)? {
                    return Ok(Some(found));
                }
                seen = Some(now);
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(None);
            }
            std::thread::sleep(paced(pause));
        }
    }
}

pub(crate) fn cmd_status(args: &StatusArgs, ui: &Ui) -> Outcome {
    let opened = args.place.open()?;
    if !args.watch {
        return show(args, &opened, &args.place.locate(&opened)?, ui);
    }
    let ended = args.place.follow(&opened, None, |located| {
        ui.in_place(|| show(args, &opened, located, ui))?;
        ui.write_failure().map_or(Ok(None), Err)
    })?;
    Ok(ended.unwrap_or(Exit::Done))
}

/// Returns every ref from which a status may be made.
fn everything(repo: &Repo) -> Result<Map<String, CommitId>, CommandError> {
    Ok(repo.list_refs("refs/")?)
}

fn show(args: &StatusArgs, opened: &StateRepo, located: &LocatedState, ui: &Ui) -> Outcome {
    let repo = &opened.repo;
    if located.current.is_some() {
        ui.status(&format!("reading {}", located.words()));
    }
    if let (Some(remote), None) = (&located.remote, &located.processed) {
        ui.status(&format!(
            "note: no member's status is in this clone; fetch them: git fetch {} \
             '+refs/berth/*:refs/berth/*'",
            harmless_line(remote)
        ));
    }
    let gathered = gather(repo, located, ui)?;
    let selection = Selection::of(&args.clusters, args.place.selector.as_deref(), repo, located, &gathered)?;
    let mut status = FleetStatus::of(repo, located, gathered, &selection)?;
    status.name_errors(&opened.path, repo);
    match args.output {
        Format::Text => ui.out(&status.text(ui)),
        format => format.write(ResultKind::FleetStatus, &status, ui),
    }
    Ok(Exit::Done)
}

/// Writes a duration as `80 s ago`, in the largest unit of which it has at least two.
fn ago(seconds: i64) -> String {
    let (size, unit) = [(86_400, "d"), (3_600, "h"), (60, "min")]
        .into_iter()
        .find(|(size, _)| seconds >= 2 * size)
        .unwrap_or((1, "s"));
    format!("{} {unit} ago", seconds / size)
}

/// Writes a number, or a dash if there is none.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The states in order of urgency, including that of a member that does not answer.
const WORST_FIRST: [&str; 9] = [
    MemberState::Failing.word(),
    NO_ANSWER,
    MemberState::Silent.word(),
    MemberState::NeverReported.word(),
    MemberState::WithProblems.word(),
    MemberState::Behind.word(),
    MemberState::Suspended.word(),
    MemberState::Progressing.word(),
    IN_SYNC,
];

fn rank(state: &str) -> usize {
    WORST_FIRST.iter().position(|word| *word == state).unwrap_or_default()
}

/// The number of errors shown.
const MOST_ERRORS: usize = 10;

fn short(id: &str) -> String {
    id.chars().take(10).collect()
}

fn tone(state: &str) -> Tone {
    match state {
        IN_SYNC => Tone::Good,
        "failing" | "silent" | NO_ANSWER | "failed to render" => Tone::Bad,
        _ => Tone::Warn,
    }
}

impl FleetStatus<'_> {
    pub fn text(&self, ui: &Ui) -> String {
        let mut out = self.publication(ui);
        let mut clusters: Vec<&ShownCluster> = self.fleet.clusters.iter().collect();
        clusters.sort_by_key(|cluster| rank(cluster.line.state));
        if !clusters.is_empty() {
            out.push_str(&format!("\n{}: {}\n\n", counted(clusters.len(), "cluster"), self.totals()));
            let rows: Vec<_> = clusters.iter().map(|cluster| row(&cluster.line, ui)).collect();
            let headings = ["CLUSTER", "STATE", "PUBLISHED", "APPLIED", "OBJECTS", "PROBLEMS", "REPORTED"];
            out.push_str(&table(&headings, &rows, ui));
        }
        for ShownCluster { line, has } in clusters {
            if let Some(since) = line.unreachable_since {
                let frozen = line.frozen_since.map_or_else(String::new, |frozen| {
                    format!("; nothing is moved away from it since {frozen}")
                });
                out.push_str(&format!("{}: unreachable since {since}{frozen}\n", line.name));
            }
            for why in [&line.failing, &line.suspended].into_iter().flatten() {
                out.push_str(&format!("{}: {why}\n", line.name));
            }
            if let Some(has) = has {
                out.push_str(&on_cluster(&line.name, has, ui));
            }
        }
        let row = |workload: &WorkloadLine| {
            let WorkloadLine { kind, namespace, name, in_sync, placed, .. } = workload;
            vec![kind.clone(), full_name(namespace, name), format!("{in_sync}/{placed}")]
        };
        let workloads: Vec<_> = self.fleet.workloads.iter().map(row).collect();
        if !workloads.is_empty() {
            out.push('\n');
            out.push_str(&table(&["KIND", "NAME", "IN SYNC"], &workloads, ui));
        }
        out
    }

    /// Describes the publication, the source processed last, and its held workloads.
    fn publication(&self, ui: &Ui) -> String {
        let mut out = match &self.rendered {
            None => "nothing is published yet: `berth run --once`\n".to_owned(),
            Some(rendered) => format!(
                "published number {} ({}) from source {}\n",
                rendered.sequence,
                short(&rendered.commit),
                short(rendered.source.as_deref().unwrap_or("-"))
            ),
        };
        if let Some(processed) = &self.processed {
            let ProcessedSource { source, errors, warnings, messages, .. } = processed;
            let source = short(source);
            let (errors, warnings) = (counted(*errors, "error"), counted(*warnings, "warning"));
            out.push_str(&format!("last source {source}: {errors}, {warnings}\n"));
            for line in messages.iter().take(MOST_ERRORS).flat_map(|message| message.lines()) {
                out.push_str(&format!("  {}\n", ui.tint(&harmless_line(line), Tone::Bad)));
            }
            if messages.len() > MOST_ERRORS {
                let more = messages.len() - MOST_ERRORS;
                out.push_str(&format!("  and {more} more: `berth validate --rev {source}`\n"));
            }
        }
        if let Some(Pending { branch, source, commits }) = &self.pending {
            let commits = counted(*commits, "commit");
            let line = format!("not processed yet: {commits} of {branch}, up to {}", short(source));
            out.push_str(&format!("{}\n", ui.tint(&line, Tone::Warn)));
        }
        let held: Vec<_> = self.processed.iter().flat_map(|processed| &processed.held).collect();
        let several = held.iter().any(|one| one.alone != held[0].alone);
        for HeldWorkload { workload, approval, alone } in &held {
            let approval = if several { format!("alone: {alone}") } else { approval.clone() };
            let line = format!("held for approval: {workload} ({approval})");
            out.push_str(&format!("{}\n", ui.tint(&line, Tone::Bad)));
        }
        if let Some(one) = held.first().filter(|_| several) {
            out.push_str(&format!("all of them: {}\n", one.approval));
        }
        out
    }

    /// Returns the number of clusters in each state, worst first: `2 silent, 58 in sync`.
    pub fn totals(&self) -> String {
        let mut totals: Vec<_> = self.fleet.totals.iter().collect();
        totals.sort_by_key(|(state, _)| rank(state));
        let totals: Vec<String> = totals.iter().map(|(state, count)| format!("{count} {state}")).collect();
        totals.join(", ")
    }
}

fn row(cluster: &ClusterLine, ui: &Ui) -> Vec<String> {
    vec![
        cluster.name.clone(),
        ui.tint(cluster.state, tone(cluster.state)),
        or_dash(cluster.published),
        or_dash(cluster.applied),
        or_dash(cluster.objects),
        cluster.problems.to_string(),
        or_dash(cluster.reported_seconds_ago.map(ago)),
    ]
}

/// Lists the workloads of one cluster, and the problems of its objects.
fn on_cluster(name: &str, has: &OnCluster, ui: &Ui) -> String {
    let mut out = format!("\non {name}: {}\n", counted(has.workloads.len(), "workload"));
    let row = |one: &PlacedLine| {
        let name = full_name(&one.namespace, &one.name);
        vec![one.kind.clone(), name, one.objects.to_string(), ui.tint(one.state, tone(one.state))]
    };
    let rows: Vec<_> = has.workloads.iter().map(row).collect();
    if !rows.is_empty() {
        out.push_str(&table(&["KIND", "NAME", "OBJECTS", "STATE"], &rows, ui));
    }
    for problem in &has.problems {
        let line = format!("{}: {}", problem.object, problem.message);
        out.push_str(&format!("{}\n", ui.tint(&harmless_line(&line), Tone::Bad)));
    }
    out
}

fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
