//! The daemon: watches the refs of a repository and runs a pass whenever they move.
//!
//! One loop receives events and performs what [`schedule::step`] says; a pass is blocking work on a
//! thread of its own. SIGTERM and SIGINT end the loop after the pass in progress. With a remote, a pass begins
//! with a fetch and ends with a push; its refs are polled, or webhooks tell of them, and only exchanges with it are
//! broken off to stop.

mod allowance;
mod cache;
mod error;
mod hooks;
mod hub_counts;
mod idle_pass;
mod pass;
mod pass_log;
pub mod pass_metrics;
mod previews;
mod ref_moves;
mod ref_snapshot;
mod ref_watch;
mod registry_numbers;
mod remote;
mod remote_pass;
mod schedule;
mod settings;
mod signals;
mod source_branch;
mod standby;
mod standing;
pub mod status_posts;
mod tip_check;
mod upkeep;
pub mod webhooks;
mod work;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{Instrument as _, Span, error, info, warn};

use berth_base::backoff;
use berth_base::backoff::pace::paced;
use berth_base::model::Timestamp;
use berth_git::transport::Cancel;
use ref_snapshot::RefSnapshot;
use schedule::{Action, Event, Schedule};
use signals::Hangup;
use standby::{PublishRight, Turn};
use status_posts::StatusPosts;
use webhooks::Webhooks;
use work::{Part, Passed, Work};

pub use cache::Cache;
pub use error::PassError;
pub use hooks::{PassEnd, PassHooks};
pub use pass::{PassOutcome, PassResult, pass, pass_with_cache};
pub use previews::{PreviewChange, PreviewRule, Previews};
pub use registry_numbers::RegistryNumbers;
pub use remote::Mirror;
pub use remote_pass::{Once, pass_once};
pub use settings::Settings;
pub use signals::{Stop, on_stop};
pub use standby::{LeaseRef, Standby, lease_within};
pub use standing::{FleetStanding, MemberStanding};

/// The daemon could not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("starting failed: {0}")]
    Start(#[from] std::io::Error),
    #[error(transparent)]
    Pass(#[from] PassError),
    #[error("the thread that keeps the lease has ended, a bug in berth; start the daemon again")]
    Lease,
}

/// A remote, what breaks off the exchanges with it, and the lease of those who publish to it.
#[derive(Debug)]
pub struct Remote {
    pub mirror: Mirror,
    pub cancel: Cancel,
    /// Without one, this daemon publishes whoever else does.
    pub standby: Option<Standby>,
    /// The statuses that members send, if any may.
    pub statuses: Option<StatusPosts>,
    /// Goes on trying also where the first fetch fails for good, for daemons that share their process.
    pub is_patient: bool,
}

/// Shared with the thread of a pass; a pass that crashed leaves it usable.
type SharedMirror = Arc<Mutex<Mirror>>;

/// Reads the settings again: the new ones where something changed, an error where they cannot be used.
pub type Reload<'a> = &'a mut dyn FnMut() -> Result<Option<Settings>, String>;

/// Runs until asked to stop.
pub fn run(
    settings: Settings,
    reload: Reload<'_>,
    poll: Duration,
    remote: Option<Remote>,
    webhooks: Option<Webhooks>,
    hooks: &mut dyn PassHooks,
    stop: Stop,
) -> Result<(), DaemonError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let work = run_loop(settings, reload, poll, remote, webhooks, hooks, stop);
    runtime.block_on(work.instrument(Span::current()))
}

