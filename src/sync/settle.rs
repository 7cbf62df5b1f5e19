//! Rounds until nothing is left to wait for, as one: what `berth sync --once` does.

use std::time::{Duration, Instant};

use super::Outcome;
use super::bell::Bell;
use super::target::Target;
use super::watch::{Config, Known, Round, SHORTEST, Surroundings, round};
use crate::git::Repo;
use crate::model::ObjectId;

/// When a round that only waits for others is followed by the next, where the target does not tell of changes.
const MOMENT: Duration = Duration::from_secs(1);

/// Rounds until nothing is left that may still become as wanted by itself: for a target with a deadline
/// for each object, that is an end. What all rounds did counts as done by one.
pub fn until_settled(
    config: &Config,
    repo: &Repo,
    target: &mut dyn Target,
    known: &mut Known,
    world: &mut dyn Surroundings,
) -> Round {
    let mut whole: Option<Outcome> = None;
    let (bell, mut tells) = (Bell::default(), false);
    loop {
        let mut last = round(config, repo, target, known, world);
        let Ok(outcome) = &mut last.result else { return last };
        if let Some(earlier) = whole.take() {
            *outcome = together(earlier, std::mem::take(outcome));
        }
        if outcome.waiting.is_empty() || outcome.applied.suspended.is_some() || config.options.dry_run {
            return last;
        }
        whole = Some(outcome.clone());
        if tells {
            let due = target.due().map(|due| due.saturating_duration_since(Instant::now()));
            bell.wait(due.map_or(config.interval, |due| due.min(config.interval)));
            bell.is_stopped_within(SHORTEST);
        } else {
            // From the next round on the target tells of changes, and is not asked for all it holds again.
            tells = target.watch(bell.call());
            std::thread::sleep(MOMENT);
        }
    }
}

/// Two rounds' outcomes as one: what either did, and what the later one left.
fn together(earlier: Outcome, mut later: Outcome) -> Outcome {
    let mut plan = earlier.plan;
    for write in std::mem::take(&mut later.plan.writes) {
        if !plan.writes.iter().any(|one| one.id == write.id) {
            plan.writes.push(write);
        }
    }
    for prune in std::mem::take(&mut later.plan.prunes) {
        if !plan.prunes.iter().any(|one| one.id == prune.id) {
            plan.prunes.push(prune);
        }
    }
    (plan.held, plan.problems) = (later.plan.held, later.plan.problems);
    plan.differences = later.plan.differences;
    let written = |id: &ObjectId| plan.writes.iter().any(|write| write.id == *id);
    plan.unchanged = later.plan.unchanged.into_iter().filter(|id| !written(id)).collect();
    later.plan = plan;
    later.written += earlier.written;
    later.pruned += earlier.pruned;
    later.notes.splice(0..0, earlier.notes);
    later
}
