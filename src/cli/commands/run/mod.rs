//! `berth run`: the daemon, or one pass of it.

pub(super) mod artifacts;
pub(super) mod hub_cluster;
pub(super) mod listening;
mod notice_hook;
mod notices;
mod page;
mod several;
pub(super) mod watchers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::flags::fleet;
use crate::flags::pass::{GateArgs, TrustArgs};
use crate::flags::remote::{RemoteArgs, SourceRemoteArgs, StatusRemoteArgs};
use crate::flags::signing::{ArtifactSigningArgs, SigningArgs};
use crate::flags::telemetry::{self, MetricsArgs};
use crate::output::changes::{Length, plan_of_length};
use crate::output::held::{held_text, without_held};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use artifacts::{PublishArgs, Successors};
use berth_base::backoff::pace::paced;
use berth_base::diag::Diagnostics;
use berth_base::progress::Progress;
use berth_engine::gate::limits::Limit;
use berth_engine::gate::{Limits, Percent};
use berth_engine::plan::Plan;
use berth_git::shared_refs::Refs;
use berth_git::transport::Cancel;
use berth_git::{CommitId, Identity};
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_hub::daemon::{
    self, Daemon, Mirror, Once, PassEnd, PassOutcome, PassResult, PreviewRule, Remote, Settings, Stop,
};
use berth_registry::publish::Attach;
use hub_cluster::HubClusterArgs;
use listening::{StatusPostsArgs, WebhookArgs};
use notices::NoticeArgs;
use page::PageArgs;
use several::StandbyArgs;
use watchers::{EventArgs, Watchers, show_previews};

/// Watch the fleet repository; decide, render and publish whenever it changes
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("in_cluster").args(["events", "standby", "publish_decisions", "publish_profiles"]).multiple(true)),
    after_help = "Example:\n  berth run --once\n  berth run --repo /srv/fleet.git --source refs/heads/main\n  berth run --remote https://git.example.com/fleet.git --token-file /run/secrets/token"
)]
pub(crate) struct RunArgs {
    /// Fleet repository; default: the current folder. With a remote, the folder for its working copy
    #[arg(long, value_name = "PATH", env = "BERTH_REPO")]
    repo: Option<PathBuf>,
    /// Branch that people edit; default: the one that HEAD names. A work tree on another branch than at the last pass is refused
    #[arg(long, value_name = "REF", env = "BERTH_SOURCE")]
    source: Option<String>,
    /// Make one pass and end
    #[arg(long)]
    once: bool,
    /// Run the daemons of several fleets in one process: each file of this folder has the flags of one, a flag with its value on each line. Environment variables count for all
    #[arg(long, value_name = "DIR")]
    fleets: Option<PathBuf>,
    /// Look for changes at least this often, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    poll: u64,
    /// Author of generated commits
    #[arg(long, value_name = "NAME <EMAIL>", default_value = "berth <berth@berth.dev>", env = "BERTH_IDENTITY", value_parser = identity)]
    identity: Identity,
    /// Let the clusters' refs say this often, in seconds, that they are the newest, so that `sync --max-age` notices a
    /// server that hides commits. Each time writes every cluster's ref
    #[arg(long, value_name = "SECONDS", env = "BERTH_HEARTBEAT", value_parser = clap::value_parser!(i64).range(60..))]
    heartbeat: Option<i64>,
    /// Show what merging a branch would publish, on the branch `berth/preview/BRANCH`. `*` stands for any text; other
    /// refs are named in full, such as `refs/pull/*/head`, which holds the commits of strangers. May be repeated
    #[arg(
        long,
        value_name = "PATTERN",
        env = "BERTH_PREVIEW",
        value_delimiter = ',',
        help_heading = "Previews"
    )]
    preview: Vec<String>,
    /// Show so many branches, those with the newest commits
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 50,
        env = "BERTH_MOST_PREVIEWS",
        help_heading = "Previews"
    )]
    most_previews: usize,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    signing: SigningArgs,
    #[command(flatten)]
    log: telemetry::LogArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    webhook: WebhookArgs,
    #[command(flatten)]
    status_posts: StatusPostsArgs,
    #[command(flatten)]
    standby: StandbyArgs,
    #[command(flatten)]
    events: EventArgs,
    #[command(flatten)]
    hub: HubClusterArgs,
    #[command(flatten)]
    notices: NoticeArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    source_remote: SourceRemoteArgs,
    #[command(flatten)]
    status_remote: StatusRemoteArgs,
    #[command(flatten)]
    publish: PublishArgs,
    #[command(flatten)]
    artifact_signing: ArtifactSigningArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    gate: GateArgs,
    /// Move nothing away from silent clusters while more than this share of the members is late; the first two are free
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "20%",
        env = "BERTH_MAX_SILENT_CLUSTERS",
        help_heading = "Removals"
    )]
    max_silent_clusters: Percent,
    /// Begin with a first state, although the remote's rendered branch was not fetched
    #[arg(long)]
    first: bool,
    /// Accept a source that does not come after the last processed commit: another branch, or a force-push
    #[arg(long, help_heading = "Removals")]
    allow_rewind: bool,
    /// Accept a rendered branch that does not come after the current state: rewritten, or an old copy
    #[arg(long, help_heading = "Removals")]
    allow_rewritten: bool,
    /// Publish a state without objects after one that had some
    #[arg(long, help_heading = "Removals")]
    allow_empty: bool,
}

