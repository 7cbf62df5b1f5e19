//! The daemon: watches the refs of a repository and runs a pass whenever they move.
//!
//! One loop receives events and performs what [`schedule::step`] says; a pass is blocking work on a
//! thread of its own. SIGTERM and SIGINT end the loop after the pass in progress. With a remote, a pass begins
//! with a fetch and ends with a push; its refs are polled, or webhooks tell of them, and only exchanges with it are
//! broken off to stop.

mod cache;
mod cache_file;
mod error;
mod hooks;
mod idle_pass;
mod kept_file;
mod pass;
pub mod pass_metrics;
mod ref_watch;
mod remote;
mod schedule;
mod settings;
mod source_branch;
mod standing;
mod tip_check;
mod upkeep;
pub mod webhooks;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::publish::rollout_steps::Turn;
use berth_base::backoff;
use berth_base::diag::{Diagnostic, Severity, harmless_line};
use berth_base::model::Timestamp;
use berth_git::transport::Cancel;
use schedule::{Action, Event, Schedule};
use webhooks::Webhooks;

pub use cache::Cache;
pub use error::PassError;
pub use hooks::{PassEnd, PassHooks};
pub use pass::{PassOutcome, PassResult, pass, pass_with_cache};
pub use remote::{Mirror, Once, pass_once};
pub use settings::Settings;
pub use standing::{FleetStanding, MemberStanding};

/// The daemon could not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("starting failed: {0}")]
    Start(#[from] std::io::Error),
    #[error(transparent)]
    Pass(#[from] PassError),
}

/// A remote and what breaks off the exchanges with it.
#[derive(Debug)]
pub struct Remote {
    pub mirror: Mirror,
    pub cancel: Cancel,
}

/// Shared with the thread of a pass; a pass that crashed leaves it usable.
type SharedMirror = Arc<Mutex<Mirror>>;

/// Runs until asked to stop.
pub fn run(
    settings: Settings,
    poll: Duration,
    remote: Option<Remote>,
    webhooks: Option<Webhooks>,
    hooks: &mut dyn PassHooks,
) -> Result<(), DaemonError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run_loop(settings, poll, remote, webhooks, hooks))
}

async fn run_loop(
    settings: Settings,
    poll: Duration,
    remote: Option<Remote>,
    webhooks: Option<Webhooks>,
    hooks: &mut dyn PassHooks,
) -> Result<(), DaemonError> {
    let mut stop = StopSignals::new()?;
    let (wake, mut woken) = mpsc::channel(1);
    let (mirror, cancel) = match remote {
        Some(Remote { mirror, cancel }) => (Some(Arc::new(Mutex::new(mirror))), cancel),
        None => (None, Cancel::default()),
    };
    let _watch = match &mirror {
        Some(mirror) => {
            let (settings, mirror) = (settings.clone(), mirror.clone());
            let mut fetching = tokio::task::spawn_blocking(move || first_fetch(&settings, &mirror));
            tokio::select! {
                () = stop.received() => {
                    cancel.cancel();
                    let _ = fetching.await;
                    return Ok(());
                }
                // After a crash the first pass fetches again.
                fetched = &mut fetching => fetched.unwrap_or(Ok(()))?,
            }
            None
        }
        None => {
            // Fails early on a missing source, rather than retrying a typing error for ever.
            let [git_folder, shared] = pass::git_folders(&settings)?;
            ref_watch::watch(&git_folder, &shared, wake.clone())
                .inspect_err(|error| warn!(%error, "refs cannot be watched; polling only"))
                .ok()
        }
    };
    if let Some(webhooks) = webhooks {
        tokio::spawn(webhooks.pass_on(wake.clone()));
    }
    let mut ticks = tokio::time::interval(poll);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut schedule = Schedule::default();
    let mut state = LoopState { poll, cache: Cache::default().polled(poll), ..LoopState::default() };
    let mut running: Option<JoinHandle<Passed>> = None;
    let mut pause: Option<tokio::time::Instant> = None;
    let mut backing_off = false;
    let mut upkeep = upkeep::Upkeep::default();
    info!(repository = %settings.repo.display(), "watching");
    loop {
        // A failing remote gets its whole pause, and one request at a time.
        let may_look = mirror.is_none() || !(backing_off || running.is_some());
        let event = tokio::select! {
            () = stop.received() => {
                info!("stopping");
                cancel.cancel();
                Event::Stop
            }
            ended = finished(&mut running) => {
                running = None;
                if mirror.is_none() {
                    upkeep.begin(&settings.repo);
                }
                state.ended(ended, hooks)
            }
            Some(()) = woken.recv(), if may_look => Event::Wake,
            _ = ticks.tick(), if may_look => Event::Wake,
            () = sleep_until(pause) => {
                (pause, backing_off) = (None, false);
                Event::Wake
            }
        };
        let (next, action) = schedule::step(schedule, event);
        schedule = next;
        match action {
            Some(Action::StartPass) => {
                hooks.begins();
                running = Some(start(&settings, mirror.clone(), &mut state));
            }
            Some(Action::WakeAfter(length)) => {
                let length = backoff::jitter(length, backoff::chance());
                (pause, backing_off) = (Some(tokio::time::Instant::now() + length), true);
            }
            Some(Action::Exit) => break,
            None => {}
        }
        if running.is_none() && pause.is_none() {
            pause = state.deadline();
        }
    }
    state.cache.store(&settings);
    info!("stopped");
    Ok(())
}

