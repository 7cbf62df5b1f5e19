//! The member: brings a target to what its cluster's folder says, and reports how that went.
//!
//! ```text
//! cluster ref ─ fetch ─▶ folder ─ desired ─▶ objects ─ overrides ─▶ plan ─ apply ─▶ target
//!                                                        ▲                  │
//!                                          target survey ┘                  └─▶ status ref
//! ```
//!
//! Safety comes first: a folder that can not be read is never an empty one, a target is never taken from
//! another cluster or back to an older folder, objects fail alone, and no content of a Secret is shown.

mod apply;
pub mod backends;
pub mod bell;
pub mod desired;
pub mod differences;
pub mod facts;
pub mod fetch;
pub mod health;
pub mod measure;
mod order;
pub mod override_source;
pub mod overrides;
pub mod pin;
pub mod plan;
pub mod remote;
pub mod settle;
pub mod status;
pub mod strategy;
pub mod suspend;
pub mod teardown;
pub mod tell;
mod unfinished;
pub mod vouch;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use backends::{Apply, Preview, Record, Target, TargetError};
use berth_base::model::status::{Applied, Problem};
use berth_base::model::{ObjectId, Timestamp, path};
use desired::DesiredSet;
use health::Health;
use overrides::LocalOverrides;
use plan::{Held, Prune, SyncPlan, Why};

/// A cluster's folder as published.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetched {
    pub cluster: String,
    /// The `Berth-Seq` at which the folder last changed.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
    /// Every file by its path in the folder.
    pub objects: BTreeMap<String, Arc<[u8]>>,
    /// What is in the folder and is no file, with the reason: what is in its place is left as it is.
    pub strange: BTreeMap<String, String>,
    /// Paths of namespaces, CRDs and volume claims that an approval lets go.
    pub allow_prune: BTreeSet<String>,
}

impl Fetched {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.strange.is_empty()
    }
}

// The contents may be Secrets'.
impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched")
            .field("cluster", &self.cluster)
            .field("sequence", &self.sequence)
            .field("tree", &self.tree)
            .field("objects", &self.objects.len())
            .finish_non_exhaustive()
    }
}

/// How a folder is applied.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The fleet's name, part of what a target is owned by.
    pub fleet: String,
    /// Plan only.
    pub dry_run: bool,
    /// Remove namespaces, CRDs and volume claims that are no longer wanted, approved or not.
    pub allow_risky_prune: bool,
    /// Go back to an older folder than the one applied last.
    pub allow_rewind: bool,
    /// Without it no suspension counts.
    pub now: Option<Timestamp>,
}

/// What one round did, or would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub plan: SyncPlan,
    pub written: usize,
    pub pruned: usize,
    /// What is no longer wanted and stayed.
    pub held: Vec<Held>,
    /// The form a status takes: what is now as wanted, and what is not.
    pub applied: Applied,
    /// What may still become as wanted by itself: not healthy yet, or waiting for something that is not.
    pub waiting: Vec<Problem>,
    /// What was done that people may want to know: fields taken over from another owner.
    pub notes: Vec<Problem>,
    /// When the first suspension ends, which asks for a round.
    pub resumes_at: Option<Timestamp>,
    /// What each write would change, on a dry run, where the target can tell.
    pub previews: Vec<(ObjectId, Preview)>,
}

/// Why nothing was done at all.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    #[error("the target belongs to cluster `{cluster}` of fleet `{fleet}`, not to this one")]
    Foreign { fleet: String, cluster: String },
    #[error("the folder has sequence {offered}, but {applied} was applied before it")]
    Rewound { offered: u64, applied: u64 },
    #[error("the folder is empty, but up to its sequence {0} it was not")]
    Emptied(u64),
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl SyncError {
    /// What would help.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            SyncError::Foreign { .. } => Some("give each cluster a target of its own"),
            SyncError::Rewound { .. } => Some("if going back is meant, allow it with `--allow-rewind`"),
            SyncError::Emptied(_) => Some("publish the rendered branch again; it gives a higher sequence"),
            SyncError::Target(_) => None,
        }
    }
}

/// Brings a target to a folder once.
pub fn sync_once(
    fetched: &Fetched,
    overrides: &LocalOverrides,
    target: &mut dyn Target,
    options: &Options,
) -> Result<Outcome, SyncError> {
    sync_set(fetched, &desired::read(fetched), overrides, target, options)
}

