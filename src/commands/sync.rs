//! `berth sync`: the member syncer.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tracing::{error, info, warn};

use super::diff::coloured;
use super::exit::{CommandError, Exit};
use super::fleet::Format;
use super::link::PacedLink;
use super::remote::RemoteArgs;
use super::ui::{Tone, Ui, counted};
use super::{Outcome, logging};
use crate::git::{GitError, Repo};
use crate::live::Access;
use crate::model::status::Problem;
use crate::model::{ObjectId, Timestamp, path};
use crate::publish::Refs;
use crate::sync::Options;
use crate::sync::bell::Bell;
use crate::sync::overrides::{self, LocalOverrides};
use crate::sync::plan::SyncPlan;
use crate::sync::remote::Link;
use crate::sync::target::kube::Settings;
use crate::sync::target::kube::modes::Mode;
use crate::sync::target::{DirTarget, KubeTarget, Preview, Target};
use crate::sync::watch::{self, Config, Known, Refreshed, Round, RoundError, Surroundings};
use crate::transport::Cancel;

/// Bring a member to its folder of the rendered branch, and keep it there
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth sync --cluster oslo --target dir:/var/lib/berth/oslo --once\n  berth sync --cluster oslo --target dir:/var/lib/berth/oslo --dry-run"
)]
pub struct SyncArgs {
    /// The cluster whose folder is applied
    #[arg(long, value_name = "NAME", env = "BERTH_CLUSTER")]
    cluster: String,
    /// The repository with the rendered branch; without it, the current folder. With a remote, the folder for its working copy
    #[arg(long, value_name = "PATH", env = "BERTH_REPO")]
    repo: Option<PathBuf>,
    /// Where to apply it: `kube` for a Kubernetes cluster, or `dir:PATH` for a folder
    #[arg(long, value_name = "TARGET", env = "BERTH_TARGET", value_parser = target)]
    target: Place,
    #[command(flatten)]
    kube: KubeArgs,
    /// Make one round and end
    #[arg(long)]
    once: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// This member's own RFC 6902 overrides, applied last
    #[arg(long, value_name = "FILE", env = "BERTH_OVERRIDES")]
    overrides: Option<PathBuf>,
    /// Remove namespaces, CRDs and volume claims too when they are no longer wanted
    #[arg(long)]
    allow_risky_prune: bool,
    /// Go back to a folder with a lower sequence number
    #[arg(long)]
    allow_rewind: bool,
    /// The fleet's name, part of what the target is owned by
    #[arg(long, value_name = "NAME", default_value = "fleet", env = "BERTH_FLEET")]
    fleet: String,
    /// Look for changes this often, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// Report at least this often, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(i64).range(1..))]
    heartbeat: i64,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    log: logging::LogArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Ask the remote for changes this often, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, env = "BERTH_FETCH_INTERVAL", help_heading = "Remote", value_parser = clap::value_parser!(u64).range(1..))]
    fetch_interval: u64,
}

/// How a Kubernetes target is reached and worked on
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of the target `kube`")]
pub struct KubeArgs {
    /// The kubeconfig of the cluster; without it the usual places, or a pod's own credentials
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Where berth keeps the record of what it owns there
    #[arg(long, value_name = "NAMESPACE", default_value = "berth-system", env = "BERTH_NAMESPACE")]
    namespace: String,
    /// How many requests are under way at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,
    /// How long an object may take to be healthy, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, env = "BERTH_HEALTH_TIMEOUT")]
    health_timeout: u64,
    /// A watch that says nothing for this long, in seconds, counts as lost: its kind is listed anew
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    watch_silence: u64,
    /// What is done about changes to what was applied, where an object does not say: put right, or only reported
    #[arg(long, value_enum, default_value = "correct", env = "BERTH_DRIFT")]
    drift: Drift,
}

/// What is done about drift
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Drift {
    Correct,
    Report,
}

/// Where a folder is applied.
#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    Kube,
}

