//! The member, again and again: fetch, apply, correct drift, report, until told to stop.
//!
//! A round over an unchanged folder and an unchanged target writes nothing. The newest folder always
//! wins: each round reads the ref anew. Rounds that fail come less and less often. Where a target tells of
//! its changes, a round comes only when the folder, the target or a deadline asks for it.

use std::time::{Duration, Instant};

use super::bell::{Bell, Rung};
use super::desired::{self, DesiredSet};
use super::fetch::{self, FetchError};
use super::overrides::LocalOverrides;
use super::target::{NotAdmitted, Target};
use super::{Fetched, Options, Outcome, SyncError, facts, status, sync_set, tell};
use crate::git::{CommitId, GitError, Repo};
use crate::model::status::Applied;
use crate::model::{ClusterStatus, Timestamp};
use crate::publish::{Refs, read_status};

/// The longest pause after failures, unless the interval itself is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What to keep in sync, and how often.
#[derive(Clone, Debug)]
pub struct Config {
    pub cluster: String,
    pub refs: Refs,
    pub interval: Duration,
    /// How often a status is reported though nothing changed.
    pub heartbeat_seconds: i64,
    pub options: Options,
}

/// What a round needs of the world around it.
pub trait Surroundings {
    fn now(&mut self) -> Timestamp;

    /// Brings the local repository up to date, where it is a copy of another one.
    fn refresh(&mut self) -> Refreshed {
        Refreshed::Newest
    }

    /// The commit to apply, given the newest, and why it is another one where it is.
    fn choose(&mut self, _repo: &Repo, newest: CommitId) -> Result<(CommitId, Option<String>), String> {
        Ok((newest, None))
    }

    /// The member's own overrides as they are now.
    fn overrides(&mut self) -> Result<LocalOverrides, String> {
        Ok(LocalOverrides::default())
    }

    /// Whether the status goes into the repository.
    fn reports(&self) -> bool {
        true
    }

    /// What else is reported of the cluster: labels, claims, scores and the like.
    fn facts(&mut self) -> Result<ClusterStatus, String> {
        Ok(ClusterStatus::default())
    }

    /// Hears how a round went, and may push the status.
    fn after(&mut self, round: &Round);

    /// Hears, now and then, that there was nothing to do, and whether the last status was reported again.
    fn between(&mut self, _reported: &Result<bool, GitError>) {}
}

/// Whether the local repository has the newest folder. Where it has not, the member keeps to the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    Newest,
    Unreachable(String),
    /// What there is now must not be followed, which the report says.
    Refused(String),
}

/// One round.
#[derive(Debug)]
pub struct Round {
    pub result: Result<Outcome, RoundError>,
    /// Whether a status was written.
    pub reported: Result<bool, GitError>,
}

/// Why a round did nothing.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// It is not this process's turn.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// There is a folder, and it must not be applied.
    #[error("there is no folder that may be applied: {0}")]
    Refused(String),
    #[error("there is no folder yet: {0}")]
    Refresh(String),
    #[error("the local overrides can not be read: {0}")]
    Overrides(String),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Sync(#[from] SyncError),
}

/// The shortest time from one round to the next that a target asks for: what happens together is one change.
pub(super) const SHORTEST: Duration = Duration::from_millis(250);

/// Runs rounds until somebody asks to stop.
pub fn run(config: &Config, repo: &Repo, target: &mut dyn Target, bell: &Bell, world: &mut dyn Surroundings) {
    let tells = target.watch(bell.call());
    let mut known = None;
    let (mut failures, mut unsettled): (u32, u32) = (0, 0);
    loop {
        let inputs = tells.then(|| Inputs::now(config, repo, world));
        let begun = Instant::now();
        let round = round(config, repo, target, &mut known, world);
        unsettled = if round.is_settled() { 0 } else { unsettled.saturating_add(1) };
        let failed = !matches!(round.result, Ok(_) | Err(RoundError::NotAdmitted(_)));
        failures = if failed { failures.saturating_add(1) } else { 0 };
        world.after(&round);
        // Whose turn it is costs nothing to ask.
        let inputs = inputs.filter(|_| !matches!(round.result, Err(RoundError::NotAdmitted(_))));
        let Some(inputs) = inputs else {
            match bell.wait(pause(config.interval, failures)) {
                Some(Rung::Stop) => return,
                Some(Rung::Round) | None => continue,
            }
        };
        let again = (unsettled > 0).then(|| Instant::now() + pause(config.interval, unsettled - 1));
        let again = again.into_iter().chain(round.resumes(world.now())).min();
        let earliest = begun + if failures > 0 { pause(config.interval, failures) } else { SHORTEST };
        let quiet = Quiet { round: &round, inputs, again, earliest };
        if quiet.is_stopped(config, repo, target, bell, world) {
            return;
        }
    }
}

