//! The liveness and readiness of a process, shared by who works and who answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Not ready at first, and alive as long as it is heard of often enough.
#[derive(Clone, Debug)]
pub struct ProcessHealth(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    /// The word for one piece of its work.
    work: &'static str,
    /// Why not, where it is not ready.
    unready: Option<String>,
    alive: Instant,
    longest_silence: Duration,
}

impl ProcessHealth {
    /// `work` is the word for one piece of what it does, such as `round`.
    pub fn new(work: &'static str, longest_silence: Duration) -> ProcessHealth {
        let unready = Some(format!("no {work} has ended yet"));
        ProcessHealth(Arc::new(Mutex::new(Inner { work, unready, alive: Instant::now(), longest_silence })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says that work goes on, as well as before.
    pub fn beat(&self) {
        self.with(|inner| inner.alive = Instant::now());
    }

    /// Says that a piece of work ended, and whether it went well.
    pub fn ended(&self, well: bool) {
        self.with(|inner| {
            inner.alive = Instant::now();
            inner.unready = (!well).then(|| format!("the last {} failed", inner.work));
        });
    }

    /// Why it is not ready for work, or does not do well.
    pub(crate) fn unready(&self) -> Option<String> {
        self.with(|inner| inner.unready.clone())
    }

    /// Why it counts as stuck: it was not heard of for too long.
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
