//! Progress of long work: a handle that the caller passes down, and that a display reads.
//!
//! Counting changes no result. A handle that nobody looks at counts nothing.

use std::sync::{Arc, Mutex, PoisonError};

/// A handle for the progress of work. Copies count together.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<Arc<Mutex<Stage>>>);

/// The work in progress, and how much of it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Empty before the first one.
    pub name: &'static str,
    /// Tells a stage from an earlier one of its name.
    pub number: u64,
    pub done: u64,
    /// `None` where the end is not known.
    pub total: Option<u64>,
}

impl Progress {
    /// A handle that counts.
    pub fn counting() -> Progress {
        Progress(Some(Arc::default()))
    }

    /// Reports whether anybody may look.
    pub fn is_counting(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a stage whose end is not known.
    pub fn begin(&self, name: &'static str) {
        self.enter(name, None);
    }

    /// Begins a stage of so many steps.
    pub fn begin_of(&self, name: &'static str, total: usize) {
        self.enter(name, Some(total as u64));
    }

    /// Counts steps of the stage.
    pub fn add(&self, steps: usize) {
        self.change(|stage| stage.done += steps as u64);
    }

    /// The stage as it is now.
    pub fn stage(&self) -> Stage {
        let mut now = Stage::default();
        self.change(|stage| now = *stage);
        now
    }

    fn enter(&self, name: &'static str, total: Option<u64>) {
        self.change(|stage| *stage = Stage { name, number: stage.number + 1, done: 0, total });
    }

    fn change(&self, change: impl FnOnce(&mut Stage)) {
        if let Some(stage) = &self.0 {
            change(&mut stage.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_count_together_and_a_new_stage_begins_at_nothing() {
        let progress = Progress::counting();
        progress.begin_of("proving", 3);
        progress.clone().add(2);
        assert_eq!(progress.stage(), Stage { name: "proving", number: 1, done: 2, total: Some(3) });
        progress.begin("proving");
        assert_eq!(progress.stage(), Stage { name: "proving", number: 2, done: 0, total: None });
    }

    #[test]
    fn a_handle_that_nobody_looks_at_counts_nothing() {
        let progress = Progress::default();
        progress.begin_of("proving", 3);
        progress.add(1);
        assert_eq!(progress.stage(), Stage::default());
    }
}