/// What a round goes by, beside its target.
#[derive(PartialEq)]
struct Inputs {
    refreshed: Refreshed,
    /// The commit that counts.
    chosen: Option<CommitId>,
    overrides: Result<LocalOverrides, String>,
}

impl Inputs {
    fn now(config: &Config, repo: &Repo, world: &mut dyn Surroundings) -> Inputs {
        let mut refreshed = world.refresh();
        // What is wrong with a ref is the next round's to say.
        let chosen = choose(config, repo, world, &mut refreshed).ok();
        Inputs { refreshed, chosen, overrides: world.overrides() }
    }
}

/// The commit to follow, where the newest may not be.
fn choose(
    config: &Config,
    repo: &Repo,
    world: &mut dyn Surroundings,
    refreshed: &mut Refreshed,
) -> Result<CommitId, RoundError> {
    let newest = fetch::newest(repo, &config.refs, &config.cluster)?;
    let (chosen, refused) = world.choose(repo, newest).map_err(RoundError::Refused)?;
    if let Some(why) = refused {
        *refreshed = Refreshed::Refused(why);
    }
    Ok(chosen)
}

/// The time after a round, until something asks for the next.
struct Quiet<'a> {
    round: &'a Round,
    inputs: Inputs,
    /// When the next round comes anyway.
    again: Option<Instant>,
    earliest: Instant,
}

impl Quiet<'_> {
    /// Waits for what asks for a round. True where somebody asks to stop.
    fn is_stopped(
        &self,
        config: &Config,
        repo: &Repo,
        target: &mut dyn Target,
        bell: &Bell,
        world: &mut dyn Surroundings,
    ) -> bool {
        loop {
            let due = self.again.into_iter().chain(target.due()).min();
            let left = due.map(|due| due.max(self.earliest).saturating_duration_since(Instant::now()));
            match bell.wait(left.map_or(config.interval, |left| left.min(config.interval))) {
                Some(Rung::Stop) => return true,
                Some(Rung::Round) => {
                    return bell.is_stopped_within(self.earliest.saturating_duration_since(Instant::now()));
                }
                None => {}
            }
            if left.is_some_and(|left| left <= config.interval) {
                return false;
            }
            if target.admit().is_err() || Inputs::now(config, repo, world) != self.inputs {
                return false;
            }
            let now = world.now();
            let round = (&self.round.result, &self.inputs.refreshed);
            let reported = report(config, repo, round, target, world, now);
            world.between(&reported);
        }
    }
}

impl Round {
    /// Whether all is as wanted, so that only a change asks for another round.
    fn is_settled(&self) -> bool {
        self.result
            .as_ref()
            .is_ok_and(|outcome| outcome.waiting.is_empty() && outcome.applied.problems.is_empty())
    }

    /// Reports whether the round failed by a fault of its own: not another syncer's, and not for want of a folder.
    pub fn has_failed(&self) -> bool {
        use RoundError::{NotAdmitted as Turn, Refresh};
        !matches!(self.result, Ok(_) | Err(Turn(NotAdmitted::Standby(_)) | Refresh(_)))
    }

    /// When the first suspension ends.
    fn resumes(&self, now: Timestamp) -> Option<Instant> {
        let left = self.result.as_ref().ok()?.resumes_at?.duration_since(now);
        Instant::now().checked_add(Duration::try_from(left).unwrap_or_default())
    }
}

/// The folder of the last round, so that an unchanged one is not read again.
pub type Known = Option<(Fetched, DesiredSet)>;