impl RunArgs {
    /// Reports whether the flags are for a single daemon with a remote.
    pub(super) fn is_for_one_remote(&self) -> bool {
        self.remote.is_given() && !self.once && self.fleets.is_none()
    }

    /// Returns the attestor that signs artifacts, if requested.
    fn attestor(
        &self,
        settings: &Settings,
        cancel: &Cancel,
    ) -> Result<Option<Arc<dyn Attach>>, CommandError> {
        if !self.publish.is_wanted() {
            return Ok(None);
        }
        let signer = settings.identity.signer.as_ref();
        self.artifact_signing.attestor(&self.signing, signer, &settings.refs.rendered, cancel)
    }

    /// Publishes what the registry lacks, if one is set.
    fn publish_once(&self, settings: &Settings, cancel: &Cancel, ui: &Ui) -> Outcome {
        self.publish.once(settings, self.attestor(settings, cancel)?, ui)
    }

    /// Brings what is kept beside the publications up to date: previews, the branch of the page, and a registry.
    fn keep_others(
        &self,
        settings: &Settings,
        mirror: Option<&mut Mirror>,
        cancel: &Cancel,
        ui: &Ui,
    ) -> Outcome {
        let copy = mirror.as_ref().map(|mirror| mirror.path().to_owned());
        show_previews(settings, ui.now(), mirror, ui)?;
        let exit = self.page.once(settings, &self.remote, copy.as_deref(), ui)?;
        Ok(exit.worst(self.publish_once(settings, cancel, ui)?))
    }

    /// Returns the mirror of the remote, if one is set.
    fn mirror(&self, cancel: &Cancel) -> Result<Option<Mirror>, CommandError> {
        let Some((transport, copy)) = self.remote.open(self.repo.as_deref(), "run", cancel)? else {
            return Ok(None);
        };
        let source = self.source_remote.named().open(&self.remote, &copy, cancel)?;
        let reports = self.status_remote.named().open(&self.remote, &copy, cancel)?;
        Ok(Some(Mirror::new(Box::new(transport), copy).reading_from(source).hearing_from(reports)))
    }
}

/// The settings of a daemon, and the files from which they are read.
struct SettingsFiles<'a> {
    args: &'a RunArgs,
    settings: Settings,
    /// The content of each file when last read.
    contents: Vec<Option<Vec<u8>>>,
    /// Cancels a signing program.
    cancel: Cancel,
    successors: Successors,
}

impl<'a> SettingsFiles<'a> {
    /// Reads the settings. `repo` is the working copy, if there is a remote.
    fn read(
        args: &'a RunArgs,
        copy: Option<&Path>,
        cancel: &Cancel,
        progress: Progress,
    ) -> Result<Self, CommandError> {
        let contents = Self::contents(args);
        let signer = args.signing.signer(cancel)?;
        let anchors = args.trust.anchors(signer.as_ref())?;
        let local = || args.repo.clone().unwrap_or_else(fleet::here_or_above);
        let mut settings = Settings {
            repo: copy.map_or_else(local, Path::to_owned),
            source: args.source.clone(),
            refs: Refs::default(),
            identity: Identity { signer, fleet: args.trust.fleet(), ..args.identity.clone() },
            limits: args.gate.limits(),
            max_silent: Limit { share: args.max_silent_clusters, ..Limits::SILENT },
            allow_rewind: args.allow_rewind,
            allow_rewritten: args.allow_rewritten,
            allow_empty: args.allow_empty,
            anchors,
            is_copy: copy.is_some(),
            heartbeat: args.heartbeat,
            first: args.first,
            previews: PreviewRule::new(&args.preview, args.most_previews),
            page: None,
            git: args.remote.git_limits(),
            is_shown: args.hub.are_wanted(),
            progress,
        };
        settings.page = args.page.branch(&settings)?;
        let successors = Successors::default();
        Ok(SettingsFiles { args, settings, contents, cancel: cancel.clone(), successors })
    }

