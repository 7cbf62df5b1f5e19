//! One piece of work of the loop, on its own thread: a fetch, and the pass that is due.

use std::sync::PoisonError;
use std::time::Instant;

use tokio::task::JoinHandle;
use tracing::{Span, info, warn};

use super::SharedMirror;
use super::cache::Cache;
use super::error::PassError;
use super::event_loop::LoopState;
use super::pass::{PassResult, pass_with_cache};
use super::pass_log;
use super::ref_snapshot::{self, RefSnapshot};
use super::remote::Mirror;
use super::remote_pass::pass_fetched;
use super::settings::Settings;
use super::standby::PublishRight;
use berth_base::model::Timestamp;

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
            |seen: &RefSnapshot| ref_snapshot::is_as_seen(settings, seen, &cache.recent).unwrap_or_default();
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
            pass_log::report_previews(cache.previews.follow(settings, now, mirror, false));
        }
        Ok(done)
    }
}
