//! `berth status`: the fleet at a glance.

use berth_base::backoff::pace::paced;
use berth_base::text::counted;
use berth_git::protocol::{Refs, Statuses, read_statuses};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::exit::{CommandError, Exit, Outcome};
use super::fleet::Format;
use super::rehearsal::{Revision, source_tip};
use super::state::StateArgs;
use super::table::table;
use super::ui::{Tone, Ui};
use berth_base::diag::harmless_line;
use berth_base::model::{Digest, Map, Timestamp};
use berth_engine::gate::{HeldRecord, digest_of_all, messages::ALLOW_DELETE};
use berth_engine::report::{ClusterLine, Detail, FleetReport, FleetSummary, SummaryInputs, WorkloadLine};
use berth_git::{CommitId, Repo};
use berth_hub::inputs::{LocatedState, Search};
use berth_hub::publish::{ClusterRefCache, DifferingCache, differing};

/// Show what is published and where members stand
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth status --repo /srv/fleet.git\n  berth status -o json\n  berth status --watch"
)]
pub(crate) struct StatusArgs {
    /// The fleet repository
    #[arg(long, value_name = "PATH", default_value = ".", env = "BERTH_REPO")]
    repo: PathBuf,
    #[command(flatten)]
    state: StateArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    /// Show it again each time that something is published or reported, until it is ended
    #[arg(long)]
    watch: bool,
}

/// The pause between two looks at the refs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Clears a terminal and goes to its first line.
const CLEARED: &str = "\x1b[2J\x1b[H";

pub(crate) fn cmd_status(args: &StatusArgs, ui: &Ui) -> Outcome {
    let repo = Repo::open(&args.repo)?;
    if !args.watch {
        return show(args, &repo, ui);
    }
    let mut seen = None;
    loop {
        let now = everything(&repo)?;
        if seen.as_ref() != Some(&now) {
            if ui.out_is_terminal() {
                ui.out(CLEARED);
            }
            show(args, &repo, ui)?;
            seen = Some(now);
        }
        if let Some(failure) = ui.write_failure() {
            return Err(failure);
        }
        std::thread::sleep(paced(BETWEEN_LOOKS));
    }
}

/// Returns every ref that a status may be made from.
fn everything(repo: &Repo) -> Result<Map<String, CommitId>, CommandError> {
    Ok(repo.list_refs("refs/")?)
}

fn show(args: &StatusArgs, repo: &Repo, ui: &Ui) -> Outcome {
    let located = LocatedState::find(repo, &args.state.search(&args.repo)?)?;
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
    let gathered = gather(repo, &located, ui)?;
    let status = Status::of(repo, &located, gathered)?;
    match args.output {
        Format::Text => ui.out(&status.text(ui)),
        format => format.write(&json!(status), ui),
    }
    Ok(Exit::Done)
}

/// The status of a repository, for people.
pub fn status_of(repo: &Repo, ui: &Ui) -> Result<String, CommandError> {
    let located = LocatedState::find(repo, &Search::default())?;
    let gathered = gather(repo, &located, ui)?;
    Ok(Status::of(repo, &located, gathered)?.text(ui))
}

/// Returns members' reports, and what they are compared with.
fn gather(repo: &Repo, located: &LocatedState, ui: &Ui) -> Result<SummaryInputs, CommandError> {
    let Statuses { by_cluster: statuses, diagnostics, .. } = read_statuses(repo, &located.refs)?;
    ui.diagnostics(&diagnostics);
    let (mut decisions, mut releases) = (Map::new(), Map::new());
    if let Some(current) = &located.current {
        ui.diagnostics(&current.foreign);
        decisions = current.state.decisions.clone();
        releases = current.state.releases.clone();
    }
    let listed = repo.list_refs(&located.refs.clusters)?;
    let published = ClusterRefCache::default().folders(repo, &listed)?.clone();
    let differing = differing(repo, &statuses, &published, &mut DifferingCache::default());
    Ok(SummaryInputs { statuses, published, differing, decisions, releases, now: ui.now() })
}

