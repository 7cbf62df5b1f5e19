//! Pauses after failures in a row, and random lengths that keep many processes from acting at the same
//! moment.
//!
//! The random number is an argument, any `u64`; only [`chance`] is not pure.

pub mod pace;

use std::time::Duration;

use pace::paced;

/// Pauses that double with each failure in a row, up to a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest }
    }

    /// Returns the pause after this many failures in a row; zero without failures.
    pub fn pause(self, failures: u32) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let factor = 2_u32.saturating_pow((failures - 1).min(31));
        paced(self.first.saturating_mul(factor).min(self.longest))
    }

    /// Returns [`Backoff::pause`] with half of it random.
    pub fn jittered(self, failures: u32, chance: u64) -> Duration {
        jitter(self.pause(failures), chance)
    }
}

/// Keeps half of a pause and a random part of the other half.
pub fn jitter(full: Duration, chance: u64) -> Duration {
    let half = full / 2;
    half.saturating_add(share(full.saturating_sub(half), chance))
}

/// Makes a length randomly up to a tenth shorter or longer.
pub fn spread(length: Duration, chance: u64) -> Duration {
    let tenth = length / 10;
    length.saturating_sub(tenth).saturating_add(share(tenth * 2, chance))
}

fn share(of: Duration, chance: u64) -> Duration {
    let nanos = of.as_nanos().saturating_mul(u128::from(chance)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns a random number for the functions above.
pub fn chance() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<u64> = (0..9).map(|failures| BACKOFF.pause(failures).as_secs()).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(BACKOFF.pause(u32::MAX), Duration::from_secs(60));
        assert_eq!(BACKOFF.jittered(3, 0), Duration::from_secs(2));
    }

    proptest! {
        #[test]
        fn chance_decides_within_half_of_the_pause(failures: u32, chance: u64) {
            let full = BACKOFF.pause(failures);
            let got = BACKOFF.jittered(failures, chance);
            prop_assert!(full / 2 <= got && got <= full);
        }

        #[test]
        fn a_spread_length_is_within_a_tenth(seconds in 0_u64..1_000_000, chance: u64) {
            let length = Duration::from_secs(seconds);
            let got = spread(length, chance);
            prop_assert!(got >= length - length / 10 && got <= length + length / 10);
        }
    }
}
