//! `berth sync`: the member syncer.

mod hooks;
mod link;
pub(super) mod reporting;
mod result;
pub(super) mod target;
mod teardown;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::info;

use clap_complete::engine::ArgValueCandidates;

use crate::flags::applier::{ApplierArgs, revisions};
use crate::flags::registry::RegistryArgs;
use crate::flags::remote::RemoteArgs;
use crate::flags::{fleet, names, telemetry};
use crate::output::results::Format;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::backoff::pace;
use berth_base::model::path;
use berth_git::Repo;
use berth_git::shared_refs::Refs;
use berth_git::transport::Cancel;
use berth_lease::Lease;
use berth_member::live::LiveError;
use berth_member::sync::backends::kube::Settings;
use berth_member::sync::backends::kube::neighbour::NeighbourBackend;
use berth_member::sync::backends::{Backend, FolderBackend, KubeBackend};
use berth_member::sync::remote::MemberRemote;
use berth_member::sync::sync_loop::{Config, Syncer, Wakeups};
use berth_member::sync::sync_metrics::SyncMeter;
use berth_member::sync::{Options, SyncError, until_idle};
use hooks::{MemberHooks, RoundLog};
use link::{FollowArgs, Following, PacedLink};
use reporting::{FactsArgs, ReportingArgs};
use result::{OnceResult, PushedReport, SOME, print_waits};
use target::{KubeArgs, Place, place};
use teardown::TeardownArgs;

/// The name of a fleet that nobody named.
pub(super) const DEFAULT_FLEET: &str = "fleet";

/// Bring a member to its folder of the rendered branch, and keep it there
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth sync --cluster oslo --target dir:/var/lib/berth/oslo --once\n  berth sync --cluster oslo --target dir:/var/lib/berth/oslo --dry-run\n  berth sync --cluster oslo --target kube --applier flux --remote https://git.example.com/team/fleet.git"
)]
pub(crate) struct SyncArgs {
    /// The cluster whose folder is applied
    #[arg(long, value_name = "NAME", env = "BERTH_CLUSTER", add = ArgValueCandidates::new(names::clusters))]
    cluster: String,
    /// Repository with the rendered branch; default: the current folder. With a remote, the folder for its working copy
    #[arg(long, value_name = "PATH", env = "BERTH_REPO")]
    repo: Option<PathBuf>,
    /// Target: `kube` for a Kubernetes cluster, or `dir:PATH` for a folder
    #[arg(long, value_name = "TARGET", env = "BERTH_TARGET", value_parser = place)]
    target: Place,
    #[command(flatten)]
    kube: KubeArgs,
    #[command(flatten)]
    applier: ApplierArgs,
    /// Make one round and end
    #[arg(long)]
    once: bool,
    /// Show the changes, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// File of the member's own RFC 6902 overrides, applied last
    #[arg(long, value_name = "FILE", env = "BERTH_OVERRIDES")]
    overrides: Option<PathBuf>,
    #[command(flatten)]
    facts: FactsArgs,
    /// Also remove namespaces, CRDs and volume claims that are no longer wanted
    #[arg(long)]
    allow_risky_prune: bool,
    #[command(flatten)]
    follow: FollowArgs,
    /// Go back to a folder with a lower sequence number
    #[arg(long)]
    allow_rewind: bool,
    /// Name of the fleet, which marks the objects it owns. Commits of another fleet are not applied
    #[arg(long, value_name = "NAME", default_value = DEFAULT_FLEET, env = "BERTH_FLEET")]
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
    teardown: TeardownArgs,
    #[command(flatten)]
    log: telemetry::LogArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Ask the remote for changes this often, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, env = "BERTH_FETCH_INTERVAL", help_heading = "Remote", value_parser = clap::value_parser!(u64).range(1..))]
    fetch_interval: u64,
    #[command(flatten)]
    reporting: ReportingArgs,
}

impl SyncArgs {
    fn is_kube(&self) -> bool {
        matches!(self.target, Place::Kube)
    }

