//! Waiting for what comes by itself: one helper, one limit.

use std::time::{Duration, Instant};

/// The time after which a test gives up: far more than anything ever needs.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// The pause between two looks.
pub const PAUSE: Duration = Duration::from_millis(50);

/// Looks until there is something to see, and fails the test when there is not.
#[track_caller]
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    seen_in_time(look).unwrap_or_else(|| panic!("not within {PATIENCE:?}: {what}"))
}

/// Looks until something holds, and fails the test when it does not.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually(what, || holds().then_some(()));
}

/// Looks until there is something to see; nothing where there was nothing in time.
pub fn seen_in_time<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits for a length of time, where nothing could be looked at: what is waited for must not happen, or the length is
/// part of what the test does to a program. `_why` is for the reader.
pub fn pause(length: Duration, _why: &str) {
    std::thread::sleep(length);
}

/// [`eventually`], for looks that wait themselves.
pub async fn eventually_async<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
