//! Memory that passes hand to the next only saves time: over any sequence of edits, a daemon that
//! remembers publishes the very commits of one that has forgotten everything.

mod cases;
#[cfg(unix)]
mod damage;
pub mod edits;
mod grammar;
mod idle;
pub mod members;
pub mod sides;
#[cfg(unix)]
mod strange;
#[cfg(unix)]
mod walk;
