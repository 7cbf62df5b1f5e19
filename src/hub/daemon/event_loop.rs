//! The daemon's loop: takes the next event and performs the schedule's action.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Interval, MissedTickBehavior};
use tracing::{Instrument as _, error, info, warn};

use super::cache::Cache;
use super::error::PassError;
use super::idle_pass::RefSnapshot;
use super::pass_end::{self, PassEnd, PassHooks};
use super::remote_pass::{self, Part, Passed, Work};
use super::schedule::{self, Action, Event, Schedule};
use super::settings::Settings;
use super::standby::{HeldLease, PublishRight, Standby};
use super::status_posts::StatusPosts;
use super::upkeep::Upkeep;
use super::wakeups::{self, Hangup, RefWatch, Stop};
use super::{Daemon, DaemonError, Reload, Remote, SharedMirror, pass};
use berth_base::backoff;
use berth_base::backoff::pace::paced;
use berth_base::model::Timestamp;
use berth_git::transport::Cancel;

/// A running daemon.
pub(super) struct EventLoop<'a> {
    settings: Settings,
    reload: Reload<'a>,
    hooks: &'a mut dyn PassHooks,
    origin: DaemonRemote,
    turn: Option<HeldLease>,
    right: PublishRight,
    state: LoopState,
    schedule: Schedule,
    upkeep: Upkeep,
    running: Option<JoinHandle<Passed>>,
    /// The moment at which the loop wakes without an event.
    pause: Option<tokio::time::Instant>,
    backing_off: bool,
    stop: Stop,
    hangup: Hangup,
    woken: mpsc::Receiver<()>,
    ticks: Interval,
    _watch: Option<RefWatch>,
}

/// The remote; without one, `mirror` is `None`.
#[derive(Default)]
struct DaemonRemote {
    mirror: Option<SharedMirror>,
    cancel: Cancel,
    standby: Option<Standby>,
    statuses: Option<StatusPosts>,
    is_patient: bool,
}

impl DaemonRemote {
    fn of(remote: Option<Remote>) -> DaemonRemote {
        let Some(Remote { mut mirror, cancel, standby, statuses, is_patient }) = remote else {
            return DaemonRemote::default();
        };
        if let Some(statuses) = &statuses {
            mirror.listen_to(statuses.refusal());
        }
        DaemonRemote { mirror: Some(Arc::new(Mutex::new(mirror))), cancel, standby, statuses, is_patient }
    }

    /// Fetches for the first time. Returns false if the daemon was asked to stop.
    async fn fetch(&self, settings: &Settings, stop: &mut Stop) -> Result<bool, DaemonError> {
        let Some(mirror) = self.mirror.clone() else { return Ok(true) };
        let (settings, is_patient) = (settings.clone(), self.is_patient);
        let mut fetching =
            remote_pass::spawn(move || remote_pass::first_fetch(&settings, &mirror, is_patient));
        tokio::select! {
            () = stop.received() => {
                self.cancel.cancel();
                let _ = fetching.await;
                Ok(false)
            }
            // If fetching crashed, the first pass fetches again.
            fetched = &mut fetching => {
                fetched.unwrap_or(Ok(()))?;
                Ok(true)
            }
        }
    }
}

/// Runs until asked to stop.
pub(super) async fn run(
    daemon: Daemon,
    reload: Reload<'_>,
    hooks: &mut dyn PassHooks,
    mut stop: Stop,
) -> Result<(), DaemonError> {
    let Daemon { settings, poll, remote, webhooks } = daemon;
    let hangup = Hangup::new()?;
    let (wake, woken) = mpsc::channel(1);
    let mut origin = DaemonRemote::of(remote);
    if !origin.fetch(&settings, &mut stop).await? {
        return Ok(());
    }
    let watch = match origin.mirror {
        Some(_) => None,
        None => watch_refs(&settings, &wake)?,
    };
    if let Some(webhooks) = webhooks {
        tokio::spawn(webhooks.pass_on(wake.clone()).in_current_span());
    }
    let turn = origin.standby.take().map(|standby| standby.start(wake.clone())).transpose()?;
    let right = turn.as_ref().map(|turn| turn.right.clone()).unwrap_or_default();
    if let Some(statuses) = &mut origin.statuses {
        statuses.begin(right.clone(), wake)?;
    }
    let mut ticks = tokio::time::interval(poll);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    info!(repository = %settings.repo.display(), "watching");
    let event_loop = EventLoop {
        settings,
        reload,
        hooks,
        origin,
        turn,
        right,
        state: LoopState { poll, cache: Cache::default().polled(poll), ..LoopState::default() },
        schedule: Schedule::default(),
        upkeep: Upkeep::default(),
        running: None,
        pause: None,
        backing_off: false,
        stop,
        hangup,
        woken,
        ticks,
        _watch: watch,
    };
    event_loop.run().await
}

