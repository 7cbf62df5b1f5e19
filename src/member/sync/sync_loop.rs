//! The member's loop: fetch, apply, correct drift and report, until asked to stop.
//!
//! A sync over an unchanged folder and an unchanged backend writes nothing. Each sync reads the ref, so the
//! newest folder is applied. Failures in a row lengthen the pause. If the backend reports its changes, a sync
//! only runs when the folder, the backend or a deadline requires it. [`Wakeups`] ends the wait between two
//! syncs.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::backends::{Backend, NotAdmitted, RequestSync};
use super::cluster_folder::{self, FolderError};
use super::desired::{self, DesiredSet};
use super::local_overrides::LocalOverrides;
use super::{ClusterFolder, Options, SyncError, SyncOutcome, facts_file, status, sync_set};
use berth_base::backoff::Backoff;
use berth_base::model::status::Applied;
use berth_base::model::{ClusterStatus, Timestamp};
use berth_git::shared_refs::{Refs, read_status};
use berth_git::{CommitId, GitError, Repo};

/// The longest pause after failures, unless the interval itself is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The cluster to keep in sync, and the intervals.
#[derive(Clone, Debug)]
pub struct Config {
    pub cluster: String,
    pub refs: Refs,
    pub interval: Duration,
    /// The interval of reports while nothing changes.
    pub heartbeat_seconds: i64,
    pub options: Options,
}

/// The clock, files and remote that a sync uses.
pub trait SyncHooks {
    fn now(&mut self) -> Timestamp;

    /// Fetches the newest folder, if the local repository is a copy of a remote one.
    fn refresh(&mut self) -> Freshness {
        Freshness::Newest
    }

    /// Returns the commit to apply, and the reason if it is not the newest.
    fn choose(&mut self, _repo: &Repo, newest: CommitId) -> Result<(CommitId, Option<String>), String> {
        Ok((newest, None))
    }

    /// Returns the member's own overrides.
    fn overrides(&mut self) -> Result<LocalOverrides, String> {
        Ok(LocalOverrides::default())
    }

    /// Reports whether the status goes into the repository.
    fn reports(&self) -> bool {
        true
    }

    /// Returns the other facts about the cluster: labels, claims, scores and the like.
    fn facts(&mut self) -> Result<ClusterStatus, String> {
        Ok(ClusterStatus::default())
    }

    /// Handles a finished sync. May push the status.
    fn after(&mut self, sync: &Sync);

    /// Handles an interval without a sync. `reported` is true if the last status was written again.
    fn between(&mut self, _reported: &Result<bool, GitError>) {}
}

/// The freshness of the local repository. If it is behind, the member keeps the last folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    Newest,
    Unreachable(String),
    /// The newest commit must not be followed; the report contains the reason.
    Refused(String),
}

/// A finished sync.
#[derive(Debug)]
pub struct Sync {
    pub result: Result<SyncOutcome, SyncError>,
    /// The freshness of the folder that the sync used.
    pub freshness: Freshness,
    /// True if a status was written.
    pub reported: Result<bool, GitError>,
}

/// The shortest time between two syncs that a backend requests: simultaneous changes count as one.
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_millis(250);

/// A syncer: its settings, its backend, and its cache.
#[expect(missing_debug_implementations, reason = "borrows of a sync at work, never printed")]
pub struct Syncer<'a> {
    pub config: &'a Config,
    pub repo: &'a Repo,
    pub backend: &'a mut dyn Backend,
    pub hooks: &'a mut dyn SyncHooks,
    /// The folder of the last sync, so that an unchanged one is not read again.
    folder_cache: Option<(ClusterFolder, DesiredSet)>,
}

