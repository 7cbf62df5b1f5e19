//! Limits on the cost of a file.

/// Limits on the cost of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of the file. Text that aliases repeat may add the same amount again.
    pub bytes: usize,
    /// The deepest nesting of lists and mappings.
    pub depth: usize,
    /// The values in the file, including those that aliases repeat.
    pub nodes: usize,
    /// The work for aliases: the values that they repeat, and their text by [`TEXT_PER_STEP`] bytes.
    pub repeats: usize,
}

/// Bytes of repeated text that count like one repeated value.
pub(super) const TEXT_PER_STEP: usize = 100;

/// The alias work that every file may take.
pub const HONEST_REPEATS: usize = 10_000;

impl Limits {
    /// Returns limits for text within an object, and for files that berth wrote or a single machine reads:
    /// their alias work counts for no other file.
    pub fn of_a_part() -> Limits {
        Limits { repeats: HONEST_REPEATS, ..Limits::default() }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 10 << 20, depth: 100, nodes: 1_000_000, repeats: usize::MAX }
    }
}
