//! `berth diff A..B`: the differences between two published states, grouped as in a plan.

use std::collections::BTreeSet;

use clap_complete::engine::ArgValueCandidates;
use serde::Serialize;

use crate::flags::fleet::RepoArg;
use crate::flags::names;
use crate::flags::state::{self, StateArgs};
use crate::output::plan_forms::PlanReport;
use crate::output::plan_forms::json::ReportForm;
use crate::output::plan_forms::reasons::Reasons;
use crate::output::results::ResultKind;
use crate::output::ui::Ui;
use crate::planning::planned::read_object;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::{Diagnostics, did_you_mean, harmless_line};
use berth_base::model::{Cluster, Fleet, Shared};
use berth_base::text::counted;
use berth_engine::causes::Causes;
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::consequences::folding::{ToFold, fold};
use berth_engine::plan::{Plan, plan};
use berth_git::{CommitId, CommitInfo, Repo};
use berth_hub::inputs::{PolicyReport, current_state};
use berth_hub::publish::CurrentState;

/// The number of listed source commits.
const SHOWN: usize = 10;

/// Show what differs between two published states
///
/// Equal changes are shown once, by the edits that made them, as `berth plan` shows them. The source commits between
/// the two are listed. A publication is named by its number, its commit or any revision of the
/// rendered branch. Nothing is written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth diff\n  berth diff 12..15\n  berth diff berth/rendered~3..berth/rendered --cluster oslo -o markdown"
)]
pub(crate) struct DiffArgs {
    /// Two publications. Without A, the one before B; without B, the newest
    #[arg(value_name = "A..B", default_value = "..")]
    range: String,
    /// Show the changes of this cluster alone
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(names::clusters))]
    cluster: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    state: StateArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: DiffFormat,
}

/// The forms of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DiffFormat {
    /// For people
    Text,
    Json,
    Yaml,
    /// One comment for a pull request
    Markdown,
}

pub(crate) fn cmd_diff(args: &DiffArgs, ui: &Ui, verbose: u8) -> Outcome {
    let repo = Repo::open(&args.repo.path)?;
    let ends = Ends::read(args, &repo)?;
    let GroupedDifference { changes, folded, fleet, reasons, causes } =
        GroupedDifference::between(&ends, &repo, args.cluster.as_deref(), ui)?;
    let Ends { before, after } = &ends;
    let commits = commits(&repo, before, after)?;
    let words = format!("{} → {}", words_of(&repo, before)?, words_of(&repo, after)?);
    ui.status(&words);
    let report = PlanReport {
        words: &words,
        published: &changes,
        now: None,
        earlier: &Plan::default(),
        staying: &[],
        wanted: &changes,
        folded: &folded,
        causes: &causes,
        fleet: &fleet,
        held: &[],
        deadlines: &[],
        rollouts: &[],
        refused: &[],
        diagnostics: &Diagnostics::new(),
        standing: &Diagnostics::new(),
        policy: &PolicyReport::default(),
        together: None,
    };
    let form = || {
        ResultKind::StateDifference.of(&StateDifference {
            report: ReportForm::of(&report, &reasons),
            from: PublicationForm::of(before),
            to: PublicationForm::of(after),
            commits: commits.iter().map(CommitForm::of).collect(),
        })
    };
    match args.output {
        DiffFormat::Text => {
            ui.paged(&report.text(verbose > 0, ui));
            ui.out(&commits_text(&commits));
        }
        DiffFormat::Json => ui.json(&form()),
        DiffFormat::Yaml => ui.yaml(&form()),
        DiffFormat::Markdown => ui.out(&report.markdown()),
    }
    Ok(Exit::Done)
}

/// The changes between two states, grouped by the edits that caused them.
struct GroupedDifference {
    changes: Plan,
    folded: FoldedPlan,
    fleet: Shared<Fleet>,
    reasons: Reasons,
    causes: Causes,
}

impl GroupedDifference {
    /// Compares two states, for one cluster if `cluster` is set. Reasons and causes are known if the repository has
    /// the later source.
    fn between(
        ends: &Ends,
        repo: &Repo,
        cluster: Option<&str>,
        ui: &Ui,
    ) -> Result<GroupedDifference, CommandError> {
        let Ends { before, after } = ends;
        let mut inputs = ui.watching("reading the fleet", || state::publication_inputs(repo, after, before));
        let of_source = inputs.as_ref().map(|inputs| inputs.fleet());
        let fleet = of_source.clone().unwrap_or_else(|| Shared::from(names_alone([before, after])));
        let mut changes = plan(&before.state, &after.state);
        if let Some(cluster) = cluster {
            known(cluster, &fleet, [before, after])?;
            changes = changes.of_cluster(cluster);
        }
        let reasons = match of_source {
            Some(fleet) => {
                let (state, now) = (&after.state, after.trailers.now.unwrap_or_default());
                Reasons::traced(&changes, &fleet, state, &state.facts, now)
            }
            None => Reasons::default(),
        };
        let causes = match &mut inputs {
            Some(inputs) => ui.watching("tracing causes", || {
                inputs.causes(repo, &after.state, |built| built.state.clone())
            })?,
            None => Causes::default(),
        };
        let mut folded = fold(ToFold {
            wanted: &changes,
            before: &before.state,
            after: &after.state,
            fleet: &fleet,
            causes: &causes,
            read: &mut |id| read_object(repo, id),
            held: &|_, _| false,
            reasons: &|key, cluster| reasons.get(key, cluster),
        });
        if let Some(cluster) = cluster {
            folded.narrow(cluster);
        }
        Ok(GroupedDifference { changes, folded, fleet, reasons, causes })
    }
}

