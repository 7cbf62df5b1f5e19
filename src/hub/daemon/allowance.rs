//! Limits the rate of requests, even from unknown senders.

use std::time::{Duration, Instant};

/// The number of requests that may come at once, and the time after which one more may come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub burst: u32,
    pub each: Duration,
}

/// The number of requests that may come now.
#[derive(Debug)]
pub(super) struct Allowance {
    rate: Rate,
    left: u32,
    /// The time up to which the refill was counted.
    counted: Instant,
}

impl Allowance {
    pub fn new(rate: Rate, now: Instant) -> Allowance {
        Allowance { rate, left: rate.burst, counted: now }
    }

    pub fn take(&mut self, now: Instant) -> bool {
        let Rate { burst, each } = self.rate;
        let more = now.duration_since(self.counted).as_millis() / each.as_millis().max(1);
        let more = u32::try_from(more).unwrap_or(burst).min(burst);
        if self.left + more >= burst {
            (self.left, self.counted) = (burst, now);
        } else {
            (self.left, self.counted) = (self.left + more, self.counted + each * more);
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }

    /// Reports whether the allowance is full, so that it can be forgotten.
    pub fn is_whole(&self, now: Instant) -> bool {
        let Rate { burst, each } = self.rate;
        now.duration_since(self.counted) >= each * burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_a_burst_and_then_so_many_a_second() {
        let now = Instant::now();
        let mut allowance = Allowance::new(Rate { burst: 100, each: Duration::from_millis(20) }, now);
        let allowed = (0..1_000).filter(|_| allowance.take(now)).count();
        assert_eq!(allowed, 100);
        let second = (1..=1_000).filter(|step| allowance.take(now + Duration::from_millis(*step))).count();
        assert_eq!(second, 50);
        let later = now + Duration::from_secs(86_400);
        assert!(allowance.is_whole(later) && !allowance.is_whole(now + Duration::from_secs(2)));
        assert_eq!((0..1_000).filter(|_| allowance.take(later)).count(), 100);
    }
}
