//! Hooks that run when passes begin and end, apart from the log: metrics, Events.

use std::time::Duration;

use super::error::PassError;
use super::pass::PassResult;

/// The end of a pass.
#[derive(Clone, Copy, Debug)]
pub enum PassEnd<'a> {
    /// Another daemon publishes; this one only fetched.
    StoodBy,
    /// Nothing moved since the last pass, so no pass was made.
    Spared,
    Done(&'a PassResult),
    Failed(&'a PassError),
    /// The pass panicked, which is a bug.
    Crashed,
}

pub trait PassHooks: Send {
    /// Called when a pass begins.
    fn begins(&mut self);

    /// Called when this daemon, one of several, becomes or stops being the one that publishes.
    fn leads(&mut self, leads: bool);

    /// Called when the settings changed; `well` is false if they are invalid.
    fn reloaded(&mut self, well: bool);

    /// Called when a pass ended, with its duration. The next pass waits until this returns.
    fn ended(&mut self, end: PassEnd<'_>, took: Duration);
}
