//! Makes a preview on its own thread, so that passes do not wait for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing::Span;

/// The time limit of a preview. The limits of trees also bound it; this limit is for a busy machine.
pub(super) const LONGEST: Duration = Duration::from_secs(120);

/// Background work whose outcome can be awaited for a limited time.
#[derive(Debug)]
pub(super) struct Drafting<Subject, Outcome> {
    pub(super) subject: Subject,
    begun: Instant,
    done: Receiver<Outcome>,
    is_given_up: bool,
}

/// The progress of the work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress<Outcome> {
    Done(Outcome),
    UnderWay,
    /// The work exceeded its time limit. Returned once; a later outcome is ignored.
    GivenUp,
    /// The work ended without an outcome, or after it was given up.
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
            // The receiver may be gone.
            let _ = tell.send(span.in_scope(work));
        })?;
        Ok(Drafting { subject, begun: Instant::now(), done, is_given_up: false })
    }

    /// Waits for the outcome, at most for `patience`. Gives up work that takes longer than `longest` in total.
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
