//! The memory of deliveries, and the allowance of requests. Both are bounded, whoever sends.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time for which a delivery is remembered.
const WINDOW: Duration = Duration::from_secs(3600);

/// Only those who know a secret can fill it.
const MOST: usize = 10_000;

/// The marks of the last deliveries, oldest first.
#[derive(Debug, Default)]
pub(super) struct Heard(VecDeque<(Instant, [u8; 32])>);

impl Heard {
    /// Notes a delivery, and reports whether it is the first of its mark.
    pub fn is_new(&mut self, mark: [u8; 32], now: Instant) -> bool {
        while self.0.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            self.0.pop_front();
        }
        if self.0.iter().any(|(_, one)| *one == mark) {
            return false;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((now, mark));
        true
    }
}

/// The requests that may come at once.
const BURST: u32 = 100;

/// The time after which one more may come.
const EACH: Duration = Duration::from_millis(20);

/// Bounds how many requests are checked, before anything is known of their senders.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u32,
    /// The time up to which requests were added.
    counted: Instant,
}

impl Allowance {
    pub fn new(now: Instant) -> Allowance {
        Allowance { left: BURST, counted: now }
    }

    pub fn take(&mut self, now: Instant) -> bool {
        let more = now.duration_since(self.counted).as_millis() / EACH.as_millis();
        let more = u32::try_from(more).unwrap_or(BURST).min(BURST);
        if self.left + more >= BURST {
            (self.left, self.counted) = (BURST, now);
        } else {
            (self.left, self.counted) = (self.left + more, self.counted + EACH * more);
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_counts_once_within_the_window_and_the_memory_is_bounded() {
        let (mut heard, now) = (Heard::default(), Instant::now());
        assert!(heard.is_new([1; 32], now));
        assert!(!heard.is_new([1; 32], now + WINDOW));
        assert!(heard.is_new([1; 32], now + WINDOW + Duration::from_secs(1)));
        heard.0 = std::iter::repeat_n((now, [1; 32]), MOST).collect();
        assert!(heard.is_new([2; 32], now));
        assert_eq!(heard.0.len(), MOST);
    }

    #[test]
    fn a_flood_has_a_burst_and_then_so_many_a_second() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now);
        let allowed = (0..1_000).filter(|_| allowance.take(now)).count();
        assert_eq!(allowed, 100);
        let second = (1..=1_000).filter(|step| allowance.take(now + Duration::from_millis(*step))).count();
        assert_eq!(second, 50);
        let later = now + Duration::from_secs(86_400);
        assert_eq!((0..1_000).filter(|_| allowance.take(later)).count(), 100);
    }
}