/// The state that the loop carries from pass to pass. Losing it costs one pass, nothing else.
#[derive(Debug, Default)]
struct LoopState {
    /// The start of the pass.
    begun: Option<Instant>,
    /// The refs when the last pass had nothing left to do.
    seen: Option<pass::RefSnapshot>,
    next_change: Option<Timestamp>,
    poll: Duration,
    cache: Cache,
}

/// The result of a pass, and the cache for the next one.
type Passed = (Result<Option<PassResult>, PassError>, Cache);

impl LoopState {
    fn ended(&mut self, ended: Result<Passed, tokio::task::JoinError>, hooks: &mut dyn PassHooks) -> Event {
        let took = self.begun.take().map(|begun| begun.elapsed()).unwrap_or_default();
        let ended = ended.map(|(ended, cache)| {
            self.cache = cache;
            ended
        });
        let end = match &ended {
            Ok(Ok(None)) => PassEnd::Spared,
            Ok(Ok(Some(passed))) => PassEnd::Done(passed),
            Ok(Err(problem)) => PassEnd::Failed(problem),
            Err(_) => PassEnd::Crashed,
        };
        hooks.ended(end, took);
        match ended {
            Ok(Ok(None)) => Event::Done,
            Ok(Ok(Some(passed))) => {
                report(&passed);
                self.next_change = passed.next_change;
                self.seen = Some(passed.seen);
                Event::Done
            }
            Ok(Err(problem)) if problem.is_passing() => {
                self.seen = None;
                warn!(error = %problem, hint = problem.hint(), "the remote cannot be used; the current \
                state stays, retrying");
                Event::Failed
            }
            Ok(Err(problem)) => {
                self.seen = None;
                error!(error = %problem, hint = problem.hint(), "pass failed");
                Event::Failed
            }
            Err(problem) => {
                error!(error = %problem, "pass crashed: a bug in berth");
                // The cache may be the cause of the crash.
                self.cache = Cache::forgetful().polled(self.poll);
                Event::Failed
            }
        }
    }

    /// Returns the moment of the next change that time alone brings, on the loop's own clock.
    fn deadline(&self) -> Option<tokio::time::Instant> {
        let left = self.next_change?.duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        Some(tokio::time::Instant::now() + left.max(Duration::from_secs(1)))
    }
}