impl SyncArgs {
    fn open_target(&self) -> Result<Box<dyn Target>, CommandError> {
        let kube = match &self.target {
            Place::Folder(path) => return Ok(Box::new(DirTarget::open(path)?)),
            Place::Kube => &self.kube,
        };
        let access = Access {
            kubeconfig: kube.kubeconfig.clone(),
            context: kube.context.clone(),
            patience: Duration::from_secs(30),
        };
        let settings = Settings {
            access,
            fleet: self.fleet.clone(),
            namespace: kube.namespace.clone(),
            at_once: usize::from(kube.concurrency),
            deadline: Duration::from_secs(kube.health_timeout),
            silence: Duration::from_secs(kube.watch_silence),
            drift: match kube.drift {
                Drift::Correct => Mode::Correct,
                Drift::Report => Mode::Report,
            },
        };
        let target = KubeTarget::connect(&settings).map_err(|error| {
            let failed = CommandError::new(Exit::Unreachable, error.to_string());
            match error.hint() {
                Some(hint) => failed.hint(hint),
                None => failed,
            }
        })?;
        Ok(Box::new(target))
    }
}

pub fn cmd_sync(args: &SyncArgs, ui: &Ui, verbose: u8) -> Outcome {
    let cancel = Cancel::default();
    let link = open_link(args, &cancel)?;
    let local = || args.repo.clone().unwrap_or_else(|| PathBuf::from("."));
    let repo = Repo::open(link.as_ref().map_or_else(local, |link| link.path().to_owned()))?;
    let mut target = args.open_target()?;
    let config = Config {
        cluster: args.cluster.clone(),
        refs: Refs::default(),
        interval: Duration::from_secs(args.interval),
        heartbeat_seconds: args.heartbeat,
        options: Options {
            fleet: args.fleet.clone(),
            dry_run: args.dry_run,
            allow_risky_prune: args.allow_risky_prune,
            allow_rewind: args.allow_rewind,
        },
    };
    let paced = |link| {
        let heartbeat = Duration::from_secs(args.heartbeat.unsigned_abs());
        PacedLink::new(link, Duration::from_secs(args.fetch_interval), heartbeat)
    };
    let mut world = World { overrides: args.overrides.clone(), link: link.map(paced), said: BTreeSet::new() };
    if !args.once && !args.dry_run {
        logging::start(&args.log, verbose, ui);
        info!(cluster = args.cluster, target = %args.target, "syncing");
        watch::run(&config, &repo, target.as_mut(), &stop_signal(cancel)?, &mut world);
        info!("stopped");
        return Ok(Exit::Done);
    }
    let round = watch::until_settled(&config, &repo, target.as_mut(), &mut Known::default(), &mut world);
    let trouble = world.link.as_mut().and_then(PacedLink::trouble);
    let outcome = match (round.result, &trouble) {
        (Err(RoundError::Refresh(_)), Some(_)) => return trouble.map_or(Ok(Exit::Bug), Err),
        (result, _) => result?,
    };
    match args.output {
        Format::Json => ui.json(&outcome.plan.to_json()),
        Format::Yaml => ui.yaml(&outcome.plan.to_json()),
        Format::Text => {
            ui.out(&plan_text(&outcome.plan, args.dry_run, ui));
            ui.out(&previews_text(&outcome.previews, ui));
        }
    }
    for note in &outcome.notes {
        ui.status(&format!("{}: {}", note.object, note.message));
    }
    for problem in &outcome.applied.problems {
        ui.status(&format!("{}: {}", problem.object, problem.message));
    }
    let mut exit = if outcome.applied.problems.is_empty() { Exit::Done } else { Exit::Unhealthy };
    if let Err(problem) = round.reported {
        ui.status(&format!("the status could not be reported: {problem}"));
        exit = exit.worst(Exit::Unreachable);
    }
    if let Some(problem) = trouble {
        ui.error(&problem);
        ui.status("the folder is the last one that was fetched");
        return Ok(exit.worst(problem.exit));
    }
    if let Some(link) = world.link.as_mut().filter(|_| !args.dry_run)
        && let Err((problem, lacks_rights)) = link.push_once()
    {
        ui.status(&format!("the status could not be reported: {problem}"));
        // Members work without the right to push.
        exit = if lacks_rights { exit } else { exit.worst(CommandError::from(problem).exit) };
    }
    Ok(exit)
}

fn open_link(args: &SyncArgs, cancel: &Cancel) -> Result<Option<Link>, CommandError> {
    let usage = format!("sync-{}", path::encode(&args.cluster));
    let remote = args.remote.open(args.repo.as_deref(), &usage, cancel)?;
    Ok(remote.map(|(transport, copy)| {
        Link::new(Box::new(transport), copy, Refs::default(), &args.cluster, args.allow_rewind)
    }))
}