impl<'a> Syncer<'a> {
    pub fn new(
        config: &'a Config,
        repo: &'a Repo,
        backend: &'a mut dyn Backend,
        hooks: &'a mut dyn SyncHooks,
    ) -> Syncer<'a> {
        Syncer { config, repo, backend, hooks, folder_cache: None }
    }

    /// Runs syncs until somebody asks to stop.
    pub fn run(mut self, wakeups: &Wakeups) {
        let interval = self.config.interval;
        let tells = self.backend.watch_changes(wakeups.sync_requester());
        let (mut failures, mut unsettled): (u32, u32) = (0, 0);
        loop {
            let inputs = tells.then(|| self.inputs());
            let begun = Instant::now();
            let sync = self.sync();
            unsettled = if sync.is_idle() { 0 } else { unsettled.saturating_add(1) };
            let failed = !matches!(sync.result, Ok(_) | Err(SyncError::NotAdmitted(_)));
            failures = if failed { failures.saturating_add(1) } else { 0 };
            self.hooks.after(&sync);
            // Checking the lease costs nothing, so it is repeated at the interval.
            let inputs = inputs.filter(|_| !matches!(sync.result, Err(SyncError::NotAdmitted(_))));
            let Some(inputs) = inputs else {
                match wakeups.wait(pause(interval, failures)) {
                    Some(Wakeup::Stop) => return,
                    Some(Wakeup::Sync) | None => continue,
                }
            };
            let again = (unsettled > 0).then(|| Instant::now() + pause(interval, unsettled - 1));
            let again = again.into_iter().chain(sync.resumes(self.hooks.now())).min();
            let earliest = begun + if failures > 0 { pause(interval, failures) } else { SHORTEST_PAUSE };
            let idle = Idle { sync: &sync, inputs, again, earliest };
            if self.is_stopped(&idle, wakeups) {
                return;
            }
        }
    }

    fn inputs(&mut self) -> Inputs {
        let mut refreshed = self.hooks.refresh();
        // The next sync reports a fault of the ref.
        let chosen = self.choose(&mut refreshed).ok();
        Inputs { refreshed, chosen, overrides: self.hooks.overrides() }
    }

    /// Returns the commit to apply. Sets `refreshed` if the newest one is refused.
    fn choose(&mut self, refreshed: &mut Freshness) -> Result<CommitId, SyncError> {
        let newest = cluster_folder::newest(self.repo, &self.config.refs, &self.config.cluster)?;
        let (chosen, refused) = self.hooks.choose(self.repo, newest).map_err(SyncError::Refused)?;
        if let Some(why) = refused {
            *refreshed = Freshness::Refused(why);
        }
        Ok(chosen)
    }

    /// Waits until a sync is required. Returns true if asked to stop.
    fn is_stopped(&mut self, idle: &Idle<'_>, wakeups: &Wakeups) -> bool {
        let interval = self.config.interval;
        loop {
            let due = idle.again.into_iter().chain(self.backend.next_sync_due()).min();
            let left = due.map(|due| due.max(idle.earliest).saturating_duration_since(Instant::now()));
            match wakeups.wait(left.map_or(interval, |left| left.min(interval))) {
                Some(Wakeup::Stop) => return true,
                Some(Wakeup::Sync) => {
                    return wakeups
                        .is_stopped_within(idle.earliest.saturating_duration_since(Instant::now()));
                }
                None => {}
            }
            if left.is_some_and(|left| left <= interval) {
                return false;
            }
            if self.backend.admit().is_err() || self.inputs() != idle.inputs {
                return false;
            }
            let now = self.hooks.now();
            let reported = self.report(&idle.sync.result, &idle.inputs.refreshed, now);
            self.hooks.between(&reported);
        }
    }

    /// Runs one sync: fetch, apply, report.
    pub fn sync(&mut self) -> Sync {
        let dry = self.config.options.dry_run;
        if let Err(why) = if dry { Ok(()) } else { self.backend.admit() } {
            return self.turned_away(why);
        }
        let mut refreshed = self.hooks.refresh();
        let result = match (self.apply(&mut refreshed), &refreshed) {
            (
                Err(SyncError::Folder(FolderError::NoFolder { .. })),
                Freshness::Unreachable(why) | Freshness::Refused(why),
            ) => Err(SyncError::Refresh(why.clone())),
            (result, _) => result,
        };
        // If the lease was lost during the sync, the next holder reports.
        if let Err(why) = if dry { Ok(()) } else { self.backend.admit() } {
            return self.turned_away(why);
        }
        let now = self.hooks.now();
        if dry {
            return Sync { result, freshness: refreshed, reported: Ok(false) };
        }
        let reported = self.report(&result, &refreshed, now);
        self.backend.tell_events(&status::events_of(&result), now);
        Sync { result, freshness: refreshed, reported }
    }

    /// Ends a sync without the lease. Reports only if no other holder is known, since the cluster may be down.
    fn turned_away(&mut self, why: NotAdmitted) -> Sync {
        let is_trouble = matches!(why, NotAdmitted::Trouble(_));
        let (result, now) = (Err(why.into()), self.hooks.now());
        let reported = if is_trouble { self.report(&result, &Freshness::Newest, now) } else { Ok(false) };
        Sync { result, freshness: Freshness::Newest, reported }
    }

    fn apply(&mut self, refreshed: &mut Freshness) -> Result<SyncOutcome, SyncError> {
        let chosen = self.choose(refreshed)?;
        let (config, repo) = (self.config, self.repo);
        let head = cluster_folder::head_at(repo, &config.refs, &config.cluster, chosen)?;
        let tree = head.tree.to_string();
        let current = match self.folder_cache.take() {
            Some((mut folder, set)) if folder.tree == tree => {
                folder.sequence = head.sequence;
                folder.allow_prune = head.allow_prune;
                folder.replaces = head.replaces;
                (folder, set)
            }
            earlier => {
                let earlier = earlier.map(|(_, set)| set).unwrap_or_default();
                let listing = cluster_folder::list(repo, head.tree)?;
                let set = desired::read_listed(repo, &listing, &earlier).map_err(FolderError::Git)?;
                (head.without_files(), set)
            }
        };
        let (folder, set) = self.folder_cache.insert(current);
        let overrides = self.hooks.overrides().map_err(SyncError::Overrides)?;
        let options = Options { now: Some(self.hooks.now()), ..config.options.clone() };
        Ok(sync_set(folder, set, &overrides, self.backend, &options)?)
    }

    fn report(
        &mut self,
        result: &Result<SyncOutcome, SyncError>,
        refreshed: &Freshness,
        now: Timestamp,
    ) -> Result<bool, GitError> {
        let (config, repo) = (self.config, self.repo);
        // Clears a failure to write the last report, as on a full disk.
        repo.start_over();
        let earlier = read_status(repo, &config.refs, &config.cluster)?;
        let is_new = earlier.is_none();
        let earlier = earlier.and_then(|status| status.applied);
        let applied: Applied = match result {
            Ok(outcome) => {
                let applied =
                    status::with_notes(earlier.as_ref(), outcome.applied.clone(), status::notes(outcome));
                let applied = status::with_waiting(applied, &outcome.waiting);
                match refreshed {
                    Freshness::Refused(why) => status::with_fault(Some(applied), &config.cluster, why),
                    Freshness::Newest | Freshness::Unreachable(_) => applied,
                }
            }
            Err(error) => status::with_failure(earlier, &error.to_string(), now),
        };
        let mut status = status::of(&config.cluster, applied, now, config.heartbeat_seconds);
        facts_file::add(&mut status, self.hooks.facts(), || {
            read_status(repo, &config.refs, &config.cluster)
        })?;
        // A misspelt name must not become a cluster that fails for good.
        let is_misspelt =
            matches!(result, Err(SyncError::Folder(FolderError::NoFolder { hint: Some(_), .. })));
        if is_misspelt && is_new {
            return Ok(false);
        }
        // Without the lease or the API server, the status cannot be shown.
        if !matches!(result, Err(SyncError::NotAdmitted(_))) {
            self.backend.show_status(&status);
        }
        if self.hooks.reports() { status::write(repo, &config.refs, &status, now) } else { Ok(false) }
    }
}