    fn contents(args: &RunArgs) -> Vec<Option<Vec<u8>>> {
        let files = [args.signing.file(), args.trust.signers_file(), args.artifact_signing.file()];
        files.into_iter().flatten().map(|file| std::fs::read(file).ok()).collect()
    }

    /// Reads the settings again if a file changed. Reports invalid settings only once.
    fn changed(&mut self) -> Result<Option<Settings>, String> {
        let contents = Self::contents(self.args);
        if contents == self.contents {
            return Ok(None);
        }
        let Settings { repo, is_copy, progress, .. } = &self.settings;
        let copy = is_copy.then_some(repo.as_path());
        let read = Self::read(self.args, copy, &self.cancel, progress.clone());
        match read.and_then(|read| Ok((self.args.attestor(&read.settings, &self.cancel)?, read))) {
            Ok((attestor, read)) => {
                self.successors.set(&read.settings, attestor);
                *self = SettingsFiles { successors: self.successors.clone(), ..read };
            }
            Err(error) => {
                self.contents = contents;
                return Err(error.message);
            }
        }
        Ok(Some(self.settings.clone()))
    }
}

pub(crate) fn cmd_run(args: &RunArgs, ui: &Ui, verbose: u8) -> Outcome {
    if let Some(folder) = &args.fleets {
        let _logging = telemetry::start_logs(&args.log, verbose, ui);
        return several::run(folder);
    }
    if !args.once {
        let stopping = |error| CommandError::io("listening for signals", &error);
        watch(args, Stop::on_signals().map_err(stopping)?, false, || {
            telemetry::start_logs(&args.log, verbose, ui)
        })?;
        return Ok(Exit::Done);
    }
    run_once(args, ui, verbose)
}

/// Runs the daemon of one fleet until it is asked to stop. Calls `ready` once the settings are known to be valid.
pub(super) fn watch<T>(
    args: &RunArgs,
    stop: Stop,
    is_patient: bool,
    ready: impl FnOnce() -> T,
) -> Result<(), CommandError> {
    let cancel = Cancel::default();
    let mirror = args.mirror(&cancel)?;
    let copy = mirror.as_ref().map(Mirror::path);
    let progress = args.metrics.progress();
    let mut files = SettingsFiles::read(args, copy, &cancel, progress.clone())?;
    let settings = files.settings.clone();
    let _kept_meanwhile = ready();
    args.remote.log_sandbox();
    let standby = args.standby.open(&args.remote, copy, &settings.identity, args.events.access())?;
    let poll = paced(Duration::from_secs(args.poll));
    let fleet = args.trust.fleet().unwrap_or_default();
    let about = [("berth.role", "daemon"), ("berth.fleet", fleet.as_str())];
    let (meter, telemetry) = args.metrics.meter(progress, &about, || PassMeter::with_page(poll))?;
    let statuses = match copy {
        Some(copy) => {
            let identity = &settings.identity;
            args.status_posts.listen(&args.remote, &args.status_remote, copy, identity, meter.as_ref())?
        }
        None => None,
    };
    let attestor = args.attestor(&settings, &cancel)?;
    let page = args.page.start(&settings, &args.remote, copy)?;
    let remote = mirror.map(|mirror| Remote { mirror, cancel, standby, statuses, is_patient });
    let webhooks = args.webhook.listen(meter.as_ref())?;
    let (events, notices) = (args.events.start()?, args.notices.start()?);
    let hubs = args.hub.start(&args.events.access(), &fleet, meter.as_ref())?;
    let publishing = args.publish.start(&settings, attestor, files.successors.clone(), meter.as_ref())?;
    let mut watchers = Watchers { meter, telemetry, events, notices, hubs, publishing, page };
    let daemon = Daemon { settings, poll, remote, webhooks };
    daemon.run(&mut || files.changed(), &mut watchers, stop)?;
    Ok(())
}

