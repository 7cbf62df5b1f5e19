//! Numbers about a process that keeps running → a page that Prometheus reads, and whether the process is well.
//!
//! Names and labels are berth's own, never an object's or a message's words: nothing secret can be in them, and
//! there are only so many. `server` answers at an address.

mod server;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use server::{address, serve};

/// The liveness and readiness of a process, shared by who works and who answers.
#[derive(Clone, Debug)]
pub struct ProcessHealth(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    /// Why not, where it is not ready.
    unready: Option<&'static str>,
    alive: Instant,
    longest_silence: Duration,
}

impl ProcessHealth {
    /// Not ready at first, and alive as long as it is heard of often enough.
    pub fn new(longest_silence: Duration) -> ProcessHealth {
        let unready = Some("no round has ended yet");
        ProcessHealth(Arc::new(Mutex::new(Inner { unready, alive: Instant::now(), longest_silence })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says that work goes on, and whether it goes well.
    pub(crate) fn is_alive(&self, unready: Option<&'static str>) {
        self.with(|inner| {
            inner.alive = Instant::now();
            inner.unready = unready;
        });
    }

    /// Says that work goes on, as well as before.
    pub fn beat(&self) {
        self.with(|inner| inner.alive = Instant::now());
    }

    /// Why it is not ready for work, or does not do well.
    pub(crate) fn unready(&self) -> Option<&'static str> {
        self.with(|inner| inner.unready)
    }

    /// Reports whether the process was heard of lately.
    pub(crate) fn is_well(&self) -> bool {
        self.with(|inner| inner.alive.elapsed() <= inner.longest_silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_for_too_long_is_not_well() {
        assert!(ProcessHealth::new(Duration::from_secs(60)).is_well());
        let health = ProcessHealth::new(Duration::ZERO);
        while health.is_well() {
            std::thread::yield_now();
        }
        assert_eq!(health.unready(), Some("no round has ended yet"));
        health.beat();
        assert!(health.unready().is_some());
        health.is_alive(None);
        assert_eq!(health.unready(), None);
    }
}
