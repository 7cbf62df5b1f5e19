//! `berth status`: the fleet at a glance.

use berth_base::text::counted;
use berth_git::protocol::Refs;
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::exit::{CommandError, Exit, Outcome};
use super::fleet::Format;
use super::rehearsal::{Revision, source_tip};
use super::state::StateArgs;
use super::table::table;
use super::ui::{Tone, Ui};
use berth_base::diag::harmless_line;
use berth_base::model::{Digest, Timestamp};
use berth_engine::gate::{HeldRecord, digest_of_all, messages::ALLOW_DELETE};
use berth_engine::report::{self, Detail, ReportInputs};
use berth_git::{CommitId, Repo};
use berth_hub::inputs::{LocatedState, Search};
use berth_hub::publish::cluster_refs::{self, ClusterRefCache};

/// Show what is published and where members stand
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth status --repo /srv/fleet.git\n  berth status -o json")]
pub struct StatusArgs {
    /// The fleet repository
    #[arg(long, value_name = "PATH", default_value = ".", env = "BERTH_REPO")]
    repo: PathBuf,
    #[command(flatten)]
    state: StateArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub fn cmd_status(args: &StatusArgs, ui: &Ui) -> Outcome {
    let repo = Repo::open(&args.repo)?;
    let located = LocatedState::find(&repo, &args.state.search(&args.repo)?)?;
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
    let status = gather(&repo, &located, ui)?;
    match args.output {
        Format::Text => ui.out(&status_text(&status, ui)),
        format => format.write(&status, ui),
    }
    Ok(Exit::Done)
}

/// The status of a repository, for people.
pub fn status_of(repo: &Repo, ui: &Ui) -> Result<String, CommandError> {
    let located = LocatedState::find(repo, &Search::default())?;
    Ok(status_text(&gather(repo, &located, ui)?, ui))
}

fn gather(repo: &Repo, located: &LocatedState, ui: &Ui) -> Result<Json, CommandError> {
    let LocatedState { refs, current, processed, .. } = located;
    let (statuses, odd) = berth_git::protocol::read_statuses(repo, refs)?;
    ui.diagnostics(&odd);
    if let Some(current) = current {
        ui.diagnostics(&current.foreign);
    }
    let folders = cluster_refs::read_all(repo, refs, &mut ClusterRefCache::default())?;
    let decisions = current.as_ref().map(|current| current.state.decisions.clone()).unwrap_or_default();
    let now = Timestamp::now();
    let known = ReportInputs::new(&statuses, &folders, now);
    let mut fleet = json!(report::summarize(&decisions, known, Detail::Full));
    for cluster in fleet["clusters"].as_array_mut().into_iter().flatten() {
        tell_dead_from_behind(repo, refs, cluster, now)?;
    }
    let pending = match &processed {
        Some(processed) => pending(repo, located, processed.source)?,
        None => None,
    };
    Ok(json!({
        "rendered": current.as_ref().map(|current| json!({
            "ref": refs.rendered,
            "commit": current.commit.to_string(),
            "sequence": current.trailers.seq,
            "source": current.trailers.source.map(|source| source.to_string()),
        })),
        "processed": processed.as_ref().map(|processed| json!({
            "source": processed.source.to_string(),
            "errors": processed.errors,
            "warnings": processed.warnings,
            "held": held_json(&processed.held),
        })),
        "pending": pending,
        "fleet": fleet,
    }))
}

/// The commits of the branch people edit that no pass has seen.
fn pending(repo: &Repo, located: &LocatedState, seen: CommitId) -> Result<Option<Json>, CommandError> {
    if !repo.has_commit(seen) {
        return Ok(None);
    }
    let Some(Revision { name, commit }) = source_tip(repo, located, None)? else { return Ok(None) };
    if commit == seen || !repo.is_same_or_after(commit, seen)? {
        return Ok(None);
    }
    let commits = repo.commits_between(seen, commit)?.len();
    Ok(Some(json!({"branch": name, "source": commit.to_string(), "commits": commits})))
}

/// A member that runs takes over a new folder within seconds and says so.
const ANSWER_SECONDS: i64 = 60;

/// A member that is behind and has said nothing for a while since its folder was published does not answer.
fn tell_dead_from_behind(
    repo: &Repo,
    refs: &Refs,
    cluster: &mut Json,
    now: Timestamp,
) -> Result<(), CommandError> {
    let name = cluster["name"].as_str().unwrap_or_default().to_owned();
    let reported = cluster["reported"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let Some(reported) = reported else { return Ok(()) };
    let silent_for = |since: i64| now.as_second().saturating_sub(since);
    cluster["reportedSecondsAgo"] = json!(silent_for(reported.as_second()).max(0));
    if cluster["state"] != "behind" {
        return Ok(());
    }
    if let Some(commit) = repo.read_ref(&refs.cluster(&name))? {
        let since = repo.commit(commit)?.seconds.max(reported.as_second());
        if silent_for(since) > ANSWER_SECONDS {
            cluster["state"] = json!("no answer");
        }
    }
    Ok(())
}

/// `80 s ago`, in the largest unit that leaves two of it.
fn ago(seconds: u64) -> String {
    let (size, unit) = [(86_400, "d"), (3_600, "h"), (60, "min")]
        .into_iter()
        .find(|(size, _)| seconds >= 2 * size)
        .unwrap_or((1, "s"));
    format!("{} {unit} ago", seconds / size)
}

/// The workloads that are held, with the line that approves them all and the one of each alone.
fn held_json(lines: &[String]) -> Json {
    let records: Vec<HeldRecord> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    let all = digest_of_all(&records.iter().map(|record| record.digest).collect());
    let line = |digest: Digest| format!("{ALLOW_DELETE}: {digest}");
    let one = |record: &HeldRecord| {
        json!({
            "workload": record.key.to_string(),
            "approval": line(all.unwrap_or(record.digest)),
            "alone": line(record.digest),
        })
    };
    records.iter().map(one).collect()
}

fn status_text(status: &Json, ui: &Ui) -> String {
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        Json::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let short = |value: &Json| text(value).chars().take(10).collect::<String>();
    let some = |value: &Json, noun: &str| {
        let n = value.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
        counted(n, noun)
    };
    let mut out = match &status["rendered"] {
        Json::Null => "nothing is published yet: `berth run --once`\n".to_owned(),
        rendered => format!(
            "published number {} ({}) from source {}\n",
            text(&rendered["sequence"]),
            short(&rendered["commit"]),
            short(&rendered["source"])
        ),
    };
    if let Json::Object(processed) = &status["processed"] {
        out.push_str(&format!(
            "last source {}: {}, {}\n",
            short(&processed["source"]),
            some(&processed["errors"], "error"),
            some(&processed["warnings"], "warning")
        ));
    }
    if let Json::Object(pending) = &status["pending"] {
        let line = format!(
            "not processed yet: {} of {}, up to {}",
            some(&pending["commits"], "commit"),
            text(&pending["branch"]),
            short(&pending["source"])
        );
        out.push_str(&format!("{}\n", ui.tint(&line, Tone::Warn)));
    }
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    for held in list(&status["processed"]["held"]) {
        let line = format!("held for approval: {} ({})", text(&held["workload"]), text(&held["approval"]));
        out.push_str(&format!("{}\n", ui.tint(&line, Tone::Bad)));
    }
    let state = |cluster: &Json| {
        let word = text(&cluster["state"]);
        let tone = match word.as_str() {
            "in sync" => Tone::Good,
            "failing" | "silent" | "no answer" => Tone::Bad,
            _ => Tone::Warn,
        };
        ui.tint(&word, tone)
    };
    let clusters: Vec<_> = list(&status["fleet"]["clusters"])
        .iter()
        .map(|cluster| {
            vec![
                text(&cluster["name"]),
                state(cluster),
                text(&cluster["published"]),
                text(&cluster["applied"]),
                text(&cluster["objects"]),
                text(&cluster["problems"]),
                cluster["reportedSecondsAgo"].as_u64().map_or_else(|| "-".to_owned(), ago),
            ]
        })
        .collect();
    if !clusters.is_empty() {
        out.push('\n');
        out.push_str(&table(
            &["CLUSTER", "STATE", "PUBLISHED", "APPLIED", "OBJECTS", "PROBLEMS", "REPORTED"],
            &clusters,
        ));
    }
    for cluster in list(&status["fleet"]["clusters"]) {
        for why in ["failing", "suspended"].iter().filter_map(|key| cluster[*key].as_str()) {
            out.push_str(&format!("{}: {why}\n", text(&cluster["name"])));
        }
    }
    let workloads: Vec<_> = list(&status["fleet"]["workloads"])
        .iter()
        .map(|workload| {
            let namespace = text(&workload["namespace"]);
            let name = text(&workload["name"]);
            let name = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
            vec![text(&workload["kind"]), name, format!("{}/{}", workload["inSync"], workload["placed"])]
        })
        .collect();
    if !workloads.is_empty() {
        out.push('\n');
        out.push_str(&table(&["KIND", "NAME", "IN SYNC"], &workloads));
    }
    out
}
