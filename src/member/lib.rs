//! The member: applies one cluster's folder to it and reports how that went.

pub mod install;
pub mod live;
pub mod sync;

#[cfg(test)]
#[path = "../git/testing.rs"]
mod testing;