/// Runs one pass, and reports its result.
fn run_once(args: &RunArgs, ui: &Ui, verbose: u8) -> Outcome {
    let cancel = Cancel::default();
    let mut mirror = args.mirror(&cancel)?;
    let progress = ui.progress().clone();
    let SettingsFiles { settings, .. } =
        SettingsFiles::read(args, mirror.as_ref().map(Mirror::path), &cancel, progress)?;
    if args.events.are_wanted() || args.notices.are_wanted() {
        // The threads that write Events log their failures.
        let _logging = telemetry::start_logs(&args.log, verbose, ui);
    }
    let events = args.events.start()?;
    let mut notices = args.notices.start()?;
    let now = ui.now();
    let say = |source: &CommitId, diagnostics: &Diagnostics, plan: &Plan| {
        ui.status(&format!("read commit {source}"));
        ui.diagnostics(diagnostics);
        let screen = Length::Screen("see `git show --stat` of the commit below, or run with `-v`");
        let length = if verbose > 0 { Length::Whole } else { screen };
        ui.out(&plan_of_length(plan, length, ui));
    };
    let once =
        ui.watching("reading the current state", || daemon::pass_once(&settings, now, mirror.as_mut()))?;
    let passed = match once {
        Once::Passed(passed, cache) => {
            // Freeing the cache is skipped, because the process ends soon.
            std::mem::forget(cache);
            passed
        }
        Once::Idle { source, diagnostics } => {
            say(&source, &diagnostics, &Plan::default());
            ui.out("nothing to publish");
            return Ok(exit_for(&diagnostics).worst(args.keep_others(
                &settings,
                mirror.as_mut(),
                &cancel,
                ui,
            )?));
        }
    };
    if let Some(events) = events {
        events.tell(&passed);
    }
    if let Some(notices) = &mut notices {
        notices.tell(PassEnd::Done(&passed));
    }
    say(&passed.source, &without_held(&passed.diagnostics, &passed.held), &passed.plan);
    let exit = show_outcome(&passed, &settings, ui).worst(write_to_hubs(args, &passed, ui));
    Ok(exit.worst(args.keep_others(&settings, mirror.as_mut(), &cancel, ui)?))
}

/// Reports the publication and the held removals of a pass.
fn show_outcome(passed: &PassResult, settings: &Settings, ui: &Ui) -> Exit {
    match passed.outcome {
        PassOutcome::Published { commit, seq } => {
            let only = if passed.plan.is_empty() { ": the record, since no object changes" } else { "" };
            let on = &settings.refs.rendered;
            ui.out(&format!("published {} as number {seq} on {on}{only}", commit.short()));
        }
        PassOutcome::Unchanged => ui.out("nothing to publish"),
    }
    let exit = exit_for(&passed.diagnostics);
    if passed.held.is_empty() {
        return exit;
    }
    ui.out(&held_text(&passed.held, ui));
    exit.worst(Exit::Held)
}

/// Writes the state to the hub clusters. A fault is printed, and is the exit code.
fn write_to_hubs(args: &RunArgs, passed: &PassResult, ui: &Ui) -> Exit {
    let fleet = args.trust.fleet().unwrap_or_default();
    match args.hub.write(&args.events.access(), &fleet, passed) {
        Ok(lines) => {
            lines.iter().for_each(|line| ui.out(line));
            Exit::Done
        }
        Err(error) => {
            ui.error(&error);
            error.exit
        }
    }
}

/// Reads `Name <email>`, without characters that could break a commit's header.
pub(super) fn identity(text: &str) -> Result<Identity, String> {
    let wrong = || "write it as `Name <email>`".to_owned();
    let (name, rest) = text.split_once('<').ok_or_else(wrong)?;
    let email = rest.strip_suffix('>').ok_or_else(wrong)?;
    let name = name.trim();
    let unfit = |part: &str| part.is_empty() || part.contains(['<', '>', '\n', '\0']);
    if unfit(name) || unfit(email) {
        Err(wrong())
    } else {
        Ok(Identity { name: name.into(), email: email.into(), signer: None, fleet: None })
    }
}
