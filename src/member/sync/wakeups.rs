//! The channel that ends the wait between two syncs: a request to stop, or a request for a sync.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::backends::RequestSync;

/// The channel of wakeups. It lives as long as the loop.
#[derive(Debug)]
pub struct Wakeups {
    sender: Sender<Wakeup>,
    heard: Receiver<Wakeup>,
}

/// The reason to wake up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    Stop,
    Sync,
}

impl Default for Wakeups {
    fn default() -> Wakeups {
        let (sender, heard) = mpsc::channel();
        Wakeups { sender, heard }
    }
}

impl Wakeups {
    /// Returns a function that asks the loop to stop, callable from any thread.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        move || {
            // The loop may have ended.
            let _ = sender.send(Wakeup::Stop);
        }
    }

    /// Returns a function that requests a sync.
    pub(crate) fn sync_requester(&self) -> RequestSync {
        let sender = self.sender.clone();
        Box::new(move || {
            let _ = sender.send(Wakeup::Sync);
        })
    }

    /// Waits for a wakeup, at most for the pause.
    pub fn wait(&self, pause: Duration) -> Option<Wakeup> {
        match self.heard.recv_timeout(pause) {
            Ok(wakeup) => Some(wakeup),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Wakeup::Stop),
        }
    }

    /// Waits out a pause, despite requests for a sync. Returns true if asked to stop.
    pub(crate) fn is_stopped_within(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        loop {
            match self.wait(end.saturating_duration_since(Instant::now())) {
                Some(Wakeup::Stop) => return true,
                Some(Wakeup::Sync) => {}
                None => return false,
            }
        }
    }
}
