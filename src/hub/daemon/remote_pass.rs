//! A pass over a remote repository: fetch, run the pass locally, push.

use std::time::Duration;

use tracing::debug;

use super::cache::Cache;
use super::error::PassError;
use super::idle_pass;
use super::pass::{ATTEMPTS, PassResult, cleared, pass_with_cache};
use super::remote::Mirror;
use super::settings::Settings;
use super::standby::PublishRight;
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
pub(super) fn pass_fetched(
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
