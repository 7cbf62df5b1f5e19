//! Repacks the repository when publications have fragmented it: after a pass and alongside the next ones, so that
//! none waits. Failures are harmless.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::{debug, info};

use berth_git::Repo;
use berth_git::transport::upkeep::{self, Grace};
use berth_git::transport::{Cancel, Limits, TransportError};

/// The pause after a step, and after a failed one.
const PAUSE: Duration = Duration::from_secs(60);
const LONG_PAUSE: Duration = Duration::from_secs(3_600);

/// Upkeep alongside the passes of a daemon. It ends with the daemon.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    running: Option<JoinHandle<bool>>,
    rests_until: Option<Instant>,
    cancel: Cancel,
}

impl Upkeep {
    /// Begins the next step if one is due and none runs.
    pub(super) fn begin(&mut self, repository: &Path, limits: Limits) {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        if let Some(ended) = self.running.take() {
            let went_well = ended.join().unwrap_or_default();
            self.rests_until = Some(Instant::now() + if went_well { PAUSE } else { LONG_PAUSE });
        }
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let (repository, cancel) = (repository.to_owned(), self.cancel.clone());
        let running = std::thread::Builder::new().name("upkeep".into());
        self.running = running.spawn(move || take_step(&repository, limits, &cancel)).ok();
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

/// Runs the due step, if any. Returns false if it failed.
pub(super) fn take_step(repository: &Path, limits: Limits, cancel: &Cancel) -> bool {
    match try_step(repository, limits, cancel) {
        Ok(()) => true,
        Err(error) => {
            debug!(%error, "the repository could not be packed");
            false
        }
    }
}

fn try_step(repository: &Path, limits: Limits, cancel: &Cancel) -> Result<(), TransportError> {
    let Ok(repo) = Repo::open(repository) else { return Ok(()) };
    let folder = repo.shared_path();
    let Some(step) = upkeep::due(folder).filter(|_| repo.may_be_packed()) else { return Ok(()) };
    let grace = if repo.is_bare() && !repo.has_expiry() { Grace::Hour } else { Grace::OfGit };
    let begun = Instant::now();
    upkeep::run(folder, step, grace, limits, cancel)?;
    info!(?step, seconds = begun.elapsed().as_secs(), "the repository was packed");
    Ok(())
}