fn plan_text(plan: &SyncPlan, dry_run: bool, ui: &Ui) -> String {
    let mut text = String::new();
    for write in &plan.writes {
        text.push_str(&ui.tint(&format!("  {:<9}  {}\n", write.action.word(), write.id), Tone::Good));
    }
    for prune in plan.removed() {
        text.push_str(&ui.tint(&format!("  {:<9}  {}\n", "remove", prune.id), Tone::Bad));
    }
    for prune in plan.orphaned() {
        text.push_str(&format!("  {:<9}  {}: it stays, and is nobody's from now on\n", "let go", prune.id));
    }
    for held in &plan.held {
        text.push_str(&format!("  {:<9}  {}: {}\n", "keep", held.id, held.why.words()));
    }
    let counts = format!(
        "{}, {}, {} unchanged",
        counted(plan.writes.len(), "write"),
        counted(plan.removed().count(), "removal"),
        plan.unchanged.len()
    );
    format!("{}{counts}\n{text}", if dry_run { "would make " } else { "" })
}

/// What each write would change, line by line.
fn previews_text(previews: &[(ObjectId, Preview)], ui: &Ui) -> String {
    let text = |object: &serde_json::Value| crate::yaml::emit(object);
    let one = |(id, preview): &(ObjectId, Preview)| {
        let before = preview.before.as_ref().map(text).unwrap_or_default();
        coloured(&before, &text(&preview.after), &id.to_string(), ui)
    };
    previews.iter().map(one).collect()
}

/// The process's clock, files and remote, for the loop.
struct World {
    overrides: Option<PathBuf>,
    link: Option<PacedLink>,
    /// The problems of the last round, each of which is logged once.
    said: BTreeSet<Problem>,
}

impl Surroundings for World {
    fn now(&mut self) -> Timestamp {
        Timestamp::now()
    }

    fn refresh(&mut self) -> Refreshed {
        self.link.as_mut().map_or(Refreshed::Newest, PacedLink::refresh)
    }

    fn overrides(&mut self) -> Result<LocalOverrides, String> {
        let Some(path) = &self.overrides else { return Ok(LocalOverrides::default()) };
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
        overrides::read(&name, &bytes)
            .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    fn after(&mut self, round: &Round) {
        match &round.result {
            Ok(outcome) => {
                if outcome.written + outcome.pruned > 0 {
                    info!(written = outcome.written, pruned = outcome.pruned, "applied");
                }
                for note in &outcome.notes {
                    info!(object = %note.object, "{}", note.message);
                }
                let problems: BTreeSet<Problem> = outcome.applied.problems.iter().cloned().collect();
                for problem in problems.difference(&self.said) {
                    warn!(object = %problem.object, "{}", problem.message);
                }
                self.said = problems;
            }
            Err(problem) => error!(error = %problem, "round failed"),
        }
        if let Err(problem) = &round.reported {
            warn!(error = %problem, "the status could not be reported");
        }
        if let Some(link) = &mut self.link {
            link.push();
        }
    }

    fn between(&mut self, reported: &Result<bool, GitError>) {
        if let Err(problem) = reported {
            warn!(error = %problem, "the status could not be reported");
        }
        if let Some(link) = &mut self.link {
            link.push();
        }
    }
}

/// A bell that SIGTERM and SIGINT ring.
fn stop_signal(cancel: Cancel) -> Result<Bell, CommandError> {
    let bell = Bell::default();
    let stop = bell.stopper();
    crate::daemon::on_stop(move || {
        stop();
        cancel.cancel();
    })
    .map_err(|error| CommandError::io("listening for signals", &error))?;
    Ok(bell)
}

fn target(text: &str) -> Result<Place, String> {
    match text.split_once(':') {
        Some(("dir", path)) if !path.is_empty() => Ok(Place::Folder(PathBuf::from(path))),
        None if text == "kube" => Ok(Place::Kube),
        _ => Err("write it as `kube` or `dir:PATH`".into()),
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Folder(path) => write!(f, "dir:{}", path.display()),
            Place::Kube => f.write_str("kube"),
        }
    }
}
