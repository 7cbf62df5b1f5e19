//! The liveness and readiness of a process, shared by its working threads and the listener.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The health of a process: not ready at first, and alive while it sends heartbeats often enough.
#[derive(Clone, Debug)]
pub struct ProcessHealth(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    /// The noun for one piece of work.
    work: &'static str,
    /// The reason why the process is not ready.
    unready: Option<String>,
    alive: Instant,
    longest_silence: Duration,
}

impl ProcessHealth {
    /// `work` is the noun for one piece of work, such as `round`.
    pub fn new(work: &'static str, longest_silence: Duration) -> ProcessHealth {
        let unready = Some(format!("no {work} has ended yet"));
        ProcessHealth(Arc::new(Mutex::new(Inner { work, unready, alive: Instant::now(), longest_silence })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a heartbeat: the process is working.
    pub fn beat(&self) {
        self.with(|inner| inner.alive = Instant::now());
    }

    /// Records the end of a piece of work, and whether it succeeded.
    pub fn ended(&self, well: bool) {
        self.with(|inner| {
            inner.alive = Instant::now();
            inner.unready = (!well).then(|| format!("the last {} failed", inner.work));
        });
    }

    /// Returns the reason why the process is not ready, or its last work failed.
    pub(crate) fn unready(&self) -> Option<String> {
        self.with(|inner| inner.unready.clone())
    }

    /// Returns the reason why the process counts as stuck: no heartbeat for too long.
    pub(crate) fn stuck(&self) -> Option<String> {
        self.with(|inner| {
            let is_stuck = inner.alive.elapsed() > inner.longest_silence;
            is_stuck.then(|| format!("no {} has ended for too long", inner.work))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_for_too_long_is_not_well() {
        assert_eq!(ProcessHealth::new("round", Duration::from_secs(60)).stuck(), None);
        let health = ProcessHealth::new("round", Duration::ZERO);
        while health.stuck().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(health.stuck().as_deref(), Some("no round has ended for too long"));
        assert_eq!(health.unready().as_deref(), Some("no round has ended yet"));
        health.beat();
        assert!(health.unready().is_some());
        health.ended(true);
        assert_eq!(health.unready(), None);
        health.ended(false);
        assert_eq!(health.unready().as_deref(), Some("the last round failed"));
    }
}
