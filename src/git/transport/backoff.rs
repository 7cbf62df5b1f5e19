//! Pauses after failures in a row, spread so that many processes do not act at one moment.
//!
//! Pure: chance is an argument, a number anywhere in the range of `u64`.

use std::time::Duration;

/// Half of the doubled pause for certain, the other half by chance; never more than `longest`.
pub fn pause(first: Duration, longest: Duration, failures: u32, chance: u64) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(31));
    let full = first.saturating_mul(factor).min(longest);
    jitter(full, chance)
}

/// Half of a pause for certain, the other half by chance.
pub fn jitter(full: Duration, chance: u64) -> Duration {
    let half = full / 2;
    half.saturating_add(share(full.saturating_sub(half), chance))
}

/// A length, up to a tenth shorter or longer.
pub fn spread(length: Duration, chance: u64) -> Duration {
    let tenth = length / 10;
    length.saturating_sub(tenth).saturating_add(share(tenth * 2, chance))
}

fn share(of: Duration, chance: u64) -> Duration {
    let nanos = of.as_nanos().saturating_mul(u128::from(chance)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A number by chance, for the two above.
pub fn chance() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);

    #[test]
    fn pauses_double_up_to_the_longest() {
        let most: Vec<u64> =
            (0..9).map(|failures| pause(FIRST, LONGEST, failures, u64::MAX).as_millis() as u64).collect();
        assert_eq!(most, [0, 999, 1999, 3999, 7999, 15_999, 31_999, 59_999, 59_999]);
        assert_eq!(pause(FIRST, LONGEST, 3, 0), Duration::from_secs(2));
    }

    proptest! {
        #[test]
        fn chance_decides_within_half_of_the_pause(failures in 1_u32.., chance: u64) {
            let full = pause(FIRST, LONGEST, failures, u64::MAX);
            let got = pause(FIRST, LONGEST, failures, chance);
            prop_assert!(got <= full && got <= LONGEST);
            prop_assert!(got >= pause(FIRST, LONGEST, failures, 0));
            prop_assert!(got * 2 + Duration::from_nanos(2) >= full);
        }

        #[test]
        fn a_spread_length_is_within_a_tenth(seconds in 0_u64..1_000_000, chance: u64) {
            let length = Duration::from_secs(seconds);
            let got = spread(length, chance);
            prop_assert!(got >= length - length / 10 && got <= length + length / 10);
        }
    }
}