    /// Opens the target, with the folders of a repository.
    fn open_target(&self, repo: &Path) -> Result<Box<dyn Backend>, CommandError> {
        self.applier.refuse_with(&[
            ("--target dir:PATH", matches!(self.target, Place::Folder(_))),
            ("--overrides", self.overrides.is_some()),
            ("--overrides-from", !self.kube.overrides_from.is_empty()),
            ("--tenant-service-account", self.kube.tenant_service_account.is_some()),
        ])?;
        let kube = match &self.target {
            Place::Folder(path) => return Ok(Box::new(FolderBackend::open(path)?)),
            Place::Kube => &self.kube,
        };
        let settings = Settings {
            access: kube.access(),
            fleet: self.fleet.clone(),
            namespace: kube.namespace.clone(),
            at_once: usize::from(kube.concurrency),
            deadline: Duration::from_secs(kube.health_timeout),
            tenant: kube.tenant(),
            protected: kube.protected_namespaces.clone(),
            overrides_from: kube.overrides_from.clone(),
            rules: kube.health_rules()?.into(),
            events: !kube.no_events,
            silence: Duration::from_secs(kube.watch_silence),
            lease: (!kube.no_lease && !self.dry_run).then(|| Lease {
                once: self.once || self.teardown.end().is_some(),
                ..Lease::of(Duration::from_secs(kube.lease_duration), "syncer")
            }),
            only_tries: self.dry_run,
            drift: kube.drift(),
        };
        let target: Result<Box<dyn Backend>, LiveError> = match self.applier.neighbour(&self.cluster) {
            Some(neighbour) => NeighbourBackend::connect(
                &settings,
                neighbour,
                self.applier.record_access(&settings.access),
                revisions(repo.to_owned()),
            )
            .map(|target| Box::new(target) as Box<dyn Backend>),
            None => KubeBackend::connect(&settings).map(|target| Box::new(target) as Box<dyn Backend>),
        };
        target.map_err(|error| {
            let failed = CommandError::new(Exit::Unreachable, error.to_string());
            match error.hint() {
                Some(hint) => failed.hint(hint),
                None => failed,
            }
        })
    }
}

pub(crate) fn cmd_sync(args: &SyncArgs, ui: &Ui, verbose: u8) -> Outcome {
    if let Some(end) = args.teardown.end() {
        let about = teardown::About {
            cluster: &args.cluster,
            fleet: &args.fleet,
            allow_risky_prune: args.allow_risky_prune,
            dry_run: args.dry_run,
            json: matches!(args.output, Format::Json),
            patience: Duration::from_secs(args.kube.health_timeout),
        };
        args.applier.refuse_with(&[("an end of the member", true)])?;
        return teardown::end_member(
            &args.teardown,
            end,
            &about,
            args.open_target(Path::new("."))?.as_mut(),
            ui,
        );
    }
    args.follow.check()?;
    let cancel = Cancel::default();
    let stays = !args.once && !args.dry_run;
    // Before the threads of the target, whose first lines would be lost.
    let _logging = stays.then(|| telemetry::start_logs(&args.log, verbose, ui));
    let mut member = MemberSetup::open(args, &cancel)?;
    if stays {
        info!(cluster = args.cluster, place = %args.target, "syncing");
        if args.remote.is_given() && !args.remote.is_registry() {
            args.remote.log_sandbox();
        }
        args.reporting.say_where(&args.remote);
        member.observe(args)?;
        let wakeups = stop_signal(cancel)?;
        member.syncer().run(&wakeups);
        info!("stopped");
        return Ok(Exit::Done);
    }
    let result = member.sync_once(ui)?;
    let most = if verbose > 0 { usize::MAX } else { SOME };
    result.print(args.output, args.dry_run, most, ui);
    Ok(result.exit())
}

/// A syncer's repository, target and environment.
struct MemberSetup {
    repo: Repo,
    target: Box<dyn Backend>,
    config: Config,
    hooks: MemberHooks,
}

