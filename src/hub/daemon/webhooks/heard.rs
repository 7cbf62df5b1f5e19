//! The recent deliveries, for recognising repetitions. Their number is limited.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time for which a delivery is remembered.
const WINDOW: Duration = Duration::from_secs(3600);

/// The number of deliveries remembered. Only senders that know a secret can fill it.
const MOST: usize = 10_000;

/// The marks of the last deliveries, oldest first.
#[derive(Debug, Default)]
pub(super) struct Heard(VecDeque<(Instant, [u8; 32])>);

impl Heard {
    /// Records a delivery. Returns true if it is the first with its mark.
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
}
