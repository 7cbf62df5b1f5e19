//! The time until which this process may write, by its own monotonic clock.
//!
//! The fence is closed until the lease is held. After a renewal it is open for the lease's duration, counted from
//! before the request. No calendar clock is involved.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The fence, moved by the keeper and shared with all writers.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<Mutex<Option<Instant>>>);

impl Fence {
    pub fn open_until(&self, until: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Reports whether a request that takes `needed` would still end in time.
    pub fn leaves(&self, needed: Duration) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| until.saturating_duration_since(Instant::now()) >= needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_that_could_outlast_the_lease() {
        let (fence, hour) = (Fence::default(), Duration::from_secs(3600));
        assert!(!fence.leaves(Duration::ZERO), "it is closed at first");
        fence.open_until(Instant::now() + hour);
        assert!(fence.leaves(hour / 2) && !fence.leaves(hour * 2));
        fence.close();
        assert!(!fence.leaves(Duration::ZERO));
    }
}
