//! Progress of long work: a handle that the caller passes down, and that a display reads.
//!
//! Counting changes no result. A handle without a display counts nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The maximal number of beginnings to keep until they are taken.
const MOST_BEGINNINGS: usize = 256;

/// A handle for the progress of work. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<Arc<Mutex<Work>>>);

#[derive(Debug, Default)]
struct Work {
    stage: WorkStage,
    /// The beginnings of stages, for handles that keep them.
    beginnings: Option<Vec<Beginning>>,
}

/// The moment at which a stage began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    pub name: &'static str,
    pub at: SystemTime,
}

/// The current stage of the work, and its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkStage {
    /// Empty before the first stage.
    pub name: &'static str,
    /// Distinguishes a stage from an earlier one with the same name.
    pub number: u64,
    pub done: u64,
    /// `None` if the end is not known.
    pub total: Option<u64>,
}

impl Progress {
    /// Returns a handle that counts.
    pub fn counting() -> Progress {
        Progress(Some(Arc::default()))
    }

    /// Returns a handle that also keeps the beginning of each stage.
    pub fn remembering() -> Progress {
        let work = Work { beginnings: Some(Vec::new()), ..Work::default() };
        Progress(Some(Arc::new(Mutex::new(work))))
    }

    /// Takes the beginnings since the last call; of too many, the first ones.
    pub fn take_beginnings(&self) -> Vec<Beginning> {
        let mut taken = Vec::new();
        self.change(|work| taken = work.beginnings.as_mut().map(std::mem::take).unwrap_or_default());
        taken
    }

    /// Reports whether the handle counts.
    pub fn is_counting(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a stage without a known end.
    pub fn begin(&self, name: &'static str) {
        self.enter(name, None);
    }

    /// Begins a stage with this many steps.
    pub fn begin_of(&self, name: &'static str, total: usize) {
        self.enter(name, Some(total as u64));
    }

    /// Adds steps to the stage.
    pub fn add(&self, steps: usize) {
        self.change(|work| work.stage.done += steps as u64);
    }

    /// Returns the current stage.
    pub fn stage(&self) -> WorkStage {
        let mut now = WorkStage::default();
        self.change(|work| now = work.stage);
        now
    }

    fn enter(&self, name: &'static str, total: Option<u64>) {
        self.change(|work| {
            work.stage = WorkStage { name, number: work.stage.number + 1, done: 0, total };
            if let Some(beginnings) = work.beginnings.as_mut().filter(|all| all.len() < MOST_BEGINNINGS) {
                beginnings.push(Beginning { name, at: SystemTime::now() });
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Work)) {
        if let Some(work) = &self.0 {
            change(&mut work.lock().unwrap_or_else(PoisonError::into_inner));
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
        assert_eq!(progress.stage(), WorkStage { name: "proving", number: 1, done: 2, total: Some(3) });
        progress.begin("proving");
        assert_eq!(progress.stage(), WorkStage { name: "proving", number: 2, done: 0, total: None });
    }

    #[test]
    fn beginnings_are_remembered_until_they_are_taken() {
        let progress = Progress::remembering();
        progress.begin("fetching");
        progress.begin_of("pushing", 2);
        let names = || progress.take_beginnings().iter().map(|begun| begun.name).collect::<Vec<_>>();
        assert_eq!(names(), ["fetching", "pushing"]);
        assert!(names().is_empty());
        (0..2 * MOST_BEGINNINGS).for_each(|_| progress.begin("proving"));
        assert_eq!(names().len(), MOST_BEGINNINGS);
    }

    #[test]
    fn a_handle_that_nobody_looks_at_counts_nothing() {
        let progress = Progress::default();
        progress.begin_of("proving", 3);
        progress.add(1);
        assert_eq!(progress.stage(), WorkStage::default());
    }
}
