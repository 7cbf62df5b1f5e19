//! A preview under way, on a thread of its own: a pass does not wait for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing::Span;

/// The longest that a preview may take. The limits of trees bound it too; this is for a machine that is busy.
pub(super) const LONGEST: Duration = Duration::from_secs(120);

/// Work that somebody waits for a while.
#[derive(Debug)]
pub(super) struct Drafting<Subject, Outcome> {
    pub(super) subject: Subject,
    begun: Instant,
    done: Receiver<Outcome>,
    is_given_up: bool,
}

/// The state of such work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress<Outcome> {
    Done(Outcome),
    UnderWay,
    /// It takes too long: the first look that finds so gets this. Its outcome will not count.
    GivenUp,
    /// It ended without an outcome, or with one that no longer counts.
    Gone,
}

impl<Subject, Outcome: Send + 'static> Drafting<Subject, Outcome> {
    /// Starts the work.
    pub(super) fn start(
        subject: Subject,
        work: impl FnOnce() -> Outcome + Send + 'static,
    ) -> std::io::Result<Drafting<Subject, Outcome>> {
        let (tell, done) = channel();
        let span = Span::current();
        thread::Builder::new().name("preview".to_owned()).spawn(move || {
            // Nobody may be waiting any more.
            let _ = tell.send(span.in_scope(work));
        })?;
        Ok(Drafting { subject, begun: Instant::now(), done, is_given_up: false })
    }

    /// Waits for the outcome no longer than `patience`. Work that takes longer than `longest` in all is given up.
    pub(super) fn wait(&mut self, patience: Duration, longest: Duration) -> Progress<Outcome> {
        match self.done.recv_timeout(patience) {
            Ok(outcome) if !self.is_given_up => Progress::Done(outcome),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Progress::Gone,
            Err(RecvTimeoutError::Timeout) if !self.is_given_up && self.begun.elapsed() >= longest => {
                self.is_given_up = true;
                Progress::GivenUp
            }
            Err(RecvTimeoutError::Timeout) => Progress::UnderWay,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn nobody_waits_for_work_that_goes_on() {
        let (go_on, waits) = channel();
        let mut drafting =
            Drafting::start("fix", move || waits.recv().map_or(0, |number: i32| number)).unwrap();
        assert_eq!(drafting.wait(NONE, LONG), Progress::UnderWay);
        go_on.send(7).unwrap();
        assert_eq!(drafting.wait(LONG, LONG), Progress::Done(7));
        assert_eq!(drafting.wait(LONG, LONG), Progress::Gone);
    }

    #[test]
    fn work_that_takes_too_long_is_given_up_once_and_its_outcome_does_not_count() {
        let (go_on, waits) = channel();
        let mut drafting =
            Drafting::start("fix", move || waits.recv().map_or(0, |number: i32| number)).unwrap();
        assert_eq!(drafting.wait(NONE, NONE), Progress::GivenUp);
        assert_eq!(drafting.wait(NONE, NONE), Progress::UnderWay);
        go_on.send(7).unwrap();
        assert_eq!(drafting.wait(LONG, NONE), Progress::Gone);
    }

    #[test]
    fn work_that_breaks_is_gone() {
        let mut drafting = Drafting::start("fix", || std::panic::resume_unwind(Box::new(()))).unwrap();
        assert_eq!(drafting.wait(LONG, LONG), Progress::<i32>::Gone);
    }
}