/// Watches the refs of a repository without a remote. Fails if the source does not exist, since waiting would not
/// help.
fn watch_refs(settings: &Settings, wake: &mpsc::Sender<()>) -> Result<Option<RefWatch>, DaemonError> {
    let [git_folder, shared] = pass::git_folders(settings)?;
    let watch = wakeups::watch_refs(&git_folder, &shared, wake.clone());
    Ok(watch.inspect_err(|error| warn!(%error, "refs cannot be watched; polling only")).ok())
}

impl EventLoop<'_> {
    async fn run(mut self) -> Result<(), DaemonError> {
        loop {
            let event = self.next_event().await;
            if self.turn.as_ref().is_some_and(HeldLease::is_broken) {
                return Err(DaemonError::Lease);
            }
            let (schedule, action) = schedule::step(self.schedule, event);
            self.schedule = schedule;
            match action {
                Some(Action::StartPass) => self.start_pass(),
                Some(Action::WakeAfter(length)) => {
                    let length = backoff::jitter(length, backoff::chance());
                    self.pause = Some(tokio::time::Instant::now() + length);
                    self.backing_off = true;
                }
                Some(Action::Exit) => break,
                None => {}
            }
            if self.running.is_none() && self.pause.is_none() {
                self.pause = self.state.deadline();
            }
        }
        // Releases the lease first, because another daemon may be waiting for it.
        drop(self.turn);
        info!("stopped");
        Ok(())
    }

    async fn next_event(&mut self) -> Event {
        // A failing remote gets its full pause, and only one request at a time.
        let may_look = self.origin.mirror.is_none() || !(self.backing_off || self.running.is_some());
        tokio::select! {
            () = self.stop.received() => {
                info!("stopping");
                self.origin.cancel.cancel();
                Event::Stop
            }
            ended = finished(&mut self.running) => self.ended(ended),
            () = self.hangup.received() => {
                info!("woken by SIGHUP");
                Event::Wake
            }
            Some(()) = self.woken.recv(), if may_look => Event::Wake,
            _ = self.ticks.tick(), if may_look => Event::Wake,
            () = sleep_until(self.pause) => {
                (self.pause, self.backing_off) = (None, false);
                Event::Wake
            }
        }
    }

    fn start_pass(&mut self) {
        self.hooks.begins();
        self.state.reload(&mut self.settings, &mut *self.reload, self.hooks);
        let part = self.state.part(self.turn.is_some(), &self.right, self.hooks);
        let (mirror, right) = (self.origin.mirror.clone(), self.right.clone());
        self.running = Some(remote_pass::start(&self.settings, mirror, right, part, &mut self.state));
    }

    fn ended(&mut self, ended: Result<Passed, JoinError>) -> Event {
        self.running = None;
        if self.origin.mirror.is_none() {
            self.upkeep.begin(&self.settings.repo, self.settings.git);
        }
        if let (Some(statuses), Ok((Ok(Work::Passed(passed)), _))) = (&self.origin.statuses, &ended) {
            statuses.know(&passed.shown.clusters);
        }
        self.state.ended(ended, self.hooks)
    }
}

/// The state that the loop carries from pass to pass. Losing it only costs one pass.
#[derive(Debug, Default)]
pub(super) struct LoopState {
    /// The start of the pass.
    pub(super) begun: Option<Instant>,
    /// The refs after the last pass that left nothing to do.
    pub(super) seen: Option<RefSnapshot>,
    pub(super) next_change: Option<Timestamp>,
    poll: Duration,
    pub(super) cache: Cache,
    /// With a lease: true if this daemon held it when the last pass began.
    leads: Option<bool>,
}

impl LoopState {
    fn ended(&mut self, ended: Result<Passed, JoinError>, hooks: &mut dyn PassHooks) -> Event {
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
                pass_end::report(&passed);
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
                // The cache may have caused the crash.
                self.cache = Cache::default().polled(self.poll);
                Event::Failed
            }
        }
    }

    /// Reads new settings. Keeps the old ones if the new ones are invalid.
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

    /// Decides this daemon's part in the next pass, and reports when it changes.
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

    /// Returns the moment of the next deadline, on the loop's own clock.
    fn deadline(&self) -> Option<tokio::time::Instant> {
        let left = self.next_change?.duration_since(Timestamp::now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        Some(tokio::time::Instant::now() + left.max(paced(Duration::from_secs(1))))
    }
}

async fn finished<T>(running: &mut Option<JoinHandle<T>>) -> Result<T, JoinError> {
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