/// The fleet at a glance.
#[derive(Debug, Serialize)]
struct Status<'s> {
    rendered: Option<Rendered<'s>>,
    processed: Option<ProcessedSource>,
    pending: Option<Pending>,
    fleet: FleetReport,
}

/// The publication that is in effect.
#[derive(Debug, Serialize)]
struct Rendered<'s> {
    #[serde(rename = "ref")]
    name: &'s str,
    commit: String,
    sequence: u64,
    source: Option<String>,
}

/// The source commit that the last pass read.
#[derive(Debug, Serialize)]
struct ProcessedSource {
    source: String,
    errors: usize,
    warnings: usize,
    held: Vec<HeldWorkload>,
}

/// A held workload, with the line that approves all of them and the one for it alone.
#[derive(Debug, Serialize)]
struct HeldWorkload {
    workload: String,
    approval: String,
    alone: String,
}

/// The commits of the branch people edit that no pass has read.
#[derive(Debug, Serialize)]
struct Pending {
    branch: String,
    source: String,
    commits: usize,
}

impl<'s> Status<'s> {
    fn of(
        repo: &Repo,
        located: &'s LocatedState,
        gathered: SummaryInputs,
    ) -> Result<Status<'s>, CommandError> {
        let now = gathered.now;
        let mut fleet = FleetSummary::of(gathered, Detail::Full).into_report();
        for cluster in &mut fleet.clusters {
            tell_dead_from_behind(repo, &located.refs, cluster, now)?;
            let facts = located.current.as_ref().and_then(|current| current.state.facts.get(&cluster.name));
            cluster.unreachable_since = facts.and_then(|facts| facts.silent);
            cluster.frozen_since = facts.and_then(|facts| facts.frozen);
        }
        let rendered = located.current.as_ref().map(|current| Rendered {
            name: &located.refs.rendered,
            commit: current.commit.to_string(),
            sequence: current.trailers.seq,
            source: current.trailers.source.map(|source| source.to_string()),
        });
        let (mut processed, mut pending) = (None, None);
        if let Some(last) = &located.processed {
            pending = Pending::since(repo, located, last.source)?;
            processed = Some(ProcessedSource {
                source: last.source.to_string(),
                errors: last.errors,
                warnings: last.warnings,
                held: held(&last.held),
            });
        }
        Ok(Status { rendered, processed, pending, fleet })
    }
}

impl Pending {
    fn since(repo: &Repo, located: &LocatedState, seen: CommitId) -> Result<Option<Pending>, CommandError> {
        if !repo.has_commit(seen) {
            return Ok(None);
        }
        let Some(Revision { name, commit }) = source_tip(repo, located, None)? else { return Ok(None) };
        if commit == seen || !repo.is_same_or_after(commit, seen)? {
            return Ok(None);
        }
        let commits = repo.commits_between(seen, commit)?.len();
        Ok(Some(Pending { branch: name, source: commit.to_string(), commits }))
    }
}

/// A member that runs takes over a new folder within seconds and says so.
const ANSWER_SECONDS: i64 = 60;

/// A member that is behind and has said nothing for a while since its folder was published does not answer.
fn tell_dead_from_behind(
    repo: &Repo,
    refs: &Refs,
    cluster: &mut ClusterLine,
    now: Timestamp,
) -> Result<(), CommandError> {
    let Some(reported) = cluster.reported else { return Ok(()) };
    let silent_for = |since: i64| now.as_second().saturating_sub(since);
    cluster.reported_seconds_ago = Some(silent_for(reported.as_second()).max(0));
    if cluster.state == "behind"
        && let Some(commit) = repo.read_ref(&refs.cluster(&cluster.name))?
    {
        let since = repo.commit(commit)?.seconds.max(reported.as_second());
        if silent_for(since) > ANSWER_SECONDS {
            cluster.state = "no answer";
        }
    }
    Ok(())
}

