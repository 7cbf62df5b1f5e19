//! The remaining work budget of an expression. Work is counted in steps, never in time, so it is the same on
//! every machine.

/// The budget of one expression for one value: a thousand times the need of a sensible one.
const STEPS: u64 = 100_000;

/// The number of characters or bytes that one step copies or searches.
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

    /// Charges for searching or creating a text.
    pub(super) fn take_text(&mut self, length: usize) -> Result<(), String> {
        self.take(1 + length / TEXT_PER_STEP)
    }
}
