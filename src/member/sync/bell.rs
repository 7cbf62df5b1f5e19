//! What ends the wait between two rounds: somebody asks to stop, or a target asks for a round.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::backends::Call;

/// Hears of both. It lives as long as the rounds do.
#[derive(Debug)]
pub struct Bell {
    sender: Sender<Rung>,
    heard: Receiver<Rung>,
}

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    Stop,
    Round,
}

impl Default for Bell {
    fn default() -> Bell {
        let (sender, heard) = mpsc::channel();
        Bell { sender, heard }
    }
}

impl Bell {
    /// Asks to stop, from wherever it is called.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // Nobody is left to hear it where the rounds have ended.
            let _ = sender.send(Rung::Stop);
        }
    }

    /// Asks for a round.
    pub fn call(&self) -> Call {
        let sender = self.sender.clone();
        Box::new(move || {
            let _ = sender.send(Rung::Round);
        })
    }

    /// Waits for either, for so long.
    pub fn wait(&self, pause: Duration) -> Option<Rung> {
        match self.heard.recv_timeout(pause) {
            Ok(rung) => Some(rung),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Rung::Stop),
        }
    }

    /// Waits out a pause, whoever asks for a round. True where somebody asks to stop.
    pub fn is_stopped_within(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        loop {
            match self.wait(end.saturating_duration_since(Instant::now())) {
                Some(Rung::Stop) => return true,
                Some(Rung::Round) => {}
                None => return false,
            }
        }
    }
}
