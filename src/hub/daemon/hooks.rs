//! Listeners to the ends of passes, beside the log: a page of numbers, Events.

use std::time::Duration;

use super::error::PassError;
use super::pass::PassResult;

/// The end of a pass.
#[derive(Clone, Copy, Debug)]
pub enum PassEnd<'a> {
    /// Another daemon publishes, and this one fetched.
    StoodBy,
    /// Nothing has moved since the last one, so that none was made.
    Spared,
    Done(&'a PassResult),
    Failed(&'a PassError),
    /// A bug.
    Crashed,
}

pub trait PassHooks: Send {
    /// Hears that a pass begins.
    fn begins(&mut self);

    /// Hears whether this daemon is the one of several that publishes.
    fn leads(&mut self, leads: bool);

    /// Hears that the settings changed, and whether they could be used.
    fn reloaded(&mut self, well: bool);

    /// Hears that a pass ended, and how long it took. The next one waits until this returns.
    fn ended(&mut self, end: PassEnd<'_>, took: Duration);
}
