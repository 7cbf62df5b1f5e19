//! Runs syncs until no object can make progress by itself, and reports them as one: `berth sync --once`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::SyncOutcome;
use super::sync_loop::{SHORTEST_PAUSE, Sync, Syncer, Wakeups};
use berth_base::backoff::pace::paced;
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;

/// The pause before a sync that only waits, if the backend does not report changes.
const POLL_PAUSE: Duration = Duration::from_secs(1);

/// Syncs until no object may still reach its wanted form by itself; a deadline for each object bounds the wait. The
/// result counts the work of all syncs. After each sync, `tell` gets the objects that the next one waits for.
pub fn sync_until_idle(mut syncer: Syncer<'_>, tell: &mut dyn FnMut(&[Problem], Option<Duration>)) -> Sync {
    let config = syncer.config;
    let mut whole: Option<SyncOutcome> = None;
    let (wakeups, mut tells) = (Wakeups::default(), false);
    loop {
        let mut last = syncer.sync();
        let Ok(outcome) = &mut last.result else { return last };
        if let Some(earlier) = whole.take() {
            *outcome = merged(earlier, std::mem::take(outcome));
        }
        if outcome.waiting.is_empty() || outcome.applied.suspended.is_some() || config.options.dry_run {
            return last;
        }
        tell(&outcome.waiting, syncer.backend.most_time());
        whole = Some(outcome.clone());
        if tells {
            let due = syncer.backend.next_sync_due().map(|due| due.saturating_duration_since(Instant::now()));
            wakeups.wait(due.map_or(config.interval, |due| due.min(config.interval)));
            wakeups.is_stopped_within(SHORTEST_PAUSE);
        } else {
            // From the next sync on, the backend reports changes, and need not list all its objects again.
            tells = syncer.backend.watch_changes(wakeups.sync_requester());
            std::thread::sleep(paced(POLL_PAUSE));
        }
    }
}

/// Merges two outcomes: the work of both, and the remaining objects of the later one.
pub(super) fn merged(earlier: SyncOutcome, mut later: SyncOutcome) -> SyncOutcome {
    let mut plan = earlier.plan;
    let mut written: BTreeSet<ObjectId> = plan.writes.iter().map(|write| write.id.clone()).collect();
    let fresh = std::mem::take(&mut later.plan.writes).into_iter();
    plan.writes.extend(fresh.filter(|write| written.insert(write.id.clone())));
    let mut pruned: BTreeSet<ObjectId> = plan.prunes.iter().map(|prune| prune.id.clone()).collect();
    let fresh = std::mem::take(&mut later.plan.prunes).into_iter();
    plan.prunes.extend(fresh.filter(|prune| pruned.insert(prune.id.clone())));
    (plan.held, plan.problems) = (later.plan.held, later.plan.problems);
    plan.differences = later.plan.differences;
    plan.unchanged = later.plan.unchanged.into_iter().filter(|id| !written.contains(id)).collect();
    later.plan = plan;
    later.written += earlier.written;
    later.pruned += earlier.pruned;
    later.notes.splice(0..0, earlier.notes);
    later
}