async fn run_loop(
    mut settings: Settings,
    reload: Reload<'_>,
    poll: Duration,
    remote: Option<Remote>,
    webhooks: Option<Webhooks>,
    hooks: &mut dyn PassHooks,
    mut stop: Stop,
) -> Result<(), DaemonError> {
    let mut hangup = Hangup::new()?;
    let (wake, mut woken) = mpsc::channel(1);
    let (mirror, cancel, standby, mut statuses, is_patient) = match remote {
        Some(Remote { mut mirror, cancel, standby, statuses, is_patient }) => {
            if let Some(statuses) = &statuses {
                mirror.listen_to(statuses.deafness());
            }
            (Some(Arc::new(Mutex::new(mirror))), cancel, standby, statuses, is_patient)
        }
        None => (None, Cancel::default(), None, None, false),
    };
    let _watch = match &mirror {
        Some(mirror) => {
            let (settings, mirror) = (settings.clone(), mirror.clone());
            let mut fetching = work::spawn(move || work::first_fetch(&settings, &mirror, is_patient));
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
        tokio::spawn(webhooks.pass_on(wake.clone()).in_current_span());
    }
    let turn = standby.map(|standby| standby.start(wake.clone())).transpose()?;
    let right = turn.as_ref().map(|turn| turn.right.clone()).unwrap_or_default();
    if let Some(statuses) = &mut statuses {
        statuses.begin(right.clone(), wake.clone())?;
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
                    upkeep.begin(&settings.repo, settings.git);
                }
                if let (Some(statuses), Ok((Ok(Work::Passed(passed)), _))) = (&statuses, &ended) {
                    statuses.know(&passed.shown.clusters);
                }
                state.ended(ended, hooks)
            }
            () = hangup.received() => {
                info!("looking, for a signal asks for it");
                Event::Wake
            }
            Some(()) = woken.recv(), if may_look => Event::Wake,
            _ = ticks.tick(), if may_look => Event::Wake,
            () = sleep_until(pause) => {
                (pause, backing_off) = (None, false);
                Event::Wake
            }
        };
        if turn.as_ref().is_some_and(Turn::is_broken) {
            return Err(DaemonError::Lease);
        }
        let (next, action) = schedule::step(schedule, event);
        schedule = next;
        match action {
            Some(Action::StartPass) => {
                hooks.begins();
                state.reload(&mut settings, &mut *reload, hooks);
                let part = state.part(turn.is_some(), &right, hooks);
                running = Some(work::start(&settings, mirror.clone(), right.clone(), part, &mut state));
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
    // Before all else: another daemon may be waiting for the lease.
    drop(turn);
    info!("stopped");
    Ok(())
}

/// The state that the loop carries from pass to pass. Losing it costs one pass, nothing else.
#[derive(Debug, Default)]
struct LoopState {
    /// The start of the pass.
    begun: Option<Instant>,
    /// The refs when the last pass had nothing left to do.
    seen: Option<RefSnapshot>,
    next_change: Option<Timestamp>,
    poll: Duration,
    cache: Cache,
    /// With a lease: whether the last pass began with it.
    leads: Option<bool>,
}

impl LoopState {
    fn ended(&mut self, ended: Result<Passed, tokio::task::JoinError>, hooks: &mut dyn PassHooks) -> Event {
        let took = self.begun.take().map(|begun| begun.elapsed()).unwrap_or_default();
        let ended = ended.map(|(ended, cache)| {
            self.cache = cache;
            ended
        });
        let end = match &ended {
            Ok(Err(problem)) if problem.is_stop() => return Event::Done,
            Ok(Ok(Work::Nothing)) => PassEnd::Spared,
            Ok(Ok(Work::OfAnother)) => PassEnd::StoodBy,
            Ok(Ok(Work::Passed(passed))) => PassEnd::Done(passed),
            Ok(Err(problem)) => PassEnd::Failed(problem),
            Err(_) => PassEnd::Crashed,
        };
        hooks.ended(end, took);
        match ended {
            Ok(Ok(Work::Nothing)) => Event::Done,
            Ok(Ok(Work::OfAnother)) => {
                (self.seen, self.next_change) = (None, None);
                Event::Done
            }
            Ok(Ok(Work::Passed(passed))) => {
                pass_log::report(&passed);
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
            Ok(Err(problem @ PassError::LeaseEnded)) => {
                self.seen = None;
                warn!("{problem}");
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
                self.cache = Cache::default().polled(self.poll);
                Event::Failed
            }
        }
    }

    /// Takes new settings over. Faulty ones are passed over.
    fn reload(&mut self, settings: &mut Settings, reload: Reload<'_>, hooks: &mut dyn PassHooks) {
        match reload() {
            Ok(None) => {}
            Ok(Some(new)) => {
                info!("the settings have changed");
                *settings = new;
                self.seen = None;
                self.cache.doubt_trust();
                hooks.reloaded(true);
            }
            Err(why) => {
                error!(error = why, "the changed settings cannot be used; the last ones stay");
                hooks.reloaded(false);
            }
        }
    }

    /// Decides this daemon's part in the next pass, and tells of a change.
    fn part(&mut self, is_one_of_several: bool, right: &PublishRight, hooks: &mut dyn PassHooks) -> Part {
        if !is_one_of_several {
            return Part::Publish;
        }
        let leads = right.holds();
        let led = self.leads.replace(leads);
        hooks.leads(leads);
        match (led, leads) {
            (Some(false), true) => Part::TakeOver,
            (_, true) => Part::Publish,
            (Some(true), false) => {
                info!("standing by: without the lease, nothing is published");
                Part::StandBy
            }
            (_, false) => Part::StandBy,
        }
    }

    /// Returns the moment of the next change that time alone brings, on the loop's own clock.
    fn deadline(&self) -> Option<tokio::time::Instant> {
        let left = self.next_change?.duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        Some(tokio::time::Instant::now() + left.max(paced(Duration::from_secs(1))))
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
