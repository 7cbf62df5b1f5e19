//! Repeatable random numbers.

/// A source of numbers that are the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % below.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, many: usize) -> bool {
        self.roll(many) == 0
    }

    pub fn pick<'a, T>(&mut self, mut from: impl ExactSizeIterator<Item = &'a T>) -> Option<&'a T> {
        let at = self.roll(from.len());
        from.nth(at)
    }
}
