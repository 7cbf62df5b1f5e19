//! A pass over a remote repository: fetch, run the pass locally, push. In the loop, it is one piece of work
//! on its own thread: a fetch, and the pass that is due.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tracing::{Span, debug, info, warn};

use super::cache::Cache;
use super::error::PassError;
use super::event_loop::LoopState;
use super::idle_pass::{self, RefSnapshot};
use super::pass::{ATTEMPTS, PassResult, cleared, pass_with_cache};
use super::remote::Mirror;
use super::settings::Settings;
use super::standby::PublishRight;
use super::{SharedMirror, pass_end};
use berth_base::backoff::{self, Backoff};
use berth_base::diag::Diagnostics;
use berth_base::model::Timestamp;
use berth_git::CommitId;
use berth_git::transport::Cancel;

/// The pauses before a pass that lost a race runs again.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// The result of a process that makes a single pass.
#[derive(Debug)]
pub enum Once {
    /// The result and its cache. The caller can end the process without freeing the cache.
    Passed(Box<PassResult>, Box<Cache>),
    /// Nothing changed since a pass that had nothing to do and reported this.
    Idle { source: CommitId, diagnostics: Diagnostics },
}

/// Runs the single pass of a process, over the remote if there is one.
pub fn pass_once(
    settings: &Settings,
    clock: Timestamp,
    mut mirror: Option<&mut Mirror>,
) -> Result<Once, PassError> {
    if let Some(mirror) = &mut mirror {
        mirror.fetch(settings)?;
    }
    settings.progress.begin("comparing with the last run");
    let may_idle = !settings.is_shown && mirror.as_ref().is_none_or(|mirror| mirror.hears());
    if let Some((source, diagnostics)) = idle_pass::known(settings, clock).filter(|_| may_idle) {
        return Ok(Once::Idle { source, diagnostics });
    }
    let mut cache = Cache::default();
    let is_local = mirror.is_none();
    let passed = match mirror {
        Some(mirror) => pass_fetched(settings, clock, &mut cache, mirror, &PublishRight::default()),
        None => pass_with_cache(settings, clock, &mut cache),
    }?;
    if is_local {
        settings.progress.begin("packing the repository");
        super::upkeep::take_step(&settings.repo, settings.git, &Cancel::default());
    }
    idle_pass::note(settings, clock, &passed);
    Ok(Once::Passed(Box::new(passed), Box::new(cache)))
}

/// Runs a pass after a fetch, and pushes while this daemon may publish. Repeats it after a lost race.
fn pass_fetched(
    settings: &Settings,
    clock: Timestamp,
    cache: &mut Cache,
    mirror: &mut Mirror,
    right: &PublishRight,
) -> Result<PassResult, PassError> {
    let mut attempt: u32 = 1;
    loop {
        let mut passed = pass_with_cache(settings, clock, cache)?;
        if !right.holds() {
            mirror.doubt_all();
            return Err(PassError::LeaseEnded);
        }
        match mirror.push(settings) {
            Err(error) if error.is_race() && attempt < ATTEMPTS => {
                debug!(%error, attempt, "another process moved or locked a ref; running the pass again");
                std::thread::sleep(PAUSES.jittered(attempt, backoff::chance()));
                attempt += 1;
                mirror.fetch(settings)?;
            }
            Err(error) => return Err(error),
            Ok(()) => {
                mirror.tidy();
                let cleared_locks = mirror.cleared_locks();
                passed.is_steady &= cleared_locks.is_empty() && mirror.hears();
                passed.diagnostics.extend(mirror.missing_reports());
                passed.diagnostics.extend(cleared_locks.into_iter().map(cleared));
                return Ok(passed);
            }
        }
    }
}

/// A daemon's part in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Publish,
    /// Publishes in place of another daemon that did so until now.
    TakeOver,
    StandBy,
}

/// The result of looking for work.
pub(super) enum Work {
    /// Nothing moved since the last pass.
    Nothing,
    /// Another daemon has the lease and publishes.
    OfAnother,
    Passed(Box<PassResult>),
}

/// The result of a pass, and the cache for the next one.
pub(super) type Passed = (Result<Work, PassError>, Cache);

/// Fetches for the first time. Waits for an unreachable remote; fails if waiting would not help.
pub(super) fn first_fetch(
    settings: &Settings,
    mirror: &SharedMirror,
    is_patient: bool,
) -> Result<(), PassError> {
    let mut mirror = mirror.lock().unwrap_or_else(PoisonError::into_inner);
    info!(remote = mirror.shown(), "connecting");
    match mirror.fetch(settings) {
        Err(problem) if problem.is_stop() => Ok(()),
        Err(problem) if is_patient || problem.is_passing() || matches!(problem, PassError::NoSource(_)) => {
            warn!(error = %problem, hint = problem.hint(), "the remote cannot be used yet, retrying");
            Ok(())
        }
        done => done,
    }
}

/// Starts blocking work in the current tracing span.
pub(super) fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let span = Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
}

/// Starts the work.
pub(super) fn start(
    settings: &Settings,
    mirror: Option<SharedMirror>,
    right: PublishRight,
    part: Part,
    state: &mut LoopState,
) -> JoinHandle<Passed> {
    state.begun = Some(Instant::now());
    let settings = settings.clone();
    let due = state.next_change.is_some_and(|at| at <= Timestamp::now());
    let seen = state.seen.clone().filter(|_| !due);
    let mut cache = std::mem::take(&mut state.cache);
    // Reading and writing Git objects blocks, and a repository must not cross an await.
    spawn(move || {
        let mut mirror = mirror.as_ref().map(|mirror| mirror.lock().unwrap_or_else(PoisonError::into_inner));
        let look = Look { settings: &settings, seen: seen.as_ref(), part, right: &right };
        let done = look.work(mirror.as_deref_mut(), &mut cache);
        if let (Err(problem), Some(mirror)) = (&done, &mut mirror)
            && problem.may_be_damage()
            && mirror.mend()
        {
            cache.forget_objects();
        }
        (done, cache)
    })
}

/// The parameters of one look for work.
struct Look<'a> {
    settings: &'a Settings,
    seen: Option<&'a RefSnapshot>,
    part: Part,
    right: &'a PublishRight,
}

impl Look<'_> {
    fn work(&self, mut mirror: Option<&mut Mirror>, cache: &mut Cache) -> Result<Work, PassError> {
        let Look { settings, seen, part, right } = *self;
        if let Some(mirror) = &mut mirror {
            if part == Part::TakeOver {
                mirror.doubt_all();
            }
            mirror.fetch(settings)?;
            if part == Part::StandBy {
                mirror.tidy();
                return Ok(Work::OfAnother);
            }
        }
        if mirror.as_ref().is_none_or(|mirror| mirror.hears()) {
            cache.fetched(Timestamp::now());
        }
        let now = Timestamp::now();
        let is_as_seen =
            |seen: &RefSnapshot| idle_pass::is_as_seen(settings, seen, &cache.recent).unwrap_or_default();
        let done = if seen.is_some_and(is_as_seen) {
            Work::Nothing
        } else {
            info!("pass started");
            let passed = match &mut mirror {
                Some(mirror) => pass_fetched(settings, now, cache, mirror, right),
                None => pass_with_cache(settings, now, cache),
            };
            Work::Passed(Box::new(passed?))
        };
        if right.holds() {
            pass_end::report_previews(cache.previews.follow(settings, now, mirror, false));
        }
        Ok(done)
    }
}