impl MemberSetup {
    fn open(args: &SyncArgs, cancel: &Cancel) -> Result<MemberSetup, CommandError> {
        let link = open_link(args, cancel)?;
        let local = || args.repo.clone().unwrap_or_else(fleet::here_or_above);
        let repo = Repo::open(link.as_ref().map_or_else(local, |link| link.path().to_owned()))?;
        let target = args.open_target(repo.path())?;
        let config = Config {
            cluster: args.cluster.clone(),
            refs: Refs::default(),
            interval: pace::paced(Duration::from_secs(args.interval)),
            heartbeat_seconds: args.heartbeat,
            options: Options {
                fleet: args.fleet.clone(),
                dry_run: args.dry_run,
                allow_risky_prune: args.allow_risky_prune,
                allow_rewind: args.allow_rewind,
                is_signed: args.follow.asks_for_signatures(),
                applier: Some(args.applier.program()),
                ..Options::default()
            },
        };
        let paced = |link| PacedLink::new(link, pace::paced(Duration::from_secs(args.fetch_interval)));
        let hooks = MemberHooks {
            overrides: args.overrides.clone(),
            facts: args.facts.source(&args.cluster, args.is_kube().then(|| args.kube.access())),
            link: link.map(paced),
            following: Following::new(args.follow.vouching(&args.cluster, &args.fleet), !args.dry_run),
            reports: args.reporting.reports(&args.remote),
            meter: None,
            telemetry: None,
            begun: None,
            log: RoundLog::default(),
        };
        Ok(MemberSetup { repo, target, config, hooks })
    }

    /// Makes a running member observable.
    fn observe(&mut self, args: &SyncArgs) -> Result<(), CommandError> {
        let (metrics, progress) = (&args.reporting.metrics, args.reporting.metrics.progress());
        self.target.show_progress(&progress);
        let about =
            [("berth.role", "member"), ("berth.fleet", &*args.fleet), ("berth.cluster", &*args.cluster)];
        (self.hooks.meter, self.hooks.telemetry) = metrics.meter(progress, &about, SyncMeter::with_page)?;
        Ok(())
    }

    fn syncer(&mut self) -> Syncer<'_> {
        Syncer::new(&self.config, &self.repo, self.target.as_mut(), &mut self.hooks)
    }

    /// Syncs until nothing more can make progress, and pushes the status.
    fn sync_once(&mut self, ui: &Ui) -> Result<OnceResult, CommandError> {
        self.target.show_progress(ui.progress());
        let sync =
            |member: &mut MemberSetup| until_idle::sync_until_idle(member.syncer(), &mut print_waits(ui));
        let mut round = ui.watching("reading the cluster's folder", || sync(self));
        if self.hooks.link.as_mut().is_some_and(|link| link.mend_after(&round)) {
            ui.status("the working copy was damaged; recreating it");
            round = sync(self);
        }
        if round.has_failed()
            && let Some(pushed) = self.push_report()
        {
            pushed.print(ui);
        }
        let trouble = self.hooks.link.as_mut().and_then(PacedLink::trouble);
        let (outcome, trouble) = match (round.result, trouble) {
            (Err(SyncError::Refresh(_)), Some(trouble)) => return Err(trouble),
            (result, trouble) => (result?, trouble),
        };
        let pushed = if trouble.is_none() { self.push_report() } else { None };
        let (stale, unreported) = (self.hooks.following.staleness(), round.reported.err());
        Ok(OnceResult { outcome, stale, unreported, trouble, pushed })
    }

    /// Pushes the status to the remote, if there is one.
    fn push_report(&mut self) -> Option<PushedReport> {
        let reports = self.hooks.reports && !self.config.options.dry_run;
        self.hooks.link.as_mut().filter(|_| reports).map(PacedLink::push_once)
    }
}

fn open_link(args: &SyncArgs, cancel: &Cancel) -> Result<Option<MemberRemote>, CommandError> {
    let usage = format!("sync-{}", path::encode(&args.cluster));
    let (repo, cluster) = (args.repo.as_deref(), args.cluster.as_str());
    let opened = args.registry.open(&args.remote, repo, cluster, &usage, cancel)?;
    let Some((transport, copy)) = opened else { return Ok(None) };
    let statuses = args.reporting.place(&args.remote, &copy, cancel)?;
    let remote = MemberRemote::new(transport, copy, Refs::default(), cluster, args.allow_rewind);
    let trust = args.follow.vouching(cluster, &args.fleet);
    Ok(Some(remote.trusting(trust).reporting_to(statuses)))
}

/// Returns wakeups that SIGTERM and SIGINT stop.
fn stop_signal(cancel: Cancel) -> Result<Wakeups, CommandError> {
    let wakeups = Wakeups::default();
    let stop = wakeups.stopper();
    let stop_all = move || {
        stop();
        cancel.cancel();
    };
    let listening = berth_hub::daemon::on_stop(stop_all);
    listening.map(|()| wakeups).map_err(|error| CommandError::io("listening for signals", &error))
}