/// One round: fetch, apply, report.
pub fn round(
    config: &Config,
    repo: &Repo,
    target: &mut dyn Target,
    known: &mut Known,
    world: &mut dyn Surroundings,
) -> Round {
    let dry = config.options.dry_run;
    if let Err(why) = if dry { Ok(()) } else { target.admit() } {
        return turned_away(config, repo, target, world, why);
    }
    let mut refreshed = world.refresh();
    let result = match (apply(config, repo, target, known, world, &mut refreshed), &refreshed) {
        (
            Err(RoundError::Fetch(FetchError::NoFolder { .. })),
            Refreshed::Unreachable(why) | Refreshed::Refused(why),
        ) => Err(RoundError::Refresh(why.clone())),
        (result, _) => result,
    };
    // What was cut short because the lease was lost is the next holder's to say.
    if let Err(why) = if dry { Ok(()) } else { target.admit() } {
        return turned_away(config, repo, target, world, why);
    }
    let now = world.now();
    if dry {
        return Round { result, reported: Ok(false) };
    }
    let reported = report(config, repo, (&result, &refreshed), target, world, now);
    target.tell(&tell::of(&result), now);
    Round { result, reported }
}

/// A round without a turn. That is reported where nobody is known to have it: the cluster may be gone.
fn turned_away(
    config: &Config,
    repo: &Repo,
    target: &mut dyn Target,
    world: &mut dyn Surroundings,
    why: NotAdmitted,
) -> Round {
    let is_trouble = matches!(why, NotAdmitted::Trouble(_));
    let (result, now) = (Err(why.into()), world.now());
    let reported = if is_trouble {
        report(config, repo, (&result, &Refreshed::Newest), target, world, now)
    } else {
        Ok(false)
    };
    Round { result, reported }
}

fn apply(
    config: &Config,
    repo: &Repo,
    target: &mut dyn Target,
    known: &mut Known,
    world: &mut dyn Surroundings,
    refreshed: &mut Refreshed,
) -> Result<Outcome, RoundError> {
    let chosen = choose(config, repo, world, refreshed)?;
    let head = fetch::head_at(repo, &config.refs, &config.cluster, chosen)?;
    let tree = head.tree.to_string();
    let current = match known.take() {
        Some((mut fetched, set)) if fetched.tree == tree => {
            fetched.sequence = head.sequence;
            fetched.allow_prune = head.allow_prune;
            (fetched, set)
        }
        _ => {
            let fetched = fetch::read(repo, head)?;
            let set = desired::read(&fetched);
            (fetched, set)
        }
    };
    let (fetched, set) = known.insert(current);
    let overrides = world.overrides().map_err(RoundError::Overrides)?;
    let options = Options { now: Some(world.now()), ..config.options.clone() };
    Ok(sync_set(fetched, set, &overrides, target, &options)?)
}

fn report(
    config: &Config,
    repo: &Repo,
    (result, refreshed): (&Result<Outcome, RoundError>, &Refreshed),
    target: &mut dyn Target,
    world: &mut dyn Surroundings,
    now: Timestamp,
) -> Result<bool, GitError> {
    let earlier = read_status(repo, &config.refs, &config.cluster)?.and_then(|status| status.applied);
    let applied: Applied = match result {
        Ok(outcome) => {
            let applied = status::with_notes(earlier.as_ref(), outcome.applied.clone(), tell::notes(outcome));
            let applied = status::with_waiting(applied, &outcome.waiting);
            match refreshed {
                Refreshed::Refused(why) => status::with_fault(Some(applied), &config.cluster, why),
                Refreshed::Newest | Refreshed::Unreachable(_) => applied,
            }
        }
        Err(error) => status::with_failure(earlier, &error.to_string(), now),
    };
    let mut status = status::of(&config.cluster, applied, now, config.heartbeat_seconds);
    facts::add(&mut status, world.facts(), || read_status(repo, &config.refs, &config.cluster))?;
    // Where there is no turn to be had, there is no cluster to show it in either.
    if !matches!(result, Err(RoundError::NotAdmitted(_))) {
        target.show(&status);
    }
    if world.reports() { status::write(repo, &config.refs, &status, now) } else { Ok(false) }
}

/// The interval, doubled for each failure in a row.
fn pause(interval: Duration, failures: u32) -> Duration {
    let doubled = interval.saturating_mul(1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX));
    doubled.min(LONGEST_PAUSE.max(interval))
}
