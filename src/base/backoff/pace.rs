//! The length of real pauses: full in production, a share of it in tests of the real binary.
//!
//! A process gets the length of its own waits (polls, pauses after failures, windows for gathering) from
//! [`paced`]. Limits on the work of others, and recorded moments, do not use it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The variable by which a test shortens the pauses of a process, such as `0.2`.
pub const VARIABLE: &str = "BERTH_TEST_TIME_SCALE";

const WHOLE: u32 = 1_000;

/// The share, in thousandths.
static SHARE: AtomicU32 = AtomicU32::new(WHOLE);

/// Shortens all pauses of this process from now on. A text other than a number above 0 and up to 1 changes
/// nothing.
pub fn set(share: &str) {
    if let Some(thousandths) = thousandths(share) {
        SHARE.store(thousandths, Ordering::Relaxed);
    }
}

/// Returns the length of a pause in this process.
pub fn paced(pause: Duration) -> Duration {
    shortened(pause, SHARE.load(Ordering::Relaxed))
}

fn thousandths(share: &str) -> Option<u32> {
    let share: f64 = share.parse().ok()?;
    let thousandths = (share * f64::from(WHOLE)).round();
    (1.0..=f64::from(WHOLE)).contains(&thousandths).then_some(thousandths as u32)
}

fn shortened(pause: Duration, thousandths: u32) -> Duration {
    if thousandths == WHOLE { pause } else { pause / WHOLE * thousandths }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_whole_unless_a_test_asks_for_less() {
        assert_eq!(paced(Duration::from_secs(7)), Duration::from_secs(7));
        assert_eq!(shortened(Duration::MAX, WHOLE), Duration::MAX);
        assert_eq!(shortened(Duration::from_secs(10), 250), Duration::from_millis(2_500));
    }

    #[test]
    fn only_shares_shorten_pauses() {
        assert_eq!(thousandths("0.25"), Some(250));
        assert_eq!(thousandths("1"), Some(1_000));
        for odd in ["", "0", "-1", "2", "NaN", "inf", "fast", "0.0001"] {
            assert_eq!(thousandths(odd), None, "{odd}");
        }
    }
}