/// `80 s ago`, in the largest unit that leaves two of it.
fn ago(seconds: i64) -> String {
    let (size, unit) = [(86_400, "d"), (3_600, "h"), (60, "min")]
        .into_iter()
        .find(|(size, _)| seconds >= 2 * size)
        .unwrap_or((1, "s"));
    format!("{} {unit} ago", seconds / size)
}

fn held(lines: &[String]) -> Vec<HeldWorkload> {
    let records: Vec<HeldRecord> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    let all = digest_of_all(&records.iter().map(|record| record.digest).collect());
    let line = |digest: Digest| format!("{ALLOW_DELETE}: {digest}");
    let one = |record: &HeldRecord| HeldWorkload {
        workload: record.key.to_string(),
        approval: line(all.unwrap_or(record.digest)),
        alone: line(record.digest),
    };
    records.iter().map(one).collect()
}

/// A number, or a dash where there is none.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

impl Status<'_> {
    fn text(&self, ui: &Ui) -> String {
        let short = |id: &str| id.chars().take(10).collect::<String>();
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
            out.push_str(&format!(
                "last source {}: {}, {}\n",
                short(&processed.source),
                counted(processed.errors, "error"),
                counted(processed.warnings, "warning")
            ));
        }
        if let Some(Pending { branch, source, commits }) = &self.pending {
            let commits = counted(*commits, "commit");
            let line = format!("not processed yet: {commits} of {branch}, up to {}", short(source));
            out.push_str(&format!("{}\n", ui.tint(&line, Tone::Warn)));
        }
        for held in self.processed.iter().flat_map(|processed| &processed.held) {
            let line = format!("held for approval: {} ({})", held.workload, held.approval);
            out.push_str(&format!("{}\n", ui.tint(&line, Tone::Bad)));
        }
        let state = |word: &str| {
            let tone = match word {
                "in sync" => Tone::Good,
                "failing" | "silent" | "no answer" => Tone::Bad,
                _ => Tone::Warn,
            };
            ui.tint(word, tone)
        };
        let row = |cluster: &ClusterLine| {
            vec![
                cluster.name.clone(),
                state(cluster.state),
                or_dash(cluster.published),
                or_dash(cluster.applied),
                or_dash(cluster.objects),
                cluster.problems.to_string(),
                or_dash(cluster.reported_seconds_ago.map(ago)),
            ]
        };
        let clusters: Vec<_> = self.fleet.clusters.iter().map(row).collect();
        if !clusters.is_empty() {
            out.push('\n');
            out.push_str(&table(
                &["CLUSTER", "STATE", "PUBLISHED", "APPLIED", "OBJECTS", "PROBLEMS", "REPORTED"],
                &clusters,
                ui,
            ));
        }
        for cluster in &self.fleet.clusters {
            if let Some(since) = cluster.unreachable_since {
                let frozen = cluster.frozen_since.map_or_else(String::new, |frozen| {
                    format!("; nothing is moved away from it since {frozen}")
                });
                out.push_str(&format!("{}: unreachable since {since}{frozen}\n", cluster.name));
            }
            for why in [&cluster.failing, &cluster.suspended].into_iter().flatten() {
                out.push_str(&format!("{}: {why}\n", cluster.name));
            }
        }
        let row = |workload: &WorkloadLine| {
            let WorkloadLine { kind, namespace, name, in_sync, placed, .. } = workload;
            let name = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
            vec![kind.clone(), name, format!("{in_sync}/{placed}")]
        };
        let workloads: Vec<_> = self.fleet.workloads.iter().map(row).collect();
        if !workloads.is_empty() {
            out.push('\n');
            out.push_str(&table(&["KIND", "NAME", "IN SYNC"], &workloads, ui));
        }
        out
    }
}
