//! A thread that keeps a hub cluster up to date, so that no pass waits for its API server.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::round::{Done, Hub, STATUS_PAUSE};
use berth_base::backoff::pace::paced;
use berth_base::backoff::{self, Backoff};
use berth_base::diag::harmless_line;
use berth_engine::hub_objects::Shown;
use berth_hub::daemon::pass_metrics::HubCounts;
use berth_hub::daemon::{PassEnd, PassResult};

/// Pauses after rounds that fail.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(120));
/// The time that an ending process leaves for a round.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// The state to show. A newer one replaces it.
#[derive(Debug, Default)]
struct Wanted {
    shown: Option<Shown>,
    /// True if it arrived after the last round began.
    is_new: bool,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Slot {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a hub up to date until it is dropped.
#[derive(Debug)]
pub(crate) struct HubWorker {
    slot: Arc<Slot>,
    ended: Receiver<()>,
}

impl HubWorker {
    pub(super) fn start(hub: Hub, interval: Duration, counts: HubCounts) -> io::Result<HubWorker> {
        let slot = Arc::new(Slot::default());
        let (ends, ended) = channel::<()>();
        let mut worker = Worker { hub, interval, counts, last: None, failures: 0, told: BTreeSet::new() };
        let shared = slot.clone();
        std::thread::Builder::new().name("hub-cluster".to_owned()).spawn(move || {
            let _ends = ends;
            worker.work(&shared);
        })?;
        Ok(HubWorker { slot, ended })
    }

    /// Handles the end of a pass.
    pub(crate) fn ended(&self, end: PassEnd<'_>) {
        match end {
            PassEnd::Done(PassResult { shown, .. }) => self.show(Some(shown.clone())),
            // Another daemon writes.
            PassEnd::StoodBy => self.show(None),
            PassEnd::Spared | PassEnd::Failed(_) | PassEnd::Crashed => {}
        }
    }

    fn show(&self, shown: Option<Shown>) {
        let mut wanted = self.slot.lock();
        (wanted.shown, wanted.is_new) = (shown, true);
        self.slot.changed.notify_all();
    }
}

impl Drop for HubWorker {
    fn drop(&mut self) {
        self.slot.lock().is_over = true;
        self.slot.changed.notify_all();
        if self.ended.recv_timeout(LAST_CHANCE) == Err(RecvTimeoutError::Timeout) {
            warn!("stopped while updating the hub cluster; the next start completes it");
        }
    }
}

/// The writing thread.
struct Worker {
    hub: Hub,
    interval: Duration,
    counts: HubCounts,
    /// The state that the hub shows, and the moment of its last write.
    last: Option<(Shown, Instant)>,
    failures: u32,
    /// The notes already logged.
    told: BTreeSet<String>,
}

impl Worker {
    fn work(&mut self, slot: &Slot) {
        let mut due = Instant::now();
        loop {
            let Some((shown, is_new)) = next(slot, due) else { return };
            let Some(shown) = shown else {
                (self.last, due) = (None, Instant::now() + self.interval);
                continue;
            };
            let at = if is_new && self.failures == 0 { self.due(&shown) } else { due };
            if at > Instant::now() {
                due = due.min(at);
                continue;
            }
            due = Instant::now() + self.make(shown);
        }
    }

    /// Returns the moment for a round with a new state: now if decisions or clusters differ. Changes of members'
    /// statuses are frequent, and wait.
    fn due(&self, shown: &Shown) -> Instant {
        let Some((last, at)) = &self.last else { return Instant::now() };
        let decided = self.hub.forms.is_empty() || last.decisions == shown.decisions;
        let described = last.clusters == shown.clusters;
        let reported = !self.hub.profiles || last.statuses == shown.statuses;
        match (decided && described, reported) {
            (false, _) => Instant::now(),
            (true, false) => *at + paced(STATUS_PAUSE),
            (true, true) => *at + self.interval,
        }
    }

    /// Runs a round. Returns the pause before the next one.
    fn make(&mut self, shown: Shown) -> Duration {
        let number = shown.sequence;
        match self.hub.round(&shown) {
            Ok(Done { writes, notes, waits }) => {
                self.counts.written(writes);
                if std::mem::take(&mut self.failures) > 0 {
                    info!("the hub cluster can be written again");
                }
                if writes > 0 {
                    info!(writes, number, "the hub cluster shows the publication");
                }
                for note in notes.difference(&self.told) {
                    warn!("{}", harmless_line(note));
                }
                self.told = notes;
                self.last = Some((shown, Instant::now()));
                if waits { self.interval.min(paced(STATUS_PAUSE)) } else { self.interval }
            }
            Err(why) => {
                self.counts.failed();
                if self.failures == 0 {
                    warn!(error = %harmless_line(&why), number, "the hub cluster does not show the publication; retrying");
                }
                self.failures = self.failures.saturating_add(1);
                PAUSES.jittered(self.failures, backoff::chance())
            }
        }
    }
}

/// Waits for a new state, or until `due`. Returns `None` if the process ends and no new state is left.
fn next(slot: &Slot, due: Instant) -> Option<(Option<Shown>, bool)> {
    let mut wanted = slot.lock();
    loop {
        let is_new = std::mem::take(&mut wanted.is_new);
        let left = due.saturating_duration_since(Instant::now());
        if is_new || (left.is_zero() && !wanted.is_over) {
            return Some((wanted.shown.clone(), is_new));
        }
        if wanted.is_over {
            return None;
        }
        let waited = slot.changed.wait_timeout(wanted, left).unwrap_or_else(PoisonError::into_inner);
        wanted = waited.0;
    }
}