/// [`sync_once`] with the folder's objects read already.
pub fn sync_set(
    fetched: &Fetched,
    desired: &DesiredSet,
    overrides: &LocalOverrides,
    target: &mut dyn Target,
    options: &Options,
) -> Result<Outcome, SyncError> {
    let earlier = target.record()?;
    let local = target.local_overrides();
    let (mut overridden, mut touched) = (None, Vec::new());
    if !overrides.overrides.is_empty() || !local.overrides.overrides.is_empty() {
        let all = overrides.followed_by(&local.overrides);
        touched = overrides::apply(&all, &fetched.cluster, overridden.insert(desired.clone()));
    }
    let desired = overridden.as_ref().unwrap_or(desired);
    let record = Record {
        fleet: options.fleet.clone(),
        cluster: fetched.cluster.clone(),
        sequence: fetched.sequence,
        tree: fetched.tree.clone(),
    };
    if let Some(earlier) = &earlier {
        check_record(earlier, &record, options)?;
    }
    let live = target.survey(&desired.objects)?;
    let empty = fetched.is_empty() && live.values().any(|live| live.owned);
    if empty && earlier.as_ref().is_some_and(|earlier| is_sudden(earlier, &record)) {
        return Err(SyncError::Emptied(record.sequence));
    }
    let mut plan = plan::plan(desired, &live, |id| {
        options.allow_risky_prune || fetched.allow_prune.contains(&path::of_object(id))
    });
    strategy::heed(&mut plan, desired, &live, target.findings());
    let suspended = options.now.and_then(|now| target.suspended(now));
    let resumes_at = match (&suspended, options.now) {
        (Some(suspension), _) => {
            suspend::hold_all(&mut plan, suspension);
            suspension.until
        }
        (None, Some(now)) => suspend::hold(&mut plan, desired, now),
        (None, None) => None,
    };
    let at_rest = suspended.is_some() || plan.is_quiet() && earlier.as_ref() == Some(&record);
    let done = if options.dry_run || at_rest {
        apply::Done::default()
    } else {
        let done = apply::apply(&plan, desired, &live, target, &record)?;
        // From here on the plan says what was done, and not what was meant to be.
        plan.writes.retain(|write| done.written.contains(&write.id));
        plan.prunes.retain(|prune| done.pruned.contains(&prune.id));
        done
    };
    // What is in force while nothing is applied is what was before.
    let record = if suspended.is_some() { earlier.unwrap_or_default() } else { record };
    let mut outcome = outcome(plan, done, record);
    outcome.applied.problems.extend(local.problems);
    outcome.applied.suspended = suspended;
    outcome.resumes_at = resumes_at;
    if options.dry_run {
        outcome.notes = touched;
        let going: Vec<ObjectId> = outcome.plan.removed().map(|prune| prune.id.clone()).collect();
        outcome.notes.extend(target.takes_along(&going));
        outcome.previews = previews(&outcome.plan, desired, target);
    } else {
        judge(&mut outcome, desired, target);
    }
    outcome.notes.extend(target.notes());
    Ok(outcome)
}

/// What the plan's writes would change.
fn previews(plan: &SyncPlan, desired: &DesiredSet, target: &mut dyn Target) -> Vec<(ObjectId, Preview)> {
    let item = |write: &plan::Write| Some(Apply { desired: desired.objects.get(&write.id)?, seen: None });
    let items: Vec<Apply<'_>> = plan.writes.iter().filter_map(item).collect();
    let previews = target.preview(&items);
    let named = items.iter().zip(previews);
    named.filter_map(|(item, preview)| Some((item.desired.id.clone(), preview?))).collect()
}

/// Adds what is there and does not do well. What has time left only waits.
fn judge(outcome: &mut Outcome, desired: &DesiredSet, target: &mut dyn Target) {
    let known: BTreeSet<ObjectId> = outcome
        .applied
        .problems
        .iter()
        .chain(&outcome.waiting)
        .map(|problem| problem.object.clone())
        .collect();
    let awaited = desired.objects.values().filter(|wanted| !strategy::is_only_compared(wanted));
    for id in awaited.map(|wanted| &wanted.id).filter(|id| !known.contains(id)) {
        let standing = target.standing(id);
        let problem = |message: String| Problem { object: id.clone(), message };
        outcome.applied.problems.extend(standing.remark.map(problem));
        match standing.health {
            Health::Healthy => {}
            Health::Failed(why) => outcome.applied.problems.push(problem(format!("it failed: {why}"))),
            Health::Progressing(why) if standing.overdue => {
                outcome.applied.problems.push(problem(format!("it is not healthy in time: {why}")));
            }
            Health::Progressing(why) => {
                outcome.waiting.push(problem(format!("it is not healthy yet: {why}")));
            }
        }
    }
    outcome.applied.problems.sort();
    outcome.waiting.sort();
}

fn check_record(earlier: &Record, record: &Record, options: &Options) -> Result<(), SyncError> {
    if (&earlier.fleet, &earlier.cluster) != (&record.fleet, &record.cluster) {
        let (fleet, cluster) = (earlier.fleet.clone(), earlier.cluster.clone());
        return Err(SyncError::Foreign { fleet, cluster });
    }
    if record.sequence < earlier.sequence && !options.allow_rewind {
        return Err(SyncError::Rewound { offered: record.sequence, applied: earlier.sequence });
    }
    Ok(())
}

/// An empty folder counts only under a sequence of its own.
fn is_sudden(earlier: &Record, record: &Record) -> bool {
    record.sequence <= earlier.sequence && record.tree != earlier.tree
}

fn outcome(plan: SyncPlan, done: apply::Done, record: Record) -> Outcome {
    let mut problems: Vec<Problem> = plan.problems.iter().chain(&done.problems).cloned().collect();
    let held: Vec<Held> = plan.held.iter().chain(&done.held).cloned().collect();
    // A removal that waits for people is theirs to see; the other reasons explain themselves.
    problems.extend(held.iter().filter(|held| held.why == Why::NeedsApproval).map(|held| Problem {
        object: held.id.clone(),
        message: format!("no longer wanted, but kept: {}", held.why.words()),
    }));
    problems.sort();
    problems.dedup();
    let objects = plan.unchanged.len() + done.written.len();
    let differences = plan.differences.clone();
    let applied = Applied {
        sequence: record.sequence,
        tree: record.tree,
        objects,
        problems,
        differences,
        ..Applied::default()
    };
    let removed = |prune: &&Prune| prune.seen.is_some() && done.pruned.contains(&prune.id);
    let pruned = plan.removed().filter(removed).count();
    let (written, waiting) = (done.written.len(), done.waiting);
    let (notes, previews) = (Vec::new(), Vec::new());
    Outcome { plan, written, pruned, held, applied, waiting, notes, resumes_at: None, previews }
}

#[cfg(test)]
mod tests;
