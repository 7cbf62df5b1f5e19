//! The work that an expression may still do. The work is counted in steps, never in time, so it is the same
//! everywhere.

/// As much as one expression may do for one value: a thousand times what sensible ones need.
const STEPS: u64 = 100_000;

/// Characters or bytes that one step copies or looks through.
const TEXT_PER_STEP: usize = 10;

#[derive(Debug)]
pub(super) struct Meter {
    left: u64,
    most: u64,
}

impl Meter {
    pub(super) fn full() -> Meter {
        Meter::of(STEPS)
    }

    pub(super) fn of(steps: u64) -> Meter {
        Meter { left: steps, most: steps }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    pub(super) fn take(&mut self, steps: usize) -> Result<(), String> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(format!("this takes more than {} steps", self.most))
            }
        }
    }

    /// For looking through a text, or making one.
    pub(super) fn take_text(&mut self, length: usize) -> Result<(), String> {
        self.take(1 + length / TEXT_PER_STEP)
    }
}