/// The states at both ends of the range.
struct Ends {
    before: CurrentState,
    after: CurrentState,
}

impl Ends {
    fn read(args: &DiffArgs, repo: &Repo) -> Result<Ends, CommandError> {
        let Some((a, b)) = args.range.split_once("..") else {
            let error = CommandError::usage(format!("`{}` is not a range", args.range));
            return Err(error.hint(format!("write `A..B`; `..{}` shows what it changed", args.range)));
        };
        let place = current_state::locate(repo, &args.state.search(&args.repo.path)?)?;
        let branch = &place.refs.rendered;
        let Some(tip) = place.commit else {
            return Err(CommandError::usage("nothing is published yet").hint("`berth run` publishes a state"));
        };
        let to = if b.is_empty() { tip } else { state::find_publication(repo, tip, b)? };
        let from = if a.is_empty() {
            state::publication_before(repo, to)?
        } else {
            state::find_publication(repo, tip, a)?
        };
        let before = state::read_publication(repo, branch, from)?;
        Ok(Ends { before, after: state::read_publication(repo, branch, to)? })
    }
}

/// Makes a fleet of just the clusters' names.
fn names_alone(states: [&CurrentState; 2]) -> Fleet {
    let named = |name: &String| {
        let cluster = Cluster { name: name.as_str().into(), ..Cluster::default() };
        (name.clone(), Shared::from(cluster))
    };
    let names = states.into_iter().flat_map(|one| one.state.folders.keys());
    Fleet { clusters: names.map(named).collect(), ..Fleet::default() }
}

fn known(cluster: &str, fleet: &Fleet, states: [&CurrentState; 2]) -> Result<(), CommandError> {
    let of_states = states.into_iter().flat_map(|one| one.state.folders.keys());
    let names: BTreeSet<&str> = fleet.clusters.keys().chain(of_states).map(String::as_str).collect();
    if names.contains(cluster) {
        return Ok(());
    }
    let error = CommandError::usage(format!("no cluster `{cluster}` in these states"));
    Err(match did_you_mean(cluster, names) {
        Some(near) => error.hint(near),
        None => error,
    })
}

/// Lists the source commits that only one of the states contains, and whether the later state reverted them.
fn commits(
    repo: &Repo,
    before: &CurrentState,
    after: &CurrentState,
) -> Result<Vec<(CommitInfo, bool)>, CommandError> {
    let (Some(from), Some(to)) = (before.trailers.source, after.trailers.source) else {
        return Ok(Vec::new());
    };
    if !repo.has_commit(from) || !repo.has_commit(to) {
        return Ok(Vec::new());
    }
    let between = |from: CommitId, to: CommitId| -> Result<Vec<CommitInfo>, CommandError> {
        Ok(repo.commits_between(from, to)?.into_iter().filter(|commit| commit.parents.len() < 2).collect())
    };
    let came = between(from, to)?.into_iter().map(|commit| (commit, false));
    let went = between(to, from)?.into_iter().map(|commit| (commit, true));
    Ok(came.chain(went).collect())
}

/// Lists the source commits, newest first.
fn commits_text(commits: &[(CommitInfo, bool)]) -> String {
    let mut text = String::new();
    let line = |(commit, is_gone): &(CommitInfo, bool)| {
        let sign = if *is_gone { "-" } else { "+" };
        let subject = format!("{}: {}", commit.id.short(), commit.subject());
        format!("  {sign} {}\n", harmless_line(&subject))
    };
    if !commits.is_empty() {
        text.push_str("\nsource commits\n");
        text.extend(commits.iter().take(SHOWN).map(line));
    }
    if commits.len() > SHOWN {
        text.push_str(&format!("  and {}\n", counted(commits.len() - SHOWN, "other commit")));
    }
    text
}

/// A comparison of two publications, for programs.
#[derive(Serialize)]
struct StateDifference<'a> {
    #[serde(flatten)]
    report: ReportForm<'a>,
    from: PublicationForm,
    to: PublicationForm,
    commits: Vec<CommitForm<'a>>,
}

#[derive(Serialize)]
struct PublicationForm {
    commit: String,
    sequence: u64,
    source: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CommitForm<'a> {
    commit: String,
    subject: &'a str,
    taken_back: bool,
}

impl PublicationForm {
    fn of(one: &CurrentState) -> PublicationForm {
        PublicationForm {
            commit: one.commit.to_string(),
            sequence: one.trailers.seq,
            source: one.trailers.source.map(|source| source.to_string()),
        }
    }
}

impl<'a> CommitForm<'a> {
    fn of((commit, taken_back): &'a (CommitInfo, bool)) -> CommitForm<'a> {
        CommitForm { commit: commit.id.to_string(), subject: commit.subject(), taken_back: *taken_back }
    }
}

/// Describes a state, as `number 12 (1a2b3c4, source 5d6e7f8: a subject)`.
fn words_of(repo: &Repo, one: &CurrentState) -> Result<String, CommandError> {
    let source = match one.trailers.source {
        Some(source) if repo.has_commit(source) => {
            format!(", source {}: {}", source.short(), repo.commit(source)?.subject())
        }
        Some(source) => format!(", source {}, which is not in this clone", source.short()),
        None => String::new(),
    };
    let words = format!("number {} ({}{source})", one.trailers.seq, one.commit.short());
    Ok(harmless_line(&words).into_owned())
}
