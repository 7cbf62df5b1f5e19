//! The hub: reads all inputs from Git, makes the next commit of the rendered branch, and proves earlier ones.

pub mod attestation;
pub mod daemon;
pub mod history;
pub mod inputs;
pub mod next_commit;
pub mod publish;
pub mod verify;

#[cfg(test)]
#[path = "../git/testing.rs"]
mod testing;