/// Fetches for the first time. Fails where waiting would not help; a remote that is merely away is waited for.
fn first_fetch(settings: &Settings, mirror: &SharedMirror) -> Result<(), PassError> {
    let mut mirror = mirror.lock().unwrap_or_else(PoisonError::into_inner);
    info!(remote = mirror.shown(), "connecting");
    match mirror.fetch(settings) {
        Err(problem) if problem.is_passing() || matches!(problem, PassError::NoSource(_)) => {
            warn!(error = %problem, hint = problem.hint(), "the remote cannot be used yet, retrying");
            Ok(())
        }
        done => done,
    }
}

fn start(settings: &Settings, mirror: Option<SharedMirror>, state: &mut LoopState) -> JoinHandle<Passed> {
    state.begun = Some(Instant::now());
    let settings = settings.clone();
    let due = state.next_change.is_some_and(|at| at <= Timestamp::now());
    let seen = state.seen.clone().filter(|_| !due);
    let mut cache = std::mem::take(&mut state.cache);
    // Reading and writing Git objects blocks, and a repository must not cross an await.
    tokio::task::spawn_blocking(move || {
        let mut mirror = mirror.as_ref().map(|mirror| mirror.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(mirror) = &mut mirror
            && let Err(problem) = mirror.fetch(&settings)
        {
            return (Err(problem), cache);
        }
        cache.fetched(Timestamp::now());
        if seen.is_some_and(|seen| pass::snapshot_refs(&settings).is_ok_and(|now| now == seen)) {
            return (Ok(None), cache);
        }
        info!("pass started");
        let now = Timestamp::now();
        let passed = match &mut mirror {
            Some(mirror) => remote::pass_fetched(&settings, now, &mut cache, mirror),
            None => pass_with_cache(&settings, now, &mut cache),
        };
        (passed.map(Some), cache)
    })
}

fn report(passed: &PassResult) {
    for diagnostic in passed.diagnostics.iter() {
        log(diagnostic);
    }
    let counts = passed.plan.counts();
    if let PassOutcome::Published { commit, seq } = passed.outcome {
        info!(
            %commit,
            seq,
            removed = counts.removed,
            changed = counts.changed,
            added = counts.added,
            clusters = counts.clusters,
            "published"
        );
    }
    for step in &passed.rollout_steps {
        let Some(halt) = &step.halt else { continue };
        let (workload, release) = (&step.key, halt.release);
        match &halt.turn {
            Turn::Halted { reason } => warn!(%workload, release, reason, "rollout halted"),
            Turn::TakenBack { to, reason } => warn!(%workload, release, to, reason, "rollout taken back"),
            Turn::GoesOn | Turn::GoesOnInsteadOf(_) => info!(%workload, release, "rollout goes on"),
        }
    }
    for held in &passed.held {
        warn!(workload = %held.key, removes = held.losses(), approve = held.approval_of_all(), "held for approval");
    }
    info!(source = %passed.source, held = passed.held.len(), errors = passed.errors(), "pass done");
}

/// Logs a diagnostic at its own level, with its place as fields.
fn log(diagnostic: &Diagnostic) {
    let at = diagnostic.at.as_ref();
    let file = at.map(|at| harmless_line(&at.file).into_owned());
    let (line, column) = (at.map(|at| at.line).filter(|line| *line > 0), at.map(|at| at.column));
    let column = column.filter(|_| line.is_some());
    let hint = diagnostic.hint.as_deref().map(|hint| harmless_line(hint).into_owned());
    let message = harmless_line(&diagnostic.message);
    match diagnostic.severity {
        Severity::Error => error!(file, line, column, hint, "{message}"),
        Severity::Warning => warn!(file, line, column, hint, "{message}"),
        Severity::Note => info!(file, line, column, hint, "{message}"),
    }
}

async fn finished<T>(running: &mut Option<JoinHandle<T>>) -> Result<T, tokio::task::JoinError> {
    match running {
        Some(handle) => handle.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// SIGTERM and SIGINT.
struct StopSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }

    #[cfg(not(unix))]
    async fn received(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Calls back once when the process is asked to stop; for loops that are not this daemon's.
pub fn on_stop(stop: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        StopSignals::new()?
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(signals.received());
        stop();
    })?;
    Ok(())
}