/// The inputs of a sync, apart from the backend.
#[derive(PartialEq)]
struct Inputs {
    refreshed: Freshness,
    /// The commit to apply.
    chosen: Option<CommitId>,
    overrides: Result<LocalOverrides, String>,
}

/// The wait after a sync until the next one is required.
struct Idle<'a> {
    sync: &'a Sync,
    inputs: Inputs,
    /// The moment at which the next sync runs in any case.
    again: Option<Instant>,
    earliest: Instant,
}

impl Sync {
    /// Reports whether every object has its wanted form, so that only a change requires another sync.
    fn is_idle(&self) -> bool {
        self.result
            .as_ref()
            .is_ok_and(|outcome| outcome.waiting.is_empty() && outcome.applied.problems.is_empty())
    }

    /// Reports whether the sync itself failed, and not because another syncer has the lease or no folder could be
    /// fetched.
    pub fn has_failed(&self) -> bool {
        use SyncError::{NotAdmitted as Turn, Refresh};
        !matches!(self.result, Ok(_) | Err(Turn(NotAdmitted::Standby(_)) | Refresh(_)))
    }

    /// Returns the end of the first suspension.
    fn resumes(&self, now: Timestamp) -> Option<Instant> {
        let left = self.result.as_ref().ok()?.resumes_at?.duration_since(now);
        Instant::now().checked_add(Duration::try_from(left).unwrap_or_default())
    }
}

/// Returns the interval, doubled for each failure in a row.
fn pause(interval: Duration, failures: u32) -> Duration {
    Backoff::new(interval, LONGEST_PAUSE.max(interval)).pause(failures.saturating_add(1))
}

/// The channel of wakeups. It lives as long as the loop.
#[derive(Debug)]
pub struct Wakeups {
    sender: Sender<Wakeup>,
    heard: Receiver<Wakeup>,
}

/// The reason to wake up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    Stop,
    Sync,
}

impl Default for Wakeups {
    fn default() -> Wakeups {
        let (sender, heard) = mpsc::channel();
        Wakeups { sender, heard }
    }
}

impl Wakeups {
    /// Returns a function that asks the loop to stop, callable from any thread.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // The loop may have ended.
            let _ = sender.send(Wakeup::Stop);
        }
    }

    /// Returns a function that requests a sync.
    pub(crate) fn sync_requester(&self) -> RequestSync {
        let sender = self.sender.clone();
        Box::new(move || {
            let _ = sender.send(Wakeup::Sync);
        })
    }

    /// Waits for a wakeup, at most for the pause.
    pub fn wait(&self, pause: Duration) -> Option<Wakeup> {
        match self.heard.recv_timeout(pause) {
            Ok(wakeup) => Some(wakeup),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Wakeup::Stop),
        }
    }

    /// Waits out a pause, despite requests for a sync. Returns true if asked to stop.
    pub(crate) fn is_stopped_within(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        loop {
            match self.wait(end.saturating_duration_since(Instant::now())) {
                Some(Wakeup::Stop) => return true,
                Some(Wakeup::Sync) => {}
                None => return false,
            }
        }
    }
}
